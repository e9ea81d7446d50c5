"""Tests of the hidden half: it is fixed, has half of each benchmark's tasks, and its labels stay hidden."""

import numpy as np
import pytest

from arb.core.predictions.table import Predictions
from arb.core.suite import load_suite
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_report
from submissions.privacy.disclosure import digests_of, hidden_half

TEST = load_suite().split("test")
KEY = b"k" * 32


@pytest.fixture(scope="module")
def ranked():
    return hidden_half(TEST, KEY)


def _tasks(rows):
    return {(t.benchmark, t.task) for t, inside in zip(TEST, rows, strict=True) if inside}


def test_all_runs_of_a_task_are_in_one_half(ranked):
    assert _tasks(ranked).isdisjoint(_tasks(~ranked))


def test_half_of_each_benchmarks_tasks_are_hidden(ranked):
    for benchmark in {t.benchmark for t in TEST}:
        hidden, shown = (sum(name == benchmark for name, _ in _tasks(rows)) for rows in (ranked, ~ranked))
        assert hidden - shown in (0, 1)


def test_the_halves_are_fixed_by_the_key_and_not_by_the_order_of_rows(ranked):
    again = hidden_half(TEST[::-1], KEY)
    assert (again[::-1] == ranked).all()
    other = hidden_half(TEST, b"l" * 32)
    # Two independent halves agree on about half of the rows.
    assert 0.3 < (other == ranked).mean() < 0.7


def _label_set(success) -> LabelSet:
    none = np.full(len(TEST), -1, dtype=np.int8)
    primary = {"success": success, "side_effect": none, "repetition": none}
    return LabelSet("s", "test", "csv", "v1", TEST, primary, primary, np.zeros(len(TEST), dtype=bool))


def test_figures_of_the_shown_half_do_not_depend_on_hidden_labels(ranked):
    generator = np.random.default_rng(0)
    truth = (generator.random(len(TEST)) < 0.3).astype(np.int8)
    called = (generator.random(len(TEST)) < 0.3).astype(np.int8)
    aligned = Predictions(
        tuple(t.trajectory_id for t in TEST), {"success": called}, state=tuple("ok" for _ in TEST)
    )
    flipped = np.where(ranked, 1 - truth, truth)
    reports = {}
    for name, rows in (("shown", ~ranked), ("ranked", ranked)):
        file = aligned.take(np.flatnonzero(rows))
        part = _label_set(truth).only(rows).trajectories
        assert len(file.state) == len(file.targets["success"]) == rows.sum() == len(part)
        digests_of(file, part)
        reports[name] = [
            score_report(file, _label_set(labels).only(rows), n_resamples=100) for labels in (truth, flipped)
        ]
    assert reports["shown"][0] == reports["shown"][1]
    assert reports["ranked"][0] != reports["ranked"][1]
    overall = [reports[name][0]["labels"]["success"]["overall"] for name in ("shown", "ranked")]
    assert sum(cell["tp"] for cell in overall) == int(((called == 1) & (truth == 1)).sum())
