"""Decide how often a call is attempted, and how long it waits in between.

A library such as tenacity does not fit: the endpoint may set a wait, which then holds all calls, and each
kind of failure has its own number of attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from arb.judges.engine.errors import CallFailed

TRANSIENT_ATTEMPTS: Final = 8
"""Attempts for failures of servers and connections."""

UNUSABLE_ATTEMPTS: Final = 3
"""Attempts for paid but unusable answers, and for calls that timed out."""

FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 60.0
"""The wait doubles with every failure of a kind, up to this."""

MAX_RATE_LIMIT_WAIT_S: Final = 8.0
MAX_OVERLOAD_WAIT_S: Final = 2.0
"""The longest waits of a single call after a rate limit and after an overload, since the limit already slows
down all calls. An overloaded server refuses calls at random, so one of many calls gets dozens of refusals."""


class RetryState:
    """The failed attempts of one call so far. ``draw`` returns numbers from 0 to 1.

    Rate limits cost nothing and pass, so their number is not bounded. The time that the run goes without a
    reply is bounded instead (`AdaptiveLimit.check_timeout`).
    """

    def __init__(self, draw: Callable[[], float]):
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give the call up.

        Waits are random, from half to all of their length, so that calls that failed together do not return
        together. If the endpoint sets a wait, `AdaptiveLimit` holds all calls, and this one need not wait
        longer.
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
