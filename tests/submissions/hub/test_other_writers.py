"""Tests of other writers: another server, foreign records, and several processes with one database."""

import hashlib
import shutil
import threading

import pytest

from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.hub.lease import open_lease
from submissions.hub.mirror import DIVERGED, REPLACED
from submissions.hub.records_copy import STARTS
from submissions.hub.repository import WRITER, EventFile
from submissions.intake.accounts import Actor
from submissions.records.event_log import to_lines
from tests.submissions.hub.conftest import COMMIT, RECORDS
from tests.support.hub_threads import contents, records_of, records_on, titles
from tests.support.submissions import send, verdicts
from tests.support.waiting import eventually

ADA = Actor("Ada")


@pytest.mark.slow
def test_of_two_servers_with_records_of_their_own_the_later_one_writes(hub, opened, tmp_path):
    service = opened()
    send(service, verdicts(service.suite))
    later = opened(state_dir=tmp_path / "later")
    assert records_of(later) == records_of(service)
    lost = send(service, verdicts(service.suite, misses=1))
    assert lost.status == "waiting"
    eventually(lambda: service.intake.read_only_reason == REPLACED)
    assert "DATABASE_URL" in service.intake.read_only_reason
    with pytest.raises(SubmissionError, match="another server writes"):
        send(service, verdicts(service.suite, misses=2))
    # Nothing is lost here, and the board can be read. The submission that did not reach the Hub has no row.
    assert len(records_of(service)) == 4
    assert len(service.records.board().rows) == 1
    assert send(later, verdicts(later.suite, misses=3)).status == "accepted"
    assert records_on(hub) == records_of(later)
    assert titles(hub).count(STARTS) == 2


def test_a_commit_of_a_killed_server_that_is_still_on_its_way_comes_too_late(hub, opened, crash, tmp_path):
    """The commit's parent is the head before the next server wrote its name."""
    service = opened()
    arrived, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        go_on.wait(120)

    hub.fail("POST", COMMIT, first=hold)
    sending = threading.Thread(target=send, args=(service, verdicts(service.suite)))
    sending.start()
    assert arrived.wait(120)
    later = opened(state_dir=tmp_path / "later")
    accepted = send(later, verdicts(later.suite, misses=1))
    go_on.set()
    sending.join(120)
    assert accepted.status == "accepted"
    assert records_on(hub) == records_of(later)
    assert [record.body["submission_id"] for record in records_on(hub)] == [accepted.submission_id] * 2


def test_records_that_are_not_ours_under_our_numbers_stop_the_writing(hub, opened, crash, tmp_path):
    service = opened()
    send(service, verdicts(service.suite))
    shutil.copytree(service.settings.state_dir, tmp_path / "fork")
    foreign = opened(state_dir=tmp_path / "fork", records_repo="maintainer/elsewhere")
    send(foreign, verdicts(foreign.suite, misses=5))
    others = records_of(foreign)[2:]
    writer = contents(hub)[WRITER]
    span = EventFile(3, 4)
    hub.commit(RECORDS, {span.path: to_lines(others), WRITER: writer})
    receipt = send(service, verdicts(service.suite, misses=1))
    assert receipt.status == "waiting"
    eventually(lambda: service.intake.read_only_reason == DIVERGED)
    assert records_on(hub)[2:] == others
    assert len(records_of(service)) == 4
    assert service.records.submission(receipt.submission_id, ADA).receipt.status == "waiting"


def test_an_old_disk_with_a_fork_is_told_at_the_start(hub, opened, crash, tmp_path, caplog):
    service = opened()
    send(service, verdicts(service.suite))
    crash(service)
    shutil.copytree(service.settings.state_dir, tmp_path / "fork")
    fork = opened(state_dir=tmp_path / "fork", records_repo="maintainer/elsewhere")
    send(fork, verdicts(fork.suite, misses=1))
    crash(fork)
    again = opened()
    send(again, verdicts(again.suite, misses=2))
    crash(again)
    commits = len(titles(hub))
    forked = opened(state_dir=tmp_path / "fork")
    assert forked.intake.read_only_reason == DIVERGED
    assert "record 4 on the Hub (maintainer/records) differs from ours" in caplog.text
    assert len(records_of(forked)) == 4
    assert len(titles(hub)) == commits


