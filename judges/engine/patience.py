"""How often a call is tried, and how long it waits between. Pure but for the jitter's random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from judges.engine.errors import CallFailed


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds on the tries of one call.

    Refusals for too many calls, which cost nothing and pass: ``rate_limited`` tries. Failures of servers and
    connections: ``transient`` tries. Answers that are paid and cannot be used, and calls that ran out of
    time: ``unusable``. With every try of a kind the wait doubles, from ``first_wait_s`` to ``max_wait_s``;
    an endpoint that asks for more than ``max_retry_after_s`` is not waited for.
    """

    rate_limited: int = 10
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
        """How long to wait before the next try; None when there should be none.

        Waits are drawn between the half and the whole of their length, so that calls that failed together do
        not come back together. Where the endpoint says how long to wait, all calls do (`AdaptiveLimit`), and
        this one no longer than they.
        """
        policy = self._policy
        if failure.kind not in ("rate_limit", "transient"):
            return None
        if (failure.retry_after_s or 0) > policy.max_retry_after_s:
            return None
        if failure.kind == "rate_limit":
            kind, most = "rate_limited", policy.rate_limited
        else:
            is_unusable = failure.is_slow or failure.raw is not None
            kind, most = ("unusable", policy.unusable) if is_unusable else ("transient", policy.transient)
        self._failures[kind] += 1
        if self._failures[kind] >= most:
            return None
        if failure.retry_after_s is not None:
            return 0.0
        exponent = min(self._failures[kind] - 1, 30)
        longest = min(policy.max_wait_s, policy.first_wait_s * 2**exponent)
        return longest * (0.5 + self._draw() / 2)
