"""Adapt the number of concurrent calls and the pause between calls to what the endpoint can handle.

The limit on concurrent calls works like TCP's congestion control. It starts at a few calls and doubles with
every round of replies (slow start). If the endpoint refuses a call because of its rate limit (429), the limit
is halved. Refusals of calls that were in flight at the same time count only once. If more calls are refused
and none is answered, the limit falls to one call, and then the pause between calls grows. Replies gradually
undo both changes. The user's limits on requests and tokens per minute, and the quotas in the endpoint's
headers, are enforced with token buckets.

An overloaded server (503, 529) refuses calls at random, so a lower limit would not help any call. Instead,
the pause between calls is a small share of the time for which the server has been refusing calls.

If the endpoint sends ``Retry-After``, all calls wait. Refused calls are repeated, but after
``rate_limit_timeout_s`` seconds in which every call was refused, no further call is made.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

from arb.judges.engine.errors import CallFailed, NoEndpointError, NoMoreCallsError
from arb.judges.types import Quota, RateLimits

INITIAL_CONCURRENCY: Final = 32
"""The number of concurrent calls at the start."""

ROUNDS_TO_RECOVER: Final = 16
"""After a cut, each round of replies raises the limit by ``max_in_flight`` divided by this number."""

FEW_CALLS: Final = 4
"""The limit falls below this number only after several refusals without a reply in between, since a single
refusal may be chance. Below this number, the limit doubles with every round of replies."""

RATE_LIMIT_TIMEOUT_S: Final = 900.0
"""By default, a run ends if every call is refused for this long. A limit per minute is over sooner."""

FIRST_GAP_S: Final = 0.05
MAX_GAP_S: Final = 60.0
GAP_DECAY: Final = 0.8
"""Once only one call at a time is allowed, each further refusal doubles the pause between calls, from
`FIRST_GAP_S` up to `MAX_GAP_S`. Each reply multiplies the pause by `GAP_DECAY`."""

OVERLOAD_GAP_SHARE: Final = 1 / 16
"""While a server is overloaded and sends no ``Retry-After``, the pause between calls is this share of the
time since the first refusal after the last reply, but at most `MAX_GAP_S`."""

UNREACHABLE_S: Final = 3.0
UNREACHABLE_GAP_S: Final = 1.0
"""How long a run tries to connect to an endpoint that has never answered, and the pause between attempts."""

CONFIRMED_AFTER_S: Final = 60.0
"""If the endpoint asks for a wait beyond the run's timeout, the run ends after this time without a reply.
It does not end immediately, since only one of several servers may be asking for the wait."""

MAX_QUOTA_WAIT_S: Final = 60.0
"""The longest wait for a quota that the endpoint's headers report. The headers may be wrong."""

_NOTHING_S: Final = 1e-9
"""Waits shorter than this are treated as rounding errors."""

_NAP_S: Final = 1.0
"""The interval at which a waiting call checks whether the limit has been closed."""


class RateLimitTimeout(NoMoreCallsError):
    """Raised when the endpoint has refused every call for too long."""

    how = "limited"


class TokenBucket:
    """A token bucket (a rate limiter) that fills at a constant rate up to ``most``. It may be overdrawn."""

    def __init__(
        self, per_second: float, most: float, clock: Callable[[], float], level: float | None = None
    ):
        self._per_second, self._most = per_second, most
        self._level = most if level is None else level
        self._clock = clock
        self._at = clock()

    def wait_s(self, amount: float) -> float:
        """Return how many seconds it takes until the bucket has this amount, or is full if that is less."""
        self._fill()
        missing = min(amount, self._most) - self._level
        return missing / self._per_second if missing > _NOTHING_S else 0.0

    def take(self, amount: float) -> None:
        """Take an amount from the bucket. A negative amount is put into it."""
        self._fill()
        self._level = min(self._most, self._level - amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._at) * self._per_second)
        self._at = now


@dataclass
class _Pool:
    """The requests and tokens sent to one model at one endpoint, and the quotas in its latest answer.

    The user's own limits are also stored as a pool, with buckets but without counts.
    """

    requests: TokenBucket | None = None
    tokens: TokenBucket | None = None
    sent_requests: int = 0
    sent_tokens: int = 0
    sent_at: float = float("-inf")
    learned_from: int = 0
    """The number of the call whose answer set the quotas. Answers to earlier calls are ignored."""

    def buckets(self, tokens: int) -> list[tuple[TokenBucket, float]]:
        """Return the buckets of this pool, each with the amount that a call of ``tokens`` tokens takes."""
        pairs = ((self.requests, 1), (self.tokens, tokens))
        return [(bucket, amount) for bucket, amount in pairs if bucket is not None]


