"""How often one call is tried, and how long it waits in between.

A library such as tenacity does not serve here: the endpoint may set the wait, which then holds all calls, and
each kind of failure has its own number of tries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from arb.judges.engine.errors import CallFailed

MAX_RATE_LIMIT_WAIT_S: Final = 8.0
MAX_OVERLOAD_WAIT_S: Final = 2.0
"""The longest wait of a single call after a rate limit and after an overload: the limit slows down all calls
together. An overloaded server refuses calls at random, so that one of many calls meets dozens of refusals."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds on the tries of one call.

    Failures of servers and connections: ``transient`` tries. Answers that are paid and cannot be used, and
    calls that ran out of time: ``unusable``. Refusals for too many calls, which cost nothing and pass:
    ``rate_limited`` tries, and no wait for an endpoint that asks for more than ``max_retry_after_s``; without
    a number they are bounded by the time that the run is without a reply (`AdaptiveLimit.check_timeout`).
    With every try of a kind the wait doubles, from ``first_wait_s`` to ``max_wait_s``.
    """

    rate_limited: int | None = None
    transient: int = 8
    unusable: int = 3
    first_wait_s: float = 0.5
    max_wait_s: float = 60.0
    max_retry_after_s: float = 900.0


class RetryState:
    """The failed tries of one call so far. ``draw`` gives numbers from 0 to 1."""

    def __init__(self, policy: RetryPolicy, draw: Callable[[], float]):
        self._policy = policy
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """Return how long to wait before the next try, or None if there should be none.

        Waits are drawn between the half and the whole of their length, so that calls that failed together do
        not come back together. If the endpoint says how long to wait, all calls do (`AdaptiveLimit`), and
        this one no longer than they.
        """
        policy = self._policy
        if failure.kind not in ("rate_limit", "transient"):
            return None
        longest = policy.max_wait_s
        if failure.kind == "rate_limit":
            kind, most = "rate_limited", policy.rate_limited
            if most is None:
                longest = min(longest, MAX_OVERLOAD_WAIT_S if failure.is_overload else MAX_RATE_LIMIT_WAIT_S)
            elif (failure.retry_after_s or 0) > policy.max_retry_after_s:
                return None
        else:
            is_unusable = failure.is_slow or failure.raw is not None
            kind, most = ("unusable", policy.unusable) if is_unusable else ("transient", policy.transient)
        self._failures[kind] += 1
        if most is not None and self._failures[kind] >= most:
            return None
        if failure.retry_after_s or (failure.retry_after_s == 0 and not failure.is_overload):
            return 0.0
        exponent = min(self._failures[kind] - 1, 30)
        return min(longest, policy.first_wait_s * 2**exponent) * (0.5 + self._draw() / 2)
