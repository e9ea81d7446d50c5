"""What a run will take before it is made: calls, pictures, tokens, dollars, time.

The judge is driven through every trajectory with replies out of the cache and, if there are none, dummy ones
(`typical_replies`): short and all saying no (low), of the length to expect, long and all saying yes (high).
So the plan knows which calls follow from a reply. A call that is asked twice counts once, as the engine makes
it once. A pilot judges some trajectories for real first, and the other replies are taken to be like its own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from arb.judges.contract import JudgeError
from arb.judges.endpoints.providers import IN_CLUSTER, LOCAL
from arb.judges.engine.cache import CallCache, call_key
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.engine.reasoning import reasons
from arb.judges.engine.retry import may_have_choices
from arb.judges.engine.tokens import ESTIMATE_SPREAD, TokenCounters, image_rule
from arb.judges.run.config import RunConfig, open_cache
from arb.judges.run.progress import Spend
from arb.judges.run.runner import Job, open_executor, open_job
from arb.judges.run.scheduler import (
    Exchange,
    Judgment,
    StopRunError,
    drive_offline,
    judge_trajectories,
)
from arb.judges.run.typical_replies import (
    REASONING_TOKENS,
    SCENARIOS,
    PilotReplies,
    Range,
    Scenario,
    dummy_reply,
    tokens_per_word,
)
from arb.judges.types import Call, Image, Judge, ModelSettings, OptionsError, Reply, View

if TYPE_CHECKING:
    from arb.judges.run.runner import Wrap
    from arb.judges.run.scheduler import RunSource

READERS: Final = 4
"""Threads that read runs, and scale their pictures, while others are counted."""

FIRST_TOKEN_S: Final = 1.5
TOKENS_PER_S: Final = 60.0
"""Assumed of a call: the wait for its first token, and the rate of the others. Endpoints differ widely."""


@dataclass(frozen=True)
class CountingRules:
    """How a plan counts.

    Attributes:
        config: The run, with prices and limits.
        counters: What counts tokens.
        seconds_per_call: How long a call takes, if the user knows it.
        is_batch: Whether to count at the price of batches.
        pilot: The replies of a pilot by role and purpose.
    """

    config: RunConfig
    counters: TokenCounters
    seconds_per_call: float | None = None
    is_batch: bool = False
    pilot: Mapping[tuple[str, str], PilotReplies] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What a role's model is asked: ``calls``, and besides them ``cached`` ones that cost nothing again.

    ``cached_input_tokens``, among the input's, are those that the provider will have in its own cache.
    ``usd`` is None where the price is unknown. The rules say in words how texts and pictures were counted;
    ``learned``: by purpose, from how many replies of a pilot.
    """

    role: str
    model: ModelSettings
    calls: Range
    cached: Range
    images: Range
    input_tokens: Range
    cached_input_tokens: Range
    output_tokens: Range
    usd: Range | None
    text_rule: str
    image_rule: str
    price_source: str | None
    learned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pilot:
    """Trajectories judged for real before the plan, with what that took; the run does not pay it again."""

    trajectories: int
    calls: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will take. ``problems``: trajectories of which nothing can be shown, by id, with why;
    ``has_samples``: some samples of a question share a request.
    """

    trajectories: int
    roles: tuple[RolePlan, ...]
    seconds: Range
    problems: Mapping[str, str] = field(default_factory=dict)
    pilot: Pilot | None = None
    has_samples: bool = False

    @property
    def calls(self) -> Range:
        return _sum(role.calls for role in self.roles)

    @property
    def usd(self) -> Range | None:
        """The dollars of all roles; None when the price of one that is asked something is unknown."""
        known = [role.usd for role in self.roles if role.calls.high]
        return None if None in known else _sum(usd for usd in known if usd is not None)


def make_plan(
    judge: Judge, views: Iterable[tuple[str, View | str]], cache: CallCache | None, rules: CountingRules
) -> Plan:
    """Plan a run of a judge. ``views``: each trajectory's id with its view, or with why there is none."""
    sizes: dict[str, CallSize] = {}
    runs = {name: _Run(name, cache, rules, sizes) for name in SCENARIOS}
    problems: dict[str, str] = {}
    trajectories = 0
    for trajectory_id, view in views:
        trajectories += 1
        if isinstance(view, str):
            problems[trajectory_id] = view
            continue
        try:
            for run in runs.values():
                drive_offline(judge, view, run.reply_to)
        except JudgeError as mistake:
            problems[trajectory_id] = str(mistake)
    roles = tuple(_role_plan(role, rules, runs) for role in rules.config.models)
    seconds = Range(*(run.seconds for run in runs.values()))
    has_samples = any(run.has_samples for run in runs.values())
    return Plan(trajectories, roles, seconds, problems, has_samples=has_samples)


