"""The limits of requests per sender and minute, and the queue of uploads.

A sender is an account, or the address that connected (on a Space the one that the Hub's proxy saw). Each
application has one queue for the expensive requests of REST, pages, Gradio and MCP (see
`space.operations.admission`), which handles a few at a time, so that no sender holds up the others. The queue
runs on the event loop. A waiting request holds no thread, so pages and the health check never wait for files.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from cachetools import TTLCache
from fastapi import HTTPException
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.requests import HTTPConnection

from arb.core.settings import Settings
from space.operations.metrics import Metrics
from submissions.intake.accounts import Actor

UNKNOWN: Final = "unknown"
_NETWORK_BITS: Final = 64
"""A household has a whole IPv6 network of this length, so its addresses count as one."""
_SITE_BITS: Final = 48
"""A customer may have 65,536 such networks, which share `TIMES_A_SITE` times the limit of one."""
TIMES_A_SITE: Final = 4


def client_address(request: HTTPConnection, on_space: bool) -> str:
    """Return the address that a request counts for.

    On a Space this is the last hop of X-Forwarded-For, which the Hub's proxy wrote. A client can forge the
    hops before it, and elsewhere the whole header.
    """
    connected = request.client.host if request.client else ""
    if on_space:
        hops = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        return counted_as(hops[-1]) if hops[-1].strip() else counted_as(connected)
    return counted_as(connected)


def counted_as(address: str) -> str:
    """Return an IPv4 address as it is, an IPv6 address as its network, and anything else as `UNKNOWN`."""
    try:
        found = ip_address(address.strip().partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(found)


def sender_of(request: HTTPConnection, on_space: bool, actor: Actor | None = None) -> str:
    """Return what a request counts for: the account if it is known, else the address."""
    if actor is None:
        return client_address(request, on_space)
    return f"account {actor.subject or actor.name.casefold()}"


def site_of(address: str) -> str | None:
    """Return the IPv6 /48 of an address as `counted_as` spells it, or None for any other address."""
    if not address.endswith(f"/{_NETWORK_BITS}"):
        return None
    return str(IPv6Network(address).supernet(new_prefix=_SITE_BITS))


MOST_ADDRESSES: Final = 10_000
SWEEP_EVERY_SECONDS: Final = 1.0
OTHERS: Final = "others"
_COUNTERS: Final = 2
"""The counters per address of a sliding window."""


class SenderRefused(HTTPException):
    """Raised when a sender has to come back later, after ``retry_after`` whole seconds.

    The answer waits ``delay_s`` seconds first if the sender continues in spite of many refusals.
    """

    def __init__(self, status: int, problem: str, retry_after: int, delay_s: float = 0.0) -> None:
        message = (
            f"{problem}; try again in {retry_after} s, or check the file on your own machine: "
            "python -m submissions check FILE"
        )
        super().__init__(status, message, {"Retry-After": str(retry_after)})
        self.retry_after, self.delay_s = retry_after, delay_s

    def __str__(self) -> str:
        return self.detail


class TooManyChecks(SenderRefused):
    """Raised when one address or account asked too often (429)."""

    def __init__(self, limit: str, retry_after: int, delay_s: float = 0.0) -> None:
        super().__init__(429, f"{limit} in a minute", retry_after, delay_s)


REFUSAL_DELAY_SECONDS: Final = 1.0
"""Delay of each refusal once a sender was refused as often as it may send files. Without the delay, a client
that never waits would be answered hundreds of times per second."""


class CounterStorage(MemoryStorage):
    """Counters in memory that are swept while counting.

    The library would start a thread at every count to sweep them, and the event loop would wait for it.
    """

    _swept = -math.inf

    def _MemoryStorage__schedule_expiry(self) -> None:
        if time.monotonic() > self._swept + SWEEP_EVERY_SECONDS:
            self._swept = time.monotonic()
            self._MemoryStorage__expire_events()  # type: ignore[attr-defined]  # private there


class CheckLimit:
    """Counts of checks by address and by account, in a sliding window in memory.

    At most ``most_addresses`` are counted separately. While as many are busy, all new ones share one count.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, most_addresses: int = MOST_ADDRESSES, times: int = 1
    ) -> None:
        """Count files, or with ``times`` other requests, of which a sender may send that many per file."""
        self._on_space = settings.space_id is not None
        self._item = RateLimitItemPerMinute(times * settings.checks_a_minute)
        self._site_item = RateLimitItemPerMinute(TIMES_A_SITE * self._item.amount)
        self._refusable = RateLimitItemPerMinute(settings.checks_a_minute)
        self._what = "have {} files checked" if times == 1 else "send {} requests"
        self._storage, self._refused = CounterStorage(), CounterStorage()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)
        self._refusals = SlidingWindowCounterRateLimiter(self._refused)
        self._most, self._metrics = most_addresses, metrics

    def take(self, request: HTTPConnection, actor: Actor | None = None) -> None:
        """Count one check of this request's address, or of an account.

        An IPv6 address counts for its /64 and for its /48.

        Raises:
            TooManyChecks: The sender sent too many requests in the last minute.
        """
        sender = sender_of(request, self._on_space, actor)
        if len(self._storage.storage) >= _COUNTERS * self._most and not self._is_known(sender):
            sender = OTHERS
        site = site_of(sender) if actor is None else None
        if site is not None and not self._limiter.test(self._site_item, site):
            who, item, sender = f"one IPv6 /{_SITE_BITS}", self._site_item, site
        elif self._limiter.hit(self._item, sender):
            if site is not None:
                self._limiter.hit(self._site_item, site)
            return
        else:
            who, item = f"one {'address' if actor is None else 'account'}", self._item
        self._metrics.checks.labels("limited").inc()
        reset = self._limiter.get_window_stats(item, sender).reset_time
        goes_on = not self._refusals.hit(self._refusable, sender)
        raise TooManyChecks(
            f"{who} may {self._what.format(item.amount)}",
            max(1, math.ceil(reset - time.time())),
            REFUSAL_DELAY_SECONDS if goes_on else 0.0,
        )

    def _is_known(self, sender: str) -> bool:
        return self._limiter.get_window_stats(self._item, sender).remaining < self._item.amount


