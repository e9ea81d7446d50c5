"""Tests that the leak budget counts figures once, adds costs up, and follows Bun and Steinke's formulas."""

from datetime import UTC, datetime, timedelta
from math import inf, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import SuiteRules
from submissions.privacy.leak_budget import (
    RANKING,
    Charge,
    Disclosure,
    Leak,
    LeakReport,
    account_budget,
    disclosures_in,
    file_cost,
    fits_from,
    leak_of,
    row_cost,
)


def _figure(**changes) -> Disclosure:
    plain = Disclosure("ada", "first", "v1", "success", "overall", "d1", 5.0)
    return plain._replace(**changes)


def test_one_figure_costs_half_over_the_variance():
    leak = leak_of([_figure()])
    assert leak.figures == 1
    assert leak.rho == pytest.approx(1 / 50)
    # 0.02 + 2 sqrt(0.02 x ln(10^6)) = 0.02 + 2 sqrt(0.2763) = 1.071
    assert leak.epsilon == pytest.approx(0.02 + 2 * sqrt(0.02 * log(1e6)))
    assert leak.epsilon == pytest.approx(1.071, abs=0.001)


def test_figures_add_up_and_the_same_one_counts_once_at_its_finest():
    shown = [_figure(), _figure(account="bob", judge="other"), _figure(tp_sd=3.0), _figure(digest="d2")]
    # d1 with noise 3, however often it was seen: 1/18. d2 with noise 5: 1/50.
    assert leak_of(shown) == Leak(2, pytest.approx(1 / 18 + 1 / 50))


def test_a_trajectory_is_in_one_benchmark_so_the_dearest_counts():
    shown = [
        _figure(),
        _figure(cell="benchmark/a", tp_sd=5.0),
        _figure(cell="benchmark/a", digest="d2", tp_sd=5.0),
        _figure(cell="benchmark/b", tp_sd=5.0),
    ]
    assert leak_of(shown) == Leak(4, pytest.approx(1 / 50 + 2 / 50))


def test_labels_are_secrets_apart_so_the_dearest_counts():
    shown = [_figure(), _figure(label="repetition"), _figure(label="repetition", digest="d2")]
    assert leak_of(shown) == Leak(3, pytest.approx(2 / 50))


def test_versions_add_up_as_most_labels_stay():
    shown = [_figure(), _figure(label_version="v2")]
    assert leak_of(shown).rho == pytest.approx(2 / 50)
    assert LeakReport.of(shown).by_label_version == {"v1": Leak(1, 1 / 50), "v2": Leak(1, 1 / 50)}


def test_nothing_shown_leaks_nothing_and_an_exact_figure_everything():
    assert leak_of([]) == Leak()
    assert Leak().epsilon == 0
    assert leak_of([_figure(tp_sd=0.0)]).epsilon == inf


def test_what_a_report_shows():
    cell = {"noise": {"tp_sd": 5.0}}
    report = {
        "label_version": "v1",
        "labels": {
            "success": {"overall": cell, "by_benchmark": {"a": cell, "b": cell}},
            "side_effect": None,
            "repetition": None,
        },
    }
    said = {"digest": "d", "rows": 10, "positives": 4, "no_verdict": 0}
    none_called = {**said, "positives": 0}
    digests = {"success": {"overall": said, "benchmark/a": said, "benchmark/b": none_called}}
    shown = disclosures_in(report, digests, "ada", "first")
    # Nothing of benchmark b is called positive: 0 true positives, whatever the labels are.
    assert [(one.cell, one.tp_sd) for one in shown] == [("overall", 5.0), ("benchmark/a", 5.0)]


def test_an_exact_report_shows_no_noisy_figure():
    report = {"label_version": "v", "labels": {"success": {"overall": {"tp": 3}, "by_benchmark": {}}}}
    said = {"digest": "d", "rows": 10, "positives": 4, "no_verdict": 0}
    assert disclosures_in(report, {"success": {"overall": said}}, "ada", "first") == []


def test_the_order_of_rows_is_paid_for_by_the_half_that_ranks():
    shown = [_figure(), _figure(cell="benchmark/a"), _figure(cell=RANKING, tp_sd=3.0)]
    # A label is in the half that is shown, 1/50 + 1/50, or in the one that ranks, 1/18.
    assert leak_of(shown) == Leak(3, pytest.approx(1 / 18))


RULES = SuiteRules()
"""20 files at 6, 2 rows at 3 with benchmarks at 6, 20 accounts."""


def test_what_a_year_of_an_account_costs():
    # 20 x 1/72 for files; a row adds 1/18 - 1/72 overall and 1/72 in a benchmark: 2 x 1/18.
    assert file_cost(RULES) == pytest.approx(1 / 72)
    assert row_cost(RULES) == pytest.approx(1 / 18)
    assert account_budget(RULES) == pytest.approx(20 / 72 + 2 / 18)
    # If the public noise is larger, the overall figure adds nothing; only the benchmarks (noise 9) do.
    assert row_cost(SuiteRules(private_noise=6.0, public_noise=9.0)) == pytest.approx(1 / 162)
    # Without noise the cost is infinite; without any allowed request it is 0.
    assert account_budget(SuiteRules(private_noise=0.0)) == inf
    assert account_budget(SuiteRules(private_noise=0.0, files_a_year=0, public_rows_a_year=0)) == 0


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _charges(*days: int, rho: float = 1.0) -> list[Charge]:
    return [Charge(NOON + timedelta(days), "ada", "first", rho) for days in days]


def test_a_charge_fits_when_enough_of_the_others_are_a_year_old():
    charges = _charges(0, 10, 20)
    now = NOON + timedelta(30)
    assert fits_from(charges, 1.0, 4.0, now) == now
    assert fits_from(charges, 1.0, 3.0, now) == NOON + timedelta(365)
    assert fits_from(charges, 2.0, 3.0, now) == NOON + timedelta(375)
    # At that moment it does, because the oldest charge has left the window.
    assert fits_from(charges, 1.0, 3.0, NOON + timedelta(365)) == NOON + timedelta(365)
    assert fits_from(charges, 4.0, 3.0, now).year == 9999
    assert fits_from(_charges(0, rho=inf), inf, inf, now) == now


@given(st.lists(st.tuples(st.integers(0, 800), st.integers(1, 5)), max_size=12), st.integers(0, 12))
def test_no_year_holds_more_than_its_budget_when_each_charge_waits_until_it_fits(asked, budget):
    """In any 365 days the budget is kept, and no request waits that would have fitted."""
    taken: list[Charge] = []
    for day, rho in sorted(asked):
        now = NOON + timedelta(day)
        when = fits_from(taken, float(rho), float(budget), now)
        inside = sum(charge.rho for charge in taken if charge.at > now - timedelta(365))
        assert (when == now) == (inside + rho <= budget)
        if when == now:
            taken.append(Charge(now, "ada", "first", float(rho)))
    for end in taken:
        year = [c.rho for c in taken if end.at - timedelta(365) < c.at <= end.at]
        assert sum(year) <= budget
