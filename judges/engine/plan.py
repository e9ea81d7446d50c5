"""What a run will take before it is made: calls, pictures, tokens, dollars, time.

The judge is driven through every trajectory with replies out of the cache and, where there are none, made-up
ones: short and all saying no (low), typical (expected), long and all saying yes (high). A call that is asked
twice counts once, as the engine makes it once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from judges.base import Call, Image, Judge, Message, ModelSettings, Reply, View
from judges.engine.call_keys import call_key
from judges.engine.drive import drive_offline
from judges.engine.image_tokens import image_rule
from judges.engine.made_up import SCENARIOS, Scenario, dummy_reply, tokens_per_word
from judges.engine.pace import REASONING_TOKENS, Throughput, is_reasoning
from judges.engine.prices import PriceTable
from judges.engine.tokens import ESTIMATE_SPREAD, TokenCounters


class Range(NamedTuple):
    """Low, expected, high."""

    low: float
    expected: float
    high: float


class CountingRules(NamedTuple):
    """How a plan counts. ``is_batch``: at the price of batches."""

    prices: PriceTable
    counters: TokenCounters
    pace: Throughput
    is_batch: bool = False


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What a role's model is asked: ``calls``, and besides them ``cached`` ones that cost nothing again.

    ``usd`` is None where the price is unknown. The rules say in words how texts and pictures were counted.
    """

    role: str
    model: ModelSettings
    calls: Range
    cached: Range
    images: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None
    text_rule: str
    image_rule: str
    price_source: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will take. ``problems``: trajectories of which nothing can be shown, by id, with why."""

    trajectories: int
    roles: tuple[RolePlan, ...]
    seconds: Range
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> Range:
        return _sum(role.calls for role in self.roles)

    @property
    def usd(self) -> Range | None:
        """The dollars of all roles; None when the price of one that is asked something is unknown."""
        known = [role.usd for role in self.roles if role.calls.high]
        return None if None in known else _sum(usd for usd in known if usd is not None)


class ReplyLookup(Protocol):
    """Where replies are looked up: `engine.cache.CallCache`."""

    def get(self, key: str) -> Reply | None:
        """The reply to a call; None when it was not made yet."""


def make_plan(
    judge: Judge,
    models: Mapping[str, ModelSettings],
    views: Iterable[tuple[str, View | str]],
    cache: ReplyLookup | None,
    rules: CountingRules,
) -> Plan:
    """The plan of a run. ``views``: each trajectory's id with its view, or with why there is none."""
    sizes: dict[str, _Size] = {}
    runs = {name: _Run(name, models, cache, rules, sizes) for name in SCENARIOS}
    problems: dict[str, str] = {}
    trajectories = 0
    for trajectory_id, view in views:
        trajectories += 1
        if isinstance(view, str):
            problems[trajectory_id] = view
            continue
        for run in runs.values():
            drive_offline(judge, view, run.reply_to)
    roles = tuple(_role_plan(role, model, rules, runs) for role, model in models.items())
    return Plan(trajectories, roles, Range(*(run.seconds for run in runs.values())), problems)


class _Size(NamedTuple):
    """Input tokens of a call, and its pictures."""

    tokens: int
    images: int


NO_CALLS: Final = {
    "calls": 0, "cached": 0, "images": 0, "input_tokens": 0.0, "output_tokens": 0.0, "usd": 0.0,
}  # fmt: skip
"""What is added up for a role in each scenario; the names are fields of RolePlan."""


class _Run:
    """A run as it goes in one scenario. ``sizes``: of calls by their keys; the scenarios share most calls."""

    def __init__(
        self,
        scenario: Scenario,
        models: Mapping[str, ModelSettings],
        cache: ReplyLookup | None,
        rules: CountingRules,
        sizes: dict[str, _Size],
    ):
        self._scenario, self._models, self._cache, self._rules = scenario, models, cache, rules
        self._sizes = sizes
        self._per_word = {
            role: tokens_per_word(rules.counters.of(model).count) for role, model in models.items()
        }
        self._seen: set[str] = set()
        self.totals: dict[str, dict[str, float]] = {role: dict(NO_CALLS) for role in models}
        self._seconds_of_calls = self._longest_call = 0.0

    def reply_to(self, call: Call) -> Reply:
        """The reply from the cache, else a dummy; a call is counted the first time."""
        model = self._models[call.role]
        room = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, room, call.sample)
        is_new = key not in self._seen
        self._seen.add(key)
        known = self._cache.get(key) if self._cache is not None else None
        if known is not None:
            self.totals[call.role]["cached"] += is_new
            return known
        reply = dummy_reply(call, key, self._scenario, room, self._per_word[call.role])
        if is_new:
            hidden = REASONING_TOKENS[self._scenario] if is_reasoning(model.model) else 0
            self._count(call, key, model, min(room, (reply.output_tokens or 0) + hidden))
        return reply

    @property
    def seconds(self) -> float:
        calls = sum(each["calls"] for each in self.totals.values())
        tokens = sum(each["input_tokens"] + each["output_tokens"] for each in self.totals.values())
        return self._rules.pace.seconds_of_run(calls, tokens, self._seconds_of_calls, self._longest_call)

    def _count(self, call: Call, key: str, model: ModelSettings, output_tokens: int) -> None:
        rules = self._rules
        if key not in self._sizes:
            tokens = rules.counters.expected(model, call.messages)
            self._sizes[key] = _Size(tokens, _number_of_images(call.messages))
        size = self._sizes[key]
        input_tokens = size.tokens * self._spread(model)
        totals = self.totals[call.role]
        totals["calls"] += 1
        totals["images"] += size.images
        totals["input_tokens"] += input_tokens
        totals["output_tokens"] += output_tokens
        if (price := rules.prices.of(model)) is not None:
            totals["usd"] += price.cost(input_tokens, output_tokens, is_batch=rules.is_batch)
        seconds = rules.pace.seconds_of_call(output_tokens)
        self._seconds_of_calls += seconds
        self._longest_call = max(self._longest_call, seconds)

    def _spread(self, model: ModelSettings) -> float:
        """How far off an estimate of tokens may be; a tokenizer's count is not."""
        if self._rules.counters.of(model).is_exact:
            return 1.0
        return {"low": ESTIMATE_SPREAD[0], "expected": 1.0, "high": ESTIMATE_SPREAD[1]}[self._scenario]


def _role_plan(
    role: str, model: ModelSettings, rules: CountingRules, runs: Mapping[Scenario, _Run]
) -> RolePlan:
    counts = {name: Range(*(run.totals[role][name] for run in runs.values())) for name in NO_CALLS}
    price = rules.prices.of(model)
    if price is None:
        counts["usd"] = None
    return RolePlan(
        role=role,
        model=model,
        **counts,
        text_rule=rules.counters.of(model).name,
        image_rule=image_rule(model.model).name,
        price_source=None if price is None else price.source,
    )


def _number_of_images(messages: tuple[Message, ...]) -> int:
    return sum(isinstance(part, Image) for message in messages for part in message.content)


def _sum(ranges: Iterable[Range]) -> Range:
    return Range(*map(sum, zip((0, 0, 0), *ranges, strict=True)))