NO_CALLS: Final = {
    "calls": 0, "cached": 0, "images": 0,
    "input_tokens": 0.0, "cached_input_tokens": 0.0, "output_tokens": 0.0, "usd": 0.0,
}  # fmt: skip
"""What is added up for a role in each scenario; the names are fields of RolePlan."""


class CallSize(NamedTuple):
    """Input tokens of a call by our own count, and its pictures."""

    tokens: int
    images: int


class _Run:
    """A run as it goes in one scenario. ``sizes`` of calls, by key, are shared by all scenarios."""

    def __init__(
        self,
        scenario: Scenario,
        cache: CallCache | None,
        rules: CountingRules,
        sizes: dict[str, CallSize],
    ):
        self._scenario, self._cache, self._rules, self._sizes = scenario, cache, rules, sizes
        models = rules.config.models
        self._per_word = {
            role: tokens_per_word(rules.counters.of(model).count) for role, model in models.items()
        }
        self._seen: set[str] = set()
        self.has_samples = False
        self.totals: dict[str, dict[str, float]] = {role: dict(NO_CALLS) for role in models}
        self._seconds_of_calls = self._longest_call = 0.0

    def reply_to(self, call: Call) -> Reply:
        """Return the reply from the cache, else a dummy; count the call the first time."""
        model = self._rules.config.models[call.role]
        room = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, room, call.sample)
        is_new = key not in self._seen
        self._seen.add(key)
        cached = self._cache.get(key) if self._cache is not None else None
        if cached is not None:
            self.totals[call.role]["cached"] += is_new
            return cached
        pilot = self._rules.pilot.get((call.role, call.purpose))
        reply = dummy_reply(call, key, self._scenario, room, self._per_word[call.role], pilot)
        if is_new:
            hidden = REASONING_TOKENS[self._scenario] if pilot is None and reasons(model) else 0
            self._count(call, key, min(room, (reply.output_tokens or 0) + hidden))
        return reply

    def _is_further_sample(self, call: Call, model: ModelSettings) -> bool:
        """Return whether a call is a choice (``n``) of a request that is counted already.

        In the high scenario the endpoint does not take ``n``.
        """
        if not call.together or model.provider in (LOCAL, IN_CLUSTER) or self._scenario == "high":
            return False
        if not may_have_choices(model, ()):
            return False
        room = call.max_output_tokens or model.max_output_tokens
        question = call_key(model, call.messages, room, -1 - min(call.together))
        is_further = question in self._seen
        self.has_samples |= is_further
        self._seen.add(question)
        return is_further

    @property
    def seconds(self) -> float:
        """How long the run should take: the tightest of its limits decides."""
        calls = sum(each["calls"] for each in self.totals.values())
        tokens = sum(each["input_tokens"] + each["output_tokens"] for each in self.totals.values())
        limits = self._rules.config
        return max(
            self._seconds_of_calls / limits.max_in_flight,
            60 * calls / limits.requests_per_minute if limits.requests_per_minute else 0.0,
            60 * tokens / limits.tokens_per_minute if limits.tokens_per_minute else 0.0,
            self._longest_call,
        )

    def _count(self, call: Call, key: str, output_tokens: int) -> None:
        rules, totals = self._rules, self.totals[call.role]
        model = rules.config.models[call.role]
        input_tokens = cached_tokens = 0.0
        if not self._is_further_sample(call, model):
            size = self._size(key, model, call)
            pilot = rules.pilot.get((call.role, call.purpose))
            totals["calls"] += 1
            totals["images"] += size.images
            input_tokens = self._input_tokens(size, model, pilot)
            if pilot is not None and self._scenario != "high":  # nobody promises what is cached
                cached_tokens = input_tokens * pilot.cached_share
            seconds = rules.seconds_per_call
            if seconds is None:
                seconds = FIRST_TOKEN_S + output_tokens / TOKENS_PER_S
            self._seconds_of_calls += seconds
            self._longest_call = max(self._longest_call, seconds)
        totals["input_tokens"] += input_tokens
        totals["cached_input_tokens"] += cached_tokens
        totals["output_tokens"] += output_tokens
        if (price := rules.config.prices.of(model)) is not None:
            totals["usd"] += price.cost(
                input_tokens, output_tokens, cached_tokens=cached_tokens, is_batch=rules.is_batch
            )

    def _size(self, key: str, model: ModelSettings, call: Call) -> CallSize:
        if key not in self._sizes:
            parts = [part for message in call.messages for part in message.parts]
            images = sum(isinstance(part, Image) for part in parts)
            self._sizes[key] = CallSize(self._rules.counters.expected(model, call.messages), images)
        return self._sizes[key]

    def _input_tokens(self, size: CallSize, model: ModelSettings, pilot: PilotReplies | None) -> float:
        """Return the tokens of a call by our own count, corrected by a pilot; low and high if it may err."""
        if pilot is not None:
            return size.tokens * pilot.input_share
        if self._rules.counters.of(model).is_exact:
            return size.tokens
        spread = {"low": ESTIMATE_SPREAD[0], "expected": 1.0, "high": ESTIMATE_SPREAD[1]}
        return size.tokens * spread[self._scenario]


