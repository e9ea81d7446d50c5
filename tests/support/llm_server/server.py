"""The server: one event loop in a thread, chat completions, files and batches."""

import asyncio
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection

import msgspec

from tests.support.llm_server.batches import Batches
from tests.support.llm_server.chat import Chat, Request, Script
from tests.support.llm_server.counts import Counts
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.http import Answer, Connection, HttpRequest
from tests.support.llm_server.rate_limits import RateLimitRule
from tests.support.llm_server.scripts import script_of
from tests.support.llm_server.streams import StreamRule
from tests.support.llm_server.tokens import InputCache, TokenRule


class LLMServer:
    """A server for one test, in a thread of its own; see the package for how to use it.

    ``script``: a name of `scripts.NAMED`, or a function from Request to a text or a Scripted.
    ``unsupported``: parameters that are always refused; ``max_input_tokens``: longer prompts are.
    ``rate_limits``: how many requests and tokens it takes a minute. ``input_cache``: what it keeps of
    prompts; ``reasoning_tokens``: how many of a call it hides; ``most_choices``: it gives no more for ``n``.
    ``streams``: whether it answers in streams. ``requests`` has the last requests as they came in.
    ``chat``'s fields may be changed while it runs (``server.chat.latency_s = 0``). ``connections`` counts
    those that were opened, ``open_connections`` those that still are.
    """

    def __init__(
        self,
        script: str | Script = "judges",
        *,
        latency_s: float = 0.0,
        faults: FaultPlan | None = None,
        tokens: TokenRule | None = None,
        unsupported: Collection[str] = (),
        max_input_tokens: int | None = None,
        rate_limits: RateLimitRule | None = None,
        api_key: str | None = None,
        input_cache: InputCache | None = None,
        reasoning_tokens: Callable[[Request], int] | None = None,
        most_choices: int | None = None,
        streams: StreamRule | None = None,
    ):
        self.chat = Chat(
            script_of(script),
            latency_s,
            faults or FaultPlan(),
            tokens or TokenRule(),
            frozenset(unsupported),
            max_input_tokens,
            rate_limits,
            input_cache,
            reasoning_tokens,
            most_choices,
            streams,
        )
        self.batches = Batches(self.chat)
        self._api_key = api_key
        self.requests: deque[HttpRequest] = deque(maxlen=200)
        self.connections = self.open_connections = 0

    def __enter__(self) -> "LLMServer":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(120)
        return self

    def __exit__(self, *_) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.sockets[0].getsockname()[1]

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        return self.chat.counts

    def reset_counts(self) -> None:
        """Count from nothing again; the tries of a prompt too, so the faults of a plan come again."""
        self.chat.counts = Counts()

    async def _start(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._connected, "127.0.0.1", 0, backlog=1024)

    def _connected(self) -> Connection:
        self.connections += 1
        self.open_connections += 1
        return Connection(self._handle, self._disconnected)

    def _disconnected(self) -> None:
        self.open_connections -= 1

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if self._api_key and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return error_answer(401, "Incorrect API key provided.", code="invalid_api_key")
        try:
            if path == "/counts":
                return Answer(body=msgspec.json.encode(self.counts.as_json()))
            if path == "/v1/chat/completions" and request.method == "POST":
                return await self.chat.answer(request.body)
            return self.batches.answer(request) or error_answer(404, f"no such address: {path}")
        except Exception as problem:  # of a script too: the test should see it, not wait for ever
            traceback.print_exc()
            return error_answer(501, f"the test's server failed: {problem!r}")
