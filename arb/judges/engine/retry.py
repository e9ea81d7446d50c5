"""Make one call until it is answered or given up: how often it is tried, and how long it waits in between.

Every try is within the limit on calls under way and within the budget. A library such as tenacity does not
serve here: all calls share one pause, and the endpoint may set the wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Final, Protocol

from arb.judges.endpoints.providers import omitted_params
from arb.judges.engine.budget import Budget
from arb.judges.engine.cache import CallCache
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.errors import AccountError, CallFailed, classify
from arb.judges.engine.storage import StorageError
from arb.judges.types import Call, Message, ModelSettings, Reply, Usage


class Endpoint(Protocol):
    """What makes single attempts: an address (`OpenAIEndpoint`), a provider of another wire protocol
    (`AnyLLMEndpoint`), or a model that is served for the run (`TransformersEndpoint`).

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
        """One request, without ``unsupported_params``. Raises CallFailed."""

    async def close(self) -> None: ...


class OnEvent(Protocol):
    """Receives events: ``answered``, ``cached``, ``retried``, ``dropped`` (a parameter), ``failed``."""

    def __call__(self, kind: str, **facts: object) -> None: ...


MAX_RATE_LIMIT_WAIT_S: Final = 8.0
MAX_OVERLOAD_WAIT_S: Final = 2.0
"""The longest wait of a single call after a rate limit and after an overload: the limit slows down all calls
together. An overloaded server refuses calls at random, so that one of many calls meets dozens of refusals."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds on the tries of one call.

    Failures of servers and connections: ``transient`` tries. Answers that are paid and cannot be used, and
    calls that ran out of time: ``unusable``. Refusals for too many calls, which cost nothing and pass:
    ``rate_limited`` tries, and no wait for an endpoint that asks for more than ``max_retry_after_s``; without
    a number they are bounded by the time that the run is without a reply (`AdaptiveLimit.check_timeout`).
    With every try of a kind the wait doubles, from ``first_wait_s`` to ``max_wait_s``.
    """

    rate_limited: int | None = None
    transient: int = 8
    unusable: int = 3
    first_wait_s: float = 0.5
    max_wait_s: float = 60.0
    max_retry_after_s: float = 900.0


class RetryState:
    """The failed tries of one call so far. ``draw`` gives numbers from 0 to 1."""

    def __init__(self, policy: RetryPolicy, draw: Callable[[], float]):
        self._policy = policy
        self._draw = draw
        self._failures: Counter[str] = Counter()

    def wait_s(self, failure: CallFailed) -> float | None:
        """How long to wait before the next try; None when there should be none.

        Waits are drawn between the half and the whole of their length, so that calls that failed together do
        not come back together. Where the endpoint says how long to wait, all calls do (`AdaptiveLimit`), and
        this one no longer than they.
        """
        policy = self._policy
        if failure.kind not in ("rate_limit", "transient"):
            return None
        longest = policy.max_wait_s
        if failure.kind == "rate_limit":
            kind, most = "rate_limited", policy.rate_limited
            if most is None:
                longest = min(longest, MAX_OVERLOAD_WAIT_S if failure.is_overload else MAX_RATE_LIMIT_WAIT_S)
            elif (failure.retry_after_s or 0) > policy.max_retry_after_s:
                return None
        else:
            is_unusable = failure.is_slow or failure.raw is not None
            kind, most = ("unusable", policy.unusable) if is_unusable else ("transient", policy.transient)
        self._failures[kind] += 1
        if most is not None and self._failures[kind] >= most:
            return None
        if failure.retry_after_s or (failure.retry_after_s == 0 and not failure.is_overload):
            return 0.0
        exponent = min(self._failures[kind] - 1, 30)
        return min(longest, policy.first_wait_s * 2**exponent) * (0.5 + self._draw() / 2)


