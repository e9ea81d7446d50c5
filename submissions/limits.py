"""How many test files an account may have scored: by day and by year, for each label version."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dataset_script.suite_rules import SuiteRules

DAY = timedelta(hours=24)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Quota:
    """What is left to an account; ``next_at`` is when the next file may come, None where one may come now."""

    left_today: int
    left_this_year: int
    next_at: datetime | None


def remaining_quota(submitted_at: Sequence[datetime], rules: SuiteRules, now: datetime) -> Quota:
    """What rules leave to an account that submitted at these moments (those that count, in any order).

    A day is the 24 hours before now, a year the 365 days; a file leaves the window at the very moment.
    """
    left_today, next_today = _left(submitted_at, DAY, rules.files_a_day, now)
    left_this_year, next_this_year = _left(submitted_at, YEAR, rules.files_a_year, now)
    waits = [moment for moment in (next_today, next_this_year) if moment is not None]
    return Quota(min(left_today, left_this_year), left_this_year, max(waits, default=None))


def _left(
    submitted_at: Sequence[datetime], window: timedelta, most: int, now: datetime
) -> tuple[int, datetime | None]:
    """How many files fit into the window still, and when the next one does where none does now."""
    inside = sorted(moment for moment in submitted_at if moment > now - window)
    left = max(0, most - len(inside))
    if left:
        return left, None
    if most == 0:  # never: the far end of the calendar says so
        return 0, datetime.max.replace(tzinfo=now.tzinfo)
    return 0, inside[len(inside) - most] + window


def limit_message(found: Quota, rules: SuiteRules) -> str:
    """Why no file is taken now, and when the next one will be. ``found.next_at`` is not None."""
    if found.next_at is None:
        raise ValueError("the account may submit, so there is no limit to report")
    used = (
        f"{rules.files_a_year} in a year" if not found.left_this_year else f"{rules.files_a_day} in 24 hours"
    )
    when = (
        "this suite takes none"
        if found.next_at.year >= 9999
        else f"the next one can be sent from {found.next_at:%Y-%m-%d %H:%M} UTC"
    )
    return f"the limit of scored test files is reached ({used}, over all judges of an account); {when}"
