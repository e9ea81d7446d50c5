"""How often a call is tried, and how long it waits between. Pure but for the jitter's random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from judges.engine.errors import CallFailed


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds on the tries of one call.

    Refusals for too many calls, which cost nothing and pass: ``rate_limited`` tries. Failures of servers and
    connections: ``transient`` tries. Answers that are paid and cannot be used, and calls that ran out of
    time: ``in_vain``. With every try of a kind the wait doubles, from ``first_wait_s`` to ``longest_wait_s``;
    an endpoint that asks for more than ``longest_pause_s`` is not waited for.
    """

    rate_limited: int = 10
    transient: int = 8
    in_vain: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    longest_pause_s: float = 900.0


class Tries:
    """The failed tries of one call so far. ``draw`` gives numbers from 0 to 1."""

    def __init__(self, patience: Patience, draw: Callable[[], float]):
        self._patience = patience
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """How long to wait before the next try; None when there should be none.

        Waits are drawn between the half and the whole of their length, so that calls that failed together do
        not come back together. Where the endpoint says how long to wait, all calls do (`AdaptiveLimit`), and
        this one no longer than they.
        """
        patience = self._patience
        if failure.kind not in ("rate_limit", "transient"):
            return None
        if (failure.retry_after_s or 0) > patience.longest_pause_s:
            return None
        if failure.kind == "rate_limit":
            kind, most = "rate_limited", patience.rate_limited
        else:
            is_in_vain = failure.is_slow or failure.raw is not None
            kind, most = ("in_vain", patience.in_vain) if is_in_vain else ("transient", patience.transient)
        self._failures[kind] += 1
        if self._failures[kind] >= most:
            return None
        if failure.retry_after_s is not None:
            return 0.0
        exponent = min(self._failures[kind] - 1, 30)
        longest = min(patience.longest_wait_s, patience.first_wait_s * 2**exponent)
        return longest * (0.5 + self._draw() / 2)
