"""Requests and tokens a minute, as a provider enforces them, and what it lets its clients know of them."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

MINUTE_S = 60.0
Hints = Literal["headers", "retry-after", "words", "none"]


@dataclass
class RateLimitRule:
    """No more than ``requests`` and ``tokens`` in any minute.

    ``hints``: ``headers`` says in every answer what is left and when it is whole again, as OpenAI does, and
    in a refusal how long to wait; ``retry-after`` the last alone; ``words`` says it in the message; ``none``
    leaves the client to find out. With ``counts_refused`` a request that is refused is one of the minute's.
    ``clock`` may be a test's own.
    """

    requests: int | None = None
    tokens: int | None = None
    hints: Hints = "headers"
    counts_refused: bool = False
    clock: Callable[[], float] = time.monotonic
    refused: int = 0
    taken: deque[tuple[float, int]] = field(default_factory=deque)
    """When each call of the last minute came, and its tokens."""

    def take(self, tokens: int) -> tuple[str | None, dict[str, str]]:
        """Take a call: the message of its refusal, None when it is let through, and the answer's headers."""
        now = self.clock()
        while self.taken and self.taken[0][0] <= now - MINUTE_S:
            self.taken.popleft()
        wait_s = self._wait_s(now, tokens)
        if not wait_s:
            self.taken.append((now, tokens))
            return None, self._headers(now)
        self.refused += 1
        if self.counts_refused:
            self.taken.append((now, 0))
            wait_s = self._wait_s(now, tokens)
        message, headers = "Rate limit reached for requests or tokens.", self._headers(now)
        if self.hints in ("headers", "retry-after"):
            headers["retry-after"] = f"{wait_s:.3f}"
        if self.hints == "words":
            message += f" Please try again in {wait_s:.3f}s."
        return message, headers

    def _wait_s(self, now: float, tokens: int) -> float:
        """Seconds until a call of so many tokens is let through."""
        left = deque(self.taken)
        while left and self._is_too_much(left, tokens):
            freed_at = left.popleft()[0] + MINUTE_S
            if not self._is_too_much(left, tokens):
                return freed_at - now
        return 0.0  # also a call that is larger than the limit alone

    def _is_too_much(self, taken: deque[tuple[float, int]], tokens: int) -> bool:
        too_many = self.requests is not None and len(taken) >= self.requests
        return too_many or (self.tokens is not None and sum(each for _, each in taken) + tokens > self.tokens)

    def _headers(self, now: float) -> dict[str, str]:
        if self.hints != "headers":
            return {}
        reset_s = self.taken[-1][0] + MINUTE_S - now if self.taken else 0.0
        found = {}
        used = {"requests": len(self.taken), "tokens": sum(each for _, each in self.taken)}
        for kind, limit in (("requests", self.requests), ("tokens", self.tokens)):
            if limit is not None:
                found[f"x-ratelimit-limit-{kind}"] = str(limit)
                found[f"x-ratelimit-remaining-{kind}"] = str(max(0, limit - used[kind]))
                found[f"x-ratelimit-reset-{kind}"] = f"{reset_s * 1000:.0f}ms"
        return found