class Slot:
    """A call in flight. When it has ended, call `succeeded` or `failed`, at most once."""

    def __init__(self, limit: "AdaptiveLimit", pool: _Pool, tokens: int, cuts: int):
        self._limit, self._pool, self._tokens, self._cuts = limit, pool, tokens, cuts
        self._number, self._sent_tokens, self._at = pool.sent_requests, pool.sent_tokens, pool.sent_at

    def succeeded(self, tokens: int | None = None, limits: RateLimits | None = None) -> None:
        """Record a reply, with the call's actual tokens and the quotas in the headers, if known."""
        self._limit._grow()
        own_tokens = self._limit._own.tokens
        if tokens is not None and own_tokens is not None:
            own_tokens.take(tokens - self._tokens)
        self._learn(limits)

    def failed(self, failure: CallFailed) -> None:
        """Record a failed attempt. The limit falls only if the failure suggests too many calls."""
        limit, wait_s = self._limit, failure.retry_after_s
        is_refused = failure.kind == "rate_limit"
        if is_refused and not failure.is_overload:
            limit._cut(self._cuts, is_refused=True)
            limit._pause(wait_s)
        elif is_refused:
            limit._pause(wait_s)
            if not wait_s:
                limit._cut(self._cuts, is_refused=False)
                limit._space_out()
        elif failure.is_slow or failure.is_overload:
            limit._cut(self._cuts, is_refused=False)
        self._learn(failure.rate_limits)

    def _learn(self, limits: RateLimits | None) -> None:
        pool = self._pool
        if limits is None or self._number < pool.learned_from:
            return
        pool.learned_from = self._number
        clock = self._limit._clock
        age_s = clock() - self._at
        if limits.requests is not None:
            pool.requests = _bucket(limits.requests, age_s, pool.sent_requests - self._number, clock)
        if limits.tokens is not None:
            pool.tokens = _bucket(limits.tokens, age_s, pool.sent_tokens - self._sent_tokens, clock)


def _bucket(quota: Quota, age_s: float, sent_since: int, clock: Callable[[], float]) -> TokenBucket | None:
    """Return a token bucket for a quota, or None if the quota has neither a limit nor a reset time.

    The endpoint reported the quota for a call sent ``age_s`` seconds ago. ``sent_since`` is the amount sent
    since then, which is subtracted. According to OpenAI, a quota fills evenly until its reset, by (limit -
    remaining) / reset per second. If there is no reset time, the limit is taken to be per minute. If there is
    no limit, the remaining amount takes its place.
    """
    if quota.limit is None and not quota.reset_s:
        return None
    limit = max(quota.limit or 0.0, quota.remaining, 1.0)
    missing = limit - quota.remaining
    per_second = missing / quota.reset_s if missing and quota.reset_s else limit / 60
    level = min(limit, quota.remaining + age_s * per_second) - sent_since
    return TokenBucket(per_second, limit, clock, level)


