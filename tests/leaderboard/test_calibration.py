import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.calibration import area_under_curve, calibrate, reliability_bins, sweep


def scored(n=200, seed=0):
    """Scores, labels drawn with them as probabilities, and tasks of four runs."""
    generator = np.random.default_rng(seed)
    scores = generator.random(n)  # none on an edge of a bin, which scikit-learn counts to the bin below
    labels = (generator.random(n) < scores).astype(np.int8)
    return scores, labels, np.arange(n) // 4


def test_the_whole_agrees_with_scikit_learn():
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, roc_auc_score

    scores, labels, tasks = scored()
    found = calibrate(scores, labels, tasks, n_resamples=100)
    assert found.brier == pytest.approx(brier_score_loss(labels, scores))
    assert found.auc == pytest.approx(roc_auc_score(labels, scores))
    share, mean_score = calibration_curve(labels, scores, n_bins=10)
    full = [b for b in found.bins if b.n]
    assert [b.share for b in full] == pytest.approx(share.tolist())
    assert [b.mean_score for b in full] == pytest.approx(mean_score.tolist())
    assert (found.n, found.without_score) == (200, 0)


def test_brier_of_the_base_rate_is_its_variance():
    labels = np.array([1] * 5 + [0] * 15, dtype=np.int8)
    found = calibrate(np.full(20, 0.25), labels, np.arange(20), n_resamples=10)
    assert found.brier == found.brier_of_base_rate == 0.25 * 0.75
    assert found.error == pytest.approx(0.0)  # mean score 0.25 in the one full bin, and so is the share
    assert found.auc == 0.5  # all scores are one


def test_the_expected_calibration_error_weighs_the_bins_by_their_runs():
    # 15 runs of score 0.95, 12 true: |0.95 - 0.8|; 5 of score 0.05, none true: 0.05. (15*0.15 + 5*0.05) / 20
    scores = np.array([0.95] * 15 + [0.05] * 5)
    labels = np.array([1] * 12 + [0] * 8, dtype=np.int8)
    found = calibrate(scores, labels, np.arange(20), n_resamples=10)
    assert found.error == pytest.approx((15 * 0.15 + 5 * 0.05) / 20)


@pytest.mark.parametrize(
    "score, place", [(0.0, 0), (0.0999, 0), (0.1, 1), (0.3, 3), (0.6, 6), (0.7, 7), (1.0, 9)]
)
def test_a_score_on_an_edge_belongs_to_the_bin_that_it_opens(score, place):
    bins = reliability_bins(np.array([score]), np.array([1.0]), np.array([0]), 10, 10, 0)
    assert [b.n for b in bins] == [int(number == place) for number in range(10)]


def test_bins_carry_intervals_over_tasks_but_not_over_one_task():
    labels = np.array([1, 0, 1, 0, 1, 1, 1, 0], dtype=np.float64)
    tasks = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    narrow, wide = (
        reliability_bins(np.full(8, 0.85), labels, found, 10, 500, 0)[8]
        for found in (np.arange(8), tasks)
    )  # fmt: skip
    assert narrow.share == wide.share == 5 / 8
    assert wide.interval[0] < wide.share < wide.interval[1]
    assert reliability_bins(np.full(8, 0.85), labels, np.zeros(8, int), 10, 500, 0)[8].interval is None


def test_runs_without_score_or_with_an_unsure_label_are_left_out_and_counted():
    scores, labels, tasks = scored()
    scores[:7] = np.nan
    labels[5:9] = -1
    found = calibrate(scores, labels, tasks, n_resamples=10)
    assert (found.n, found.without_score) == (200 - 9, 5)


@pytest.mark.parametrize("wrong", [-0.1, 1.01])
def test_a_score_that_is_no_probability_is_refused(wrong):
    scores, labels, tasks = scored()
    scores[3] = wrong
    with pytest.raises(ValueError, match=f"row 3 is {wrong}"):
        calibrate(scores, labels, tasks)


# Thresholds


def test_a_threshold_says_yes_from_its_value_on():
    scores = np.array([0.2, 0.5, 0.5, 0.9, np.nan])
    labels = np.array([0, 1, 0, 1, 1], dtype=np.int8)
    (found,) = sweep(scores, labels, [0.5])
    # yes to three: TP 2, FP 1; the run without a score is a miss
    assert (found.tp, found.fp, found.fn, found.tn) == (2, 1, 1, 1)
    assert (found.precision, found.recall, found.f1) == (2 / 3, 2 / 3, 2 / 3)
    assert sweep(scores, labels, [0.95])[0].precision is None


@given(st.integers(0, 10_000))
def test_the_sweep_is_scikit_learns_curve_at_every_score(seed):
    from sklearn.metrics import precision_recall_curve

    scores, labels, _ = scored(30, seed)
    if labels.sum() == 0:
        return
    precision, recall, thresholds = precision_recall_curve(labels, scores)
    found = sweep(scores, labels, thresholds)
    assert [t.precision for t in found] == pytest.approx(precision[:-1].tolist())
    assert [t.recall for t in found] == pytest.approx(recall[:-1].tolist())


def test_the_best_threshold_is_the_lowest_of_the_best():
    scores, labels, tasks = scored()
    found = calibrate(scores, labels, tasks, n_resamples=10)
    best = found.best()
    assert best.f1 == max(t.f1 for t in found.thresholds if t.f1 is not None)
    assert [t.at for t in found.thresholds] == [step / 20 for step in range(1, 20)]
    perfect = calibrate(np.repeat([0.0, 1.0], 20), np.repeat([0, 1], 20).astype(np.int8), np.arange(40))
    assert perfect.best().at == 0.05  # every threshold is perfect


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1)), min_size=1, max_size=40)
)
def test_the_area_is_scikit_learns_with_ties_and_undefined_for_labels_all_alike(rows):
    from sklearn.metrics import roc_auc_score

    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    found = area_under_curve(scores, labels)
    if len(set(labels)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(labels, scores))
