"""How often one call is tried, and how long it waits in between.

A library such as tenacity does not serve here: the endpoint may set the wait, which then holds all calls, and
each kind of failure has its own number of tries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from arb.judges.engine.errors import CallFailed

TRANSIENT_ATTEMPTS: Final = 8
"""Attempts for failures of servers and connections."""

UNUSABLE_ATTEMPTS: Final = 3
"""Attempts for answers that are paid and cannot be used, and for calls that ran out of time."""

FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 60.0
"""The wait doubles with every try of a kind, up to this."""

MAX_RATE_LIMIT_WAIT_S: Final = 8.0
MAX_OVERLOAD_WAIT_S: Final = 2.0
"""The longest wait of a single call after a rate limit and after an overload: the limit slows down all calls
together. An overloaded server refuses calls at random, so that one of many calls meets dozens of refusals."""


class RetryState:
    """The failed tries of one call so far. ``draw`` gives numbers from 0 to 1.

    Refusals for too many calls cost nothing and pass, so their number has no bound; the time that the run is
    without a reply has one (`AdaptiveLimit.check_timeout`).
    """

    def __init__(self, draw: Callable[[], float]):
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """Return how long to wait before the next try, or None if there should be none.

        Waits are drawn between the half and the whole of their length, so that calls that failed together do
        not come back together. If the endpoint says how long to wait, all calls do (`AdaptiveLimit`), and
        this one no longer than they.
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
