import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.disagreement import (
    exact_p,
    fooled,
    mcnemar,
    shared_errors,
    verdict_agreement,
)

LABELS = np.array([1, 1, 1, 0, 0, 0, 0, -1], dtype=np.int8)
FIRST = np.array([1, 0, 1, 1, 1, 0, 0, 1], dtype=np.int8)
"""Wrong on places 1 (a miss), 3 and 4 (false alarms)."""
SECOND = np.array([1, 0, -1, 1, 0, 0, 1, 0], dtype=np.int8)
"""Wrong on places 1 and 2 (misses, one for want of a verdict), 3 and 6 (false alarms)."""

codes = st.lists(st.tuples(*[st.integers(-1, 1)] * 3), min_size=1, max_size=60)


def columns(rows):
    return [np.array(column, dtype=np.int8) for column in zip(*rows, strict=True)]


def test_mcnemar_counts_runs_by_who_is_right():
    found = mcnemar(FIRST, SECOND, LABELS)
    # both right: 0, 5; only first: 2, 6; only second: 4; both wrong: 1, 3; the unsure run is left out
    assert (found.n, found.both_right, found.only_first, found.only_second, found.both_wrong) == (
        7,
        2,
        2,
        1,
        2,
    )
    # 3 throws, at most 1 on the rarer side: 2 * (1 + 3) / 8 = 1
    assert found.p == 1.0


def test_the_exact_p_is_that_of_a_fair_coin():
    assert exact_p(0, 0) == 1.0
    assert exact_p(5, 5) == 1.0
    assert exact_p(1, 9) == 2 * (1 + 10) / 2**10
    assert exact_p(0, 1074) == 2 / 2**1074  # the smallest number of a float: no p is lost before it
    assert exact_p(0, 5000) == 0.0


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_exact_p_is_statsmodels_and_scipys(only_first, only_second):
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as reference

    found = exact_p(only_first, only_second)
    table = [[7, only_first], [only_second, 9]]
    assert found == pytest.approx(min(1.0, reference(table, exact=True).pvalue), rel=1e-9)
    if only_first + only_second:
        expected = binomtest(only_first, only_first + only_second).pvalue
        assert found == pytest.approx(expected, rel=1e-9)


def test_agreement_takes_the_runs_on_which_both_have_a_verdict():
    found = verdict_agreement(FIRST, SECOND)
    assert (found.n, found.both_yes, found.only_first_yes, found.only_second_yes, found.both_no) == (
        7,
        2,
        2,
        1,
        2,
    )
    assert found.percent == 4 / 7
    # p_e = (4*3 + 3*4) / 49 = 24/49, kappa = (28/49 - 24/49) / (25/49)
    assert found.kappa == pytest.approx(4 / 25)


@given(codes)
def test_kappa_is_that_of_scikit_learn_and_statsmodels(rows):
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    first, second, _ = columns(rows)
    found = verdict_agreement(first, second)
    both = (first >= 0) & (second >= 0)
    if found.kappa is None:
        assert len(set(first[both]) | set(second[both])) < 2
        return
    assert found.kappa == pytest.approx(cohen_kappa_score(first[both], second[both]))
    table = [[found.both_yes, found.only_first_yes], [found.only_second_yes, found.both_no]]
    assert found.kappa == pytest.approx(cohens_kappa(table).kappa)


def test_judges_without_a_common_run_have_no_agreement():
    none = np.array([-1, -1], dtype=np.int8)
    assert (verdict_agreement(none, none).percent, verdict_agreement(none, none).kappa) == (None, None)


def test_shared_errors_count_false_alarms_and_misses_apart():
    found = shared_errors(FIRST, SECOND, LABELS)
    assert (found.first, found.second) == (3, 4)
    assert (found.false_alarms, found.misses, found.shared) == (1, 1, 2)  # places 3 and 1
    # by chance: false alarms 2 * 2 / 4 negatives, misses 1 * 2 / 3 positives
    assert found.by_chance == pytest.approx(1 + 2 / 3)
    assert found.jaccard == 2 / (3 + 4 - 2)


def test_judges_without_an_error_share_none():
    found = shared_errors(LABELS, LABELS, LABELS)
    assert (found.first, found.second, found.shared, found.by_chance, found.jaccard) == (0, 0, 0, 0.0, None)


@given(codes)
def test_shared_errors_agree_with_mcnemar_and_with_scikit_learn(rows):
    from sklearn.metrics import jaccard_score

    first, second, labels = columns(rows)
    errors, table = shared_errors(first, second, labels), mcnemar(first, second, labels)
    assert errors.shared == table.both_wrong
    assert errors.first == table.both_wrong + table.only_second
    assert errors.second == table.both_wrong + table.only_first
    sure = labels >= 0
    wrong = [((column == 1) != (labels == 1))[sure] for column in (first, second)]
    if errors.jaccard is not None:
        assert errors.jaccard == pytest.approx(jaccard_score(*wrong))


def test_fooled_counts_runs_by_how_many_judges_they_fool():
    found = fooled([FIRST, SECOND, LABELS], LABELS)
    # negatives 3, 4, 5, 6: fooled 2, 1, 0, 1 judges; positives 0, 1, 2: 0, 2, 1
    assert found.negatives == (1, 2, 1, 0)
    assert found.positives == (1, 1, 1, 0)


@given(codes)
def test_fooled_counts_every_labelled_run_once(rows):
    first, second, labels = columns(rows)
    found = fooled([first, second], labels)
    assert (sum(found.negatives), sum(found.positives)) == ((labels == 0).sum(), (labels == 1).sum())
    assert found.negatives[2] + found.positives[2] == shared_errors(first, second, labels).shared
