import math

import pytest

from leaderboard.costs import cost_of, with_cost


def test_the_cost_of_a_thousand_is_a_thousand_times_the_mean_of_a_row():
    # (0.001 + 0.003) / 2 = 0.002 a row
    assert cost_of([0.001, 0.003]) == {"usd_per_1000": 2.0, "rows": 2, "of": 2}


def test_rows_without_a_cost_are_counted_and_not_taken_for_free():
    # the mean of the two known ones, not of three
    assert cost_of([0.001, math.nan, 0.003]) == {"usd_per_1000": 2.0, "rows": 2, "of": 3}


@pytest.mark.parametrize("costs", [None, [], [math.nan, math.nan]])
def test_an_unknown_cost_is_none_and_not_zero(costs):
    assert cost_of(costs) is None


def test_a_judge_that_costs_nothing_costs_zero():
    assert cost_of([0.0, 0.0])["usd_per_1000"] == 0.0


def test_a_report_gets_a_cost_only_where_there_is_one():
    report = {"labels": {}}
    assert with_cost(report, None) == report
    assert with_cost(report, [0.5])["cost"]["usd_per_1000"] == 500.0
    assert "cost" not in report
