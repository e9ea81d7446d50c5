import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.judge_precision import intervals
from leaderboard.judge_precision.intervals import (
    approximate_interval,
    cluster_intervals,
    percentile_intervals,
    resampled_counts,
    resampling_weights,
)

# TP, FP, FN of six tasks in one cell
COUNTS = np.array([[3, 1, 0], [2, 0, 1], [0, 2, 1], [4, 0, 0], [1, 1, 2], [2, 1, 0]])[:, None, :]


def random_counts(clusters, cells=1, seed=7):
    return np.random.default_rng(seed).integers(0, 4, size=(clusters, cells, 3))


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 2**32))
def test_every_resample_draws_as_many_clusters_as_there_are(n_clusters, n_resamples, seed):
    weights = np.concatenate(list(resampling_weights(n_clusters, n_resamples, seed)))
    assert weights.shape == (n_resamples, n_clusters)
    assert (weights.sum(axis=1) == n_clusters).all()
    assert (weights >= 0).all()
    assert (weights == weights.astype(int)).all()


def test_one_seed_gives_one_interval_and_another_seed_another():
    first, again, other = (cluster_intervals(COUNTS, 500, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("draws", [1, 50, 777, 10**9])
def test_the_size_of_the_blocks_does_not_change_the_result(monkeypatch, draws):
    counts = random_counts(clusters=37, cells=3)
    whole = cluster_intervals(counts, 400, 5)
    monkeypatch.setattr(intervals, "_DRAWS_IN_MEMORY", draws)
    blocks = list(resampling_weights(37, 400, 5))
    assert len(blocks) == {1: 400, 50: 400, 777: 20, 10**9: 1}[draws]  # 777 // 37 = 21 rows a block
    assert cluster_intervals(counts, 400, 5) == whole


def test_counts_too_large_for_single_precision_are_summed_exactly():
    # 2**24 + 1 is the first whole number that float32 cannot hold
    columns = np.array([[2**24 + 1], [2**24 + 1]])
    assert set(resampled_counts(columns, 20, 0).ravel()) == {2 * (2**24 + 1)}


def test_the_interval_is_that_of_a_plain_loop_over_resampled_clusters():
    weights = np.concatenate(list(resampling_weights(len(COUNTS), 300, 11)))
    precisions = []
    for drawn in weights:
        tp = sum(w * row[0, 0] for w, row in zip(drawn, COUNTS, strict=True))
        fp = sum(w * row[0, 1] for w, row in zip(drawn, COUNTS, strict=True))
        precisions.append(tp / (tp + fp))
    low, high = np.quantile(precisions, [0.025, 0.975])
    assert cluster_intervals(COUNTS, 300, 11)[0]["precision_ci"] == pytest.approx([low, high])


def test_a_cell_has_the_same_interval_alone_and_beside_others():
    counts = random_counts(clusters=30, cells=4)
    together = cluster_intervals(counts, 300, 0)
    alone = [cluster_intervals(counts[:, [cell]], 300, 0)[0] for cell in range(4)]
    assert together == alone


def test_fewer_than_two_clusters_have_no_interval():
    none = {"precision_ci": None, "recall_ci": None, "f1_ci": None}
    assert cluster_intervals(COUNTS[:1], 100, 0) == [none]
    assert cluster_intervals(COUNTS[:0], 100, 0) == [none]
    assert cluster_intervals(COUNTS, 0, 0) == [none]


def test_a_figure_that_rests_on_a_single_cluster_has_no_interval():
    # positives (for the precision: yes-verdicts) in the first cluster only; recall rests on two
    counts = np.array([[2, 1, 0], [0, 0, 3], [0, 0, 0]])[:, None, :]
    cell = cluster_intervals(counts, 200, 0)[0]
    assert cell["precision_ci"] is None
    assert cell["recall_ci"] is not None
    assert cell["f1_ci"] is not None


def test_a_figure_that_is_undefined_on_the_whole_cell_has_no_interval():
    counts = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 0]])[:, None, :]  # never says yes
    cell = cluster_intervals(counts, 200, 0)[0]
    assert cell["precision_ci"] is None
    assert cell["recall_ci"] is not None