def count_file(checks: CheckLimit, request: HTTPConnection) -> None:
    """Count a request as a file before its body is read, so that its handler does not count it again.

    Raises:
        TooManyChecks: The sender sent too many files in the last minute.
    """
    checks.take(request)
    request.state.is_counted = True


def is_counted(request: HTTPConnection) -> bool:
    """Return whether `count_file` counted the request."""
    return getattr(request.state, "is_counted", False)


AT_ONCE: Final = 4
"""The most requests that hold a slot. A file may take 120 MB, and Parquet or large text also a process."""
AT_ONCE_SMALL: Final = 2
"""The same on a machine with little memory; see `Settings.has_little_memory`."""
AT_ONCE_EACH: Final = 2
"""The most requests of one account or address that hold a slot."""
AT_ONCE_HEAVY: Final = 1
"""The most requests of all heavy senders together that hold a slot."""
PAUSE_TIMES: Final = 2.0
"""The pause after a heavy sender's request, as a multiple of the time that it took."""
MOST_PAUSE_SECONDS: Final = 1.0
"""The longest such pause."""
HEAVY_SECONDS: Final = 0.1
"""A sender whose files took longer than this is heavy; about ten valid files take as long."""
MOST_WAITING: Final = 64
MOST_WAITING_EACH: Final = 8
RETRY_AFTER_SECONDS: Final = 5
REMEMBERED_SECONDS: Final = 60.0
"""How long a sender's files count after the last one."""
_MOST_REMEMBERED: Final = 10_000

P = ParamSpec("P")
T = TypeVar("T")


class QueueFull(SenderRefused):
    """Raised when the queue has no place for a request (503)."""

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__(503, "too many files wait to be read", RETRY_AFTER_SECONDS, delay_s)


class UploadSlot:
    """A place among the few requests that are handled at once; ``is_heavy`` if it is for heavy senders."""

    def __init__(self, is_heavy: bool, leave: Callable[[], None]) -> None:
        self.is_heavy, self.is_held, self._leave = is_heavy, True, leave

    def release(self) -> None:
        """Give the place to the next request. Later calls do nothing."""
        if self.is_held:
            self.is_held = False
            self._leave()


_SLOT: ContextVar[UploadSlot | None] = ContextVar("_SLOT", default=None)
"""The slot of the current request, also in the threads and tasks that it starts."""


def held_slot() -> UploadSlot | None:
    """Return the slot that the current request holds, or None."""
    slot = _SLOT.get()
    return slot if slot is not None and slot.is_held else None


def reads_apart() -> bool:
    """Return whether even small files of the current request are read in another process."""
    slot = held_slot()
    return slot is not None and slot.is_heavy


