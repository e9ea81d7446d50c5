"""Limits on what Gradio keeps for a stranger: open event streams, and results that nobody reads.

Gradio 6.31 limits neither. Only `UnreadResults` relies on the internals of Gradio's queue.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import orjson
from anyio import CancelScope
from fastapi import Request
from fastapi.responses import JSONResponse
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage, ProcessCompletedMessage
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

K = TypeVar("K", bound=Hashable)
Sender = Callable[[HTTPConnection], str]
"""A function that returns the address whose limits apply to a request."""


@dataclass(frozen=True)
class Holding:
    """An upload or result that the server keeps for a sender: its size in bytes and the time it was added."""

    sender: str
    size: int
    since: float


class Holdings(Generic[K]):
    """The uploads or results that the server keeps, by key and by sender, oldest first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[K, Holding] = {}
        self._sizes: Counter[str] = Counter()

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[K]:
        """Iterate over a copy of the keys, so that holdings can be removed during the iteration."""
        return iter(list(self._held))

    def add(self, key: K, sender: str, size: int) -> None:
        """Add a holding of ``size`` bytes. It replaces a holding with the same key."""
        self.remove(key)
        self._held[key] = Holding(sender, size, self._clock())
        self._sizes[sender] += size

    def remove(self, key: K) -> None:
        holding = self._held.pop(key, None)
        if holding is not None:
            self._sizes[holding.sender] -= holding.size
            if not self._sizes[holding.sender]:
                del self._sizes[holding.sender]

    @property
    def total(self) -> int:
        return self._sizes.total()

    def held(self, sender: str) -> int:
        return self._sizes[sender]

    def of(self, sender: str) -> dict[K, Holding]:
        """Return one sender's holdings, the oldest first."""
        return {key: holding for key, holding in self._held.items() if holding.sender == sender}

    def heaviest(self) -> str:
        return max(self._sizes, key=self._sizes.__getitem__)

    def older_than(self, seconds: float) -> list[K]:
        """Return the keys of all holdings that were added more than ``seconds`` ago."""
        latest = self._clock() - seconds
        return [key for key, holding in self._held.items() if holding.since < latest]


EVENT_STREAM: Final = "/gradio_api/queue/data"
MOST_STREAMS: Final = 512
MOST_STREAMS_EACH: Final = 32
"""The maximum number of open event streams, in total and per address. A waiting Gradio client needs one."""
TOO_MANY_STREAMS: Final = "too many responses are open at the same time; try again in a few seconds"
STREAM_RETRY_SECONDS: Final = 10


class OpenStreams:
    """The number of open event streams by sender, and the scopes that cancel them."""

    def __init__(self) -> None:
        self.by_sender: Counter[str] = Counter()
        self.scopes: set[CancelScope] = set()

    def end(self) -> None:
        """Close all event streams, so that the server can stop."""
        for scope in self.scopes:
            scope.cancel()


class StreamLimits:
    """Middleware that answers 503 if too many event streams are open, in total or for one address."""

    def __init__(self, app: ASGIApp, streams: OpenStreams, sender: Sender) -> None:
        self._app, self._streams, self._sender = app, streams, sender

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != EVENT_STREAM:
            await self._app(scope, receive, send)
            return
        sender, open_now = self._sender(Request(scope)), self._streams.by_sender
        if open_now[sender] >= MOST_STREAMS_EACH or open_now.total() >= MOST_STREAMS:
            headers = {"Retry-After": str(STREAM_RETRY_SECONDS)}
            await JSONResponse({"detail": TOO_MANY_STREAMS}, 503, headers)(scope, receive, send)
            return
        open_now[sender] += 1
        try:
            await self._run(scope, receive, send)
        finally:
            open_now.subtract([sender])
            if not open_now[sender]:
                del open_now[sender]

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = has_ended = False

        async def watched(message: Message) -> None:
            nonlocal has_begun, has_ended
            has_begun = True
            has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with CancelScope() as cancel:
            self._streams.scopes.add(cancel)
            try:
                await self._app(scope, receive, watched)
            except RuntimeError as error:
                # The session does not exist: Gradio raises a 404 although its response has already begun.
                if not (has_begun and isinstance(error.__cause__, HTTPException)):
                    raise
            finally:
                self._streams.scopes.discard(cancel)
        if has_begun and not has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


