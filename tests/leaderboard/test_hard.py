"""The Hard subset: who votes, which trajectories are hard for whom, and the recalls on them."""

import numpy as np
import pytest

from leaderboard.hard import family_of, family_votes, hard_for, score_on

# Six trajectories: two successes, three failures, one that the annotator was unsure of.
TRUTH = np.array([1, 1, 0, 0, 0, -1])


def codes(text: str) -> np.ndarray:
    """Return verdicts from a text: + is yes, - is no, ? is no verdict."""
    return np.array([{"+": 1, "-": 0, "?": -1}[mark] for mark in text], dtype=np.int8)


@pytest.mark.parametrize(
    ("judge", "family"),
    [("AER-C", "AER-C"), ("aer_c rerun", "AER-C"), ("AER-V", ""), ("WebJudge (GPT-4o)", "WebJudge"),
     ("WebJudge-7B", "WebJudge"), ("rule based", "Rule-based"), ("My WebJudge", ""), ("", "")],
)  # fmt: skip
def test_the_name_of_a_judge_tells_its_family(judge, family):
    assert family_of(judge) == family


def test_a_family_has_one_vote_by_majority_and_a_tie_or_silence_is_a_no():
    three = [codes("++--+?"), codes("+-+-+?"), codes("-++-??")]
    votes = family_votes({"WebJudge": three, "AER-C": [codes("+-+-+-"), codes("++----")]})
    assert votes["WebJudge"].tolist() == codes("+++-+?").tolist()
    assert votes["AER-C"].tolist() == codes("+-----").tolist()


def test_a_trajectory_is_hard_where_two_families_other_than_the_judges_own_are_wrong():
    votes = {
        "AER-C": codes("+-++--"),  # wrong on the second, third and fourth
        "NNetNav": codes("+---++"),  # wrong on the second and fifth
        "Rule-based": codes("+++---"),  # wrong on the third
        "WebJudge": codes("++-?++"),  # wrong on the fifth; no verdict on a failure is right
    }
    assert hard_for("", votes, TRUTH).tolist() == [False, True, True, False, True, False]
    assert hard_for("AER-C", votes, TRUTH).tolist() == [False, False, False, False, True, False]
    assert hard_for("WebJudge", votes, TRUTH).tolist() == [False, True, True, False, False, False]


def test_no_verdict_on_a_success_is_wrong():
    votes = {"AER-C": codes("?+----"), "NNetNav": codes("-+----"), "Rule-based": codes("++----")}
    assert hard_for("", votes, TRUTH).tolist() == [True, False, False, False, False, False]


def test_recall_is_counted_on_successes_and_failures_of_the_subset_only():
    subset = np.array([True, True, True, False, True, True])
    score = score_on(codes("+-+--+"), TRUTH, subset)
    assert (score["tp"], score["fn"], score["tn"], score["fp"]) == (1, 1, 1, 1)
    assert score["balanced_accuracy"] == 0.5
    silent = score_on(codes("??????"), TRUTH, subset)
    assert (silent["tp"], silent["fn"], silent["tn"], silent["fp"]) == (0, 2, 2, 0)


def test_a_judge_that_always_says_yes_does_not_lead():
    subset = np.array([True] * 6)
    assert score_on(codes("++++++"), TRUTH, subset)["balanced_accuracy"] == 0.5
    nothing = score_on(codes("++++++"), TRUTH, TRUTH == 1)
    assert (nothing["tnr"], nothing["balanced_accuracy"]) == (None, None)