def test_damaged_records_on_the_hub_are_not_taken_over(hub, opened, crash, tmp_path, caplog):
    service = opened()
    send(service, verdicts(service.suite))
    crash(service)
    path = next(path for path in contents(hub) if path.startswith("records/"))
    hub.commit(RECORDS, {path: contents(hub)[path].replace(b"First judge", b"Other judge")})
    again = opened(state_dir=tmp_path / "other")
    assert again.intake.read_only_reason == DIVERGED
    assert records_of(again) == []
    assert "its content was changed" in caplog.text


def test_a_repository_that_lost_records_gets_them_again(hub, opened, crash):
    service = opened()
    send(service, verdicts(service.suite))
    crash(service)
    hub.commit(RECORDS, {path: None for path in contents(hub) if path.startswith(("records/", "files/"))})
    again = opened()
    eventually(lambda: records_on(hub) == records_of(again))
    assert any(path.startswith("files/") for path in contents(hub))


def test_one_process_of_a_state_folder_commits_and_another_follows_it(hub, opened, crash):
    first, second = opened(), opened()
    receipts = [send(first, verdicts(first.suite)), send(second, verdicts(first.suite, misses=1))]
    assert [receipt.status for receipt in receipts] == ["accepted"] * 2
    assert titles(hub).count(STARTS) == 1
    crash(first)
    assert send(second, verdicts(first.suite, misses=2)).status == "accepted"
    assert titles(hub).count(STARTS) == 2
    assert records_on(hub) == records_of(second)


def test_a_process_that_starts_does_not_undo_what_another_commits_meanwhile(hub, opened):
    first = opened()
    send(first, verdicts(first.suite))
    arrived, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        arrived.set()
        go_on.wait(120)

    # The second process knows the head by now, and asks for its files.
    hub.fail("GET", rf"/api/datasets/{RECORDS}/tree/", first=hold)
    second: list[SubmissionsApp] = []
    starting = threading.Thread(target=lambda: second.append(opened()))
    starting.start()
    assert arrived.wait(120)
    receipt = send(first, verdicts(first.suite, misses=1))
    assert receipt.status == "accepted"
    go_on.set()
    starting.join(120)
    assert second[0].durability.waiting() == 0
    assert second[0].records.submission(receipt.submission_id, ADA).receipt.status == "accepted"


@pytest.mark.slow
def test_one_replica_of_a_database_commits_with_every_file_and_another_follows_it(
    hub, opened, crash, postgres_url, tmp_path
):
    one = opened(database_url=postgres_url, state_dir=tmp_path / "one")
    two = opened(database_url=postgres_url, state_dir=tmp_path / "two")
    receipts = [send(one, verdicts(one.suite)), send(two, verdicts(one.suite, misses=1))]
    receipts += [send(one, verdicts(one.suite, misses=2))]
    assert [receipt.status for receipt in receipts] == ["accepted"] * 3
    assert one.intake.read_only_reason is two.intake.read_only_reason is None
    crash(one)
    assert send(two, verdicts(one.suite, misses=3)).status == "accepted"
    assert records_on(hub) == records_of(two)
    # A third server on a new disk has every file, whichever server received it.
    three = opened(database_url=postgres_url, state_dir=tmp_path / "three")
    for n in range(4):
        content = verdicts(one.suite, misses=n)
        assert three.files.read(hashlib.sha256(content).hexdigest()) == content


def test_a_turn_on_a_database_is_one_holders_until_its_connection_ends(postgres_url, tmp_path):
    from submissions.records.database import open_database

    engines = [open_database(postgres_url) for _ in range(2)]
    first, second = (open_lease(engine, tmp_path, "records") for engine in engines)
    assert [first.acquire(), first.acquire(), second.acquire()] == [True, True, False]
    first.release()
    assert [second.acquire(), first.acquire()] == [True, False]
    second._connection.connection.driver_connection.close()
    eventually(first.acquire)  # the server notices a little later that the connection was closed
    assert not second.acquire()
