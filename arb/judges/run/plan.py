"""What a run will take before it is made: calls, pictures, tokens, dollars, time.

The judge is driven through every trajectory with replies out of the cache and, where there are none, dummy
ones (`typical_replies`): short and all saying no (low), as those that are known of their kind (expected),
long and all saying yes (high). So it is known before it is paid which calls follow from a reply. A call that
is asked twice counts once, as the engine makes it once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from arb.judges.contract import JudgeError
from arb.judges.engine.cache import CallCache, call_key, call_kind
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.engine.reasoning import reasons
from arb.judges.engine.retry import may_have_choices
from arb.judges.engine.tokens import ESTIMATE_SPREAD, TokenCounters, image_rule
from arb.judges.registry import full_name
from arb.judges.run.config import build_judge, build_models, open_cache, refuse_omitted_params, select
from arb.judges.run.progress import Spend
from arb.judges.run.runner import (
    EngineSettings,
    Job,
    engine_settings,
    open_executor,
    open_views,
)
from arb.judges.run.scheduler import Judgment, StopRunError, drive_offline, judge_trajectories
from arb.judges.run.typical_replies import (
    REASONING_TOKENS,
    SCENARIOS,
    CallSize,
    KnownCalls,
    Range,
    Scenario,
    dummy_reply,
    tokens_per_word,
)
from arb.judges.types import Call, Judge, ModelSettings, OptionsError, Reply, View

if TYPE_CHECKING:
    from arb.judges.cli.options import RunOptions
    from arb.judges.run.runner import Wrap
    from arb.judges.run.scheduler import RunSource

READERS: Final = 4
"""Threads that read runs, and scale their pictures, while others are counted."""

FIRST_TOKEN_S: Final = 1.5
TOKENS_PER_S: Final = 60.0
"""Assumed of a call: the wait for its first token, and the rate of the others. Endpoints differ widely."""

LEARNED_SPREAD: Final = {"low": 0.97, "expected": 1.0, "high": 1.05}
"""How far off an estimate of input tokens may be where the endpoint's own counts of its kind are known."""


class CountingRules(NamedTuple):
    """How a plan counts: prices and limits of a run, and the seconds a call takes where the user knows them.

    ``is_batch``: at the price of batches.
    """

    settings: EngineSettings
    counters: TokenCounters
    seconds_per_call: float | None = None
    is_batch: bool = False


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What a role's model is asked: ``calls``, and besides them ``cached`` ones that cost nothing again.

    ``cached_input_tokens``, among the input's, are those that the provider will have in its own cache.
    ``usd`` is None where the price is unknown. The rules say in words how texts and pictures were counted;
    ``learned``: by purpose, from how many replies in the cache.
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
    judge: Judge,
    models: Mapping[str, ModelSettings],
    views: Iterable[tuple[str, View | str]],
    cache: CallCache | None,
    rules: CountingRules,
) -> Plan:
    """The plan of a run. ``views``: each trajectory's id with its view, or with why there is none."""
    known = KnownCalls(models, cache, rules.counters)
    runs = {name: _Run(name, models, known, rules) for name in SCENARIOS}
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
    for run in runs.values():
        run.add_up()
    roles = tuple(_role_plan(role, model, rules, runs, known) for role, model in models.items())
    seconds = Range(*(run.seconds for run in runs.values()))
    return Plan(trajectories, roles, seconds, problems, has_samples=known.has_samples)


NO_CALLS: Final = {
    "calls": 0, "cached": 0, "images": 0,
    "input_tokens": 0.0, "cached_input_tokens": 0.0, "output_tokens": 0.0, "usd": 0.0,
}  # fmt: skip
"""What is added up for a role in each scenario; the names are fields of RolePlan."""


class _Asked(NamedTuple):
    """A call that a run has to make; ``size`` is None for a further sample in the request of another."""

    role: str
    kind: str
    size: CallSize | None
    output_tokens: int