UNREAD_SECONDS: Final = 60
UNREAD_BYTES: Final = 4_000_000
UNREAD_BYTES_EACH: Final = 1_000_000
"""The maximum size of unread results as JSON in bytes, in total and per address. In memory they take 10 times
as much."""
SMALLEST_RESULT: Final = 16_000
"""Each result counts as at least this many bytes, so there are at most 250 results, and 62 per address."""


class UnreadResults:
    """The unread results in Gradio's queue, limited in size, number and age.

    A client normally reads a result immediately. Above a limit, the oldest results are dropped, first those
    of the same sender, then those of the sender with the most bytes. Their sessions are dropped too, so that
    a late reader gets an error. The latest result is always kept, however large it is.
    """

    def __init__(self, queue: Queue, sender: Sender, clock: Callable[[], float] = time.monotonic) -> None:
        """Wrap the queue's ``send_message``, which passes messages to sessions, in order to count results."""
        self._queue, self._sender = queue, sender
        self._holdings: Holdings[tuple[str, str]] = Holdings(clock)
        self._pass_on = queue.send_message
        changed: Any = queue  # its methods are replaced
        changed.send_message = self._send_message
        # For its monitoring page, which is disabled here, Gradio keeps a table of the last 10,000 calls and
        # summarises it with pandas after each call.
        changed.ANALYTICS_MAX_EVENTS = 1
        changed.compute_analytics_summary = lambda records: None

    def _send_message(self, event: Event, message: EventMessage) -> None:
        self._pass_on(event, message)
        if isinstance(message, ProcessCompletedMessage):
            key, sender = (event.session_hash, event._id), self._sender(event.request)
            size = len(orjson.dumps(message.output, default=str))
            self._holdings.add(key, sender, max(size, SMALLEST_RESULT))
            self._make_room(sender, key)

    def _make_room(self, sender: str, latest: tuple[str, str]) -> None:
        holdings = self._holdings
        if holdings.held(sender) <= UNREAD_BYTES_EACH and holdings.total <= UNREAD_BYTES:
            return
        self._remove_read()
        while holdings.held(sender) > UNREAD_BYTES_EACH and self._drop_oldest(sender, latest):
            pass
        while holdings.total > UNREAD_BYTES and self._drop_oldest(holdings.heaviest(), latest):
            pass

    def _drop_oldest(self, sender: str, latest: tuple[str, str]) -> bool:
        """Drop a sender's oldest result except ``latest``; return False if there is no other."""
        key = next((key for key in self._holdings.of(sender) if key != latest), None)
        if key is not None:
            self._drop(key)
        return key is not None

    def _drop(self, key: tuple[str, str]) -> None:
        session, _ = key
        self._queue.pending_messages_per_session.pop(session, None)
        for event_id in self._queue.pending_event_ids_session.pop(session, ()):
            self._holdings.remove((session, event_id))
        self._holdings.remove(key)

    def _remove_read(self) -> None:
        pending = self._queue.pending_event_ids_session
        for session, event_id in self._holdings:
            if event_id not in pending.get(session, ()):
                self._holdings.remove((session, event_id))

    def sweep(self) -> None:
        """Drop results that are too old, and sessions that no longer wait for a result."""
        self._remove_read()
        for key in self._holdings.older_than(UNREAD_SECONDS):
            self._drop(key)
        pending, messages = self._queue.pending_event_ids_session, self._queue.pending_messages_per_session
        for session, ids in list(pending.items()):
            running = self._queue.event_ids_to_events
            ids &= {name for name in ids if name in running or (session, name) in self._holdings}
            if not ids:
                del pending[session]
        for session in [session for session in messages if session not in pending]:
            del messages[session]