def _role_plan(role: str, rules: CountingRules, runs: Mapping[Scenario, _Run]) -> RolePlan:
    model = rules.config.models[role]
    counts = {name: Range(*(run.totals[role][name] for run in runs.values())) for name in NO_CALLS}
    price = rules.config.prices.of(model)
    if price is None:
        counts["usd"] = None
    return RolePlan(
        role=role,
        model=model,
        **counts,
        text_rule=rules.counters.of(model).name,
        image_rule=image_rule(model.model).name,
        price_source=None if price is None else price.source,
        learned={purpose: known.number for (of, purpose), known in rules.pilot.items() if of == role},
    )


def _sum(ranges: Iterable[Range]) -> Range:
    return Range(*map(sum, zip((0, 0, 0), *ranges, strict=True)))


def plan_run(
    config: RunConfig,
    tokenizer: str | None = None,
    seconds_per_call: float | None = None,
    *,
    is_batch: bool = False,
    pilot: int | None = None,
    wrap: Wrap | None = None,
) -> Plan:
    """Plan what `run_judge` would do; with ``pilot`` after judging so many trajectories.

    Raises OptionsError, SourceError, SuiteError.
    """
    if pilot and config.is_refresh:
        raise OptionsError(
            "--pilot and --refresh: the run would pay for the pilot again; leave one of them out"
        )
    if not config.models:
        return Plan(len(config.ids), (), Range(0.0, 0.0, 0.0))
    counters = TokenCounters(tokenizer)
    job = open_job(config, wrap)
    made, known = None, {}
    if pilot:
        made, known = run_pilot(replace(job, ids=spread_evenly(job.ids, pilot)), counters)
    rules = CountingRules(job.config, counters, seconds_per_call, is_batch, known)
    judge, views = job.config.judge, job.views
    is_there = config.cache is not None and config.cache.is_dir()
    stored = open_cache(config.cache, config.answers, config.fresh_since) if is_there else None
    with closing(stored) if stored else nullcontext() as cache:
        return replace(make_plan(judge, _read_ahead(views, judge, job.ids), cache, rules), pilot=made)


