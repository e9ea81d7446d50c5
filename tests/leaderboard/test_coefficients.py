import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from leaderboard.coefficients import (
    cohen_kappa,
    confusion_table,
    krippendorff_alpha,
    percent_agreement,
    rating_counts,
)
from leaderboard.judge_precision.confusion import kappa_from_counts

# Answers of people to units: -1 not answered; the last of the categories may stand for Unsure as an answer.
RATINGS = st.integers(2, 5).flatmap(
    lambda n_categories: st.tuples(
        st.just(n_categories),
        st.tuples(st.integers(2, 4), st.integers(1, 30)).flatmap(
            lambda shape: arrays(np.int64, shape, elements=st.integers(-1, n_categories - 1))
        ),
    )
)


def counts_of(ratings: np.ndarray, n_categories: int) -> np.ndarray:
    """The counts of ratings of shape (people, units)."""
    units = np.broadcast_to(np.arange(ratings.shape[1]), ratings.shape)
    return rating_counts(units.ravel(), ratings.ravel(), ratings.shape[1], n_categories)


@given(RATINGS)
def test_kappa_is_scikit_learns_over_what_both_answered(drawn):
    n_categories, ratings = drawn
    first, second = ratings[:2]
    both = (first >= 0) & (second >= 0)
    found = cohen_kappa(confusion_table(first, second, n_categories))
    if len({*first[both], *second[both]}) < 2:  # no answers, or one and the same: 0 / 0
        assert found is None
    else:
        expected = cohen_kappa_score(first[both], second[both], labels=range(n_categories))
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@given(RATINGS)
def test_alpha_is_that_of_the_krippendorff_package(level, drawn):
    n_categories, ratings = drawn
    found = krippendorff_alpha(counts_of(ratings, n_categories), level)
    pairable = ratings[:, (ratings >= 0).sum(axis=0) > 1]
    if len(set(pairable[pairable >= 0].tolist())) < 2:  # nothing to compare, or one and the same: 0 / 0
        assert found is None
    else:
        expected = krippendorff.alpha(
            reliability_data=np.where(ratings < 0, np.nan, ratings),
            value_domain=range(n_categories),
            level_of_measurement=level,
        )
        assert found == pytest.approx(expected, abs=1e-9)


def test_a_table_counts_pairs_of_answers_and_leaves_out_missing_ones():
    table = confusion_table(np.array([0, 0, 1, -1, 1]), np.array([0, 1, 1, 1, -1]), 2)
    assert table.tolist() == [[1, 1], [0, 1]]
    assert percent_agreement(table) == pytest.approx(2 / 3)


@given(arrays(np.int64, (2, 2), elements=st.integers(0, 50)))
def test_kappa_of_two_answers_is_the_metrics(table):
    (tn, fp), (fn, tp) = table.tolist()
    assert cohen_kappa(table) == kappa_from_counts(tp, fp, fn, tn)


def test_alpha_by_hand():
    # Units: yes yes, yes no, no no no. Coincidences: yy 2, yn 1, ny 1, nn 3 (three people: 6 pairs / 2).
    # n = 7, yes 3, no 4: observed 2, expected 2 * 3 * 4 = 24; 1 - 6 * 2 / 24 = 0.5
    counts = np.array([[0, 2], [1, 1], [3, 0]])
    assert krippendorff_alpha(counts) == pytest.approx(0.5)


def test_a_unit_with_one_answer_says_nothing():
    counts = np.array([[0, 2], [1, 1], [3, 0]])
    more = np.concatenate([counts, [[1, 0], [0, 1], [0, 0]]])
    assert krippendorff_alpha(more) == krippendorff_alpha(counts)


def test_grades_farther_apart_differ_more_only_where_they_have_an_order():
    near, far = np.array([[2, 0, 0], [1, 1, 0], [0, 0, 2]]), np.array([[2, 0, 0], [1, 0, 1], [0, 2, 0]])
    assert krippendorff_alpha(near, "ordinal") > krippendorff_alpha(far, "ordinal")


def test_without_units_everything_is_undefined():
    empty = np.empty(0, dtype=np.int64)
    table = confusion_table(empty, empty, 4)
    assert (percent_agreement(table), cohen_kappa(table)) == (None, None)
    assert krippendorff_alpha(rating_counts(empty, empty, 0, 4)) is None
