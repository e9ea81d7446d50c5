"""NNetNav: each change with the action that caused it, all described at once, then one rating."""

import re
from dataclasses import replace

import pytest

from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.types import Call, Reply
from tests.support.judges import GOAL, images, judged, text, view

JUDGE = NNetNavJudge("NNetNav", "a-model", describer="another-model")


def describe(call: Call) -> Reply:
    """A description that says which tree came before; a rating of 4."""
    if call.role == "describer":
        before = re.findall(r"tree (\d)", text(call.messages))[0]
        return Reply(f"Thinking.\n**State change:** from {before}\nonwards")
    return Reply("Thought: well\nReward: 4")


def test_every_change_is_described_at_once_and_the_rating_reads_them_in_order():
    done = judged(JUDGE, view(actions=3), describe)
    assert [[call.role for call in stage] for stage in done.stages] == [["describer"] * 3, ["judge"]]
    said = text(done.last.messages)
    assert "1. from 1 onwards\n2. from 2 onwards\n3. from 3 onwards" in said
    assert GOAL in said and "Thinking" not in said
    assert images(done.last.messages) == []
    assert done.answer.success is True  # 4 is the least that counts


@pytest.mark.parametrize(
    ("is_compat", "actions"),
    # the change from page 1 to page 2 was made by the action of step 1; the released code names step 2's
    [(False, ["click('1')", "click('2')"]), (True, ["click('2')", "(none)"])],
)
def test_a_change_goes_with_the_action_that_caused_it_or_with_the_next_for_compatibility(is_compat, actions):
    done = judged(replace(JUDGE, is_compat=is_compat), view(actions=2), describe)
    asked = [text(call.messages) for call in done.stages[0]]
    for number, (question, action) in enumerate(zip(asked, actions, strict=True), start=1):
        assert f"tree {number} in full" in question and f"tree {number + 1} in full" in question
        assert f"The action:\n\n{action}\n" in question


def test_pages_too_long_are_described_from_their_pruned_trees():
    call = judged(JUDGE, view(actions=1), describe).calls[0]
    said = text(call.messages)
    assert said.replace("in full", "pruned") == text(call.shorter) != said


def test_a_page_without_a_tree_costs_no_call_and_the_prompt_names_the_action():
    shown = view(actions=3)
    steps = list(shown.steps)
    steps[1] = replace(steps[1], axtree=None, axtree_pruned=None)
    done = judged(JUDGE, replace(shown, steps=tuple(steps)), describe)
    assert len(done.stages[0]) == 1  # of 1-2, 2-3 and 3-4 only the last has both pages
    said = text(done.last.messages)
    assert "1. (the page was not recorded, so what changed is not known; the action was: click('1'))" in said
    assert "3. from 3 onwards" in said


def test_without_any_tree_the_judge_rates_the_actions():
    done = judged(JUDGE, view(actions=2, trees=False), describe)
    assert [call.role for call in done.calls] == ["judge"]
    assert "the action was: click('2')" in text(done.last.messages)


def test_an_agent_that_did_nothing_is_rated_in_one_call():
    done = judged(JUDGE, view(actions=0), describe)
    assert [call.role for call in done.calls] == ["judge"]
    assert "the agent took no action" in text(done.last.messages)


@pytest.mark.parametrize("state", ["too_long", "refused"])
def test_one_change_that_could_not_be_described_is_named_and_the_rest_is_rated(state):
    def reply(call: Call) -> Reply:
        return Reply(state=state) if "tree 1 in full" in text(call.messages) else describe(call)

    done = judged(JUDGE, view(actions=2), reply)
    assert "1. (what changed could not be described; the action was: click('1'))" in text(done.last.messages)
    assert done.answer.state == "ok"


def test_when_no_change_could_be_described_there_is_no_verdict():
    done = judged(JUDGE, view(actions=2), lambda call: Reply(state="too_long"))
    assert (len(done.stages), done.answer.state) == (1, "too_long")


def test_a_call_that_failed_ends_the_judging_so_that_it_can_be_made_again():
    def reply(call: Call) -> Reply:
        return Reply(state="error") if "tree 2 in full" in text(call.messages) else describe(call)

    done = judged(JUDGE, view(actions=4), reply)
    assert (len(done.stages), done.answer.state) == (1, "error")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("State change: the basket has 2", "1. the basket has 2"),
        ("state change : a\nb", "1. a b"),
        ("First State change: no. Then State change: yes", "1. yes"),
        ("only words", "1. only words"),
        ("It changed. State change:", "1. It changed. State change:"),
    ],
)
def test_of_a_description_the_judge_reads_the_change(said, told):
    done = judged(
        JUDGE, view(actions=1), lambda call: Reply(said if call.role == "describer" else "Reward: 1")
    )
    assert text(done.last.messages).endswith(told)
    assert done.answer.success is False