@dataclass
class RoleCaller:
    """Makes the calls of one role. ``unsupported_params``: parameters that its endpoint rejected."""

    endpoint: Endpoint
    model: ModelSettings
    cache: CallCache
    limit: AdaptiveLimit
    budget: Budget
    on_event: OnEvent
    retry_policy: RetryPolicy
    tokens_of: Callable[[ModelSettings, tuple[Message, ...]], int]
    sleep: Callable[[float], Awaitable[object]]
    draw: Callable[[], float]
    unsupported_params: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pool = (self.model.provider, self.model.base_url, self.model.model)
        self._never_taken = frozenset(omitted_params(self.model))

    @property
    def takes_choices(self) -> bool:
        """Whether several samples may be asked for in one request."""
        is_known = getattr(self.endpoint, "takes_choices", False)
        return is_known and may_have_choices(self.model, self.unsupported_params)

    async def replies(self, call: Call, keys: Sequence[str], max_tokens: int) -> list[Reply]:
        """Return the replies to a call, and to its samples with the further keys, and cache them.

        At least one is returned. If no reply came, it has another state than ``ok`` and the first key. Its
        cost includes what failed tries are known to have cost. Raises NoMoreCallsError, and what the limit
        was closed with.
        """
        retries, spent_usd, key = RetryState(self.retry_policy, self.draw), 0.0, keys[0]
        messages, used_shorter = call.messages, False
        while True:
            unsupported_params = self._never_taken.union(self.unsupported_params)
            try:
                wanted = len(keys) if len(keys) > 1 and self.takes_choices else 1
                reply = await self._attempt(key, messages, max_tokens, unsupported_params, wanted)
            except CallFailed as failure:
                cost_usd = self._cost_of(failure.usage) or 0.0
                spent_usd += cost_usd
                self.budget.presumed_usd += cost_usd  # until a reply bears it
                self._note(key, failure)
                self._stop_if_permanent(failure)
                if failure.kind == "too_long" and call.shorter is not None and not used_shorter:
                    messages, used_shorter = call.shorter, True
                elif failure.kind == "unsupported_parameter" and failure.parameter not in unsupported_params:
                    self._leave_out(failure.parameter)
                elif (wait_s := retries.wait_s(failure)) is not None:
                    self.on_event("retried", failure=failure.kind, message=failure.message, wait_s=wait_s)
                    await self._sleep_unless_closed(wait_s)
                else:
                    self.budget.presumed_usd -= spent_usd
                    reply = failure.as_reply(key, spent_usd or None, used_shorter=used_shorter)
                    self.on_event(
                        "failed", purpose=call.purpose, role=call.role, state=reply.state, message=reply.error
                    )
                    return [reply]
                continue
            self.budget.presumed_usd -= spent_usd
            if wanted > 1 and not reply.others:  # it was not refused, but left unread
                self._leave_out("n")
            dropped = omitted_params(self.model, unsupported_params)
            replies = [
                replace(each, key=of, used_shorter=used_shorter, dropped=dropped, rate_limits=None, others=())
                for of, each in zip(keys, shared_choices(reply, self._cost_of, spent_usd), strict=False)
            ]
            try:
                for each in replies:
                    self.cache.put(each.key, each)
            except StorageError:
                self.budget.presumed_usd += sum(each.cost_usd or 0.0 for each in replies)
                raise
            for each in replies:
                self.on_event("answered", purpose=call.purpose, role=call.role, reply=each)
            return replies

    async def _attempt(
        self,
        key: str,
        messages: tuple[Message, ...],
        max_tokens: int,
        unsupported_params: Set[str],
        wanted: int,
    ) -> Reply:
        """Make one try at so many answers.

        Money is set aside only once there is room for the call, so that none waits unused.
        """
        limit, pool, model = self.limit, self._pool, with_choices(self.model, wanted)
        tokens = self.tokens_of(model, messages) + wanted * max_tokens if limit.counts_tokens(pool) else 0
        async with limit.slot(tokens, pool) as slot:
            reservation = await self.budget.reserve(
                model, messages, max_tokens, unsupported_params, may_shorten=True
            )
            limited_to = reservation.max_tokens or max_tokens
            try:
                reply = await self.endpoint.attempt(
                    model, messages, limited_to, unsupported_params=unsupported_params
                )
            except Exception as problem:
                failure = classify(problem)
                self.budget.settle(reservation, _counted(failure.usage), maybe_paid=failure.maybe_paid)
                if failure.kind == "rate_limit":
                    report = slot.postponed if failure.is_overload else slot.refused
                    report(failure.retry_after_s, failure.rate_limits)
                elif failure.is_slow or failure.is_overload:
                    slot.overloaded()
                raise failure from problem
            except BaseException:  # stopped in flight: it may be paid, and is lost
                self.budget.settle(reservation, None, maybe_paid=True)
                self.cache.note_attempt(key, "cancelled", "stopped while in progress")
                raise
            self.budget.settle(reservation, reply.usage)
            slot.succeeded(_sum(reply.input_tokens, reply.output_tokens), reply.rate_limits)
            is_cut = any(each.finish_reason == "length" for each in (reply, *reply.others))
            if limited_to < max_tokens and is_cut:
                raise self.budget.cut_short(reservation, reply.usage)
            return reply

    async def _sleep_unless_closed(self, seconds: float) -> None:
        """Sleep, but wake up at once when the run ends: the next attempt then raises why."""
        waits = [asyncio.ensure_future(self.sleep(seconds)), asyncio.ensure_future(self.limit.closed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _stop_if_permanent(self, failure: CallFailed) -> None:
        """Raise, for all calls, if no further call can be answered."""
        if failure.kind == "account":
            self.limit.stop(AccountError(failure.message))
        if failure.is_unreachable:
            self.limit.check_unreachable(failure.message)
            return
        self.limit.has_answered = True
        if failure.kind == "rate_limit":
            self.limit.check_timeout(failure.message, failure.retry_after_s)

    def _leave_out(self, parameter: str | None) -> None:
        self.unsupported_params.add(parameter)
        self.on_event("dropped", model=self.model.model, parameter=parameter)

    def _note(self, key: str, failure: CallFailed) -> None:
        detail = failure.message if failure.raw is None else f"{failure.message}\n{failure.raw}"
        self.cache.note_attempt(key, failure.kind, detail)

    def _cost_of(self, usage: Usage) -> float | None:
        return self.budget.cost_of(self.model, usage)


def may_have_choices(model: ModelSettings, unsupported_params: Collection[str]) -> bool:
    """Whether ``n`` may be sent: samples can differ, the user has not set it, and it was not refused."""
    return model.temperature != 0 and "n" not in model.extra and "n" not in unsupported_params


def with_choices(model: ModelSettings, number: int) -> ModelSettings:
    """The model asked for so many answers in one request."""
    return model if number == 1 else replace(model, extra={**model.extra, "n": number})


def shared_choices(
    reply: Reply, cost_of: Callable[[Usage], float | None], spent_usd: float = 0.0
) -> list[Reply]:
    """Each of the answers in a reply with its part of tokens and dollars; the sums are what was billed.

    The first one has the input, and what failed tries cost. What was made is only known for all of them, and
    shared by the length of their texts.
    """
    usage = reply.usage
    usd = cost_of(usage)
    if not reply.others:
        return [replace(reply, cost_usd=None if usd is None else usd + spent_usd)]
    every = (reply, *reply.others)
    sizes = [len(each.text or "") + 1 for each in every]
    made, hidden = (_split(total, sizes) for total in (usage.output_tokens, usage.reasoning_tokens))
    input_usd = cost_of(usage._replace(output_tokens=0))
    output_usd = 0.0 if usd is None or input_usd is None else usd - input_usd
    per_token = output_usd / usage.output_tokens if usage.output_tokens else 0.0
    nothing = Usage(input_tokens=None if usage.input_tokens is None else 0)
    shared = [
        replace(
            each,
            **(usage if place == 0 else nothing)
            ._replace(output_tokens=made[place], reasoning_tokens=hidden[place])
            ._asdict(),
            cost_usd=None if usd is None else per_token * (made[place] or 0),
        )
        for place, each in enumerate(every)
    ]
    first = None if usd is None else shared[0].cost_usd + input_usd + spent_usd
    return [replace(shared[0], cost_usd=first), *shared[1:]]


def _counted(usage: Usage) -> Usage | None:
    """What a failed try took, where the endpoint counted it."""
    return None if usage.input_tokens is None or usage.output_tokens is None else usage


def _split(total: int | None, sizes: Sequence[int]) -> list[int | None]:
    """Whole parts of a number in proportion to sizes; their sum is the number."""
    if total is None:
        return [None] * len(sizes)
    ends = [total * end // sum(sizes) for end in accumulate(sizes)]
    return [end - begin for begin, end in pairwise((0, *ends))]


def _sum(*counts: int | None) -> int | None:
    return None if None in counts else sum(counts)
