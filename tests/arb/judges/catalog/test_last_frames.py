"""The judges of OSReward and browser-use in our own words, and the step judge."""

import pytest

from arb.core.suites.targets import AnswerChoice, Target
from arb.judges.catalog.steps import RIGHT
from arb.judges.registry import find_judge
from arb.judges.types import Evidence, Reply
from tests.support.judges import images, judged, text, view


@pytest.mark.parametrize(("name", "shown"), [("osreward", 5), ("browser-use", 10)])
def test_all_steps_and_the_last_screenshots_are_sent(name, shown):
    run = view(actions=13)
    (call,) = judged(find_judge(name), run).calls
    assert images(call.messages) == [step.screenshot for step in run.steps[-shown:]]
    assert f"The last {shown} screenshots" in text(call.messages) and "click('1')" in text(call.messages)
    (call,) = judged(find_judge(name), view(screenshots=False)).calls
    assert "No screenshots were recorded" in text(call.messages)


@pytest.mark.parametrize(
    ("reply", "state", "success"),
    [
        ("Thought: done.\nJudge: SUCCESS", "ok", True),
        ("Thought: the judge: success?\n**Judge:** FAIL", "ok", False),
        ("Thought: maybe", "unparsed", None),
    ],
)
def test_the_judge_line_of_osreward_is_read(reply, state, success):
    answer = judged(find_judge("osreward"), view(), lambda call: Reply(reply, finish_reason="stop")).answer
    assert (answer.state, answer.success) == (state, success)


@pytest.mark.parametrize(
    ("reply", "success", "evidence"),
    [
        (
            '{"reasoning": "status: failure", "verdict": true, "impossible_task": false, '
            '"reached_captcha": true}',
            True,
            (Evidence(None, "impossible task", False), Evidence(None, "reached captcha", True)),
        ),
        ('```json\n{\n "verdict": false,\n "impossible_task": true\n}\n```', False,
         (Evidence(criterion="impossible task", met=True),)),
    ],
)  # fmt: skip
def test_the_verdict_of_browser_use_is_read_with_what_it_says_of_the_task(reply, success, evidence):
    answer = judged(find_judge("browser-use"), view(), lambda call: Reply(reply, finish_reason="stop")).answer
    assert (answer.state, answer.success, answer.evidence) == ("ok", success, evidence)


MOVE = Target(
    "move",
    "Move",
    "How good is the move?",
    (AnswerChoice("-1", "Bad", "b"), AnswerChoice("1", "Good", "g")),
    guide="Look at the page.",
    type="ordinal",
    level="step",
)


def test_the_step_judge_asks_the_targets_of_the_suite_about_steps():
    whole = Target("success", "Success", "Did it?", level="run")
    judge = find_judge("steps").with_targets([whole, MOVE])
    assert judge.describe().steps == ("move", ("-1", "1"))
    assert "How good is the move?" in judge.system and "- -1: Bad" in judge.system
    assert "Look at the page." in judge.system and "Step N: one of -1, 1" in judge.system
    assert judge.prompts_hash != find_judge("steps").prompts_hash
    said = Reply("Step 1: 1\nStep 2: -1\nStatus: failure", finish_reason="stop")
    answer = judged(judge, view(), lambda call: said).answer
    assert (answer.success, answer.steps) == (False, {1: {"move": "1"}, 2: {"move": "-1"}})


def test_a_suite_without_targets_about_steps_gets_a_question_of_our_own():
    assert find_judge("steps").with_targets([]).target == RIGHT
    assert RIGHT.text in find_judge("steps").system
