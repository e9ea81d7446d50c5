"""Estimate the calls, pictures, tokens, dollars and time of a run before it starts.

The judge runs on every trajectory, with replies from the cache and dummy replies for all other calls
(`typical_replies`), so that calls that depend on earlier replies are counted too. Equal calls count once,
because the engine makes them only once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from arb.judges.contract import JudgeError
from arb.judges.engine.cache import CallCache, key_of
from arb.judges.engine.choices import may_have_choices
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.engine.reasoning import reasons
from arb.judges.engine.tokens import TokenCounters, counted, image_rule
from arb.judges.run.config import RunConfig
from arb.judges.run.progress import Spend
from arb.judges.run.records import error_of, judgment_record, sum_or_none
from arb.judges.run.runner import Job, open_executor, open_job
from arb.judges.run.scheduler import READERS, Judgment, StopRunError, drive_offline, judge_trajectories
from arb.judges.run.typical_replies import REASONING_TOKENS, PilotReplies, dummy_reply
from arb.judges.types import Call, Image, Judge, ModelSettings, OptionsError, Reply, View, is_reward_judge

if TYPE_CHECKING:
    from arb.judges.run.runner import Wrap
    from arb.judges.run.scheduler import RunSource

READ_AHEAD: Final = 4 * READERS
"""The number of runs that are read in advance and kept in memory at the same time."""

FIRST_TOKEN_S: Final = 1.5
TOKENS_PER_S: Final = 60.0
"""The assumed number of seconds until a reply begins, and of tokens per second from then on."""


PilotKey = tuple[str, str]
"""The role and the purpose of a call."""


@dataclass(slots=True)
class RolePlan:
    """The calls and costs of one role of the judge.

    ``calls`` counts the calls that have to be paid, and ``cached`` those with a reply in the reply cache.
    ``cached_input_tokens`` are input tokens expected in the provider's own cache. ``usd`` is None if the
    price is unknown. ``text_rule`` and ``image_rule`` name the rules by which tokens were counted.
    """

    role: str
    model: ModelSettings
    text_rule: str
    image_rule: str
    price_source: str | None
    usd: float | None
    calls: int = 0
    cached: int = 0
    images: int = 0
    input_tokens: float = 0.0
    cached_input_tokens: float = 0.0
    output_tokens: int = 0

    @property
    def cached_share(self) -> float:
        """The share of the input tokens that is expected to be in the provider's own cache."""
        return self.cached_input_tokens / max(1, self.input_tokens)


