"""Made-up replies: every judge reads them, and what follows from a yes or a no shows in the plan."""

from dataclasses import dataclass, replace
from types import MappingProxyType

from arb.judges.cli.options import RunOptions
from arb.judges.engine.prices import ANY_PROVIDER, Price, PriceTable
from arb.judges.engine.tokens import TokenCounters
from arb.judges.parsing import parse_answer
from arb.judges.run.config import build_config
from arb.judges.run.plan import CallCounter, make_plan
from arb.judges.types import JUDGE_ROLE, Answer, Call, JudgeSession, Message, ModelSettings, View, Wants
from tests.support.judges import view

PRICES = PriceTable({(ANY_PROVIDER, "m"): Price(1.0, 1.0)})
MODELS = {role: ModelSettings("m", provider="any") for role in (JUDGE_ROLE, "second")}
CONFIG = build_config(RunOptions(judge="always-successful", split="dev", suite="sample"))


def counter() -> CallCounter:
    return CallCounter(replace(CONFIG, models=MODELS, prices=PRICES), TokenCounters())


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


def test_calls_that_depend_on_an_answer_are_counted_for_the_share_that_says_yes():
    views = [(str(number), view(number)) for number in range(1, 101)]
    plan = make_plan(AsksAgain(), views, counter())
    first, second = plan.roles
    assert first.calls == 100
    assert 20 <= second.calls <= 50  # 35 of a hundred on average
    assert plan.calls == first.calls + second.calls


def test_what_cannot_be_shown_is_named_and_costs_nothing():
    plan = make_plan(AsksAgain(), [("a", view(1)), ("b", "no run of it")], counter())
    assert plan.problems == {"b": "no run of it"}
    assert plan.trajectories == 2
    assert plan.roles[0].calls == 1
