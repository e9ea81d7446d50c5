import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.suite import load_suite
from leaderboard.label_noise import (
    DisagreementCount,
    DisagreementRates,
    disagreement_rates,
    noise_band,
    precision_under_noise,
)
from leaderboard.labels import load_labels


def band_of(tp, fp, rate, **how):
    return precision_under_noise(np.array(tp), np.array(fp), np.array(rate), **how)


def test_the_mean_and_the_width_are_those_of_the_arithmetic():
    found = band_of([140], [60], [0.1])
    # 140 * 0.9 + 60 * 0.1 = 132 of 200; each verdict flips by itself: sd sqrt(200 * 0.1 * 0.9) / 200 = 0.0212
    assert found.precision == 0.7
    assert found.mean == pytest.approx(0.66, abs=0.001)
    half = 1.96 * math.sqrt(200 * 0.1 * 0.9) / 200
    assert found.low == pytest.approx(0.66 - half, abs=0.006)
    assert found.high == pytest.approx(0.66 + half, abs=0.006)


def test_each_cell_flips_at_its_own_rate():
    found = band_of([50, 50], [0, 0], [0.0, 0.4])
    # 50 + 50 * 0.6 = 80 of 100
    assert found.mean == pytest.approx(0.8, abs=0.003)


def test_without_noise_nothing_moves_and_with_all_labels_turned_everything_does():
    assert (band_of([7], [3], [0.0]).low, band_of([7], [3], [0.0]).high) == (0.7, 0.7)
    assert band_of([7], [3], [1.0]).mean == pytest.approx(0.3)


def test_a_judge_that_never_says_yes_has_no_band():
    assert band_of([0, 0], [0, 0], [0.1, 0.1]) is None


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=5))
def test_a_band_is_in_order_and_repeats_with_its_seed(cells):
    tp, fp, rates = zip(*cells, strict=True)
    found = band_of(tp, fp, rates, n_draws=200)
    assert found == band_of(tp, fp, rates, n_draws=200)
    if found is not None:
        assert 0 <= found.low <= found.high <= 1
        expected = sum(t * (1 - r) + f * r for t, f, r in cells) / (sum(tp) + sum(fp))
        spread = math.sqrt(sum((t + f) * r * (1 - r) for t, f, r in cells)) / (sum(tp) + sum(fp))
        assert found.mean == pytest.approx(expected, abs=6 * spread / math.sqrt(200) + 1e-9)


RATES = DisagreementRates(
    DisagreementCount(10, 100), {"webarena": DisagreementCount(8, 40), "workarena": DisagreementCount(0, 29)}
)


def test_a_benchmark_has_its_own_rate_only_with_30_doubles():
    # 8 of 40; 29 doubles are too few, and elsewhere there are none: 10 of 100
    assert [RATES.of(name) for name in ("webarena", "workarena", "assistantbench", None)] == [
        0.2, 0.1, 0.1, 0.1,
    ]  # fmt: skip


def test_a_row_is_simulated_by_benchmark_where_its_cells_hold_all_counts():
    cells = {"webarena": {"tp": 50, "fp": 0}, "workarena": {"tp": 50, "fp": 0}}
    row = {"overall": {"tp": 100, "fp": 0}, "by_benchmark": cells}
    # 50 * 0.8 + 50 * 0.9 = 85 of 100
    assert noise_band(row, RATES).mean == pytest.approx(0.85, abs=0.003)
    # One benchmark's counts are not known: all 100 at the rate of all
    cells["workarena"] = {"tp": None, "fp": None}
    assert noise_band(row, RATES).mean == pytest.approx(0.9, abs=0.003)


def test_without_counts_or_doubles_there_is_no_band():
    row = {"overall": {"tp": 1, "fp": 1}, "by_benchmark": {}}
    assert noise_band(row, DisagreementRates(DisagreementCount(0, 0), {})) is None
    assert noise_band({"overall": {"tp": None, "fp": None}, "by_benchmark": {}}, RATES) is None
    assert noise_band(None, RATES) is None


@pytest.mark.labels
def test_the_official_annotators_differ_on_12_of_105(official_settings):
    sets = [load_labels(load_suite(), split, official_settings) for split in ("dev", "test")]
    rates = disagreement_rates(sets, "success")
    # 6 FP and 6 FN of the second annotator; one double of 106 has an Unsure; 3 doubles are WorkArena++'s
    assert rates.overall == DisagreementCount(12, 105)
    assert dict(rates.by_benchmark) == {
        "webarena": DisagreementCount(12, 102),
        "workarena++": DisagreementCount(0, 3),
    }
    assert rates.of("workarena++") == 12 / 105