def spread_evenly(ids: Sequence[str], number: int) -> tuple[str, ...]:
    """So many of the trajectories, spread over all: neighbours are of one benchmark and agent."""
    number = min(number, len(ids))
    return tuple(ids[(2 * place + 1) * len(ids) // (2 * number)] for place in range(number))


def run_pilot(job: Job, counters: TokenCounters) -> tuple[Pilot, dict[tuple[str, str], PilotReplies]]:
    """Judge the job's trajectories; return what that took, and its replies by role and purpose.

    The replies stay in the cache. Raises OptionsError if that cannot be done: no key, nothing but errors, a
    limit that was reached.
    """
    spend, judged = Spend(), []
    config = job.config

    async def run() -> None:
        async with open_executor(job, spend, lambda *_, **__: None) as executor:

            async def ask(call: Call) -> Reply:
                try:
                    reply = await executor.ask(call)
                except NoMoreCallsError as reached:
                    raise StopRunError(str(reached)) from reached
                spend.count(reply)
                return reply

            await judge_trajectories(
                config.judge, job.ids, job.views, ask, judged.append, config.max_in_flight
            )
            executor.sync()

    try:
        asyncio.run(run())
    except StopRunError as stopped:
        raise OptionsError(f"--pilot: {stopped}") from stopped
    if judged and all(each.answer.state == "error" for each in judged):
        raise OptionsError(
            f"--pilot: every trajectory ended in an error, the first with: {_error_of(judged[0])}. Fix the "
            "cause, or leave --pilot out"
        )
    found: defaultdict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for exchange in (exchange for each in judged for exchange in each.exchanges):
        if exchange.reply.output_tokens is not None:
            found[exchange.call.role, exchange.call.purpose].append(exchange)
    known = {
        kind: _pilot_replies(config.models[kind[0]], each, counters) for kind, each in sorted(found.items())
    }
    return Pilot(len(job.ids), spend.calls, spend.usd), known


def _pilot_replies(
    model: ModelSettings, exchanges: Sequence[Exchange], counters: TokenCounters
) -> PilotReplies:
    replies = [each.reply for each in exchanges]
    # Of samples in one request the first one has the input.
    asked = [each for each in exchanges if each.reply.input_tokens and not each.reply.used_shorter]
    counted = sum(each.reply.input_tokens or 0 for each in asked)
    by_rule = sum(counters.expected(model, each.call.messages) for each in asked)
    # The call that found least in the provider's cache had to fill it.
    shares = sorted((each.reply.cached_input_tokens or 0) / (each.reply.input_tokens or 1) for each in asked)
    return PilotReplies(
        texts=tuple(reply.text for reply in replies if reply.text),
        number=len(replies),
        output_tokens=fmean(reply.output_tokens or 0 for reply in replies),
        input_share=counted / by_rule if by_rule else 1.0,
        cached_share=fmean(shares[1:]) if len(shares) > 1 else 0.0,
    )


def _error_of(judged: Judgment) -> str:
    errors = (each.reply.error for each in judged.exchanges)
    return judged.problem or next(filter(None, errors), "no reply")


def _read_ahead(views: RunSource, judge: Judge, ids: Sequence[str]) -> Iterator[tuple[str, View | str]]:
    """Each trajectory with its view, or with why there is none; a few are read before they are needed."""

    def read(trajectory_id: str) -> View | str:
        try:
            return views.view(trajectory_id, judge.wants)
        except ValueError as problem:  # what cannot be shown; the run says so in the same words
            return str(problem)

    with ThreadPoolExecutor(READERS, thread_name_prefix="views") as readers:
        waiting = iter(ids)
        reading: list[tuple[str, Future[View | str]]] = [
            (each, readers.submit(read, each)) for each in islice(waiting, READERS)
        ]
        while reading:
            trajectory_id, future = reading.pop(0)
            yield trajectory_id, future.result()
            reading += [(each, readers.submit(read, each)) for each in islice(waiting, 1)]
