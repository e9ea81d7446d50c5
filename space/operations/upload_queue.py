"""The queue that handles a few expensive requests at a time, and the middleware in front of it.

Each application has one queue for REST, pages, Gradio and MCP. It runs on the event loop. A waiting request
occupies no thread, so pages and the health check never wait for files.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from cachetools import TTLCache
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.operations.limits import SenderRefused
from submissions.errors import stores_in

AT_ONCE: Final = 4
"""The number of slots, that is, of requests handled at the same time. Each can take 120 MB and a process."""
AT_ONCE_SMALL: Final = 2
"""The number of slots on a machine with little memory; see `Settings.has_little_memory`."""
AT_ONCE_EACH: Final = 2
"""The maximum number of slots that one account or address may hold."""
AT_ONCE_HEAVY: Final = 1
"""The maximum number of slots that all heavy senders together may hold; see `HEAVY_SECONDS`."""
PAUSE_TIMES: Final = 2.0
"""The pause after a heavy sender's request, as a multiple of the time that it took."""
MOST_PAUSE_SECONDS: Final = 1.0
"""The longest pause after a heavy sender's request."""
HEAVY_SECONDS: Final = 0.1
"""A sender is heavy if reading its recent files took longer than this: about the time for ten valid files."""
MOST_WAITING: Final = 64
MOST_WAITING_EACH: Final = 8
RETRY_AFTER_SECONDS: Final = 5
REMEMBERED_SECONDS: Final = 60.0
"""After a sender's last file, the time that reading its files took still counts for this long."""
_MOST_REMEMBERED: Final = 10_000

P = ParamSpec("P")
T = TypeVar("T")


class QueueFull(SenderRefused):
    """Raised when the queue has no room for another request (503)."""

    def __init__(self, goes_on: bool = False) -> None:
        super().__init__(503, "too many files are waiting to be read", RETRY_AFTER_SECONDS, goes_on)


class UploadSlot:
    """A request's place among the limited number of requests that are handled at the same time.

    ``is_heavy`` is true if a heavy sender's request holds it.
    """

    def __init__(self, is_heavy: bool, leave: Callable[[], None]) -> None:
        self.is_heavy, self.is_held, self._leave = is_heavy, True, leave

    def release(self) -> None:
        """Give the slot to the next request. Later calls do nothing."""
        if self.is_held:
            self.is_held = False
            self._leave()


_SLOT: ContextVar[UploadSlot | None] = ContextVar("_SLOT", default=None)
"""The slot of the current request. The threads and tasks of the request see it, too."""


def held_slot() -> UploadSlot | None:
    """Return the slot that the current request holds, or None."""
    slot = _SLOT.get()
    return slot if slot is not None and slot.is_held else None


def reads_apart() -> bool:
    """Return whether even the small files of the current request have to be read in another process."""
    slot = held_slot()
    return slot is not None and slot.is_heavy


