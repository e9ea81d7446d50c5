"""Calls answered: from the cache, from an equal call in progress, or by a request with retries.

A call passes cache, calls under way in this process, calls under way in other processes (claims), and then,
for every try, limit and budget. Nothing is awaited between a reply and its place in the cache, so that a run
that is stopped at any moment loses no reply that it has paid and received.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from arb.judges.endpoints.openai_compatible import TIMEOUT_S, OpenAIEndpoint
from arb.judges.endpoints.providers import EndpointAccess, resolve_access
from arb.judges.engine.budget import Budget
from arb.judges.engine.cache import CallCache, call_key
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.retry import Endpoint, OnEvent, RetryPolicy, RoleCaller
from arb.judges.engine.storage import StorageError
from arb.judges.types import Call, Image, Message, ModelSettings, Reply

CLAIM_POLL_S: Final = 0.25
"""How often it is looked whether another process has done with a call."""

CHARACTERS_PER_TOKEN: Final = 4
TOKENS_PER_IMAGE: Final = 1_000
"""About what calls take, for the tokens-a-minute limit; replies correct it."""


class CallExecutor:
    """Answers the calls of all trajectories of a run. For one event loop.

    ``endpoints`` and ``models`` are by role; without models there is no cache. ``tokens_of`` counts a prompt
    for the tokens-a-minute limit. ``sleep`` and ``draw`` (numbers from 0 to 1) may be a test's own.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        models: Mapping[str, ModelSettings],
        cache: CallCache | None,
        limit: AdaptiveLimit,
        budget: Budget,
        on_event: OnEvent = lambda kind, **facts: None,
        *,
        retry_policy: RetryPolicy | None = None,
        tokens_of: Callable[[ModelSettings, tuple[Message, ...]], int] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ):
        self._models = models
        self._cache = cache
        self._limit = limit
        self._on_event = on_event
        self._sleep = sleep
        self._under_way: dict[str, asyncio.Future[Reply | None]] = {}
        self._untaken: set[str] = (
            set()
        )  # samples that came with another one, until who asks for them has them
        self._callers = {
            role: RoleCaller(
                endpoints[role],
                model,
                cache,
                limit,
                budget,
                on_event,
                retry_policy or RetryPolicy(),
                tokens_of or estimate_tokens,
                sleep,
                draw,
            )
            for role, model in models.items()
        }
        _share_unsupported_params(self._callers)

    @property
    def unsupported_params(self) -> dict[str, list[str]]:
        """By role, the parameters that its endpoint turned out not to know, and that were left out since."""
        return {
            role: sorted(caller.unsupported_params)
            for role, caller in self._callers.items()
            if caller.unsupported_params
        }

    async def ask(self, call: Call) -> Reply:
        """Return the reply to a call, with the key of its answer; its state says when there is none.

        Equal calls in progress are made once; all but the first get the reply as from the cache.

        Raises:
            StorageError: The cache cannot be written. No further call is made from then on.
            BudgetReached, RateLimitTimeout, asyncio.CancelledError, or what `stop_waiting` was called with.
        """
        try:
            return await self._ask(call)
        except StorageError as problem:
            self.stop_waiting(problem)
            raise

    async def _ask(self, call: Call) -> Reply:
        model = self._models.get(call.role)
        if model is None:
            raise RuntimeError(f"a call for the role {call.role!r}, for which no model is named")
        max_tokens = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, max_tokens, call.sample)
        while True:
            if (cached := self._from_cache(key, call)) is not None:
                return cached
            if (under_way := self._under_way.get(key)) is None:
                break
            shared = await asyncio.shield(under_way)
            if shared is not None:  # None: given up, by Ctrl-C or for lack of money
                if key in self._untaken:
                    self._untaken.discard(key)
                    return shared
                self._on_event("cached", purpose=call.purpose, role=call.role)
                return replace(shared, is_from_cache=True)
        keys = [key, *self._samples_to_ask(call, model, max_tokens)] if call.together else [key]
        ends = {each: asyncio.get_running_loop().create_future() for each in keys}
        self._under_way |= ends
        try:
            replies = await self._claimed(call, keys, max_tokens)
            for reply in replies:
                ends[reply.key].set_result(reply)
            self._untaken.update(reply.key for reply in replies[1:])
            return replies[0]
        finally:
            for each, end in ends.items():
                del self._under_way[each]
                if not end.done():
                    end.set_result(None)

    def _samples_to_ask(self, call: Call, model: ModelSettings, max_tokens: int) -> list[str]:
        """The keys of the other samples that can be asked for in the same request, and have to be."""
        if not self._callers[call.role].takes_choices:
            return []
        others = (number for number in call.together if number != call.sample)
        keys = (call_key(model, call.messages, max_tokens, number) for number in others)
        return [key for key in keys if key not in self._under_way and self._cache.get(key) is None]

    def stop_waiting(self, reason: Exception) -> None:
        """Begin no call any more; those that still wait for a limit, and are not paid, end with this."""
        self._limit.close(reason)

    def sync(self) -> None:
        """Return when every reply given so far is on the disk."""
        if self._cache is not None:
            self._cache.sync()

    async def _claimed(self, call: Call, keys: list[str], max_tokens: int) -> list[Reply]:
        """The replies to a call that nothing else in this process is waiting for, and to further samples."""
        while not self._cache.claim(keys[0]):
            await self._sleep(CLAIM_POLL_S)
        claimed = [keys[0], *(key for key in keys[1:] if self._cache.claim(key))]
        try:
            self._cache.refresh()  # another process may have ended it a moment ago
            if (cached := self._from_cache(keys[0], call)) is not None:
                return [cached]
            lacking = [keys[0], *(key for key in claimed[1:] if self._cache.get(key) is None)]
            return await self._callers[call.role].replies(call, lacking, max_tokens)
        finally:
            for key in claimed:
                self._cache.release(key)

    def _from_cache(self, key: str, call: Call) -> Reply | None:
        cached = self._cache.get(key)
        if cached is None:
            return None
        if key in self._untaken:
            self._untaken.discard(key)
            return replace(cached, is_from_cache=False, key=key)
        self._on_event("cached", purpose=call.purpose, role=call.role)
        return replace(cached, is_from_cache=True, key=key)


