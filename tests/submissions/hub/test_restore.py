"""Tests of starting with an empty disk, with an old disk, and while the Hub does not answer."""

import shutil

import pytest

from submissions.errors import TemporarilyClosed
from submissions.hub.mirror import HUB_SILENT, RESTORING
from submissions.hub.records_copy import STARTS
from submissions.hub.repository import file_path
from submissions.intake.accounts import Actor
from submissions.scoring import scorer
from tests.submissions.hub.conftest import COMMIT, lose_the_disk
from tests.support.hub_threads import records_of, records_on, titles
from tests.support.submissions import declaration, send, stored_files, verdicts
from tests.support.waiting import eventually


def silence(hub) -> None:
    """Make the Hub answer only 503 until its faults are cleared."""
    for method in ("GET", "HEAD", "POST", "PUT"):
        hub.fail(method, ".*", times=1_000_000, status=503)


def test_a_start_from_nothing_restores_records_files_and_board(hub, opened, crash):
    service = opened()
    sent = [send(service, verdicts(service.suite, misses=n), judge=f"Judge {n % 2}") for n in range(4)]
    before, records = service.records.board().to_bytes(), records_of(service)
    names = {path.name for path in stored_files(service)}
    lose_the_disk(service, crash)
    again = opened()
    assert records_of(again) == records
    assert again.records.board().to_bytes() == before
    assert {path.name for path in stored_files(again)} == names
    for n, receipt in enumerate(sent):
        repeated = send(again, verdicts(again.suite, misses=n), judge=f"Judge {n % 2}")
        assert not repeated.is_new
        assert repeated.signature == receipt.signature
    assert list((again.settings.state_dir / "hub").glob("fetched-*")) == []


@pytest.mark.slow
def test_every_accepted_receipt_survives_kills_between_commits_and_a_lost_disk_each_time(hub, opened, crash):
    accepted = []
    for n in range(3):
        service = opened()
        accepted.append(send(service, verdicts(service.suite, misses=n)))
        assert accepted[-1].status == "accepted"
        # Recorded but not reported as accepted, so it may be lost with the disk and is submitted again.
        hub.fail("POST", COMMIT, times=1_000_000, status=503)
        waiting = _send_without_waiting(service, verdicts(service.suite, false_alarms=n + 1))
        assert waiting.status == "waiting"
        lose_the_disk(service, crash)
        hub.faults.clear()
        again = opened()
        accepted.append(send(again, verdicts(again.suite, false_alarms=n + 1)))
        lose_the_disk(again, crash)
    board = opened().records.board()
    assert sorted(row.id for row in board.rows) == sorted(receipt.submission_id for receipt in accepted)
    assert len({receipt.submission_id for receipt in accepted}) == 6
    assert titles(hub).count(STARTS) == 7


def test_an_old_disk_takes_the_newer_records_and_their_files(hub, opened, crash, tmp_path):
    service = opened()
    send(service, verdicts(service.suite))
    crash(service)
    shutil.copytree(service.settings.state_dir, tmp_path / "old")
    newer = opened()
    send(newer, verdicts(newer.suite, misses=1))
    crash(newer)
    old = opened(state_dir=tmp_path / "old")
    assert records_of(old) == records_of(newer)
    assert len(stored_files(old)) == 2
    assert old.records.board().to_bytes() == newer.records.board().to_bytes()


def test_a_disk_that_is_ahead_of_the_hub_brings_the_rest_there(hub, opened, crash):
    service = opened(state_lasts=True)
    send(service, verdicts(service.suite))
    eventually(lambda: service.durability.waiting() == 0)
    silence(hub)
    send(service, verdicts(service.suite, misses=1))
    crash(service)
    hub.faults.clear()
    again = opened(state_lasts=True)
    eventually(lambda: again.durability.waiting() == 0)
    assert records_on(hub) == records_of(again)
    assert len(records_of(again)) == 4


def test_files_that_the_disk_lost_come_back_from_the_hub(hub, opened, crash):
    service = opened()
    receipt = send(service, verdicts(service.suite))
    crash(service)
    shutil.rmtree(service.settings.state_dir / "files")
    again = opened()
    assert again.files.read(receipt.file_sha256) == verdicts(again.suite)


