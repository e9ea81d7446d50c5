"""How many calls are under way at once: what the endpoint takes, found as TCP finds what a connection takes.

It starts with a few calls and doubles them with every round of replies (slow start). When the endpoint wants
fewer, the limit is halved, once for all calls that were under way then, and grows back in steps. A
``Retry-After`` stops every call. Requests and tokens a minute are token buckets.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

INITIAL_CONCURRENCY: Final = 32
"""Calls at the start: half a round is lost on the way to 64, which 1,106 calls hardly notice."""

MIN_CONCURRENCY: Final = 4
"""The limit is not cut below this; calls that failed wait by themselves, longer every time."""

ROUNDS_TO_RECOVER: Final = 16
"""After a cut the limit grows by the most that is allowed divided by this, every round."""


_NOTHING_S: Final = 1e-9
"""Shorter waits are rounding."""


class TokenBucket:
    """A rate per minute, spread evenly: a second's worth can be taken at once; more goes into debt."""

    def __init__(self, per_minute: float, clock: Callable[[], float]):
        self._per_second = per_minute / 60
        self._most = max(1.0, self._per_second)
        self._level = self._most
        self._clock = clock
        self._at = clock()

    def wait_s(self, amount: float) -> float:
        """Seconds until this much may be taken."""
        self._fill()
        missing = min(amount, self._most) - self._level
        return missing / self._per_second if missing > _NOTHING_S else 0.0

    def take(self, amount: float) -> None:
        """Take it; a negative amount gives back."""
        self._fill()
        self._level = min(self._most, self._level - amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._at) * self._per_second)
        self._at = now


class Slot:
    """A call under way. Say how it ended with `succeeded` or `overloaded`; neither changes nothing."""

    def __init__(self, limit: "AdaptiveLimit", tokens: int, cuts: int):
        self._limit, self._tokens, self._cuts = limit, tokens, cuts

    def succeeded(self, tokens: int | None = None) -> None:
        """The endpoint answered; ``tokens`` is what the call took, where it is known."""
        self._limit._grow()
        if tokens is not None:
            self._limit._correct_tokens(tokens - self._tokens)

    def overloaded(self, retry_after_s: float | None = None) -> None:
        """The endpoint wants fewer calls, and none at all for ``retry_after_s``."""
        self._limit._cut(self._cuts, retry_after_s)


class AdaptiveLimit:
    """One for all calls of a run. For one event loop; first come, first served.

    ``clock`` and ``sleep`` are in seconds and may be a test's own.
    """

    def __init__(
        self,
        max_in_flight: int = 64,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ):
        if max_in_flight < 1:
            raise ValueError("at least one call must be allowed in flight")
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self._allowed = float(min(INITIAL_CONCURRENCY, max_in_flight))
        self._clock, self._sleep = clock, sleep
        self._requests = TokenBucket(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = TokenBucket(tokens_per_minute, clock) if tokens_per_minute else None
        self._is_starting = True
        self._cuts = 0
        self._paused_until = float("-inf")
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    @property
    def counts_tokens(self) -> bool:
        return self._tokens is not None

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[Slot]:
        """Wait for a place, hold it for the block. ``tokens``: what the call will take, about."""
        async with self._turn:
            while (wait_s := self._wait_s(tokens)) != 0:
                if wait_s is None:
                    self._changed.clear()
                    await self._changed.wait()
                else:
                    await self._sleep(wait_s)
            self._take(tokens)
        try:
            yield Slot(self, tokens, self._cuts)
        finally:
            self.in_flight -= 1
            self._changed.set()

    def _wait_s(self, tokens: int) -> float | None:
        """Seconds until the next call may begin; None: until another ends."""
        if self.in_flight >= self.allowed:
            return None
        waits = [self._paused_until - self._clock()]
        waits += [self._requests.wait_s(1)] if self._requests else []
        waits += [self._tokens.wait_s(tokens)] if self._tokens else []
        return wait_s if (wait_s := max(waits)) > _NOTHING_S else 0.0

    def _take(self, tokens: int) -> None:
        self.in_flight += 1
        if self._requests:
            self._requests.take(1)
        self._correct_tokens(tokens)

    def _correct_tokens(self, more: int) -> None:
        if self._tokens:
            self._tokens.take(more)

    def _grow(self) -> None:
        """Every reply of a round of ``allowed`` replies adds its part of the round's step."""
        step = 1.0 if self._is_starting else max(1.0, self.max_in_flight / ROUNDS_TO_RECOVER) / self._allowed
        self._allowed = min(float(self.max_in_flight), self._allowed + step)
        self._changed.set()

    def _cut(self, cuts_before: int, retry_after_s: float | None) -> None:
        if retry_after_s is not None:
            self._paused_until = max(self._paused_until, self._clock() + retry_after_s)
        if cuts_before == self._cuts:  # one burst of refusals is one sign, not many
            self._cuts += 1
            self._is_starting = False
            least = float(min(MIN_CONCURRENCY, self.max_in_flight))
            self._allowed = max(least, min(self._allowed, float(self.in_flight)) / 2)
