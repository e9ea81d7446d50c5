"""Tests of a Space with records on the Hub: its responses while records wait, and its shutdown."""

import shutil
import threading
import time
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from arb.core.settings import Settings
from arb.core.suite import load_suite
from space.app import create_app
from submissions.app import SubmissionsApp
from tests.space.test_several_suites import devai_file
from tests.support.hub_server.server import running_hub
from tests.support.hub_threads import records_on
from tests.support.space_app import signed_in
from tests.support.submissions import FORM, settings_for, verdicts, write_suite
from tests.support.waiting import eventually

RECORDS = "maintainer/records"


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("submissions.hub.repository.MINUTE", 0.2)
    with running_hub(monkeypatch) as server:
        yield server


def settings_on_the_hub(folder) -> Settings:
    write_suite(folder)
    return settings_for(
        folder, folder / "state", records_repo=RECORDS, hf_token="hf_maintainer", state_lasts=False,
        secret="4f6f7adf61dd3b34cf532eae18d05771",
    )  # fmt: skip


@pytest.mark.slow
def test_a_space_reports_records_that_wait_and_stops_with_its_work_done(hub, tmp_path, monkeypatch):
    quick = SimpleNamespace(**vars(time) | {"sleep": lambda _seconds: None})
    monkeypatch.setattr("huggingface_hub.utils._http.time", quick)  # the client tries five more times
    settings = settings_on_the_hub(tmp_path)
    app = create_app(settings)
    form = {**FORM, "test_labels_used": "false"}
    go_on = threading.Event()
    with TestClient(app) as client:
        suite = load_suite(settings.suite)
        hub.fail("POST", "/commit/", first=lambda: go_on.wait(120))
        answer = client.post("/api/submissions", data=form, files={"file": ("a.jsonl", verdicts(suite))})
        go_on.set()
        # immediately, and not only when the Hub has it
        assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
        assert answer.headers["location"] == f"/api/submissions/{answer.json()['submission_id']}"
        assert int(answer.headers["retry-after"]) >= 1
        ada = signed_in(SubmissionsApp(settings), answer.json()["account"])
        eventually(lambda: client.get(answer.headers["location"], headers=ada).json()["status"] == "accepted")
        assert "retry-after" not in client.get(answer.headers["location"], headers=ada).headers
        health = client.get("/readyz").json()
        assert (health["submissions"], health["waiting"], health["records"]) == ("open", 0, None)

        for method in ("GET", "HEAD", "POST"):
            hub.fail(method, ".*", times=1_000_000, status=503)
        file = {"file": ("b.jsonl", verdicts(suite, misses=1))}
        answer = client.post("/api/submissions", data=form, files=file)
        assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
        eventually(lambda: client.get("/readyz").json()["waiting"] == 2)
        failing = "2 records wait to be saved on the Hub. The Hub does not answer"
        eventually(lambda: client.get("/readyz").json()["records"].startswith(failing))
        hub.faults.clear()
        eventually(lambda: client.get("/readyz").json()["waiting"] == 0)
    assert len(records_on(hub)) == 4
    threads = {thread.name for thread in threading.enumerate()}
    assert "records to the Hub" not in threads


def test_a_start_does_not_wait_for_a_slow_hub_and_opens_once_it_has_answered(hub, tmp_path):
    settings = settings_on_the_hub(tmp_path)
    answers = threading.Event()
    for method in ("GET", "HEAD", "POST"):
        hub.fail(method, ".*", times=1_000_000, first=lambda: answers.wait(120))
    app = create_app(settings, wait_s=0)
    form, content = {**FORM, "test_labels_used": "false"}, verdicts(load_suite(settings.suite))
    with TestClient(app) as client:
        assert client.get("/readyz").json()["submissions"] == "off"
        assert client.get("/").status_code == 200
        assert "being restored from the Hub" in client.get("/submit").text
        refused = client.post("/api/submissions", data=form, files={"file": ("a.jsonl", content)})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
        answers.set()
        eventually(lambda: client.get("/readyz").json()["submissions"] == "open")
        answer = client.post("/api/submissions", data=form, files={"file": ("a.jsonl", content)})
        assert answer.status_code in (201, 202), answer.text  # 201 where the Hub has it by now
        eventually(lambda: client.get("/readyz").json()["waiting"] == 0)
        assert "being restored from the Hub" not in client.get("/submit").text


@pytest.mark.slow
def test_each_suite_has_its_folder_in_the_repository_and_is_restored_from_it(hub, tmp_path):
    settings = settings_on_the_hub(tmp_path)
    settings = settings.model_copy(update={"suites": f"{settings.suite},devai"})
    form = {**FORM, "test_labels_used": "false"}
    contents = {"": verdicts(load_suite(settings.suite)), "?suite=devai": devai_file()}
    boards = {}
    with TestClient(create_app(settings)) as client:
        for suite in contents:  # opening the second suite connects it to the Hub in a thread
            eventually(lambda suite=suite: client.get(f"/readyz{suite}").status_code == 200)
        for suite, content in contents.items():
            for judge in ("A", "B"):  # the suites take turns, so each finds the other's commits
                files = {"file": ("a.jsonl", content)}
                sent = client.post(f"/api/submissions{suite}", data={**form, "judge": judge}, files=files)
                assert sent.status_code in (201, 202)
        for suite in contents:
            eventually(lambda suite=suite: client.get(f"/readyz{suite}").json()["waiting"] == 0)
            boards[suite] = client.get(f"/api/board.json{suite}").content
    found = set(hub.repository(RECORDS).head.files)
    assert {"writer.json", "suites/devai/writer.json"} <= found
    for folder in ("", "suites/devai/"):
        assert any(path.startswith(f"{folder}records/0000/") for path in found)
        assert len([path for path in found if path.startswith(f"{folder}files/")]) == 1

    shutil.rmtree(settings.state_dir)
    with TestClient(create_app(settings)) as client:
        for suite, board in boards.items():
            eventually(lambda suite=suite: client.get(f"/readyz{suite}").status_code == 200)
            assert client.get(f"/api/board.json{suite}").content == board
            judges = {each["judge"] for each in client.get(f"/api/judges{suite}").json()["judges"]}
            assert {"A", "B"} <= judges