class UploadQueue:
    """The queue of expensive requests, shared fairly between senders (accounts or addresses).

    The next slot goes to the waiting sender whose files took the least time lately, so a sender with one file
    passes all senders with many. Heavy senders share one slot for a third of the time, which leaves the rest
    to pages and to others. If the queue is full, the last request of the sender with the most waiting
    requests is refused instead.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        at_once_each: int = AT_ONCE_EACH,
        most_waiting: int = MOST_WAITING,
        most_waiting_each: int = MOST_WAITING_EACH,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_once, self._at_once_each = at_once, at_once_each
        self._most_waiting, self._most_waiting_each = most_waiting, most_waiting_each
        self._clock = clock
        self._running: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[bool]]] = []
        self._seconds: TTLCache[str, float] = TTLCache(_MOST_REMEMBERED, REMEMBERED_SECONDS, timer=clock)
        self._threads = CapacityLimiter(at_once)
        self._heavy_running, self._heavy_after = 0, 0.0

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def is_heavy(self, sender: str) -> bool:
        """Return whether the sender's files took much time lately."""
        return self._seconds.get(sender, 0.0) > HEAVY_SECONDS

    async def run(self, sender: str, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Call ``function`` in a thread once the sender has a slot. Pages use other threads.

        Raises:
            QueueFull: The queue has no place for the sender.
        """
        async with self.slot(sender):
            return await to_thread.run_sync(partial(function, *args, **options), limiter=self._threads)

    @asynccontextmanager
    async def slot(self, sender: str) -> AsyncIterator[UploadSlot]:
        """Wait for a slot and hold it for the block, or use the one that the request holds already.

        Raises:
            QueueFull: The queue has no place for the sender.
        """
        if (held := held_slot()) is not None:
            yield held
            return
        is_heavy = await self._enter(sender)
        slot = UploadSlot(is_heavy, partial(self._end, sender, is_heavy, self._clock()))
        token = _SLOT.set(slot)
        try:
            yield slot
        finally:
            _SLOT.reset(token)
            slot.release()

    def require_room(self, sender: str) -> None:
        """Raise QueueFull if a request of the sender would find no place in the queue now; see the class."""
        counts = self._waiting_by_sender()
        is_longest = counts[sender] + 1 >= max(counts.values(), default=0)
        is_full = self.waiting >= self._most_waiting and is_longest
        if counts[sender] >= self._most_waiting_each or is_full:
            raise QueueFull(REFUSAL_DELAY_SECONDS if self.is_heavy(sender) else 0.0)

    def _waiting_by_sender(self) -> Counter[str]:
        return Counter(sender for sender, _ in self._waiting)

    def _end(self, sender: str, is_heavy: bool, begun: float) -> None:
        seconds = self._clock() - begun
        self._seconds[sender] = self._seconds.get(sender, 0.0) + seconds
        if is_heavy:
            self._heavy_after = self._clock() + min(PAUSE_TIMES * seconds, MOST_PAUSE_SECONDS)
        self._leave(sender, is_heavy)

    async def _enter(self, sender: str) -> bool:
        """Wait for a slot; return whether it is the one for heavy senders."""
        self.require_room(sender)
        if self.waiting >= self._most_waiting:
            self._refuse_last_of_longest()
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((sender, waiter))
        self._fill_slots()
        try:
            return await waiter
        except asyncio.CancelledError:  # the client has left
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._leave(sender, waiter.result())
            else:
                waiter.cancel()
                self._fill_slots()
            raise

    def _refuse_last_of_longest(self) -> None:
        """Refuse the last request of the sender with the most in the queue."""
        longest, _ = self._waiting_by_sender().most_common(1)[0]
        last = next(each for each in reversed(self._waiting) if each[0] == longest)
        self._waiting.remove(last)
        last[1].set_exception(QueueFull())

    def _leave(self, sender: str, is_heavy: bool) -> None:
        self._heavy_running -= is_heavy
        self._running[sender] -= 1
        if not self._running[sender]:
            del self._running[sender]
        self._fill_slots()

    def _fill_slots(self) -> None:
        self._waiting = [each for each in self._waiting if not each[1].done()]  # clients that have left
        while self._running.total() < self._at_once:
            pause = self._heavy_after - self._clock()
            has_room = self._heavy_running < AT_ONCE_HEAVY and pause <= 0
            able = [
                name
                for name, _ in self._waiting
                if self._running[name] < self._at_once_each and (has_room or not self.is_heavy(name))
            ]
            if not able:
                if self._waiting and pause > 0:
                    # The loop of the waiting request is running; in tests, an earlier one may be closed.
                    asyncio.get_running_loop().call_later(pause + 0.001, self._fill_slots)
                return
            sender = min(able, key=lambda name: (self._running[name], self._seconds.get(name, 0.0)))
            is_heavy = self.is_heavy(sender)
            self._heavy_running += is_heavy
            self._running[sender] += 1
            first = next(each for each in self._waiting if each[0] == sender)
            self._waiting.remove(first)
            first[1].set_result(is_heavy)
