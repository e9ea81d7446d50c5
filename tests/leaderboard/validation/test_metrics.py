"""Metrics from tables: equal to scikit-learn's, and intervals that cover."""

from statistics import NormalDist

import numpy as np
import pytest

from leaderboard.judge_precision.intervals import wilson
from leaderboard.validation.metrics import (
    METRICS,
    Metric,
    counts_by_group,
    difference,
    labels_needed,
    measure,
)


def counts(verdicts, labels, groups=None, weights=None):
    n = len(labels)
    return counts_by_group(
        np.asarray(verdicts, dtype=np.int8),
        np.asarray(labels, dtype=np.int8),
        np.arange(n) if groups is None else np.asarray(groups),
        np.ones(n) if weights is None else np.asarray(weights, dtype=float),
    )


@pytest.mark.slow
def test_the_figures_of_500_random_tables_are_those_of_scikit_learn():
    from sklearn import metrics

    theirs = {
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
        "f1": metrics.f1_score,
        "accuracy": metrics.accuracy_score,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "kappa": metrics.cohen_kappa_score,
    }
    generator = np.random.default_rng(3)
    for _ in range(500):
        n = int(generator.integers(5, 60))
        labels, verdicts = generator.integers(0, 2, (2, n))
        weights = generator.integers(1, 4, n)
        if len(set(labels)) < 2 or len(set(verdicts)) < 2:
            continue
        by_group = counts(verdicts, labels, weights=weights)
        for name in METRICS:
            expected = theirs[name](labels, verdicts, sample_weight=weights)
            if name == "balanced_accuracy":
                positive, negative = (
                    np.average(verdicts[labels == one] == one, weights=weights[labels == one])
                    for one in (1, 0)
                )
                expected = (positive + negative) / 2
            assert measure(name, by_group, by_group).value == pytest.approx(expected), name


def test_a_share_of_independent_rows_has_about_wilsons_interval_with_students_t():
    # 40 of 50 yes verdicts are right. z = 1.96 and t(49) = 2.01, and (1.96 / 2.01)^2 = 0.951.
    by_group = counts([1] * 50, [1] * 40 + [0] * 10)
    found = measure("precision", by_group, by_group)
    assert found.value == 0.8
    # The variance has the factor 50 / 49, which makes the size 49 before the quantile: 49 * 0.951 = 46.6
    assert found.interval == pytest.approx(wilson(0.8, 46.6), abs=0.001)


def test_a_judge_that_is_never_wrong_has_an_interval_below_1():
    by_group = counts([1] * 20, [1] * 20)
    low, high = measure("precision", by_group, by_group).interval
    assert 0.8 < low < 0.87 and high == 1


def test_few_groups_give_no_interval():
    by_group = counts([1] * 12, [1, 0] * 6, groups=[0, 1, 2] * 4)
    assert measure("precision", by_group, by_group) == Metric(0.5)


def covered(n_groups, rows, spread, draws=400):
    """The share of draws whose interval covers, for each metric, of judges on groups with common effects."""
    generator = np.random.default_rng(0)
    normal = NormalDist()

    def draw(n):
        of_label, of_verdict = generator.normal(0, spread, (2, n, 1))
        unit = np.sqrt(1 + spread**2)
        labels = (generator.normal(size=(n, rows)) + of_label) / unit < normal.inv_cdf(0.4)
        border = np.where(labels, normal.inv_cdf(0.8), normal.inv_cdf(0.2))
        verdicts = (generator.normal(size=(n, rows)) + of_verdict) / unit < border
        return counts(verdicts.ravel(), labels.ravel(), np.repeat(np.arange(n), rows))

    many = draw(100_000 // rows)
    truth = {name: measure(name, many, many).value for name in METRICS}
    inside = dict.fromkeys(METRICS, 0)
    for _ in range(draws):
        by_group = draw(n_groups)
        for name in METRICS:
            low, high = measure(name, by_group, by_group).interval
            inside[name] += low <= truth[name] <= high
    return {name: count / draws for name, count in inside.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("n_groups", "rows", "spread"), [(100, 1, 0.0), (25, 4, 0.8), (60, 5, 0.8)])
def test_intervals_cover_93_to_97_percent_with_and_without_groups(n_groups, rows, spread):
    noise = 3 * (0.95 * 0.05 / 400) ** 0.5  # three standard errors of 400 draws: 3.3 points
    for name, share in covered(n_groups, rows, spread).items():
        assert 0.93 - noise <= share <= 0.97 + noise, name


def test_a_paired_difference_is_narrower_than_two_separate_intervals():
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 200)
    first = np.where(generator.random(200) < 0.9, labels, 1 - labels)
    second = np.where(generator.random(200) < 0.9, first, 1 - first)  # errs where the first errs, and more
    one, other = counts(first, labels), counts(second, labels)
    found = difference("accuracy", one, other)
    low, high = found.interval
    alone = measure("accuracy", one, one).interval
    assert found.value == pytest.approx((first == labels).mean() - (second == labels).mean())
    assert low < found.value < high and high - low < 1.5 * (alone[1] - alone[0])
    assert difference("accuracy", one, one) == Metric(0.0)  # equal verdicts: no error can be measured


def test_four_times_the_labels_halve_the_interval():
    # ± 10 points with 50 labels: ± 5 points need 50 * (10 / 5)^2 = 200
    assert labels_needed(Metric(0.5, (0.4, 0.6)), 50, 0.05) in (200, 201)
    assert labels_needed(Metric(0.5, (0.4, 0.6)), 50, 0.2) == 50
    assert labels_needed(Metric(0.5), 50, 0.05) is None
