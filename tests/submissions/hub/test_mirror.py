"""Tests of commits of records and files to the Hub: their size, their rate, and the Hub's own client."""

import json
import random

import pytest

from submissions.app import SubmissionsApp
from submissions.hub.records_copy import next_batch
from submissions.hub.repository import EventFile, event_file_of, file_path
from submissions.intake.accounts import Actor
from tests.submissions.hub.conftest import COMMIT, RECORDS
from tests.support.hub_threads import contents, records_of, records_on, send_at_once, titles
from tests.support.submissions import send, verdicts
from tests.support.waiting import eventually


@pytest.fixture
def two_submissions(service):
    """Return a service with four records: submitted, scored, submitted, scored."""
    for n in range(2):
        send(service, verdicts(service.suite, misses=n))
    return service


def test_a_lost_file_does_not_keep_records_from_the_hub(two_submissions):
    records = records_of(two_submissions)
    two_submissions.files.path(records[2].body["file_sha256"]).unlink()
    number, contents = next_batch(records, two_submissions.files)
    assert number == 4 and EventFile(1, 4).path in contents
    assert file_path(records[2].body["file_sha256"]) not in contents


def test_a_batch_is_bounded_in_records_and_bytes(two_submissions, monkeypatch):
    records = records_of(two_submissions)
    monkeypatch.setattr("submissions.hub.records_copy.MOST_RECORDS", 3)
    assert next_batch(records, two_submissions.files)[0] == 3
    monkeypatch.setattr("submissions.hub.records_copy.MOST_BYTES", 1)
    assert next_batch(records, two_submissions.files)[0] == 1


ADA = Actor("Ada")


def assert_no_record_is_without_its_file(hub) -> None:
    """A restore from any commit has the files of all its records."""
    for commit in hub.repository(RECORDS).commits:
        for path in filter(event_file_of, commit.files):
            for line in map(json.loads, commit.files[path].data.splitlines()):
                if line["kind"] == "submitted":
                    assert file_path(line["body"]["file_sha256"]) in commit.files


def test_an_accepted_submission_is_on_the_hub_with_its_file(hub, opened):
    service = opened()
    content = verdicts(service.suite)
    receipt = send(service, content)
    assert receipt.status == "accepted"
    assert contents(hub)[file_path(receipt.file_sha256)] == content
    assert records_on(hub) == records_of(service)
    assert hub.repository(RECORDS).private
    assert_no_record_is_without_its_file(hub)
    assert service.durability.waiting() == 0
    assert service.durability.message is None


def test_what_comes_while_a_commit_is_on_its_way_shares_the_next_one(hub, opened):
    service = opened()
    # The first commit waits until all is recorded: 6 submitted and 6 scored.
    hub.fail("POST", COMMIT, first=lambda: eventually(lambda: len(records_of(service)) == 12))
    receipts = send_at_once(service, [verdicts(service.suite, misses=n) for n in range(6)])
    assert [receipt.status for receipt in receipts] == ["accepted"] * 6
    assert records_on(hub) == records_of(service)
    assert len([title for title in titles(hub) if title.startswith("Records")]) == 2
    assert_no_record_is_without_its_file(hub)


def test_an_act_that_nobody_waits_for_is_committed_soon(hub, opened):
    service = opened()
    receipt = send(service, verdicts(service.suite))
    service.moderation.withdraw(receipt.submission_id, ADA)
    eventually(lambda: records_on(hub)[-1].kind == "withdrawn")


def test_a_commit_that_was_made_and_answered_500_is_not_made_again(hub, opened):
    service = opened()
    fault = hub.fail("POST", COMMIT, status=500, after=True)
    assert send(service, verdicts(service.suite)).status == "accepted"
    assert fault.happened == 1
    spans = [path for path in contents(hub) if event_file_of(path)]
    assert (
        sum(event_file_of(path).last - event_file_of(path).first + 1 for path in spans)
        == len(records_on(hub))
        == 2
    )
    assert len(titles(hub)) == len(set(titles(hub)))


def test_a_change_that_is_none_of_ours_is_no_trouble(hub, opened):
    service = opened()
    send(service, verdicts(service.suite))
    hub.commit(RECORDS, {"notes/by-hand.txt": b"a maintainer's note"})
    hub.fail("POST", COMMIT, first=lambda: hub.commit(RECORDS, {"README.md": b"# Records\n"}))
    assert send(service, verdicts(service.suite, misses=1)).status == "accepted"
    assert contents(hub)["notes/by-hand.txt"] == b"a maintainer's note"
    assert records_on(hub) == records_of(service)


@pytest.mark.slow
def test_with_a_third_of_calls_failing_everything_arrives_once(hub, opened):
    draws = random.Random(1)
    for method in ("GET", "HEAD", "POST"):
        hub.fail(method, ".*", times=10_000, status=503, chance=lambda: draws.random() < 1 / 3)
    hub.fail("POST", "commit", times=10_000, status=500, after=True, chance=lambda: draws.random() < 1 / 3)
    service = opened()
    eventually(lambda: service.intake.read_only_reason is None)
    receipts = send_at_once(service, [verdicts(service.suite, misses=n) for n in range(6)])
    eventually(lambda: service.durability.waiting() == 0)
    hub.faults.clear()
    assert len(receipts) == 6
    assert records_on(hub) == records_of(service)
    assert_no_record_is_without_its_file(hub)
    again = {
        r.submission_id: service.records.submission(r.submission_id, ADA).receipt.status for r in receipts
    }
    assert set(again.values()) == {"accepted"}


def test_records_made_before_the_repository_was_named_are_brought_there(hub, opened, hub_settings):
    before = SubmissionsApp(hub_settings.model_copy(update={"records_repo": None, "state_lasts": True}))
    for n in range(3):
        send(before, verdicts(before.suite, misses=n))
    service = opened(state_lasts=True)
    eventually(lambda: service.durability.waiting() == 0)
    assert records_on(hub) == records_of(service)
    assert len(records_on(hub)) == 6


@pytest.mark.slow
def test_on_a_lasting_disk_nobody_waits_for_the_hub(hub, opened):
    service = opened(state_lasts=True)
    fault = hub.fail("POST", COMMIT, times=3, status=503)
    assert send(service, verdicts(service.suite)).status == "accepted"
    eventually(lambda: service.durability.waiting() == 0)
    assert fault.happened == 3
    assert records_on(hub) == records_of(service)


def test_a_public_repository_gets_no_record(hub, opened):
    hub.repository(RECORDS, private=False)
    service = opened()
    assert "restored" in service.intake.read_only_reason
    assert titles(hub) == ["initial commit"]
