"""Metrics of classes, grades, scores and steps, against scikit-learn, SciPy and counts by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, mean_absolute_error

from arb.core.suites.targets import METRICS, STEP_METRICS, parse_targets
from leaderboard.metrics import OF_CLASSES, OF_SCORES, answers_of, measure, metrics_of

GRADES = {"name": "grade", "type": "ordinal", "values": ["1", "2", "3", "4"]}
STEPS = {
    "name": "verdict", "level": "step", "values": ["1", "0", "-1"], "errors": ["-1"],
    "metrics": ["accuracy", "macro_f1", "kappa", "first_error_accuracy"],
}  # fmt: skip
POINTS = {"name": "points", "type": "score"}


def measured(table: dict, labels, verdicts, runs=None, clusters=None, n_resamples=0):
    (target,) = parse_targets([table])
    labels, verdicts = np.asarray(labels), np.asarray(verdicts)
    clusters = np.arange(len(labels)) if clusters is None else np.asarray(clusters)
    names = [str(n) for n in range(len(labels))] if runs is None else runs
    answers = answers_of(target, labels, verdicts, clusters, names)
    return measure(metrics_of(target), answers, n_resamples, seed=0)


def test_every_metric_that_a_suite_may_name_is_registered():
    assert {*METRICS["classes"], *METRICS["ordinal"], *STEP_METRICS} == set(OF_CLASSES)
    assert set(METRICS["score"]) == set(OF_SCORES)


@pytest.mark.parametrize("seed", range(40))
def test_metrics_of_classes_and_grades_are_those_of_scikit_learn(seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 4, 60)
    verdicts = np.where(generator.random(60) < 0.5, labels, generator.integers(0, 4, 60))
    grades = measured(GRADES, labels, verdicts)
    assert grades["weighted_kappa"] == pytest.approx(cohen_kappa_score(labels, verdicts, weights="quadratic"))
    assert grades["mae"] == pytest.approx(mean_absolute_error(labels, verdicts))
    assert grades["spearman"] == pytest.approx(spearmanr(labels, verdicts).statistic)
    classes = measured(STEPS, labels % 3, verdicts % 3)
    assert classes["accuracy"] == pytest.approx(accuracy_score(labels % 3, verdicts % 3))
    assert classes["macro_f1"] == pytest.approx(f1_score(labels % 3, verdicts % 3, average="macro"))
    assert classes["kappa"] == pytest.approx(cohen_kappa_score(labels % 3, verdicts % 3))


def test_metrics_of_scores_are_those_of_scipy_and_a_missing_score_is_left_out():
    labels, verdicts = [1.0, 2.5, 2.5, 7.0, 3.0], [0.0, 3.0, np.nan, 6.0, 6.0]
    found = measured(POINTS, labels, verdicts)
    assert found["mae"] == pytest.approx((1 + 0.5 + 1 + 3) / 4)
    assert found["spearman"] == pytest.approx(spearmanr([1, 2.5, 7, 3], [0, 3, 6, 6]).statistic)


def test_a_missing_answer_is_wrong_and_of_a_grade_the_farthest_one():
    # labels 0, 0, 2; answers 0, none, 2: two of three are right
    assert measured(STEPS, [0, 0, 2], [0, -1, 2])["accuracy"] == pytest.approx(2 / 3)
    # labels 1 and 4 (codes 0 and 3); a missing answer to grade 1 counts as grade 4, at a distance of 3
    assert measured(GRADES, [0, 3], [-1, 3])["mae"] == pytest.approx((3 + 0) / 2)
    left_out = {**STEPS, "missing": "left out"}
    assert measured(left_out, [0, 0, 2], [0, -1, 2])["accuracy"] == 1


def test_the_first_error_is_right_if_judge_and_label_name_the_same_step_or_none():
    runs = ["a", "a", "a", "b", "b", "c", "c", "d"]
    labels = [0, 2, 2, 0, 1, 2, 0, 0]  # a errs at its second step, b never, c at its first, d never
    verdicts = [1, 2, 0, 0, 0, 0, 2, 2]  # right on a and b; later than the label on c; d is called wrong
    assert measured(STEPS, labels, verdicts, runs)["first_error_accuracy"] == pytest.approx(2 / 4)


def test_items_without_a_label_count_nowhere():
    found = measured(STEPS, [0, -1, 2], [0, 1, 0])
    assert found["accuracy"] == pytest.approx(1 / 2)


@pytest.mark.filterwarnings("error")
def test_resamples_of_tasks_without_a_label_print_no_warning():
    # the first task has no label; a quarter of the resamples of two tasks take it twice
    found = measured(STEPS, [-1, 0, 2], [1, 0, 2], clusters=[0, 1, 1], n_resamples=100)
    assert (found["macro_f1"], found["macro_f1_ci"]) == (1, pytest.approx((1, 1)))


def test_without_items_or_answers_a_metric_is_undefined():
    assert measured(STEPS, [-1], [0]) == {
        f"{name}{end}": None for name in STEPS["metrics"] for end in ("", "_ci")
    }
    assert measured(POINTS, [1.0, 2.0], [np.nan, np.nan])["spearman"] is None


def test_intervals_are_over_clusters():
    generator = np.random.default_rng(7)
    labels = generator.integers(0, 3, 300)
    verdicts = np.where(generator.random(300) < 0.7, labels, (labels + 1) % 3)
    by_item = measured(STEPS, labels, verdicts, n_resamples=2_000)["accuracy_ci"]
    # The same answers three times are no further evidence.
    thrice = measured(
        STEPS,
        np.tile(labels, 3),
        np.tile(verdicts, 3),
        clusters=np.tile(np.arange(300), 3),
        n_resamples=2_000,
    )["accuracy_ci"]
    assert thrice == pytest.approx(by_item)
    # The half-width of a share of .7 among 300 is 1.96 * sqrt(.7 * .3 / 300) = .052.
    assert (by_item[1] - by_item[0]) / 2 == pytest.approx(0.052, abs=0.008)