def test_a_restore_that_breaks_off_goes_on_where_it_was(hub, opened, crash):
    service = opened()
    sent = [send(service, verdicts(service.suite, misses=n)) for n in range(4)]
    lose_the_disk(service, crash)
    path = file_path(sent[2].file_sha256)
    hub.served.clear()
    hub.fail("GET", path, times=1_000_000, status=403)
    again = opened()
    assert again.intake.read_only_reason in (HUB_SILENT, RESTORING)
    assert records_of(again) == []
    eventually(lambda: all(hub.served[file_path(r.file_sha256)] for r in sent if r is not sent[2]))
    served = dict(hub.served)
    hub.faults.clear()
    eventually(lambda: again.intake.read_only_reason is None)
    others = [file_path(receipt.file_sha256) for receipt in sent if receipt is not sent[2]]
    assert [hub.served[other] for other in others] == [served[other] for other in others]
    assert len(records_of(again)) == 8


def test_while_the_hub_is_silent_at_the_start_reading_goes_on_and_submissions_are_off(hub, opened, crash):
    service = opened()
    send(service, verdicts(service.suite))
    before = service.records.board().to_bytes()
    crash(service)
    silence(hub)
    again = opened()
    assert again.intake.read_only_reason == HUB_SILENT
    assert again.records.board().to_bytes() == before
    with pytest.raises(TemporarilyClosed, match="the Hub does not answer"):
        send(again, verdicts(again.suite, misses=1))
    assert len(records_of(again)) == 2
    hub.faults.clear()
    eventually(lambda: again.intake.read_only_reason is None)
    assert send(again, verdicts(again.suite, misses=1)).status == "accepted"


def test_records_that_are_whole_without_the_hub_are_added_to_while_it_is_silent(hub, opened, crash):
    service = opened(state_lasts=True)
    send(service, verdicts(service.suite))
    crash(service)
    silence(hub)
    again = opened(state_lasts=True)
    assert again.intake.read_only_reason is None
    assert send(again, verdicts(again.suite, misses=1)).status == "accepted"
    hub.faults.clear()
    eventually(lambda: again.durability.waiting() == 0)
    assert records_on(hub) == records_of(again)


def test_what_is_left_to_score_is_scored_after_the_restore_and_not_before(hub, opened, crash, monkeypatch):
    service = opened()
    with monkeypatch.context() as broken:
        broken.setattr(scorer, "record_score", lambda *_: None)
        receipt = send(service, verdicts(service.suite))
    assert [record.kind for record in records_of(service)] == ["submitted"]
    lose_the_disk(service, crash)
    silence(hub)
    again = opened()
    assert records_of(again) == []
    hub.faults.clear()
    eventually(lambda: [row.id for row in again.records.board().rows] == [receipt.submission_id])
    eventually(lambda: again.durability.waiting() == 0)
    assert [record.kind for record in records_on(hub)] == ["submitted", "scored"]


def test_when_the_hub_falls_silent_later_submissions_wait_visibly_and_arrive(hub, opened):
    service = opened()
    silence(hub)
    receipt = _send_without_waiting(service, verdicts(service.suite))
    assert receipt.status == "waiting"
    view = service.records.submission(receipt.submission_id, Actor("Ada"))
    assert (view.receipt.status, view.report) == ("waiting", None)
    assert service.records.board().rows == ()
    assert service.durability.waiting() == 2
    assert "2 records wait" in service.durability.message
    hub.faults.clear()
    eventually(lambda: service.durability.waiting() == 0)
    view = service.records.submission(receipt.submission_id, Actor("Ada"))
    assert view.receipt.status == "accepted" and view.report is not None
    assert [row.id for row in service.records.board().rows] == [receipt.submission_id]
    assert service.durability.message is None
    assert records_on(hub) == records_of(service)


def _send_without_waiting(service, content: bytes):
    """Submit a file and ask for its status immediately."""
    upload = service.intake.check(content, "verdicts.jsonl", "test")
    wait = service.durability.wait
    service.durability.wait = lambda sequence, _timeout_s: wait(sequence, 0.2)
    try:
        return service.intake.submit(upload, declaration()).receipt
    finally:
        del service.durability.wait
