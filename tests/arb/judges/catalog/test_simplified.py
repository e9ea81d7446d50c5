"""The simplified judge: what it is shown in each variant, in which order it is asked, and what is missing."""

import json
from dataclasses import replace

import pytest

from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.registry import find_judge
from arb.judges.types import Reply, ViewStep
from tests.support.judges import GOAL, images, judged, parts, text, view

QUESTIONS = {  # the paper's Figure 5
    "success": "Was the sequence of actions below successful in achieving the goal?",
    "side": "Did the agent perform unnecessary actions that could lead to unintended side effects?",
    "optimal": "Did the agent perform the task optimally, by only performing necessary actions and avoiding "
    "unnecessary ones?",
    "loop": "Did the agent loop through a sequence of actions that did not make progress towards the goal?",
}
CHOICES = (
    "<success>Successful</success>, <success>Unsuccessful</success>",
    "<side>Yes</side>, <side>No</side>",
    "<optimal>1. Complete Failure</optimal>, <optimal>2. Suboptimal</optimal>, "
    "<optimal>3. Somewhat Optimal</optimal>, <optimal>4. Completely Optimal</optimal>",
    "<loop>Yes</loop>, <loop>No</loop>",
)
VARIANTS = [(False, False), (True, False), (False, True), (True, True)]


def judge(has_axtree=False, has_screenshot=False, **more) -> SimplifiedJudge:
    return SimplifiedJudge("a judge", "a-model", has_axtree, has_screenshot, **more)


@pytest.mark.parametrize(("has_axtree", "has_screenshot"), VARIANTS)
def test_the_judge_sees_goal_and_steps_and_of_the_last_page_only_what_its_variant_has(
    has_axtree, has_screenshot
):
    done = judged(judge(has_axtree, has_screenshot), view())
    said = text(done.last.messages)
    assert GOAL in said
    for number in (1, 2):
        assert f"Step {number}\nURL: http://shop/page-{number}\nAction: click('{number}')\n" in said
        assert f"Reasoning: because of {number}" in said
    assert "http://shop/page-3" in said
    assert ("tree 3 in full" in said) is has_axtree
    assert "tree 2" not in said
    assert images(done.last.messages) == ([view().steps[-1].screenshot] if has_screenshot else [])
    assert (done.last.shorter is not None) is has_axtree
    wants = judge(has_axtree, has_screenshot).wants
    assert (wants.axtrees == "last", wants.screenshots == "last") == (has_axtree, has_screenshot)
    for word, is_there in (("accessibility tree", has_axtree), ("screenshot", has_screenshot)):
        assert (word in said) is is_there  # nothing is promised that is not there


@pytest.mark.parametrize("is_inverted", [False, True])
def test_the_questions_and_choices_are_the_papers_and_success_comes_first_or_last(is_inverted):
    system = judged(judge(is_inverted=is_inverted), view()).last.messages[0].content
    order = ["loop", "side", "optimal", "success"] if is_inverted else ["success", "side", "optimal", "loop"]
    for number, tag in enumerate(order, start=1):
        assert f"Question {number}: {QUESTIONS[tag]}" in system
    assert all(f"Choices: {choice}" in system for choice in CHOICES)
    form = "\n".join(f"<{tag}>answer</{tag}>" for tag in order)
    assert system.endswith(form)


@pytest.mark.parametrize("is_inverted", [False, True])
@pytest.mark.parametrize("prompts", ["own", "official"])
def test_the_form_of_structured_replies_has_the_wordings_own_choices_in_its_order(
    is_inverted, prompts, official_settings
):
    name = "simplified-both-inverted" if is_inverted else "simplified-both"
    asked = replace(find_judge(name, prompts=prompts, settings=official_settings), is_structured=True)
    schema = asked.response_format["json_schema"]["schema"]
    order = ["loop", "side", "optimal", "success"] if is_inverted else ["success", "side", "optimal", "loop"]
    assert list(schema["properties"]) == ["reasoning", *order] == schema["required"]
    assert schema["properties"]["reasoning"] == {"type": "string"}
    for tag in order:
        choices = [choice for choice in CHOICES if f"<{tag}>" in choice]
        listed = ", ".join(f"<{tag}>{text}</{tag}>" for text in schema["properties"][tag]["enum"])
        assert choices == [listed]


def test_a_structured_reply_is_read_as_any_other():
    reply = json.dumps(
        {"reasoning": "?", "success": "Unsuccessful", "side": "Yes", "loop": "No", "optimal": "2. Suboptimal"}
    )
    answer = judged(judge(is_structured=True), view(), lambda call: Reply(reply)).answer
    assert (answer.state, answer.success, answer.side_effect) == ("ok", False, True)
    assert (answer.optimality, answer.repetition) == (2, False)


def test_the_screenshot_stands_where_it_is_announced():
    content = parts(judged(judge(has_screenshot=True), view()).last.messages)
    place = content.index(view().steps[-1].screenshot)
    assert content[place - 1].endswith("A screenshot of the last page:")
    assert content[place + 1].startswith("Now answer")


def test_a_prompt_too_long_is_made_again_with_the_pruned_tree_and_all_else_the_same():
    call = judged(judge(has_axtree=True), view()).last
    full, shorter = text(call.messages), text(call.shorter)
    assert full.replace("tree 3 in full", "tree 3 pruned") == shorter != full


def test_what_was_not_recorded_is_named_as_missing_and_the_judge_is_asked_anyway():
    done = judged(judge(True, True), view(trees=False, screenshots=False))
    said = text(done.last.messages)
    assert "tree of the last page was not recorded" in said
    assert "No screenshot of the last page was recorded" in said
    assert (images(done.last.messages), done.last.shorter) == ([], None)
    assert done.answer.state == "ok"


def test_a_page_that_has_only_a_pruned_tree_is_shown_by_that_and_has_no_shorter_form():
    shown = view()
    last = replace(shown.steps[-1], axtree=None)
    call = judged(judge(True), replace(shown, steps=(*shown.steps[:-1], last))).last
    assert "tree 3 pruned" in text(call.messages)
    assert call.shorter is None


def test_the_last_observation_has_an_address_and_no_action_unless_one_was_recorded():
    shown = view()
    said = text(judged(judge(), shown).last.messages)
    assert said.count("Action: ") == 2
    assert "Step 3 (the end: no further action)\nURL: http://shop/page-3\n\n" in said
    cut_off = replace(shown, steps=shown.steps[:-1])
    assert "Step 2\nURL: http://shop/page-2\nAction: click('2')" in text(
        judged(judge(), cut_off).last.messages
    )


def test_pictures_of_the_goal_stand_behind_it_unless_the_model_takes_none():
    shown = view(goal_images=2)
    assert images(judged(judge(), shown).last.messages) == list(shown.goal_images)
    assert judge().wants.goal_images
    assert not judge(shows_goal_images=False).wants.goal_images


def test_braces_in_what_agents_and_pages_say_stay_as_they_are():
    shown = view()
    odd = ViewStep(1, "http://x/{steps}", "fill('1', '{0}')", "{goal} {}", "", "{axtree}")
    said = text(judged(judge(True), replace(shown, goal="{form}", steps=(odd,))).last.messages)
    assert all(part in said for part in ("http://x/{steps}", "fill('1', '{0}')", "{goal} {}", "{form}"))