class _Run:
    """A run as it goes in one scenario. Calls are counted when all are known: their lengths are learned from
    replies in the cache, wherever these come in the order.
    """

    def __init__(
        self, scenario: Scenario, models: Mapping[str, ModelSettings], known: KnownCalls, rules: CountingRules
    ):
        self._scenario, self._models, self._known, self._rules = scenario, models, known, rules
        self._per_word = {
            role: tokens_per_word(rules.counters.of(model).count) for role, model in models.items()
        }
        self._seen: set[str] = set()
        self._numbers: dict[str, int] = {}  # by key, the place of a call among those of its kind
        self._of_kind: Counter[str] = Counter()
        self._asked: list[_Asked] = []
        self.totals: dict[str, dict[str, float]] = {role: dict(NO_CALLS) for role in models}
        self._seconds_of_calls = self._longest_call = 0.0

    def reply_to(self, call: Call) -> Reply:
        """The reply from the cache, else a dummy; a call is counted the first time."""
        model = self._models[call.role]
        room = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, room, call.sample)
        is_new = key not in self._seen
        self._seen.add(key)
        cached = self._known.cache.get(key) if self._known.cache is not None else None
        if cached is not None:
            self._known.compare(key, model, call, cached)
            self.totals[call.role]["cached"] += is_new
            return cached
        kind = call_kind(model, call)
        learned = self._known.learned.get(kind)
        if is_new:
            self._numbers[key] = self._of_kind[kind]
            self._of_kind[kind] += 1
        number = self._numbers[key]
        reply = dummy_reply(call, key, self._scenario, room, self._per_word[call.role], learned, number)
        if is_new:
            hidden = REASONING_TOKENS[self._scenario] if learned is None and reasons(model) else 0
            if learned is not None:
                self._known.used[call.role].add(kind)
            output_tokens = min(room, (reply.output_tokens or 0) + hidden)
            size = None if self._is_further_sample(call, model, room) else self._known.size(key, model, call)
            self._asked.append(_Asked(call.role, kind, size, output_tokens))
        return reply

    def _is_further_sample(self, call: Call, model: ModelSettings, room: int) -> bool:
        """Whether a call is a choice (``n``) of a request that is counted already. In the high scenario the
        endpoint does not take ``n``.
        """
        if not call.together or self._scenario == "high":
            return False
        if not may_have_choices(model, ()):
            return False
        question = call_key(model, call.messages, room, -1 - min(call.together))
        is_further = question in self._seen
        self._known.has_samples |= is_further
        self._seen.add(question)
        return is_further

    def add_up(self) -> None:
        """Count every call that has to be made, once all are known."""
        for asked in self._asked:
            self._count(asked)

    @property
    def seconds(self) -> float:
        """How long the run should take: the tightest of its limits decides."""
        calls = sum(each["calls"] for each in self.totals.values())
        tokens = sum(each["input_tokens"] + each["output_tokens"] for each in self.totals.values())
        limits = self._rules.settings
        return max(
            self._seconds_of_calls / limits.max_in_flight,
            60 * calls / limits.requests_per_minute if limits.requests_per_minute else 0.0,
            60 * tokens / limits.tokens_per_minute if limits.tokens_per_minute else 0.0,
            self._longest_call,
        )

    def _count(self, asked: _Asked) -> None:
        rules, model, totals = self._rules, self._models[asked.role], self.totals[asked.role]
        input_tokens = cached_tokens = 0.0
        if asked.size is not None:
            totals["calls"] += 1
            totals["images"] += asked.size.images
            input_tokens = self._input_tokens(asked.kind, asked.size, model)
            learned = self._known.learned.get(asked.kind)
            if learned is not None and self._scenario != "high":  # nobody promises what is cached
                cached_tokens = input_tokens * learned.cached_share
        totals["input_tokens"] += input_tokens
        totals["cached_input_tokens"] += cached_tokens
        totals["output_tokens"] += asked.output_tokens
        if (price := rules.settings.prices.of(model)) is not None:
            totals["usd"] += price.cost(
                input_tokens, asked.output_tokens, cached_tokens=cached_tokens, is_batch=rules.is_batch
            )
        seconds = rules.seconds_per_call
        if seconds is None:
            seconds = FIRST_TOKEN_S + asked.output_tokens / TOKENS_PER_S
        if asked.size is not None:
            self._seconds_of_calls += seconds
            self._longest_call = max(self._longest_call, seconds)

    def _input_tokens(self, kind: str, size: CallSize, model: ModelSettings) -> float:
        """As others of the kind were counted, else by rule; low and high by how far off that may be."""
        if (learned := self._known.input_tokens(kind, size)) is not None:
            return learned * LEARNED_SPREAD[self._scenario]
        if self._rules.counters.of(model).is_exact:
            return size.tokens
        spread = {"low": ESTIMATE_SPREAD[0], "expected": 1.0, "high": ESTIMATE_SPREAD[1]}
        return size.tokens * spread[self._scenario]


