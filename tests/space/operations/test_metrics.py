"""Tests of metrics: who may read them, and what is counted."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from space.operations.metrics import MOST_ROUTES, Metrics, build_metrics_router
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from tests.support.submissions import declaration, verdicts


def client_of(token: str | None, is_maintainer=lambda request: False) -> TestClient:
    app = FastAPI()
    secret = SecretStr(token) if token is not None else None
    app.include_router(build_metrics_router(Metrics(), secret, is_maintainer))
    return TestClient(app)


def status(client, authorization=None) -> int:
    return client.get(
        "/metrics", headers={"authorization": authorization} if authorization else {}
    ).status_code


def test_without_a_token_of_the_server_there_is_no_such_page(monkeypatch):
    for authorization in (None, "Bearer ", "Bearer x", "Bearer None"):
        assert status(client_of(None), authorization) == 404
    assert client_of(None).get("/metrics").json() == client_of(None).get("/nowhere").json()


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        ("Bearer right", 200), ("bearer right", 200), (None, 401), ("Bearer wrong", 401), ("Bearer ", 401),
        ("Basic right", 401), ("right", 401), ("Bearer right2", 401), ("Bearer righ", 401),
    ],
)  # fmt: skip
def test_the_token_and_nothing_else_opens_it(authorization, expected):
    assert status(client_of("right"), authorization) == expected


def test_an_empty_token_opens_nothing():
    assert status(client_of(""), "Bearer ") == 401


def test_a_maintainer_may_read_without_the_token():
    assert status(client_of(None, lambda request: True)) == 200


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def watched(settings, metrics) -> SubmissionsApp:
    service = SubmissionsApp(settings)
    metrics.watch(service)
    return service


def counted(metrics, line: str) -> bool:
    return line in metrics.text().decode().splitlines()


def test_checks_and_submissions_are_counted_by_what_came_of_them(watched, metrics):
    upload = watched.intake.check(verdicts(watched.suite), "a.jsonl", "test")
    watched.intake.check(b"nonsense", "a.jsonl", "test")
    watched.intake.submit(upload, declaration())
    watched.intake.submit(upload, declaration())
    dev = watched.intake.check(verdicts(watched.suite, "dev"), "a.jsonl", "dev")
    with pytest.raises(SubmissionError):
        watched.intake.submit(dev, declaration())
    assert counted(metrics, 'arb_checks_total{outcome="acceptable"} 2.0')
    assert counted(metrics, 'arb_checks_total{outcome="not acceptable"} 1.0')
    for outcome in ("accepted", "sent again", "refused"):
        assert counted(metrics, f'arb_submissions_total{{outcome="{outcome}"}} 1.0'), outcome
    assert "arb_failures_total{" not in metrics.text().decode()


def test_a_fault_of_ours_is_counted_as_one(watched, metrics, monkeypatch):
    upload = watched.intake.check(verdicts(watched.suite), "a.jsonl", "test")
    monkeypatch.setattr(watched.files, "keep", lambda content: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        watched.intake.submit(upload, declaration())
    assert counted(metrics, 'arb_submissions_total{outcome="failed"} 1.0')
    assert counted(metrics, 'arb_failures_total{where="submission"} 1.0')


def test_the_queue_is_asked_when_metrics_are_read(settings, metrics, monkeypatch):
    service, waiting = SubmissionsApp(settings), [3, 1]
    monkeypatch.setattr(service.durability, "waiting", waiting.pop)
    metrics.watch(service)
    assert counted(metrics, "arb_waiting_records 1.0")
    assert counted(metrics, "arb_waiting_records 3.0")


def test_many_routes_make_no_more_lines(metrics):
    for number in range(MOST_ROUTES + 50):
        metrics.observe("GET", f"/made/{number}", 200, 0.1)
    lines = metrics.text().decode().splitlines()
    assert sum(line.startswith("arb_request_seconds_count") for line in lines) == MOST_ROUTES + 1
