"""The commits of one process, without a Hub: the pace, and what goes into a commit."""

from datetime import UTC, datetime, timedelta

import pytest

from submissions.hub.batch import WAIT_FOR_A_FILE, next_batch
from submissions.hub.committing import STARTS, Committer
from submissions.hub.layout import WRITER, Span, file_path
from submissions.hub.pace import CommitRateLimiter
from submissions.hub.repository import Head
from tests.submissions.hub.looking import records_of
from tests.submissions.synthetic import send, verdicts

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Repository:
    """Takes every commit; 99 were made in the hour before."""

    repo = "maintainer/records"

    def __init__(self) -> None:
        self.commits: list[tuple[str, set[str]]] = []

    def head(self) -> Head:
        return Head("0" * 40)

    def commits_since(self, moment: float) -> list[float]:
        assert moment == NOW.timestamp() - 3600
        return [NOW.timestamp() - 36 * n for n in range(99)]

    def commit(self, parent: str, contents: dict, message: str) -> str:
        self.commits.append((message, set(contents)))
        return f"{len(self.commits):040d}"


class Restorer:
    def __init__(self, files) -> None:
        self.files = files

    def pull(self, head: Head) -> int:
        return 0


def test_a_restart_keeps_to_the_pace_of_what_the_hub_saw_in_the_last_hour(service):
    now = [NOW.timestamp()]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    repository = Repository()
    committer = Committer(
        lambda: service.engine, repository, Restorer(service.files),
        CommitRateLimiter(clock=lambda: now[0]), lambda: NOW, pause,
    )  # fmt: skip
    send(service, verdicts(service.suite))
    committer.connect()
    assert committer.commit_some() == 2
    assert committer.commit_some() == 0
    assert [title for title, _ in repository.commits] == [STARTS, "Records 1 to 2"]
    assert repository.commits[0][1] == {WRITER}
    # 99 commits from 3528 s ago on, a minute's share each: 5940 - 3528 = 2412 s ahead of the clock, of which
    # the burst forgives 39 minutes, 2340 s. The next one waits a minute more.
    assert pauses == pytest.approx([72, 60])


@pytest.fixture
def two_submissions(service):
    """A service with the records submitted, scored, submitted, scored."""
    for n in range(2):
        send(service, verdicts(service.suite, misses=n))
    return service


def test_a_batch_has_the_files_of_its_records(two_submissions):
    records = records_of(two_submissions)
    number, contents = next_batch(records, two_submissions.files, NOW)
    files = {file_path(r.body["file_sha256"]) for r in records if r.kind == "submitted"}
    assert number == 4
    assert contents.keys() == files | {Span(1, 4).path}


def test_a_batch_ends_before_a_record_whose_file_is_elsewhere(two_submissions):
    records = records_of(two_submissions)
    two_submissions.files.path(records[2].body["file_sha256"]).unlink()
    came = records[2].at
    number, contents = next_batch(records, two_submissions.files, came + timedelta(seconds=1))
    assert number == 2
    assert Span(1, 2).path in contents
    assert next_batch(records[2:], two_submissions.files, came + timedelta(seconds=1)) == (0, {})
    # A file that nobody brings in ten minutes is lost; the records go on.
    number, contents = next_batch(records, two_submissions.files, came + WAIT_FOR_A_FILE)
    assert number == 4
    assert file_path(records[2].body["file_sha256"]) not in contents


def test_a_batch_is_bounded_in_records_and_bytes(two_submissions, monkeypatch):
    records = records_of(two_submissions)
    monkeypatch.setattr("submissions.hub.batch.MOST_RECORDS", 3)
    assert next_batch(records, two_submissions.files, NOW)[0] == 3
    monkeypatch.setattr("submissions.hub.batch.MOST_BYTES", 1)
    assert next_batch(records, two_submissions.files, NOW)[0] == 1
