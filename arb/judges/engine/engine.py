"""Calls answered: from the cache, from an equal call in progress, or by a request with retries.

A call passes the cache, the calls in progress in this process and in other processes (claims), and then, for
every try, limit and budget. Nothing is awaited between a reply and its place in the cache, so that a run that
is stopped at any moment loses no reply that it has paid and received.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Protocol

from arb.judges.endpoints.openai_compatible import TIMEOUT_S, OpenAIEndpoint
from arb.judges.endpoints.providers import EndpointAccess, omitted_params, resolve_access
from arb.judges.engine.budget import Budget
from arb.judges.engine.cache import CallCache, key_of
from arb.judges.engine.choices import may_have_choices, shared_choices, with_choices
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.errors import AccountError, CallFailed, classify
from arb.judges.engine.retry import RetryState
from arb.judges.engine.storage import StorageError
from arb.judges.engine.tokens import token_ceiling
from arb.judges.types import Call, Message, ModelSettings, Reply, Usage

CLAIM_POLL_S: Final = 0.25
"""How often it is checked whether another process has finished a call."""

BYTES_PER_TOKEN: Final = 4
"""About what a prompt takes, for the tokens-a-minute limit; replies correct it."""


class Endpoint(Protocol):
    """What makes single attempts: `OpenAIEndpoint`, or `AnyLLMEndpoint` for other wire protocols.

    One that has ``takes_choices`` may be asked for several answers at once (``n`` in ``extra``).
    """

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """Make one request, without ``unsupported_params``. Raises CallFailed."""

    async def close(self) -> None: ...


class OnEvent(Protocol):
    """Receives events: ``answered``, ``cached``, ``retried``, ``dropped`` (a parameter), ``failed``."""

    def __call__(self, kind: str, **facts: object) -> None: ...


class CallExecutor:
    """Answers the calls of all trajectories of a run. For one event loop.

    ``endpoints`` and ``models`` are by role; without models there is no cache. ``sleep`` and ``draw``, which
    gives numbers from 0 to 1, may be a test's own.
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
        self._cache = cache
        self._limit = limit
        self._budget = budget
        self._on_event = on_event
        self._sleep = sleep
        self._draw = draw
        self._under_way: dict[str, asyncio.Future[Reply | None]] = {}
        # Samples that came with another one, by key, until the call for them takes them.
        self._prefetched: dict[str, Reply] = {}
        # What a model at one address rejected; roles with the same model learn from each other.
        self._unsupported: defaultdict[tuple[str, str | None, str], set[str]] = defaultdict(set)

    @property
    def unsupported_params(self) -> dict[str, list[str]]:
        """By role, the parameters that its endpoint rejected and that were left out since."""
        by_role = {role: sorted(self._unsupported[model.place]) for role, model in self._models.items()}
        return {role: names for role, names in by_role.items() if names}

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

    def stop_waiting(self, reason: Exception) -> None:
        """Begin no further call; calls that still wait for a limit and are not paid end with this reason."""
        self._limit.close(reason)

    def sync(self) -> None:
        """Return when every reply so far is on the disk."""
        if self._cache is not None:
            self._cache.sync()

    async def _ask(self, call: Call) -> Reply:
        model = self._models.get(call.role)
        if model is None:
            raise RuntimeError(f"a call for the role {call.role!r}, for which no model is named")
        key = key_of(model, call)
        while True:
            if (prefetched := self._prefetched.pop(key, None)) is not None:
                return prefetched
            if (cached := self._cache.get(key)) is not None:
                return self._as_cached(call, replace(cached, key=key))
            if (under_way := self._under_way.get(key)) is None:
                break
            shared = await asyncio.shield(under_way)
            # None if it was given up, because of Ctrl-C or for lack of money.
            if shared is not None and key not in self._prefetched:
                return self._as_cached(call, shared)
        keys = [key, *self._samples_to_ask(call, model)]
        ends = {each: asyncio.get_running_loop().create_future() for each in keys}
        self._under_way |= ends
        try:
            replies = await self._claimed(call, keys)
            for reply in replies:
                ends[reply.key].set_result(reply)
            self._prefetched |= {reply.key: reply for reply in replies[1:]}
            return replies[0]
        finally:
            for each, end in ends.items():
                del self._under_way[each]
                if not end.done():
                    end.set_result(None)

    def _as_cached(self, call: Call, reply: Reply) -> Reply:
        self._on_event("cached", purpose=call.purpose, role=call.role)
        return replace(reply, is_from_cache=True)

    def _samples_to_ask(self, call: Call, model: ModelSettings) -> list[str]:
        """Return the keys of other samples without a reply that can be asked for in the same request."""
        if not call.together or not self._takes_choices(call.role):
            return []
        keys = (key_of(model, call, number) for number in call.together if number != call.sample)
        return [key for key in keys if key not in self._under_way and self._cache.get(key) is None]

    def _takes_choices(self, role: str) -> bool:
        """Return whether several samples may be asked for in one request."""
        model = self._models[role]
        is_known = getattr(self._endpoints[role], "takes_choices", False)
        return is_known and may_have_choices(model, self._unsupported[model.place])

    async def _claimed(self, call: Call, keys: list[str]) -> list[Reply]:
        """Return the replies to a call, and to further samples, once no other process has it in progress."""
        while not self._cache.claim(keys[0]):
            await self._sleep(CLAIM_POLL_S)
        claimed = [keys[0], *(key for key in keys[1:] if self._cache.claim(key))]
        try:
            self._cache.refresh()  # another process may have ended it a moment ago
            if (cached := self._cache.get(keys[0])) is not None:
                return [self._as_cached(call, replace(cached, key=keys[0]))]
            missing = [keys[0], *(key for key in claimed[1:] if self._cache.get(key) is None)]
            return await self._request(call, missing)
        finally:
            for key in claimed:
                self._cache.release(key)

    async def _request(self, call: Call, keys: Sequence[str]) -> list[Reply]:
        """Return the replies to a call, and to its samples with the further keys, and cache them.

        At least one is returned. If no reply came, it has another state than ``ok`` and the first key. Its
        cost includes what failed tries are known to have cost. Raises NoMoreCallsError, and what the limit
        was closed with.
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
                self._budget.presumed_usd += cost_usd  # until a reply bears it
                self._note(keys[0], failure)
                self._stop_if_permanent(failure)
                if failure.kind == "too_long" and call.shorter is not None and not used_shorter:
                    messages, used_shorter = call.shorter, True
                elif failure.kind == "unsupported_parameter" and failure.parameter not in unsupported:
                    self._leave_out(model, failure.parameter)
                elif (wait_s := retries.wait_s(failure)) is not None:
                    self._on_event("retried", failure=failure.kind, message=failure.message, wait_s=wait_s)
                    await self._sleep_unless_closed(wait_s)
                else:
                    self._budget.presumed_usd -= failed_usd
                    reply = failure.as_reply(keys[0], failed_usd or None, used_shorter=used_shorter)
                    facts = {"state": reply.state, "message": reply.error}
                    self._on_event("failed", purpose=call.purpose, role=call.role, **facts)
                    return [reply]
        self._budget.presumed_usd -= failed_usd
        if wanted > 1 and not reply.others:  # ``n`` was not refused, but ignored
            self._leave_out(model, "n")
        choices = shared_choices(reply, lambda usage: self._budget.cost_of(model, usage), failed_usd)
        sent = {"used_shorter": used_shorter, "dropped": omitted_params(model, unsupported)}
        replies = [
            replace(each, key=key, **sent, rate_limits=None, others=())
            for key, each in zip(keys, choices, strict=False)
        ]
        self._store(call, replies)
        return replies

    def _store(self, call: Call, replies: Sequence[Reply]) -> None:
        try:
            for each in replies:
                self._cache.put(each.key, each)
        except StorageError:
            self._budget.presumed_usd += sum(each.cost_usd or 0.0 for each in replies)
            raise
        for each in replies:
            self._on_event("answered", purpose=call.purpose, role=call.role, reply=each)

    async def _attempt(
        self, call: Call, key: str, messages: tuple[Message, ...], unsupported: Set[str], wanted: int
    ) -> Reply:
        """Make one try at so many answers.

        Money is set aside only once there is room for the call, so that none waits unused.
        """
        limit, budget = self._limit, self._budget
        model = with_choices(self._models[call.role], wanted)
        max_tokens = call.max_output_tokens or model.max_output_tokens
        tokens = 0
        if limit.counts_tokens(model.place):
            tokens = token_ceiling(model, messages) // BYTES_PER_TOKEN + wanted * max_tokens
        async with limit.slot(tokens, model.place) as slot:
            reservation = await budget.reserve(model, messages, max_tokens, unsupported)
            limited_to = reservation.max_tokens or max_tokens
            try:
                reply = await self._endpoints[call.role].attempt(
                    model, messages, limited_to, unsupported_params=unsupported
                )
            except Exception as problem:
                failure = classify(problem)
                usage = failure.usage
                is_counted = None not in (usage.input_tokens, usage.output_tokens)
                budget.settle(reservation, usage if is_counted else None, maybe_paid=failure.maybe_paid)
                slot.failed(failure)
                raise failure from problem
            except BaseException:  # stopped in flight: it may be paid, and is lost
                budget.settle(reservation, None, maybe_paid=True)
                self._cache.note_attempt(key, "cancelled", "stopped while in progress")
                raise
            budget.settle(reservation, reply.usage)
            slot.succeeded(_total_tokens(reply.usage), reply.rate_limits)
            is_cut = any(each.finish_reason == "length" for each in (reply, *reply.others))
            if limited_to < max_tokens and is_cut:
                raise budget.cut_short(reservation, reply.usage)
            return reply

    async def _sleep_unless_closed(self, seconds: float) -> None:
        """Sleep, but wake up at once when the run ends: the next attempt then raises why."""
        waits = [asyncio.ensure_future(each) for each in (self._sleep(seconds), self._limit.closed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _stop_if_permanent(self, failure: CallFailed) -> None:
        """Raise, for all calls, if no further call can be answered."""
        if failure.kind == "account":
            self._limit.stop(AccountError(failure.message))
        if failure.is_unreachable:
            self._limit.check_unreachable(failure.message)
            return
        self._limit.has_answered = True
        if failure.kind == "rate_limit":
            self._limit.check_timeout(failure.message, failure.retry_after_s)

    def _leave_out(self, model: ModelSettings, parameter: str | None) -> None:
        self._unsupported[model.place].add(parameter)
        self._on_event("dropped", model=model.model, parameter=parameter)

    def _note(self, key: str, failure: CallFailed) -> None:
        detail = failure.message if failure.raw is None else f"{failure.message}\n{failure.raw}"
        self._cache.note_attempt(key, failure.kind, detail)


def _total_tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


@asynccontextmanager
async def open_endpoints(
    models: Mapping[str, ModelSettings],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[dict[str, Endpoint]]:
    """Open the endpoint of each role for the block; roles with the same address and key share one.

    Raises OptionsError for a missing key or address before anything is opened.
    """
    access = resolve_access(models, environment)
    opened: dict[EndpointAccess, Endpoint] = {}
    try:
        for place in access.values():
            if place not in opened:
                opened[place] = _open_endpoint(place, timeout_s)
        yield {role: opened[place] for role, place in access.items()}
    finally:
        await asyncio.gather(*(each.close() for each in opened.values()))


def _open_endpoint(access: EndpointAccess, timeout_s: float) -> Endpoint:
    if access.library is not None:
        from arb.judges.endpoints.any_llm import AnyLLMEndpoint

        return AnyLLMEndpoint(access, timeout_s)
    return OpenAIEndpoint(access, timeout_s)