def _role_plan(
    role: str, model: ModelSettings, rules: CountingRules, runs: Mapping[Scenario, _Run], known: KnownCalls
) -> RolePlan:
    counts = {name: Range(*(run.totals[role][name] for run in runs.values())) for name in NO_CALLS}
    price = rules.settings.prices.of(model)
    if price is None:
        counts["usd"] = None
    learned: Counter[str] = Counter()
    for each in (known.learned[kind] for kind in sorted(known.used[role])):
        learned[each.purpose] += each.number
    return RolePlan(
        role=role,
        model=model,
        **counts,
        text_rule=rules.counters.of(model).name,
        image_rule=image_rule(model.model).name,
        price_source=None if price is None else price.source,
        learned=dict(learned),
    )


def _sum(ranges: Iterable[Range]) -> Range:
    return Range(*map(sum, zip((0, 0, 0), *ranges, strict=True)))


def plan_run(
    options: RunOptions,
    tokenizer: str | None = None,
    seconds_per_call: float | None = None,
    *,
    is_batch: bool = False,
    pilot: int | None = None,
    wrap: Wrap | None = None,
) -> Plan:
    """The plan of what `run` would do with these options; with ``pilot`` after judging so many trajectories.
    ``wrap`` is that of `run_judge`.

    Raises OptionsError, SourceError, SuiteError.
    """
    selection = select(options)
    judge = build_judge(options)
    models = build_models(options, judge)
    refuse_omitted_params(options, models)
    if pilot and options.refresh:
        raise OptionsError(
            "--pilot and --refresh: the run would pay for the pilot again; leave one of them out"
        )
    if not models:
        return Plan(len(selection.ids), (), Range(0.0, 0.0, 0.0))
    settings = engine_settings(options, models)
    rules = CountingRules(settings, TokenCounters(tokenizer), seconds_per_call, is_batch)
    views, there, _ = open_views(options, selection, judge)
    ids = tuple(each for each in selection.ids if each in there)
    if wrap is not None:
        judge = wrap(judge, views, ids)
    job = Job(judge, models, views, spread_evenly(ids, pilot or 0), settings, full_name(judge, models))
    made = run_pilot(job) if pilot else None
    is_there = settings.cache is not None and settings.cache.is_dir()
    stored = open_cache(settings.cache, settings.answers, settings.fresh_since) if is_there else None
    with closing(stored) if stored else nullcontext() as cache:
        return replace(make_plan(judge, models, _read_ahead(views, judge, ids), cache, rules), pilot=made)


def spread_evenly(ids: Sequence[str], number: int) -> tuple[str, ...]:
    """So many of the trajectories, spread over all: neighbours are of one benchmark and agent."""
    number = min(number, len(ids))
    return tuple(ids[(2 * place + 1) * len(ids) // (2 * number)] for place in range(number))


def run_pilot(job: Job) -> Pilot:
    """Judge the job's trajectories; what remains are the replies in the cache.

    Raises OptionsError where that cannot be done: no key, nothing but errors, a limit that was reached.
    """
    spend, judged = Spend(), []

    async def run() -> None:
        async with open_executor(job, spend, lambda *_, **__: None) as executor:

            async def ask(call: Call) -> Reply:
                try:
                    reply = await executor.ask(call)
                except NoMoreCallsError as reached:
                    raise StopRunError(str(reached)) from reached
                spend.count(reply)
                return reply

            in_flight = job.settings.max_in_flight
            await judge_trajectories(job.judge, job.ids, job.views, ask, judged.append, in_flight)
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
    return Pilot(len(job.ids), spend.calls, spend.usd)


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
