"""A disk that is full while an upload arrives: one message with status 507, and nothing is left behind."""

import contextlib
import errno
import logging
import os
import tempfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.operations import upload_queue
from space.operations.upload_queue import BODY_IN_MEMORY
from space.web.body_limits import FORM_ROUTES
from tests.support.submissions import settings_for, verdicts, with_rules

MESSAGE = "the Space's disk is full, so nothing was stored; try again later"
DECLARED = {
    "account": "Ann", "judge": "Alpha", "kind": "LLM judge", "inputs": "tree", "test_labels_used": "false",
}  # fmt: skip
PARTS = {
    "/api/check": ("file",),
    "/api/submissions": ("file",),
    "/api/estimate": ("verdicts", "labels"),
    "/my-agent": ("verdicts", "labels"),
    "/rates": ("verdicts", "labels"),
    "/validate": ("verdicts", "labels"),
    "/gradio_api/upload": ("files",),
}
LARGE = 1_100_000
"""Starlette keeps a file of more than 1 MB on the disk while it reads a form."""


@pytest.fixture(scope="module")
def app(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("full") / "state"
    return create_app(settings_for(suite_folder, state, max_upload_bytes=3_000_000, checks_a_minute=10_000))


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def service(app):
    return app.state.services_by_suite.default.submissions


@contextlib.contextmanager
def full_disk():
    """Inside the block, temporary files lie on a device that is always full."""

    def device(**options):
        return Path("/dev/full").open("w+b")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "TemporaryFile", device)
        yield


@pytest.fixture
def full():
    with full_disk():
        yield


def send(client, path: str, size: int, headers=None, data=None):
    files = [(part, (f"{part}.jsonl", b"x" * size)) for part in PARTS[path]]
    return client.post(path, files=files, headers=headers, data=data)


def assert_refused_and_logged_once(answer, caplog, folder) -> None:
    assert (answer.status_code, answer.headers["Retry-After"]) == (507, "30")
    assert answer.json() == {"detail": MESSAGE}
    (line,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.exc_info is None
    assert line.getMessage() == (
        f"an upload was refused because the disk of {folder} is full; free some space on it, or set "
        "ARB_STATE_DIR and TMPDIR to folders on a larger disk"
    )


@pytest.mark.parametrize("path", FORM_ROUTES)
def test_a_disk_that_is_full_while_a_form_arrives_is_507(path, client, full, caplog):
    answer = send(client, path, 2 * BODY_IN_MEMORY)
    assert_refused_and_logged_once(answer, caplog, tempfile.gettempdir())


@pytest.mark.parametrize("path", FORM_ROUTES)
def test_a_disk_that_is_full_while_a_form_is_read_is_507(path, client, full, monkeypatch, caplog):
    monkeypatch.setattr(upload_queue, "BODY_IN_MEMORY", 10 * LARGE)  # only Starlette needs the disk
    answer = send(client, path, LARGE)
    assert_refused_and_logged_once(answer, caplog, tempfile.gettempdir())


def test_a_disk_that_is_full_while_a_call_of_mcp_arrives_is_507(client, full, caplog):
    answer = client.post("/mcp", content=b"x" * 2 * BODY_IN_MEMORY)
    assert_refused_and_logged_once(answer, caplog, tempfile.gettempdir())


@pytest.mark.parametrize("path", ["/my-agent", "/rates", "/validate"])
@pytest.mark.parametrize("at_once", [BODY_IN_MEMORY, 10 * LARGE])
def test_a_browser_gets_a_page_about_the_full_disk(path, at_once, client, full, monkeypatch):
    monkeypatch.setattr(upload_queue, "BODY_IN_MEMORY", at_once)
    answer = send(client, path, LARGE, headers={"accept": "text/html"})
    assert answer.status_code == 507
    assert "Insufficient storage" in answer.text
    assert "The Space&#39;s disk is full, so nothing was stored; try again later." in answer.text


def test_an_upload_that_does_not_fit_leaves_nothing_and_does_not_count(client, service, monkeypatch, caplog):
    def no_room(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    def upload(content: bytes):
        return client.post("/gradio_api/upload", files={"files": ("a.jsonl", content)})

    folder = service.settings.state_dir.resolve() / "uploads"
    (before,) = upload(b"before").json()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_room)
        assert_refused_and_logged_once(upload(b"new"), caplog, folder)
        assert upload(b"before").status_code == 507
    assert [str(path) for path in folder.glob("*/*")] == [before]
    assert len(list(folder.iterdir())) == 1
    assert Path(before).read_bytes() == b"before"
    assert upload(b"new").status_code == 200


def test_a_submission_that_a_full_disk_refused_does_not_count(client, service, monkeypatch):
    with_rules(service, files_a_day=1, files_a_year=1)
    content = verdicts(service.suite)
    content += b"\n" * (LARGE - len(content))
    form = {"files": {"file": ("a.jsonl", content)}, "data": DECLARED}
    for at_once in (BODY_IN_MEMORY, 10 * LARGE):
        monkeypatch.setattr(upload_queue, "BODY_IN_MEMORY", at_once)
        with full_disk():
            assert client.post("/api/submissions", **form).status_code == 507
    assert not any(path.is_file() for path in service.files.folder.rglob("*"))
    assert not service.records.board().rows
    assert client.post("/api/submissions", **form).status_code == 201
    form["data"] = {**DECLARED, "judge": "Beta"}
    assert client.post("/api/submissions", **form).status_code == 429  # the second file of the day
