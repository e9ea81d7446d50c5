from types import SimpleNamespace

import numpy as np

from leaderboard.running_costs import running_costs

NONE = {"cost_usd": None, "input_tokens": None, "output_tokens": None, "latency_s": None}


def test_costs_are_means_over_the_rows_that_give_one():
    nan = np.nan
    columns = {
        "cost_usd": np.array([0.01, 0.03, nan]),
        "input_tokens": np.array([1000.0, nan, 3000.0]),
        "output_tokens": np.array([nan, nan, nan]),
        "latency_s": np.array([1.0, 2.0, 9.0]),
    }
    found = running_costs(SimpleNamespace(**columns), 3)
    # (0.01 + 0.03) / 2 * 1000
    assert (found.usd_per_1000, found.priced, found.n) == (20.0, 2, 3)
    assert (found.input_tokens, found.output_tokens, found.median_seconds) == (2000.0, None, 2.0)
    assert found.are_known


def test_a_file_that_says_nothing_of_costs_has_none_and_not_zero():
    found = running_costs(SimpleNamespace(**NONE), 5)
    assert not found.are_known
    assert (found.usd_per_1000, found.priced) == (None, 0)


def test_a_judge_that_costs_nothing_costs_zero():
    found = running_costs(SimpleNamespace(**{**NONE, "cost_usd": np.zeros(4)}), 4)
    assert found.usd_per_1000 == 0.0
    assert found.are_known