def test_a_figure_of_exactly_one_or_nought_has_wilsons_interval_over_its_clusters():
    # never wrong when it says yes
    counts = np.array([[3, 0, 1], [2, 0, 1], [1, 0, 0], [0, 0, 0]])[:, None, :]
    # three clusters with a yes, all right: low end n / (n + z^2) = 3 / (3 + 3.8415) = 0.4385
    assert cluster_intervals(counts, 200, 0)[0]["precision_ci"] == pytest.approx([0.4385, 1.0], abs=1e-4)
    always_wrong = counts[:, :, [1, 0, 2]]
    # the mirror image: z^2 / (3 + z^2) = 0.5615
    interval = cluster_intervals(always_wrong, 200, 0)[0]["precision_ci"]
    assert interval == pytest.approx([0.0, 0.5615], abs=1e-4)


def test_resamples_without_a_figure_are_left_out_of_its_interval():
    samples = np.array([[0.5, np.nan], [np.nan, np.nan], [0.7, np.nan], [0.6, np.nan]])
    # 0.5, 0.6, 0.7 remain: quantile 0.025 is 0.5 + 0.05 * 0.1, quantile 0.975 is 0.6 + 0.95 * 0.1
    assert percentile_intervals(samples) == [pytest.approx([0.505, 0.695]), None]


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    # 100 tasks of 4 runs; a task's chance that a yes-verdict is right is 0.9 or 0.4, so the truth is 0.65
    generator = np.random.default_rng(2025)
    covered = 0
    for _ in range(200):
        chance = generator.choice([0.9, 0.4], size=100)
        right = generator.binomial(4, chance)
        counts = np.stack([right, 4 - right, np.zeros(100, dtype=int)], axis=1)[:, None, :]
        low, high = cluster_intervals(counts, 400, 0)[0]["precision_ci"]
        covered += low <= 0.65 <= high
    # 95 % of 200 is 190; three standard errors of a binomial (200, 0.95) are 9.2
    assert 180 <= covered <= 199


def test_intervals_over_tasks_are_wider_than_over_rows_when_runs_of_a_task_agree():
    # 40 tasks whose four runs are all right or all wrong: 24 right
    by_task = np.array([[4, 0, 0]] * 24 + [[0, 4, 0]] * 16)[:, None, :]
    by_row = np.array([[1, 0, 0]] * 96 + [[0, 1, 0]] * 64)[:, None, :]
    widths = [np.ptp(cluster_intervals(c, 2_000, 0)[0]["precision_ci"]) for c in (by_task, by_row)]
    assert widths[0] == pytest.approx(
        2 * widths[1], rel=0.1
    )  # four equal runs count for one: sqrt(4) times wider


def test_with_a_design_effect_of_1_the_approximation_is_wilsons_interval():
    # 8 of 10, z = 1.96, z2 = 3.8415: centre (0.8 + 0.19207) / 1.38415 = 0.71674,
    # half 1.96 * sqrt(0.016 + 0.0096036) / 1.38415 = 0.22658
    assert approximate_interval(8, 10, 1.0) == pytest.approx([0.49016, 0.94332], abs=1e-5)


def test_a_design_effect_shrinks_the_sample():
    # 160 of 200 with design effect 2 is 80 of 100
    assert approximate_interval(160, 200, 2.0) == pytest.approx(approximate_interval(80, 100, 1.0))


@given(st.integers(0, 300), st.integers(0, 300), st.floats(1, 3))
def test_the_approximation_lies_in_0_to_1_and_holds_the_share(hits, misses, design_effect):
    interval = approximate_interval(hits, hits + misses, design_effect)
    if not hits + misses:
        assert interval is None
        return
    low, high = interval
    assert 0 <= low <= hits / (hits + misses) + 1e-12
    assert hits / (hits + misses) - 1e-12 <= high <= 1


def test_memory_is_bounded_whatever_the_number_of_clusters_and_resamples():
    # 200,000 clusters x 100 resamples are 20 M draws, 160 MB in int64 for one copy; a block is 4 M draws
    counts = random_counts(clusters=200_000)
    peaks = []
    for n_resamples in (40, 100):
        tracemalloc.start()
        cluster_intervals(counts, n_resamples, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 150_000_000
    assert peaks[1] < 1.05 * peaks[0]
