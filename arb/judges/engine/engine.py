"""Answer calls from the cache, from an equal call in progress, or by a new request, with retries.

A request waits until the concurrency limit and the budget admit it. If another process is making an equal
call, the request also waits for that call (see `CallCache.claim`). Nothing is awaited between receiving a
reply and caching it, so a run that is interrupted keeps every reply that it has received.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, Protocol

from arb.judges.endpoints.any_llm import AnyLLMEndpoint
from arb.judges.endpoints.connection import TIMEOUT_S, classify
from arb.judges.endpoints.openai_compatible import OpenAIEndpoint
from arb.judges.endpoints.providers import EndpointAccess, omitted_params, resolve_access
from arb.judges.engine.budget import Budget
from arb.judges.engine.cache import CallCache, key_of
from arb.judges.engine.choices import may_have_choices, shared_choices, with_choices
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.errors import AccountError, CallFailed
from arb.judges.engine.retry import RetryState
from arb.judges.engine.storage import StorageError
from arb.judges.engine.tokens import counted, token_ceiling
from arb.judges.types import Call, Message, ModelSettings, Reply, Request

CLAIM_POLL_S: Final = 0.25
"""How often to check whether another process has finished a call."""

BYTES_PER_TOKEN: Final = 4
"""The bytes per token assumed for the limit on tokens per minute, until a reply has the actual count."""


class Endpoint(Protocol):
    """The interface of `OpenAIEndpoint` and `AnyLLMEndpoint`, which make requests without retrying.

    If an endpoint has ``takes_choices = True``, a request may ask for several answers (``n`` in ``extra``).
    """

    async def attempt(self, request: Request) -> Reply:
        """Make one request and return the reply. Raises only CallFailed."""

    async def close(self) -> None: ...


class OnEvent(Protocol):
    """A callback for calls that were answered, cached, retried or failed, and for dropped parameters."""

    def __call__(self, kind: str, **facts: Any) -> None: ...


class CallExecutor:
    """The executor of all model calls of a run, in one event loop.

    ``endpoints`` and ``models`` are keyed by role. A run without models needs no cache. ``draw`` returns
    random numbers from 0 to 1.
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
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ):
        self._endpoints = endpoints
        self._models = models
        self._opened_cache = cache
        self._limit = limit
        self._budget = budget
        self._on_event = on_event
        self._sleep = sleep
        self._draw = draw
        self._under_way: dict[str, asyncio.Future[Reply | None]] = {}
        # Further answers of a request, by key, until the calls for these samples are made.
        self._prefetched: dict[str, Reply] = {}
        # Parameters that the endpoint rejected, by model and address.
        self._unsupported: defaultdict[tuple[str, str | None, str], set[str]] = defaultdict(set)

    @property
    def unsupported_params(self) -> dict[str, list[str]]:
        """The parameters that the endpoint rejected and that later requests left out, keyed by role."""
        by_role = {role: sorted(self._unsupported[model.place]) for role, model in self._models.items()}
        return {role: names for role, names in by_role.items() if names}

    async def ask(self, call: Call) -> Reply:
        """Return the reply to a call. If the call failed, the reply's state is not ``ok``.

        If an equal call is in progress, its reply is returned, marked as from the cache.

        Raises:
            StorageError: The cache cannot be read or written; no further call is made.
            NoMoreCallsError: The run has to stop, for example because its budget is used up.
            Exception: The reason given to `stop_waiting`.
        """
        try:
            return await self._ask(call)
        except StorageError as problem:
            self.stop_waiting(problem)
            raise

    def stop_waiting(self, reason: Exception) -> None:
        """Make no further request, and raise ``reason`` in calls that are waiting to make one."""
        self._limit.close(reason)

    def sync(self) -> None:
        """Wait until every reply so far is on disk."""
        if self._opened_cache is not None:
            self._opened_cache.sync()

    @property
    def _cache(self) -> CallCache:
        """The reply cache. Raises RuntimeError in a run without a cache, which must not make calls."""
        if self._opened_cache is None:
            raise RuntimeError("a call in a run without a reply cache")
        return self._opened_cache

    async def _ask(self, call: Call) -> Reply:
        model = self._models.get(call.role)
        if model is None:
            raise RuntimeError(f"a call for the role {call.role!r}, which has no model")
        key = key_of(model, call)
        while True:
            if (prefetched := self._prefetched.pop(key, None)) is not None:
                return prefetched
            if (cached := self._cache.get(key)) is not None:
                return self._as_cached(call, replace(cached, key=key))
            if (under_way := self._under_way.get(key)) is None:
                break
            shared = await asyncio.shield(under_way)
            # The reply is None if the other call was cancelled or ended with an exception.
            if shared is not None and key not in self._prefetched:
                return self._as_cached(call, shared)
        keys = [key, *self._samples_to_ask(call, model)]
        ends = {each: asyncio.get_running_loop().create_future() for each in keys}
        self._under_way |= ends
        try:
            replies = await self._claimed(call, keys)
            for each, reply in replies.items():
                ends[each].set_result(reply)
            reply = replies.pop(key)
            self._prefetched |= replies
            return reply
        finally:
            for each, end in ends.items():
                del self._under_way[each]
                if not end.done():
                    end.set_result(None)

    def _as_cached(self, call: Call, reply: Reply) -> Reply:
        self._on_event("cached", purpose=call.purpose, role=call.role)
        return replace(reply, is_from_cache=True)

    def _samples_to_ask(self, call: Call, model: ModelSettings) -> list[str]:
        """Return the keys of the unanswered other samples that the request for a call can also ask for."""
        if not call.together or not self._takes_choices(call.role):
            return []
        keys = (key_of(model, call, number) for number in call.together if number != call.sample)
        return [key for key in keys if key not in self._under_way and self._cache.get(key) is None]

    def _takes_choices(self, role: str) -> bool:
        """Return whether one request to a role's model may ask for several samples."""
        model = self._models[role]
        is_known = getattr(self._endpoints[role], "takes_choices", False)
        return is_known and may_have_choices(model, self._unsupported[model.place])

    async def _claimed(self, call: Call, keys: list[str]) -> dict[str, Reply]:
        """Claim a call and its other samples, request them if necessary, and return their replies by key."""
        while not self._cache.claim(keys[0]):
            await self._sleep(CLAIM_POLL_S)
        claimed = [keys[0], *(key for key in keys[1:] if self._cache.claim(key))]
        try:
            self._cache.refresh()  # another process may just have finished the call
            if (cached := self._cache.get(keys[0])) is not None:
                return {keys[0]: self._as_cached(call, replace(cached, key=keys[0]))}
            missing = [keys[0], *(key for key in claimed[1:] if self._cache.get(key) is None)]
            return await self._request(call, missing)
        finally:
            for key in claimed:
                self._cache.release(key)

    async def _request(self, call: Call, keys: Sequence[str]) -> dict[str, Reply]:
        """Request a call and other samples of it, cache the replies, and return the replies by key.

        There is always a reply for the first key. If the call failed, its state is not ``ok``. Its cost
        includes the known cost of failed attempts. Raises NoMoreCallsError, or the reason of `stop_waiting`.
        """
        model = self._models[call.role]
        never_taken = frozenset(omitted_params(model))
        retries, failed_usd = RetryState(self._draw), 0.0
        messages, used_shorter = call.messages, False
        while True:
            unsupported = never_taken.union(self._unsupported[model.place])
            wanted = len(keys) if len(keys) > 1 and self._takes_choices(call.role) else 1
            try:
                reply = await self._attempt(call, keys[0], messages, unsupported, wanted)
                break
            except CallFailed as failure:
                cost_usd = self._budget.cost_of(model, failure.usage) or 0.0
                failed_usd += cost_usd
                self._budget.presumed_usd += cost_usd  # until a reply's cost includes it
                detail = failure.message if failure.raw is None else f"{failure.message}\n{failure.raw}"
                self._cache.note_attempt(keys[0], failure.kind, detail)
                self._stop_if_permanent(failure)
                if failure.kind == "too_long" and call.shorter is not None and not used_shorter:
                    messages, used_shorter = call.shorter, True
                elif failure.parameter is not None and failure.parameter not in unsupported:
                    self._leave_out(model, failure.parameter)
                elif (wait_s := retries.wait_s(failure)) is not None:
                    self._on_event("retried", failure=failure.kind, message=failure.message, wait_s=wait_s)
                    await self._sleep_unless_closed(wait_s)
                else:
                    self._budget.presumed_usd -= failed_usd
                    reply = failure.as_reply(keys[0], failed_usd or None, used_shorter=used_shorter)
                    facts = {"state": reply.state, "message": reply.error}
                    self._on_event("failed", purpose=call.purpose, role=call.role, **facts)
                    return {keys[0]: reply}
        self._budget.presumed_usd -= failed_usd
        if wanted > 1 and not reply.others:  # the endpoint ignored ``n`` instead of rejecting it
            self._leave_out(model, "n")
        choices = shared_choices(reply, lambda usage: self._budget.cost_of(model, usage), failed_usd)
        dropped = omitted_params(model, unsupported)
        replies = {}
        for key, each in zip(keys, choices, strict=False):
            replies[key] = replace(
                each, key=key, used_shorter=used_shorter, dropped=dropped, rate_limits=None, others=()
            )
        self._store(call, replies)
        return replies

    def _store(self, call: Call, replies: Mapping[str, Reply]) -> None:
        try:
            for key, each in replies.items():
                self._cache.put(key, each)
        except StorageError:
            self._budget.presumed_usd += sum(each.cost_usd or 0.0 for each in replies.values())
            raise
        for each in replies.values():
            self._on_event("answered", purpose=call.purpose, role=call.role, reply=each)

    async def _attempt(
        self, call: Call, key: str, messages: tuple[Message, ...], unsupported: Set[str], wanted: int
    ) -> Reply:
        """Make one request for ``wanted`` answers.

        It waits first for the limit and then for the budget, so that no money is reserved for waiting calls.
        """
        limit, budget = self._limit, self._budget
        model = with_choices(self._models[call.role], wanted)
        max_tokens = call.max_output_tokens or model.max_output_tokens
        tokens = 0
        if limit.counts_tokens(model.place):
            prompt = token_ceiling(model, counted(messages, call.tools))
            tokens = prompt // BYTES_PER_TOKEN + wanted * max_tokens
        async with limit.slot(tokens, model.place) as slot:
            request = Request(model, messages, max_tokens, unsupported, call.tools)
            reservation = await budget.reserve(request)
            limited_to = reservation.max_tokens or max_tokens
            try:
                request = replace(request, max_output_tokens=limited_to)
                reply = await self._endpoints[call.role].attempt(request)
            except Exception as problem:
                failure = classify(problem)
                usage = None if failure.usage.total_tokens is None else failure.usage
                budget.settle(reservation, usage, maybe_paid=failure.maybe_paid)
                slot.failed(failure)
                raise failure from problem
            except BaseException:  # cancelled in flight: the endpoint may charge for it
                budget.settle(reservation, None, maybe_paid=True)
                self._cache.note_attempt(key, "cancelled", "stopped while in progress")
                raise
            budget.settle(reservation, reply.usage)
            slot.succeeded(reply.usage.total_tokens, reply.rate_limits)
            is_cut = any(each.finish_reason == "length" for each in (reply, *reply.others))
            if limited_to < max_tokens and is_cut:
                raise budget.cut_short(reservation, reply.usage)
            return reply

    async def _sleep_unless_closed(self, seconds: float) -> None:
        """Sleep, but return as soon as the limit is closed; the next attempt then raises the error."""
        waits = [asyncio.ensure_future(each) for each in (self._sleep(seconds), self._limit.closed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _stop_if_permanent(self, failure: CallFailed) -> None:
        """Raise an exception that ends the run if the failure shows that further calls are pointless."""
        if failure.kind == "account":
            self._limit.stop(AccountError(failure.message))
        if failure.is_unreachable:
            self._limit.check_unreachable(failure.message)
            return
        self._limit.has_answered = True
        if failure.kind == "rate_limit":
            self._limit.check_timeout(failure.message, failure.retry_after_s)

    def _leave_out(self, model: ModelSettings, parameter: str) -> None:
        self._unsupported[model.place].add(parameter)
        self._on_event("dropped", model=model.model, parameter=parameter)


@asynccontextmanager
async def open_endpoints(
    models: Mapping[str, ModelSettings],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[dict[str, Endpoint]]:
    """Yield the endpoint of each role, and close the endpoints after the block.

    Roles with the same address and key share an endpoint. Raises OptionsError for a missing key or address.
    """
    access = resolve_access(models, environment)
    opened: dict[EndpointAccess, Endpoint] = {}
    try:
        for place in access.values():
            if place not in opened:
                kind = OpenAIEndpoint if place.library is None else AnyLLMEndpoint
                opened[place] = kind(place, timeout_s)
        yield {role: opened[place] for role, place in access.items()}
    finally:
        await asyncio.gather(*(each.close() for each in opened.values()))
