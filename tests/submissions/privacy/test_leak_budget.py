"""The leak budget counts figures once, adds up, and follows Bun and Steinke's formulas."""

from math import inf, log, sqrt

import pytest

from submissions.privacy.leak_budget import (
    Disclosure,
    Leak,
    LeakReport,
    disclosures_in,
    leak_of,
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
    # d1 at 3, whoever saw it how often: 1/18; d2 at 5: 1/50.
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


def test_by_account_and_by_judge():
    shown = [_figure(), _figure(judge="second", digest="d2"), _figure(account="bob")]
    assert {name: leak.figures for name, leak in LeakReport.of(shown).by_account.items()} == {
        "ada": 2,
        "bob": 1,
    }
    assert set(LeakReport.of(shown).by_judge) == {("ada", "first"), ("ada", "second"), ("bob", "first")}


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
    # Of benchmark b nothing is called positive: 0 true positives, whatever the labels.
    assert [(one.cell, one.tp_sd) for one in shown] == [("overall", 5.0), ("benchmark/a", 5.0)]


def test_an_exact_report_shows_no_noisy_figure():
    report = {"label_version": "v", "labels": {"success": {"overall": {"tp": 3}, "by_benchmark": {}}}}
    said = {"digest": "d", "rows": 10, "positives": 4, "no_verdict": 0}
    assert disclosures_in(report, {"success": {"overall": said}}, "ada", "first") == []
