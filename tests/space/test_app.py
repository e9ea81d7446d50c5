"""Tests of the whole application in this process, called as by strangers without a browser."""

import json
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from gradio import processing_utils

from arb.core.suite import load_suite
from space.app import create_app
from submissions.app import SubmissionsApp
from submissions.scoring import scorer
from tests.space.test_permissions import call
from tests.support.permissions import expected
from tests.support.submissions import SECRET_ANNOTATOR, TASKS, send, settings_for, verdicts


@pytest.fixture(scope="module")
def settings(suite_folder, tmp_path_factory):
    """Return the settings of the running application, with one submission from before the start."""
    settings = settings_for(suite_folder, tmp_path_factory.mktemp("app") / "state", max_upload_bytes=100_000)
    service = SubmissionsApp(settings)
    send(service, verdicts(service.suite))
    return settings


@pytest.fixture
def uploads(settings) -> Path:
    """Return the folder for uploaded files."""
    return settings.state_dir.resolve() / "uploads"


@pytest.fixture(scope="module")
def client(settings):
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module", params=["check", "check_1"])
def check_event(client, request) -> int:
    """Return the number of the event that checks a file: that of the endpoint, or that of the form."""
    (event,) = [
        dependency["id"]
        for dependency in client.get("/config").json()["dependencies"]
        if dependency["api_name"] == request.param
    ]
    return event


def upload(client, content: bytes, name="verdicts.jsonl") -> str:
    answer = client.post("/gradio_api/upload", files={"files": (name, content)})
    assert answer.status_code == 200, answer.text
    return answer.json()[0]


def dropped(path: str) -> dict:
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


# Starting


def test_starting_finishes_what_a_killed_process_left(suite_folder, tmp_path, monkeypatch):
    settings = settings_for(suite_folder, tmp_path / "state")
    service = SubmissionsApp(settings)
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: False)
        send(service, verdicts(service.suite))
    assert service.records.board().rows == ()
    create_app(settings)
    assert len(service.records.board().rows) == 1


def test_the_app_starts_although_a_kept_file_is_damaged(suite_folder, tmp_path, monkeypatch, caplog):
    settings = settings_for(suite_folder, tmp_path / "state")
    service = SubmissionsApp(settings)
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: False)
        receipt = send(service, verdicts(service.suite))
    service.files.path(receipt.file_sha256).write_bytes(b"rubbish")
    with caplog.at_level(logging.WARNING):
        create_app(settings)
    assert receipt.submission_id in caplog.text


def test_without_labels_the_app_starts_read_only_and_says_why(settings, uploads):
    changed = settings.model_copy(update={"labels": "none"})
    with TestClient(create_app(changed)) as client:
        assert client.get("/readyz").json()["submissions"] == "off"
        assert len(client.get("/api/board.json").json()["rows"]) == 1
        assert "no labels are configured" in client.get("/submit").text


# Endpoints


def test_openapi_describes_routes_that_have_their_permissions_and_no_other(client):
    described = {
        f"{method.upper()} {path}": operation
        for path, operations in client.get("/api/openapi.json").json()["paths"].items()
        for method, operation in operations.items()
    }
    assert {"GET /api/board.json", "POST /api/check", "POST /api/submissions"} <= described.keys()
    # OpenAPI cannot describe a parameter that may contain a slash.
    assert described.keys() <= {line.replace(":path}", "}") for line in expected()}
    assert [route for route, operation in described.items() if not operation.get("summary")] == []


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/compare", "GET, HEAD"),
        ("DELETE", "/api/board.json", "GET, HEAD"),
        ("GET", "/api/check", "POST"),
        ("PUT", "/api/submissions", "POST"),  # a form route
        ("DELETE", "/my-agent", "GET, HEAD, POST"),
        ("DELETE", "/api/maintain/labels", "GET, HEAD, POST"),  # separate routes
    ],
)
def test_a_method_that_an_address_does_not_take_is_named_as_the_problem(client, method, path, allowed):
    body = bytes(100_000) if method == "PUT" else None  # `curl -T FILE` sends a file so
    answer = client.request(method, path, content=body)
    assert (answer.status_code, answer.headers.get("allow")) == (405, allowed), answer.text
    assert client.request(method, "/no-such-page").status_code == 404


