"""Clocks for tests: an account may send two scored files in 24 hours."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count


def one_a_day(first: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> Callable[[], datetime]:
    """A clock that is a day further on whenever it is asked."""
    days = count()
    return lambda: first + timedelta(days=next(days))