class UploadQueue:
    """The queue of expensive requests, shared fairly between senders (accounts or addresses).

    The next slot goes to the waiting sender whose recent files took the least time, so a sender with one file
    overtakes all senders with many. Heavy senders share one slot for a third of the time, which leaves the
    rest to pages and other senders. If the queue is full, the latest request of the sender with the most
    waiting requests is rejected, which makes room for the new one.
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
        return len(self._waiting)

    def is_heavy(self, sender: str) -> bool:
        """Return whether the sender's recent files took more than `HEAVY_SECONDS`."""
        return self._seconds.get(sender, 0.0) > HEAVY_SECONDS

    async def run(self, sender: str, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Call ``function`` in a thread of the queue once the sender has a slot, and return its result."""
        async with self.slot(sender):
            return await to_thread.run_sync(partial(function, *args, **options), limiter=self._threads)

    @asynccontextmanager
    async def slot(self, sender: str) -> AsyncIterator[UploadSlot]:
        """Wait for a slot and hold it during the block, or reuse the slot that the request already holds.

        Raises QueueFull if the queue has no room for the sender.
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
        """Raise QueueFull if the queue has no room for one more request of the sender."""
        counts = self._waiting_by_sender()
        is_longest = counts[sender] + 1 >= max(counts.values(), default=0)
        is_full = self.waiting >= self._most_waiting and is_longest
        if counts[sender] >= self._most_waiting_each or is_full:
            raise QueueFull(goes_on=self.is_heavy(sender))

    def _waiting_by_sender(self) -> Counter[str]:
        return Counter(sender for sender, _ in self._waiting)

    def _end(self, sender: str, is_heavy: bool, begun: float) -> None:
        seconds = self._clock() - begun
        self._seconds[sender] = self._seconds.get(sender, 0.0) + seconds
        if is_heavy:
            self._heavy_after = self._clock() + min(PAUSE_TIMES * seconds, MOST_PAUSE_SECONDS)
        self._leave(sender, is_heavy)

    async def _enter(self, sender: str) -> bool:
        """Wait for a slot; return whether it is the slot for heavy senders."""
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
        """Reject the latest request of the sender with the most waiting requests."""
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
                    # The running loop is that of the waiting request. In tests, the loop of an earlier
                    # request may be closed.
                    asyncio.get_running_loop().call_later(pause + 0.001, self._fill_slots)
                return
            sender = min(able, key=lambda name: (self._running[name], self._seconds.get(name, 0.0)))
            is_heavy = self.is_heavy(sender)
            self._heavy_running += is_heavy
            self._running[sender] += 1
            first = next(each for each in self._waiting if each[0] == sender)
            self._waiting.remove(first)
            first[1].set_result(is_heavy)


BODY_IN_MEMORY: Final = 65_536
"""A waiting body with more bytes than this is kept in a temporary file."""
_CHUNK_BYTES: Final = 65_536


class Admission:
    """Middleware that makes a POST wait for a slot if ``admits`` returns True for its path.

    The body is received first, however slowly it arrives, and a large body is kept in a file. It is parsed
    only once the sender has a slot, so parsing counts towards the time that a sender takes. The slot is
    released when the response begins, so a client that reads slowly does not hold a slot.

    ``sender`` returns the account or address of a request. A middleware outside of this one turns QueueFull
    into a response.
    """

    def __init__(
        self,
        app: ASGIApp,
        uploads: UploadQueue,
        sender: Callable[[Request], str],
        admits: Callable[[str], bool],
    ) -> None:
        self._app, self._uploads, self._sender, self._admits = app, uploads, sender, admits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive the body, wait for a slot, and pass the request on, or raise QueueFull or DiskFull."""
        if scope["type"] != "http" or scope["method"] != "POST" or not self._admits(scope["path"]):
            await self._app(scope, receive, send)
            return
        sender = self._sender(Request(scope))
        self._uploads.require_room(sender)  # before the body is read
        body = await _received(receive)
        if body is None:
            return
        with body:
            left: int | None = body.tell()
            body.seek(0)

            async def replay() -> Message:
                nonlocal left
                if left is None:
                    return await receive()
                chunk = body.read(_CHUNK_BYTES)
                left = left - len(chunk) or None
                return {"type": "http.request", "body": chunk, "more_body": left is not None}

            async with self._uploads.slot(sender) as slot:

                async def send_without_slot(message: Message) -> None:
                    slot.release()
                    await send(message)

                await self._app(scope, replay, send_without_slot)


async def _received(receive: Receive) -> SpooledTemporaryFile[bytes] | None:
    """Return a request's body, at its end, or None if the client has disconnected. Raise DiskFull."""
    # Closing a file on a full disk fails, too, so only a complete body leaves the stack open.
    with stores_in(gettempdir()), ExitStack() as stack:
        body = stack.enter_context(SpooledTemporaryFile(BODY_IN_MEMORY))
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body.write(message.get("body", b""))
            more = message.get("more_body", False)
        body.flush()
        stack.pop_all()
        return body