def test_there_are_no_pages_that_load_scripts_from_elsewhere(client):
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    assert client.get("/api/docs").status_code == 404


# Readable files


def hidden_files(settings) -> list[str]:
    state = settings.state_dir
    (kept,) = [path for path in (state / "files").rglob("*") if path.is_file()]
    labels = settings.labels.removeprefix("csv:")
    return [
        str(state / "records.sqlite"),
        str(kept),
        labels,
        "/etc/passwd",
        str(Path("pyproject.toml").resolve()),
    ]


def test_no_file_of_the_server_is_served(client, settings):
    for path in hidden_files(settings):
        for address in (f"/gradio_api/file={path}", f"/gradio_api/file=..{path}", f"/file={path}"):
            assert client.get(address).status_code in (403, 404), address


def test_an_uploaded_file_is_checked(client, check_event, settings):
    path = upload(client, verdicts(load_suite(settings.suite)))
    found = call(client, check_event, [dropped(path), "test"], {})
    assert found["success"]
    assert "30" in json.dumps(found["output"]["data"][0])


def test_a_path_that_was_not_uploaded_is_not_read(client, check_event, settings, uploads):
    # A page sends the path that the upload returned, but a stranger can send any path. If the file were read,
    # the findings would show its first lines.
    first = upload(client, b"{}\n")
    for path in hidden_files(settings):
        for sent in (path, f"{first}/../../../../../../../../..{path}", f"file://{path}"):
            found = call(client, check_event, [dropped(sent), "test"], {})
            assert not found["success"], sent
            assert found["output"].get("data") is None
    copies = [path.name for path in uploads.rglob("*") if path.is_file()]
    assert not {"passwd", "labels.csv", "records.sqlite"} & set(copies)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/x", "http://169.254.169.254/latest", "https://example.org/x"]
)
def test_the_server_fetches_no_address_that_a_stranger_names(client, check_event, address, monkeypatch):
    fetched = []

    async def fetch(url, *_arguments, **_options):
        fetched.append(url)
        raise OSError("no network in tests")

    monkeypatch.setattr(processing_utils, "async_ssrf_protected_download", fetch)
    assert not call(client, check_event, [dropped(address), "test"], {})["success"]
    assert fetched == []


def test_an_upload_over_the_limit_is_refused_and_not_stored(client, settings, uploads):
    content = b"x" * (settings.max_upload_bytes + 1)
    answer = client.post("/gradio_api/upload", files={"files": ("big.jsonl", content)})
    assert answer.status_code == 413
    assert [
        path for path in uploads.rglob("*") if path.is_file() and path.stat().st_size >= len(content)
    ] == []


# What responses reveal


def test_an_error_answer_shows_no_traceback_and_no_path(client, check_event, uploads, settings):
    gone = Path(upload(client, b"gone soon\n"))
    gone.unlink()
    for data in (
        (dropped(str(gone)), "test"),
        (dropped(str(gone)), "nosuchsplit"),
        ({"no": "file"}, "test"),
        (),
    ):
        text = json.dumps(call(client, check_event, [*data], {}))
        for hidden in ("Traceback", str(settings.state_dir), "site-packages", "FileNotFoundError"):
            assert hidden not in text


def test_no_page_gives_away_labels_tasks_or_paths(client, settings, tmp_path):
    for path in ("/", "/submit", "/about", "/config"):
        text = client.get(path).text
        hidden = [
            "counts_by_task",
            SECRET_ANNOTATOR,
            str(settings.state_dir),
            settings.labels,
            str(Path.cwd()),
        ]
        hidden += [task for _, task in TASKS]
        assert [word for word in hidden if word in text] == [], path


def test_nothing_is_fetched_from_elsewhere(client):
    page = client.get("/").text
    assert "fonts.googleapis.com" not in page
    assert client.get("/config").json()["analytics_enabled"] is False