def estimate_tokens(model: ModelSettings, messages: tuple[Message, ...]) -> int:
    """About what a prompt takes: a token for four characters, a thousand for a picture."""
    return sum(
        TOKENS_PER_IMAGE if isinstance(part, Image) else len(part) // CHARACTERS_PER_TOKEN + 1
        for message in messages
        for part in message.parts
    )


def _share_unsupported_params(callers: Mapping[str, RoleCaller]) -> None:
    """Roles that ask the same model at the same place learn from each other what it does not know."""
    known: dict[tuple[str, str | None, str], set[str]] = {}
    for each in callers.values():
        model = each.model
        each.unsupported_params = known.setdefault(
            (model.provider, model.base_url, model.model), each.unsupported_params
        )


@asynccontextmanager
async def open_endpoints(
    models: Mapping[str, ModelSettings],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[dict[str, Endpoint]]:
    """The endpoint of each role, open for the block; roles with the same address and key share one.

    Raises OptionsError for a missing key or address before anything is opened.
    """
    access = resolve_access(models, environment)
    opened: dict[EndpointAccess, Endpoint] = {}
    by_role: dict[str, Endpoint] = {}
    try:
        for role in models:
            place = access[role]
            if place not in opened:
                opened[place] = _open_endpoint(place, timeout_s)
            by_role[role] = opened[place]
        yield by_role
    finally:
        await asyncio.gather(*(each.close() for each in opened.values()))


def _open_endpoint(access: EndpointAccess, timeout_s: float) -> Endpoint:
    if access.library is not None:
        from arb.judges.endpoints.any_llm import AnyLLMEndpoint

        return AnyLLMEndpoint(access, timeout_s)
    return OpenAIEndpoint(access, timeout_s)
