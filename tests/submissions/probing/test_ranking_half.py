"""The hidden half: fixed, half of each benchmark's tasks, and nothing shown depends on its labels."""

import numpy as np
import pytest

from dataset_script.prediction_file.aligned import Predictions
from dataset_script.suite import load_suite
from leaderboard.labels import LabelSet
from leaderboard.report import score_report
from submissions.probing.digests import digests_of
from submissions.probing.ranking_half import halves, labels_of, predictions_of, trajectories_of

TEST = load_suite().split("test")
KEY = b"k" * 32


@pytest.fixture(scope="module")
def drawn():
    return halves(TEST, KEY)


def _tasks(rows):
    return {(t.benchmark, t.task) for t, inside in zip(TEST, rows, strict=True) if inside}


def test_every_row_is_in_one_half_with_all_runs_of_its_task(drawn):
    assert (drawn.ranked ^ drawn.shown).all()
    assert _tasks(drawn.ranked).isdisjoint(_tasks(drawn.shown))


def test_half_of_each_benchmarks_tasks_are_hidden(drawn):
    for benchmark in {t.benchmark for t in TEST}:
        hidden, shown = (
            sum(name == benchmark for name, _ in _tasks(rows)) for rows in (drawn.ranked, drawn.shown)
        )
        assert hidden - shown in (0, 1)


def test_the_halves_are_fixed_by_the_key_and_not_by_the_order_of_rows(drawn):
    again = halves(TEST[::-1], KEY)
    assert (again.ranked[::-1] == drawn.ranked).all()
    other = halves(TEST, b"l" * 32)
    # Of two independent halves about half the rows agree.
    assert 0.3 < (other.ranked == drawn.ranked).mean() < 0.7


def _label_set(success) -> LabelSet:
    none = np.full(len(TEST), -1, dtype=np.int8)
    primary = {"success": success, "side_effect": none, "repetition": none}
    return LabelSet("s", "test", "csv", "v1", TEST, primary, primary, np.zeros(len(TEST), dtype=bool))


def test_figures_of_the_shown_half_do_not_depend_on_hidden_labels(drawn):
    generator = np.random.default_rng(0)
    truth = (generator.random(len(TEST)) < 0.3).astype(np.int8)
    called = (generator.random(len(TEST)) < 0.3).astype(np.int8)
    aligned = Predictions(
        tuple(t.trajectory_id for t in TEST), called, None, None, None, None, tuple("ok" for _ in TEST),
        None, None, None, None, None,
    )  # fmt: skip
    flipped = np.where(drawn.ranked, 1 - truth, truth)
    reports = {}
    for name, rows in (("shown", drawn.shown), ("ranked", drawn.ranked)):
        file = predictions_of(aligned, rows)
        assert len(file.state) == len(file.success) == rows.sum() == len(trajectories_of(TEST, rows))
        digests_of(file, trajectories_of(TEST, rows))
        reports[name] = [
            score_report(file, labels_of(_label_set(labels), rows), n_resamples=100)
            for labels in (truth, flipped)
        ]
    assert reports["shown"][0] == reports["shown"][1]
    assert reports["ranked"][0] != reports["ranked"][1]
    overall = [reports[name][0]["labels"]["success"]["overall"] for name in ("shown", "ranked")]
    assert sum(cell["tp"] for cell in overall) == int(((called == 1) & (truth == 1)).sum())


def test_a_half_keeps_the_label_version(drawn):
    labels = _label_set(np.zeros(len(TEST), dtype=np.int8))
    part = labels_of(labels, drawn.shown)
    assert (part.version, part.split, len(part.trajectories)) == ("v1", "test", drawn.shown.sum())
