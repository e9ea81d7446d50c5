"""A service over the synthetic suite, its labels private, and rows made public on its board."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from submissions.accounts import Actor
from submissions.service import SubmissionService
from tests.submissions.synthetic import settings_for, with_rules, write_suite

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = FIRST

    def __call__(self) -> datetime:
        return self.now


def private_service(folder: Path, **rules) -> SubmissionService:
    """Nothing submitted yet; noise as by default, rounds of a day, and as many files as a test sends."""
    write_suite(folder)
    service = SubmissionService(settings_for(folder, folder / "state"), clock=Clock())
    plain = {"files_a_day": 1000, "files_a_year": 1000, "public_rows_a_year": 1000}
    return with_rules(service, is_public=False, fewest_positives=1, round_days=1, **{**plain, **rules})


def make_public(service: SubmissionService, ids: Iterable[str], account: str = "Ada") -> None:
    """Put submissions on the board: released where held, made public by their owner, and the round ends."""
    maintainer = Actor("Mia", is_maintainer=True)
    for submission_id in ids:
        if service.submission(submission_id, maintainer).status.is_held:
            service.decide("released", submission_id, maintainer, "looked at")
        service.actions.publish(submission_id, Actor(account))
    service.clock.now += timedelta(days=1)
