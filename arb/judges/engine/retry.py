"""Decide how often a call is attempted, and how long to wait between the attempts.

A library such as tenacity cannot be used here, since a wait that the endpoint asks for applies to all calls,
and each kind of failure has its own maximum number of attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from arb.judges.engine.errors import CallFailed

TRANSIENT_ATTEMPTS: Final = 8
"""The maximum number of attempts if the server or the connection fails."""

UNUSABLE_ATTEMPTS: Final = 3
"""The maximum number of attempts if replies are paid for but unusable, or if no reply comes in time."""

FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 60.0
"""The wait starts at `FIRST_WAIT_S` and doubles with each failure of the same kind, up to `MAX_WAIT_S`."""

MAX_RATE_LIMIT_WAIT_S: Final = 8.0
MAX_OVERLOAD_WAIT_S: Final = 2.0
"""The longest waits of a single call after a rate limit and after an overload. They are short because
`AdaptiveLimit` slows down all calls, and an overloaded server may refuse the same call dozens of times."""


class RetryState:
    """The failed attempts of one call so far. ``draw`` returns random numbers from 0 to 1."""

    def __init__(self, draw: Callable[[], float]):
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """Return how many seconds to wait before the next attempt, or None if there should be no further one.

        A random factor from 0.5 to 1 keeps calls that failed together from being repeated together. If the
        endpoint asks for a wait, the result is 0, since `AdaptiveLimit` then holds all calls. The number of
        attempts after rate limits is not limited here, but by `AdaptiveLimit.check_timeout`.
        """
        longest = MAX_WAIT_S
        if failure.kind == "rate_limit":
            kind, most = "rate_limit", None
            longest = MAX_OVERLOAD_WAIT_S if failure.is_overload else MAX_RATE_LIMIT_WAIT_S
        elif failure.kind == "transient":
            is_unusable = failure.is_slow or failure.raw is not None
            kind, most = ("unusable", UNUSABLE_ATTEMPTS) if is_unusable else ("transient", TRANSIENT_ATTEMPTS)
        else:
            return None
        self._failures[kind] += 1
        if most is not None and self._failures[kind] >= most:
            return None
        if failure.retry_after_s or (failure.retry_after_s == 0 and not failure.is_overload):
            return 0.0
        exponent = min(self._failures[kind] - 1, 30)
        return min(longest, FIRST_WAIT_S * 2**exponent) * (0.5 + self._draw() / 2)
