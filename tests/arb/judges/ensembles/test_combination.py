"""Combinations of judges: which are compared, what a file describes, and how its judges are asked."""

import json
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from arb.judges.ensembles.combination import (
    CombinedPart,
    FrozenCombination,
    JudgeVote,
    candidates,
    combined_judge,
    read_combination,
    write_combination,
)
from arb.judges.registry import ConstantJudge
from arb.judges.types import JUDGE_ROLE, Answer, Call, Message, OptionsError, Reply, View, Wants
from leaderboard.validation.combination import Combination, search
from leaderboard.validation.tables import JudgeAnswers, ValidationTable

PART = CombinedPart("one", "own", False, False, {JUDGE_ROLE: "any:m"}, "")
FROZEN = FrozenCombination(
    "any", (PART, PART), (0.2, 0.8), "sample", "dev", "abc", 10, 2, f1=0.8, held_out_f1=0.7
)


class Asking:
    """A judge that makes one call and gives a fixed answer."""

    inputs, calls, source, prompts_hash, wants = "", "1", "", "", Wants()
    models = MappingProxyType({JUDGE_ROLE: "m"})

    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def ask(self, view):
        yield [Call("verdict", (Message("user", self.name),))]
        return self.answer


def asked(judge):
    """Return the judge's answer, and the role of each call."""
    session, roles = judge.ask(View("", (), ())), []
    try:
        calls = next(session)
        while True:
            roles += [call.role for call in calls]
            calls = session.send([Reply("yes") for _ in calls])
    except StopIteration as end:
        return end.value, roles


YES, NO, NONE = Answer("ok", True), Answer("ok", False), Answer("unparsed")


@pytest.mark.parametrize(
    ("rule", "answers", "success", "n_asked"),
    [
        ("all", [NO, YES], False, 1),
        ("all", [YES, NO], False, 2),
        ("all", [NONE, NO], False, 2),  # a no decides, whatever the missing vote would have been
        ("any", [YES, NO], True, 1),
        ("any", [NO, YES], True, 2),
        ("majority", [YES, YES, NO], True, 2),
        ("majority", [NO, NO, YES], False, 2),
        ("majority", [YES, NO, YES], True, 3),
        ("majority", [YES, NONE, NO], None, 3),
    ],
)
def test_the_next_judge_is_asked_only_if_it_can_change_the_outcome(rule, answers, success, n_asked):
    judges = tuple(Asking(str(place), answer) for place, answer in enumerate(answers))
    answer, roles = asked(JudgeVote(judges, rule))
    assert answer.success is success
    assert roles == [f"{number}.{JUDGE_ROLE}" for number in range(1, n_asked + 1)]


def test_a_vote_without_outcome_has_the_state_of_the_missing_vote():
    judges = tuple(Asking(str(place), answer) for place, answer in enumerate([YES, Answer("refused")]))
    assert asked(JudgeVote(judges, "all"))[0].state == "refused"


def test_pairs_majorities_of_three_and_cascades_after_judges_with_scores_are_compared():
    column = np.zeros(2, dtype=np.int8)
    judges = [JudgeAnswers("a", column, np.array([0.5, 0.9])), *(JudgeAnswers(x, column) for x in "bcd")]
    found = candidates(judges, Combination)
    by_rule = {rule: [each.judges for each in found if each.rule == rule] for rule in ("all", "any", "then")}
    # 6 pairs of 4 judges for each of two rules, 4 triples, and 3 cascades that begin with the judge a
    assert len(found) == 6 + 6 + 4 + 3
    assert len(by_rule["all"]) == len(by_rule["any"]) == 6
    assert by_rule["then"] == [(0, 1), (0, 2), (0, 3)]


def test_a_cascade_counts_the_second_verdict_where_the_first_is_unreliable():
    columns = np.array([[1, 0], [1, 0], [-1, 1], [0, 1], [1, -1]], dtype=np.int8)
    scores = np.array([[0.9, np.nan], [0.8, np.nan], [np.nan, np.nan], [0.1, np.nan], [0.5, np.nan]])
    # 0.9 is sure: yes; 0.8 is in the range: the second says no; no verdict: the second says yes;
    # 0.1 is sure: no; 0.5 is in the range, but the second has no verdict, which counts as no
    found = Combination("then", (0, 1), (0.2, 0.8)).verdicts(columns, scores)
    assert found.tolist() == [1, 0, 1, 0, 0]


def test_the_optimism_of_a_search_is_its_f1_less_that_of_choices_made_without_the_task():
    one, other = np.array([1, 1, 1, 0, 0], dtype=np.int8), np.array([0, 0, 1, 1, 1], dtype=np.int8)
    rows, truth = np.arange(5), np.ones(5, dtype=np.int8)  # one run in each of five tasks, all successes
    judges = JudgeAnswers("one", one), JudgeAnswers("other", other)
    names = tuple("abcde")
    table = ValidationTable(names, {"success": truth}, judges, rows, True, {}, np.ones(5), 0)
    found = search(table, [Combination("one", (0,)), Combination("one", (1,))])
    assert found is not None
    # Both find 3 of 5: F1 = 6/8. Without task a, "other" finds 3 of 4 and "one" 2, so "other" is chosen; it
    # misses a. The same holds for b, d and e; only c is found: F1 = 2/(2 + 4).
    assert (found[1].f1, found[1].held_out_f1) == (0.75, pytest.approx(1 / 3))
    assert found[1].price == pytest.approx(0.75 - 1 / 3)


def test_a_file_describes_the_judge_that_runs(tmp_path):
    path = tmp_path / "new" / "both.json"
    write_combination(path, FROZEN)
    assert read_combination(path) == FROZEN
    judge = combined_judge(path, lambda part: ConstantJudge("yes", True))
    assert judge.name == "any of yes, yes"
    write_combination(path, replace(FROZEN, rule="then", uncertain=(0.3, 0.6)))
    judge = combined_judge(path, lambda part: ConstantJudge("yes", True))
    assert (judge.name, judge.uncertain, judge.confirms_success) == ("yes then yes", (0.3, 0.6), False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "both.json: has format 2, but this program reads formats up to 1; upgrade it"),
        ({"format": None}, "has format None"),
        ({"chosen_on": "test"}, "chosen_on"),
        ({"rule": "none"}, "rule"),
        ({"rule": "majority"}, "majority does not work with 2"),
        ({"judges": []}, "any does not work with 0"),
        ({"uncertain": [0.8, 0.2]}, "uncertain"),
    ],
)
def test_a_file_that_is_no_combination_chosen_on_dev_is_refused(tmp_path, changes, message):
    path = tmp_path / "both.json"
    write_combination(path, FROZEN)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(OptionsError, match=message):
        read_combination(path)


def test_a_judge_whose_prompts_changed_is_refused(tmp_path):
    write_combination(tmp_path / "both.json", replace(FROZEN, judges=(PART, replace(PART, prompts_hash="x"))))
    with pytest.raises(OptionsError, match="the prompts of one changed"):
        combined_judge(tmp_path / "both.json", lambda part: ConstantJudge("yes", True))
