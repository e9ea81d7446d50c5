"""Intervals of noisy counts hold the error of the sample and that of the noise."""

from math import hypot

import numpy as np
import pytest

from leaderboard.board_cells import DESIGN_EFFECTS
from leaderboard.judge_precision.intervals import approximate_interval
from submissions.probing.noisy_intervals import noisy_intervals


def test_without_noise_they_are_those_of_published_rows():
    found = noisy_intervals(200, 100, 95, 0.0)
    assert found["precision_ci"] == pytest.approx(approximate_interval(200, 300, DESIGN_EFFECTS["precision"]))
    assert found["recall_ci"] == pytest.approx(approximate_interval(200, 295, DESIGN_EFFECTS["recall"]))


def test_the_noise_is_added_in_squares_on_either_side():
    low, high = approximate_interval(200, 300, DESIGN_EFFECTS["precision"])
    # 6 true positives of 300 predicted are 0.02; 1.96 of them 0.0392.
    margin = 1.959963984540054 * 6 / 300
    share = 200 / 300
    expected = [share - hypot(share - low, margin), share + hypot(high - share, margin)]
    assert noisy_intervals(200, 100, 95, 6.0)["precision_ci"] == pytest.approx(expected)


def test_f1_takes_its_noise_from_both_margins():
    # F1 = 400 / 595; 6 TP move it by 12 / 595 = 0.0202.
    still, noisy = (noisy_intervals(200, 100, 95, sd)["f1_ci"] for sd in (0.0, 6.0))
    value = 400 / 595
    assert value - noisy[0] == pytest.approx(hypot(value - still[0], 1.959963984540054 * 12 / 595))


def test_undefined_figures_have_none_and_ends_stay_within_0_and_1():
    assert noisy_intervals(0, 0, 20, 5.0)["precision_ci"] is None
    for interval in noisy_intervals(0, 5, 3, 5.0).values():
        assert 0 <= interval[0] <= interval[1] <= 1


def test_they_hold_the_true_precision_95_times_in_100():
    """2,000 judges of true precision 0.65: 300 predicted, a sample 1.6 times as variable as rows, noise of 6.

    Standard error of the share held: sqrt(0.95 x 0.05 / 2000) = 0.005.
    """
    generator = np.random.default_rng(0)
    hits = 300 * (0.65 + np.sqrt(0.65 * 0.35 / 300 * 1.6) * generator.normal(size=2_000))
    shown = np.rint(hits + 6 * generator.normal(size=2_000)).astype(int)
    held = 0
    for tp in shown.tolist():
        low, high = noisy_intervals(tp, 300 - tp, 100, 6.0)["precision_ci"]
        held += low <= 0.65 <= high
    assert 0.935 < held / 2_000 < 0.965