class AdaptiveLimit:
    """The limit on the concurrent calls of a run, for one event loop. Calls that wait begin in order."""

    def __init__(
        self,
        max_in_flight: int = 64,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        rate_limit_timeout_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ):
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self._allowed = float(min(INITIAL_CONCURRENCY, max_in_flight))
        self._timeout_s = RATE_LIMIT_TIMEOUT_S if rate_limit_timeout_s is None else rate_limit_timeout_s
        self._clock, self._sleep = clock, sleep
        self._own = _Pool(self._of_a_minute(requests_per_minute), self._of_a_minute(tokens_per_minute))
        self._pools: dict[Hashable, _Pool] = {}
        self._is_starting = True
        self._cuts = 0
        self._gap_s = 0.0
        self._next_at = self._paused_until = float("-inf")
        self._refused_since: float | None = None
        self._unreachable_since: float | None = None
        self.has_answered = False
        self.closed = asyncio.Event()
        self._closed: Exception | None = None
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    def counts_tokens(self, pool: Hashable = None) -> bool:
        """Return whether `slot` needs the number of tokens of calls to this pool."""
        return self._own.tokens is not None or (pool in self._pools and self._pools[pool].tokens is not None)

    @asynccontextmanager
    async def slot(self, tokens: int = 0, pool: Hashable = None) -> AsyncIterator[Slot]:
        """Wait until a call may begin, and count it as in flight during the block.

        ``tokens`` is an estimate for the call. ``pool`` identifies the model and endpoint whose quotas apply.
        Raises the exception given to `close`.
        """
        called = self._pools.get(pool) or self._pools.setdefault(pool, _Pool())
        async with self._turn:
            while (wait_s := self._wait_s(tokens, called)) != 0:
                if wait_s is None:
                    self._changed.clear()
                    await self._changed.wait()
                else:
                    await self._sleep(min(wait_s, _NAP_S))
            self._take(tokens, called)
        try:
            yield Slot(self, called, tokens, self._cuts)
        finally:
            self.in_flight -= 1
            self._changed.set()

    def close(self, reason: Exception) -> None:
        """Let no further call begin, and raise this exception in every call that waits in `slot`."""
        self._closed = self._closed or reason
        self.closed.set()
        self._changed.set()

    def stop(self, reason: Exception) -> NoReturn:
        """Close the limit and raise ``reason``."""
        self.close(reason)
        raise reason

    def check_unreachable(self, message: str) -> None:
        """After a failed connection, raise NoEndpointError if all have failed for `UNREACHABLE_S` seconds.

        Until then, calls are made one at a time. An endpoint that has answered before may be restarting, so
        nothing is raised for it.
        """
        if self.has_answered:
            return
        now = self._clock()
        if self._unreachable_since is None:
            self._unreachable_since = now
        self._allowed, self._next_at = 1.0, now + UNREACHABLE_GAP_S
        if now - self._unreachable_since >= UNREACHABLE_S:
            self.stop(
                NoEndpointError(
                    f"stopped: the endpoint cannot be reached ({message}). Check its address (--base-url) "
                    "and whether it is running, then run the same command again"
                )
            )

    def check_timeout(self, message: str, retry_after_s: float | None) -> None:
        """Raise RateLimitTimeout if the endpoint has refused all calls for too long.

        Too long is the timeout, or `CONFIRMED_AFTER_S` if the endpoint asks for a wait beyond the timeout.
        """
        if self._refused_since is None:
            return
        refused_s = self._clock() - self._refused_since
        asked_s = retry_after_s or 0.0
        is_asked_too_long = refused_s + asked_s > self._timeout_s
        if refused_s >= (min(CONFIRMED_AFTER_S, self._timeout_s) if is_asked_too_long else self._timeout_s):
            asks = f"; it asks to wait for {asked_s:,.0f} s" if asked_s else ""
            self.stop(
                RateLimitTimeout(
                    f"stopped: for {refused_s:,.0f} s the endpoint answered every call with a rate limit "
                    f"({message}{asks}). No trajectory has failed; run the same command again later, or "
                    f"with a --rate-limit-timeout above {self._timeout_s:g}"
                )
            )

    def _of_a_minute(self, number: float | None) -> TokenBucket | None:
        """Return a bucket for a rate per minute, or None if there is none. It can hold a second's amount."""
        return TokenBucket(number / 60, max(1.0, number / 60), self._clock) if number else None

    def _wait_s(self, tokens: int, pool: _Pool) -> float | None:
        """Return how many seconds the next call has to wait, or None if a call in flight has to end first."""
        if self._closed is not None:
            raise self._closed
        if self.in_flight >= self.allowed:
            return None
        now = self._clock()
        waits = [self._paused_until - now, self._next_at - now]
        waits += [bucket.wait_s(amount) for bucket, amount in self._own.buckets(tokens)]
        if quotas := [bucket.wait_s(amount) for bucket, amount in pool.buckets(tokens)]:
            waits.append(min(max(quotas), pool.sent_at + MAX_QUOTA_WAIT_S - now))
        wait_s = max(waits)
        return wait_s if wait_s > _NOTHING_S else 0.0

    def _take(self, tokens: int, pool: _Pool) -> None:
        self.in_flight += 1
        now = self._clock()
        self._next_at = now + self._gap_s
        pool.sent_requests += 1
        pool.sent_tokens += tokens
        pool.sent_at = now
        for bucket, amount in (*self._own.buckets(tokens), *pool.buckets(tokens)):
            bucket.take(amount)

    def _grow(self) -> None:
        """After a reply, shorten the pause between calls, or raise the limit if there is no pause."""
        self._refused_since = None
        self.has_answered = True
        if self._gap_s:
            shorter = self._gap_s * GAP_DECAY
            self._gap_s = shorter if shorter > FIRST_GAP_S / 2 else 0.0
            return
        step = max(1.0, self.max_in_flight / ROUNDS_TO_RECOVER) / self._allowed
        step = 1.0 if self._is_starting or self._allowed < FEW_CALLS else min(1.0, step)
        self._allowed = min(float(self.max_in_flight), self._allowed + step)
        self._changed.set()

    def _cut(self, cuts_before: int, *, is_refused: bool) -> None:
        if cuts_before == self._cuts:  # a burst of refusals counts once
            self._cuts += 1
            self._is_starting = False
            is_again = is_refused and self._refused_since is not None  # without a reply in between
            if is_again and self._allowed < 2:
                self._gap_s = min(MAX_GAP_S, max(FIRST_GAP_S, 2 * self._gap_s))
                self._next_at = self._clock() + self._gap_s
            halved = min(self._allowed, float(self.in_flight)) / 2
            self._allowed = min(self._allowed, max(1.0 if is_again else float(FEW_CALLS), halved))

    def _space_out(self) -> None:
        """Set the pause between calls according to `OVERLOAD_GAP_SHARE`."""
        now = self._clock()
        refused_s = 0.0 if self._refused_since is None else now - self._refused_since
        self._gap_s = min(MAX_GAP_S, refused_s * OVERLOAD_GAP_SHARE)
        self._next_at = now + self._gap_s

    def _pause(self, retry_after_s: float | None) -> None:
        """Record a refusal, and hold all calls for the time requested, unless that exceeds the timeout."""
        now = self._clock()
        if self._refused_since is None:
            self._refused_since = now
        if retry_after_s is not None and now + retry_after_s <= self._refused_since + self._timeout_s:
            self._paused_until = max(self._paused_until, now + retry_after_s)
