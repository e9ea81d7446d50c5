"""The engine: every judge's calls made fast, once, and within the limits.

Executes calls: from the cache, from an equal call in progress, or by a request with retries.

A call passes cache, calls under way here, calls under way in other processes (claims), and then, for every
try, limit and budget. Nothing is awaited between a reply and its place in the cache, so that a run that is
stopped at any moment loses no reply that it has paid and received.

The engine that runs in this process: cache, budget, limit and executor of a job.

The endpoints of a run, one for each place that its roles are asked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from judges.endpoints.openai_compatible import TIMEOUT_S, OpenAIEndpoint
from judges.endpoints.providers import LOCAL, resolve_access
from judges.engine.budget import Spending
from judges.engine.cache import CallCache, call_key
from judges.engine.concurrency import AdaptiveLimit
from judges.engine.interfaces import Cache, Endpoint, OnEvent
from judges.engine.retry import RetryPolicy, RoleCaller
from judges.run.folder import RunFolder
from judges.run.progress import Progress, RunEnd, Spend
from judges.run.runner import Executor, Job, run_async
from judges.types import Call, Image, Message, ModelSettings, Reply

CLAIM_POLL_S: Final = 0.25
"""How often it is looked whether another process has done with a call."""

CHARACTERS_PER_TOKEN: Final = 4
TOKENS_PER_IMAGE: Final = 1_000
"""About what calls take, for the tokens-a-minute limit; replies put it right."""


class CallExecutor:
    """Executor on behalf of all trajectories of a run. For one event loop.

    ``endpoints`` and ``models`` are by role. ``tokens_of`` counts a prompt for the tokens-a-minute limit.
    ``sleep`` and ``draw`` (numbers from 0 to 1) may be a test's own.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        models: Mapping[str, ModelSettings],
        cache: Cache,
        limit: AdaptiveLimit,
        budget: Spending,
        on_event: OnEvent = lambda kind, **facts: None,
        *,
        retry_policy: RetryPolicy | None = None,
        tokens_of: Callable[[ModelSettings, tuple[Message, ...]], int] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ):
        self._models = models
        self._cache = cache
        self._on_event = on_event
        self._sleep = sleep
        self._under_way: dict[str, asyncio.Future[Reply | None]] = {}
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
        """The reply to a call, with the key of its answer; its state tells when there is none.

        Equal calls under way are made once; all but the first get the reply as from the cache. Raises
        BudgetReached, OSError when the cache cannot be written, asyncio.CancelledError, and nothing else.
        """
        model = self._models[call.role]
        max_tokens = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, max_tokens, call.sample)
        while True:
            if (kept := self._from_cache(key, call)) is not None:
                return kept
            if (under_way := self._under_way.get(key)) is None:
                break
            shared = await asyncio.shield(under_way)
            if shared is not None:  # None: given up, by Ctrl-C or for want of money
                self._on_event("cached", purpose=call.purpose, role=call.role)
                return replace(shared, is_from_cache=True)
        self._under_way[key] = done = asyncio.get_running_loop().create_future()
        try:
            reply = await self._claimed(call, key, max_tokens)
            done.set_result(reply)
            return reply
        finally:
            del self._under_way[key]
            if not done.done():
                done.set_result(None)

    async def _claimed(self, call: Call, key: str, max_tokens: int) -> Reply:
        """The reply to a call that nothing else in this process is waiting for."""
        while not self._cache.claim(key):
            await self._sleep(CLAIM_POLL_S)
        try:
            self._cache.refresh()  # another process may have ended it a moment ago
            kept = self._from_cache(key, call)
            return kept if kept is not None else await self._callers[call.role].reply(call, key, max_tokens)
        finally:
            self._cache.release(key)

    def _from_cache(self, key: str, call: Call) -> Reply | None:
        kept = self._cache.get(key)
        if kept is None:
            return None
        self._on_event("cached", purpose=call.purpose, role=call.role)
        return replace(kept, is_from_cache=True, key=key)


def estimate_tokens(model: ModelSettings, messages: tuple[Message, ...]) -> int:
    """About what a prompt takes: a token for four characters, a thousand for a picture."""
    total = 0
    for message in messages:
        for part in (message.content,) if isinstance(message.content, str) else message.content:
            is_picture = isinstance(part, Image)
            total += TOKENS_PER_IMAGE if is_picture else len(part) // CHARACTERS_PER_TOKEN + 1
    return total


def _share_unsupported_params(callers: Mapping[str, RoleCaller]) -> None:
    """Roles that ask the same model at the same place learn from each other what it does not know."""
    known: dict[tuple[str, str | None, str], set[str]] = {}
    for each in callers.values():
        model = each.model
        each.unsupported_params = known.setdefault(
            (model.provider, model.base_url, model.model), each.unsupported_params
        )


@dataclass(frozen=True)
class OpenExecutor:
    """What answers a job's calls, and the cache that keeps the replies; None where there are none."""

    executor: Executor
    cache: CallCache | None

    def sync(self) -> None:
        if self.cache is not None:
            self.cache.sync()


def run_local(job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """Judge the job's trajectories into the folder; see `run.run_async`. Raises OptionsError."""

    async def run() -> RunEnd:
        async with open_executor(job, progress.spend, progress.event) as opened:
            return await run_async(job, folder, progress, opened.executor, opened.sync)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def open_executor(job: Job, spend: Spend, on_event: OnEvent) -> AsyncIterator[OpenExecutor]:
    """What answers the job's calls, open for the block: endpoints, cache, limit and budget of its options.

    Raises OptionsError for a missing key, address or price.
    """
    if not job.models:
        yield OpenExecutor(_NoModels(), None)
        return
    from judges.endpoints.openai_compatible import TIMEOUT_S
    from judges.engine.budget import build_budget
    from judges.engine.concurrency import AdaptiveLimit

    settings = job.settings
    budget = build_budget(settings.max_usd, settings.prices, job.models, spend.before_usd or 0.0)
    spend.presumed = lambda: getattr(budget, "presumed_usd", 0.0)
    limit = AdaptiveLimit(settings.max_in_flight, settings.requests_per_minute, settings.tokens_per_minute)
    async with open_endpoints(job.models, timeout_s=settings.timeout_s or TIMEOUT_S) as endpoints:
        cache = CallCache(settings.cache)
        try:
            yield OpenExecutor(CallExecutor(endpoints, job.models, cache, limit, budget, on_event), cache)
        finally:
            cache.close()


class _NoModels:
    """Answers for a judge that names no model, and so must not ask."""

    async def ask(self, call: Call) -> Reply:
        raise RuntimeError(f"a call for the role {call.role!r}, for which no model is named")


@contextlib.asynccontextmanager
async def open_endpoints(
    models: Mapping[str, ModelSettings],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[dict[str, Endpoint]]:
    """The endpoint of each role, open for the block; roles with the same address and key share one.

    Raises OptionsError for a missing key or address before anything is opened.
    """
    access = resolve_access(models, environment)
    remote = {place: OpenAIEndpoint(place, timeout_s) for place in set(access.values())}
    local: dict[str, Endpoint] = {}
    try:
        for model in models.values():
            if model.provider == LOCAL and model.model not in local:
                local[model.model] = _local(model)
        yield {
            role: local[model.model] if model.provider == LOCAL else remote[access[role]]
            for role, model in models.items()
        }
    finally:
        await asyncio.gather(*(each.close() for each in (*remote.values(), *local.values())))


def _local(model: ModelSettings) -> Endpoint:
    from judges.endpoints.transformers_model import LocalEndpoint

    return LocalEndpoint(model)
