"""Made-up replies: every judge reads them, and what follows from a yes or a no shows in the plan."""

from dataclasses import dataclass
from types import MappingProxyType

import pytest

from judges.engine.prices import ANY_PROVIDER, Price, PriceTable
from judges.engine.tokens import TokenCounters
from judges.parsing import parse_answer
from judges.run.plan import SCENARIOS, CountingRules, dummy_reply, is_reasoning, make_plan
from judges.run.runner import EngineSettings
from judges.run.scheduler import drive_offline
from judges.types import JUDGE_ROLE, Answer, Call, JudgeSession, Message, ModelSettings, View, Wants
from tests.support.judges import judges, view

ASKING = {name: judge for name, judge in judges().items() if getattr(judge, "models", None)}
PRICES = PriceTable({(ANY_PROVIDER, "m"): Price(1.0, 1.0)})
RULES = CountingRules(EngineSettings(cache=None, prices=PRICES), TokenCounters())


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(("scenario", "success"), [("low", False), ("high", True)])
def test_every_judge_reads_the_verdict_of_a_dummy_reply(name, scenario, success):
    answer = drive_offline(ASKING[name], view(3), lambda call: dummy_reply(call, "ab" * 32, scenario, 1024))
    assert (answer.state, answer.success) == ("ok", success)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("purpose", ["verdict", "caption", "change", "key points", "rating", "another"])
def test_replies_have_about_the_tokens_they_stand_for_and_never_more_than_allowed(scenario, purpose):
    count = TokenCounters().of(ModelSettings("m", provider="any")).count
    for room in (1, 100, 1024):
        reply = dummy_reply(Call(purpose, ()), "0" * 64, scenario, room)
        assert 0 < reply.output_tokens <= room
    assert count(reply.text) == pytest.approx(reply.output_tokens, rel=0.15, abs=25)


def test_different_calls_get_different_replies_and_equal_ones_equal():
    call = Call("caption", ())
    assert dummy_reply(call, "1" * 64, "low", 99) == dummy_reply(call, "1" * 64, "low", 99)
    assert dummy_reply(call, "1" * 64, "low", 99).text != dummy_reply(call, "2" * 64, "low", 99).text


@dataclass(frozen=True)
class AsksAgain:
    """Executor once, and once more where the answer was yes."""

    name: str = "asks again"
    wants = Wants()
    models = MappingProxyType({JUDGE_ROLE: "m", "second": "m"})

    def ask(self, view: View) -> JudgeSession:
        (first,) = yield [Call("verdict", (Message("user", f"{view.goal} {len(view.steps)}"),))]
        if parse_answer(first, "tags").success:
            (first,) = yield [Call("verdict", (Message("user", f"sure? {first.text}"),), role="second")]
        return Answer("ok", success=True)


def test_calls_that_depend_on_an_answer_are_none_some_and_all():
    models = {role: ModelSettings("m", provider="any") for role in (JUDGE_ROLE, "second")}
    views = [(str(number), view(number)) for number in range(1, 101)]
    plan = make_plan(AsksAgain(), models, views, None, RULES)
    first, second = plan.roles
    assert first.calls == (100, 100, 100)
    assert (second.calls.low, second.calls.high) == (0, 100)
    assert 20 <= second.calls.expected <= 50  # 35 of a hundred on average
    assert plan.usd.low < plan.usd.expected < plan.usd.high


def test_what_cannot_be_shown_is_named_and_costs_nothing():
    models = {role: ModelSettings("m", provider="any") for role in (JUDGE_ROLE, "second")}
    plan = make_plan(AsksAgain(), models, [("a", view(1)), ("b", "no run of it")], None, RULES)
    assert plan.problems == {"b": "no run of it"}
    assert plan.trajectories == 2
    assert plan.roles[0].calls.expected == 1


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("o4-mini-2025-04-16", True),
        ("openai/o3", True),
        ("gpt-5.4-mini", True),
        ("qwen/qwen3-vl-235b-a22b-thinking", True),
        ("gpt-4o", False),
        ("o1things", False),
        ("anthropic/claude-3.7-sonnet", False),
    ],
)
def test_reasoning_models_are_known_by_their_names(model, thinks):
    assert is_reasoning(model) is thinks
