"""The middleware around all others: ids, log lines, an answer to what nobody caught."""

import logging

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from space.operations.metrics import Metrics
from space.operations.requests import HEADER, RequestLog, path_for_log, request_id_of

PLANTED = "webarena.17-is-Successful"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def client(metrics):
    app = FastAPI()

    @app.get("/things/{thing}")
    def thing(thing: str, request: Request):
        logging.getLogger("space.inside").warning("inside")
        return {"thing": thing}

    @app.post("/fails")
    async def fails(request: Request):
        raise ValueError(PLANTED)

    app.add_middleware(RequestLog, metrics=metrics)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_every_answer_has_an_id_of_its_own(client):
    ids = [client.get(path).headers[HEADER] for path in ("/things/1", "/things/1", "/nowhere")]
    assert len(set(ids)) == 3
    assert all(len(each) == 16 for each in ids)


@pytest.mark.parametrize("given_id", ["a", "9f.2-b_C", "x" * 64])
def test_a_short_plain_id_of_a_proxy_is_taken(client, given_id):
    assert client.get("/things/1", headers={HEADER: given_id}).headers[HEADER] == given_id


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=100))
def test_whatever_is_given_the_id_is_a_short_plain_word(text):
    found = request_id_of(Headers(raw=[(b"x-request-id", text.encode("latin-1"))]))
    assert 1 <= len(found) <= 64
    assert all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in found)


def test_a_request_is_one_line_with_its_path_and_without_its_query(client, caplog):
    with caplog.at_level(logging.INFO):
        client.get("/things/7?token=hf_secret&code=abc")
    (record,) = [r for r in caplog.records if r.name == "space.requests"]
    assert (record.method, record.path, record.status) == ("GET", "/things/7", 200)
    assert record.ms >= 0
    assert "hf_secret" not in str(vars(record)) and "abc" not in str(vars(record))


def test_what_nobody_caught_is_a_500_with_the_id_and_nothing_else(client, caplog, metrics):
    answer = client.post("/fails?x=1", content=PLANTED)
    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer.headers[HEADER]
    assert PLANTED not in answer.text and "ValueError" not in answer.text
    assert 'arb_failures_total{where="request"} 1.0' in metrics.text().decode()
    (line,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert line.exc_info[0] is ValueError


def test_a_line_from_inside_a_request_has_its_id(client):
    import structlog

    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(structlog.contextvars.get_contextvars().get("request_id"))
    inside = logging.getLogger("space.inside")
    inside.addHandler(handler)
    try:
        answer = client.get("/things/1")
    finally:
        inside.removeHandler(handler)
    assert seen == [answer.headers[HEADER]]
    assert "request_id" not in structlog.contextvars.get_contextvars()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/gradio_api/file=/tmp/gradio/ab/my-verdicts.jsonl", "/gradio_api/file=…"),
        ("/gradio_api/upload", "/gradio_api/upload…"),
        ("/a\nb\x1b[31m", "/a?b?[31m"),
        ("/" + "x" * 500, "/" + "x" * 199 + "…"),
        ("/api/board.json", "/api/board.json"),
    ],
)
def test_the_path_in_a_log_is_short_on_one_line_and_names_no_file(path, told):
    assert path_for_log(path) == told


def test_durations_are_kept_by_route_and_not_by_address(client, metrics):
    for path in ("/things/1", "/things/2", "/nowhere/1", "/nowhere/2"):
        client.get(path)
    client.request("BREW", "/things/1")
    text = metrics.text().decode()
    assert 'arb_request_seconds_count{method="GET",route="/things/{thing}",status="2xx"} 2.0' in text
    assert 'arb_request_seconds_count{method="GET",route="other",status="4xx"} 2.0' in text
    assert "nowhere" not in text and "BREW" not in text
