"""Tests of the copy of the public board on the Hub."""

import json

import yaml

from tests.submissions.hub.conftest import BOARD, RECORDS
from tests.support.hub_threads import contents, titles
from tests.support.submissions import SECRET_ANNOTATOR, send, verdicts
from tests.support.waiting import eventually


def digest_there(hub) -> str | None:
    if BOARD not in hub.api.repositories or "board.json" not in contents(hub, BOARD):
        return None
    return json.loads(contents(hub, BOARD)["board.json"])["digest"]


def test_the_board_follows_the_records_and_holds_only_what_is_public(hub, opened, monkeypatch):
    monkeypatch.setattr("submissions.hub.board_copy.SECONDS_BETWEEN_CHECKS", 0.05)
    service = opened(board_repo=BOARD)
    send(service, verdicts(service.suite))
    eventually(lambda: digest_there(hub) == service.records.board().digest)
    found = contents(hub, BOARD)
    assert found["board.json"] == service.records.board().to_bytes()
    assert found["board.csv"].startswith(b"label,")
    assert found.keys() == {".gitattributes", "README.md", "board.csv", "board.json"}
    assert yaml.safe_load(found["README.md"].split(b"---")[1])["configs"][0]["data_files"] == "board.csv"
    assert not hub.repository(BOARD).private
    everything = b"".join(found.values())
    assert SECRET_ANNOTATOR.encode() not in everything
    assert b"counts_by_task" not in everything
    number = len(titles(hub, BOARD))
    send(service, verdicts(service.suite))  # the same file gives the same board
    send(service, verdicts(service.suite, misses=1))
    eventually(lambda: digest_there(hub) == service.records.board().digest)
    assert len(titles(hub, BOARD)) == number + 1


def test_a_start_with_the_same_board_makes_no_commit(hub, opened, crash, monkeypatch):
    monkeypatch.setattr("submissions.hub.board_copy.SECONDS_BETWEEN_CHECKS", 0.05)
    service = opened(board_repo=BOARD)
    send(service, verdicts(service.suite))
    eventually(lambda: digest_there(hub) == service.records.board().digest)
    service.close()
    number, asked = len(titles(hub, BOARD)), len(hub.requests("GET", f"/api/datasets/{BOARD}"))
    opened(board_repo=BOARD)
    eventually(lambda: len(hub.requests("GET", f"/api/datasets/{BOARD}/tree")) and
               len(hub.requests("GET", f"/api/datasets/{BOARD}")) >= asked + 2)  # fmt: skip
    assert len(titles(hub, BOARD)) == number


def test_trouble_with_the_board_keeps_no_record_waiting(hub, opened):
    hub.fail("POST", f"/api/datasets/{BOARD}/commit", times=1_000_000, status=403)
    service = opened(board_repo=BOARD)
    assert send(service, verdicts(service.suite)).status == "accepted"
    assert titles(hub, RECORDS)[-1].startswith("Records")


def test_without_a_repository_of_records_the_board_is_brought_too(hub, opened):
    service = opened(board_repo=BOARD, records_repo=None, state_lasts=True)
    eventually(lambda: digest_there(hub) == service.records.board().digest)
    assert service.durability.waiting() == 0


def test_no_board_is_brought_before_the_records_are_restored(hub, opened, crash, monkeypatch, tmp_path):
    monkeypatch.setattr("submissions.hub.board_copy.SECONDS_BETWEEN_CHECKS", 0.02)
    service = opened(board_repo=BOARD)
    send(service, verdicts(service.suite))
    eventually(lambda: digest_there(hub) == service.records.board().digest)
    service.close()
    hub.fail("GET", f"/api/datasets/{RECORDS}", times=1_000_000, status=503)
    hub.seen.clear()
    opened(board_repo=BOARD, state_dir=tmp_path / "other")
    eventually(lambda: len(hub.requests("GET", f"/api/datasets/{RECORDS}")) >= 5)
    assert hub.requests("GET", BOARD) == []