@dataclass(frozen=True, slots=True)
class Pilot:
    """The size and cost of a pilot, that is, of judging some trajectories before the run is planned."""

    trajectories: int
    calls: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The expected calls, costs and time of a run.

    ``problems`` maps the id of each trajectory that cannot be judged to the reason. ``has_samples`` is true
    if several samples share one request.
    """

    trajectories: int
    roles: tuple[RolePlan, ...]
    seconds: float
    problems: Mapping[str, str] = field(default_factory=dict)
    pilot: Pilot | None = None
    has_samples: bool = False

    @property
    def calls(self) -> int:
        return sum(role.calls for role in self.roles)

    @property
    def usd(self) -> float | None:
        """The dollars of all roles, or None if the price of a role with calls is unknown."""
        return sum_or_none(role.usd for role in self.roles if role.calls)


def make_plan(judge: Judge, views: Iterable[tuple[str, View | str]], counter: CallCounter) -> Plan:
    """Return the plan of a run. ``views`` has each id with its view, or with the reason why it has none."""
    problems: dict[str, str] = {}
    trajectories = 0
    for trajectory_id, view in views:
        trajectories += 1
        if isinstance(view, str):
            problems[trajectory_id] = view
            continue
        try:
            drive_offline(judge, view, counter.reply_to)
        except JudgeError as mistake:
            problems[trajectory_id] = str(mistake)
    roles = tuple(counter.roles.values())
    return Plan(trajectories, roles, counter.seconds, problems, has_samples=counter.has_samples)


class CallCounter:
    """Counts a judge's calls, and answers them from the cache or with dummy replies.

    ``seconds_per_call`` is the duration of a call if the user knows it. ``is_batch`` selects the prices of
    the Batch API. ``pilot`` has the replies of a pilot, by role and purpose.
    """

    def __init__(
        self,
        config: RunConfig,
        counters: TokenCounters,
        cache: CallCache | None = None,
        *,
        seconds_per_call: float | None = None,
        is_batch: bool = False,
        pilot: Mapping[PilotKey, PilotReplies] = MappingProxyType({}),
    ):
        self._config, self._counters, self._cache, self._pilot = config, counters, cache, pilot
        self._seconds_per_call, self._is_batch = seconds_per_call, is_batch
        self._seen: set[str] = set()
        self._dummies: dict[str, Reply] = {}
        self._numbers: Counter[PilotKey] = Counter()
        self.roles: dict[str, RolePlan] = {}
        for role, model in config.models.items():
            price = config.prices.of(model)
            rules = counters.of(model).name, image_rule(model.model).name
            source, usd = (None, None) if price is None else (price.source, 0.0)
            self.roles[role] = RolePlan(role, model, *rules, source, usd)
        self.has_samples = False
        self._seconds_of_calls = self._longest_call = 0.0

    def reply_to(self, call: Call) -> Reply:
        """Return the cached reply to a call, or else a dummy reply. A repeated call counts only once."""
        model = self._config.models[call.role]
        room = call.max_output_tokens or model.max_output_tokens
        key = key_of(model, call)
        if key in self._dummies:
            return self._dummies[key]
        is_new = key not in self._seen
        self._seen.add(key)
        cached = self._cache.get(key) if self._cache is not None else None
        if cached is not None:
            self.roles[call.role].cached += is_new
            return cached
        known = self._pilot.get((call.role, call.purpose))
        number = self._numbers[call.role, call.purpose]
        self._numbers[call.role, call.purpose] += 1
        reply = dummy_reply(call, key, room, known, number)
        self._dummies[key] = reply
        output_tokens = reply.output_tokens or 0
        if known is None and reasons(model):
            output_tokens = min(room, output_tokens + REASONING_TOKENS)
        self._count(call, model, output_tokens, self._is_further_sample(call, model))
        return reply

    def _is_further_sample(self, call: Call, model: ModelSettings) -> bool:
        """Return whether the call is part of a request for several samples that was counted already."""
        if not call.together or not may_have_choices(model):
            return False
        question = key_of(model, call, -1 - min(call.together))
        is_further = question in self._seen
        self.has_samples |= is_further
        self._seen.add(question)
        return is_further

    def _count(self, call: Call, model: ModelSettings, output_tokens: int, is_further_sample: bool) -> None:
        totals = self.roles[call.role]
        known = self._pilot.get((call.role, call.purpose))
        input_tokens = cached_tokens = 0.0
        if not is_further_sample:
            totals.calls += 1
            totals.images += sum(
                isinstance(part, Image) for message in call.messages for part in message.parts
            )
            input_tokens = self._counters.expected(model, counted(call.messages, call.tools))
            if known is not None:
                input_tokens *= known.input_ratio
                cached_tokens = input_tokens * known.cached_share
            seconds = self._seconds_per_call
            if seconds is None:
                seconds = FIRST_TOKEN_S + output_tokens / TOKENS_PER_S
            self._seconds_of_calls += seconds
            self._longest_call = max(self._longest_call, seconds)
        totals.input_tokens += input_tokens
        totals.cached_input_tokens += cached_tokens
        totals.output_tokens += output_tokens
        if totals.usd is not None and (price := self._config.prices.of(model)) is not None:
            totals.usd += price.cost(
                input_tokens, output_tokens, cached_tokens=cached_tokens, is_batch=self._is_batch
            )

    @property
    def seconds(self) -> float:
        """The expected duration of the run in seconds: the longest time that any of its limits requires."""
        roles = self.roles.values()
        calls = sum(role.calls for role in roles)
        tokens = sum(role.input_tokens + role.output_tokens for role in roles)
        limits = self._config.options
        return max(
            self._seconds_of_calls / limits.max_in_flight,
            60 * calls / limits.requests_per_minute if limits.requests_per_minute else 0.0,
            60 * tokens / limits.tokens_per_minute if limits.tokens_per_minute else 0.0,
            self._longest_call,
        )


def plan_run(
    config: RunConfig,
    tokenizer: str | None = None,
    seconds_per_call: float | None = None,
    *,
    is_batch: bool = False,
    pilot: int | None = None,
    wrap: Wrap | None = None,
) -> Plan:
    """Return the plan of a run, after judging ``pilot`` trajectories if it is given.

    Raises OptionsError, SourceError, SuiteError.
    """
    if pilot and config.options.refresh:
        raise OptionsError("--pilot and --refresh together would pay for the pilot twice; leave out one")
    if not config.models:
        return Plan(len(config.ids), (), 0.0)
    counters = TokenCounters(tokenizer)
    job = open_job(config, wrap)
    judge = job.config.judge
    if is_reward_judge(judge):
        raise TypeError(f"{judge.name} calls no model, so there is nothing to plan")
    made: Pilot | None = None
    known: dict[PilotKey, PilotReplies] = {}
    if pilot:
        made, known = run_pilot(replace(job, ids=spread_evenly(job.ids, pilot)), counters)
    is_there = config.cache is not None and config.cache.is_dir()
    with config.open_cache() if is_there else nullcontext() as cache:
        counter = CallCounter(
            job.config, counters, cache, seconds_per_call=seconds_per_call, is_batch=is_batch, pilot=known
        )
        return replace(make_plan(judge, _read_ahead(job.views, judge, job.ids), counter), pilot=made)


def spread_evenly(ids: Sequence[str], number: int) -> tuple[str, ...]:
    """Return ``number`` ids at equal distances in the list, so that benchmarks and agents are mixed."""
    number = min(number, len(ids))
    return tuple(ids[(2 * place + 1) * len(ids) // (2 * number)] for place in range(number))


def run_pilot(job: Job, counters: TokenCounters) -> tuple[Pilot, dict[PilotKey, PilotReplies]]:
    """Judge the job's trajectories. Return the pilot's costs, and its replies by role and purpose.

    Raises OptionsError if a key is missing, all results are errors, or a limit was reached.
    """
    spend = Spend()
    judged: list[Judgment] = []
    known: dict[PilotKey, PilotReplies] = {}

    async def run() -> None:
        async with open_executor(job, spend, lambda *_, **__: None) as executor:

            async def ask(call: Call) -> Reply:
                try:
                    reply = await executor.ask(call)
                except NoMoreCallsError as reached:
                    raise StopRunError(str(reached)) from reached
                spend.count(reply)
                if reply.error is None:
                    sent = counted(call.messages, call.tools)
                    tokens = counters.expected(job.config.models[call.role], sent)
                    known.setdefault((call.role, call.purpose), PilotReplies()).add(reply, tokens)
                return reply

            in_flight = job.config.options.max_in_flight
            await judge_trajectories(job.config.judge, job.ids, job.views, ask, judged.append, in_flight)
            executor.sync()

    try:
        asyncio.run(run())
    except StopRunError as stopped:
        raise OptionsError(f"--pilot: {stopped}") from stopped
    if judged and all(each.answer.state == "error" for each in judged):
        first = error_of(judgment_record(judged[0], ""))
        raise OptionsError(
            f"--pilot: every trajectory ended in an error; the first error: {first}. Fix the cause, or leave "
            "out --pilot"
        )
    return Pilot(len(job.ids), spend.calls, spend.usd), known


def _read_ahead(views: RunSource, judge: Judge, ids: Sequence[str]) -> Iterator[tuple[str, View | str]]:
    """Yield each id with its view, or the reason why it has none. `READ_AHEAD` runs are read in advance."""

    def read(trajectory_id: str) -> View | str:
        try:
            return views.view(trajectory_id, judge.wants)
        except ValueError as problem:  # the run will have the same problem
            return str(problem)

    with ThreadPoolExecutor(READERS, thread_name_prefix="views") as readers:
        for start in range(0, len(ids), READ_AHEAD):
            some = ids[start : start + READ_AHEAD]
            yield from zip(some, readers.map(read, some), strict=True)
