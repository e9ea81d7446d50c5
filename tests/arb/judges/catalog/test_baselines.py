"""Judges that ask nobody: the constants and the environment's reward."""

import math

import pytest

from arb.judges.registry import ConstantJudge, RuleBasedJudge
from arb.judges.types import Answer
from tests.support.judges import judged, view


@pytest.mark.parametrize("answer", [True, False])
def test_a_constant_judge_gives_its_answer_without_a_call_or_anything_to_see(answer):
    judge = ConstantJudge("constant", answer)
    done = judged(judge, view())
    assert (done.stages, done.answer) == ((), Answer("ok", success=answer))
    assert (judge.calls, dict(judge.models), judge.wants.axtrees, judge.wants.screenshots) == (
        "0",
        {},
        "none",
        "none",
    )


@pytest.mark.parametrize(
    ("reward", "success"), [(0.0, False), (0.5, False), (0.51, True), (1.0, True), (-1.0, False)]
)
def test_a_reward_above_a_half_is_a_success(reward, success):
    assert RuleBasedJudge().judge_reward(reward) == Answer("ok", success=success)


@pytest.mark.parametrize("reward", [None, math.nan])
def test_without_a_reward_there_is_no_verdict(reward):
    assert RuleBasedJudge().judge_reward(reward) == Answer("error")
