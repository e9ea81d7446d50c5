"""The comparison of the three real verdict files against statsmodels, scipy and scikit-learn."""

import numpy as np
import pytest

from arb.core.judge_info import JudgeInfo
from leaderboard.board.board import ScoredRecord, make_board
from leaderboard.board.ranks import (
    Contender,
    compared_share,
    compared_value,
    metric_samples,
    separated_pairs,
)
from leaderboard.compare import Entrant, compare
from leaderboard.paired import COMPARED_METRICS
from leaderboard.report import counts_by_task, score_report

pytestmark = [pytest.mark.shared, pytest.mark.labels]

NAMES = ("aer-c", "nnetnav", "rule-based")


@pytest.fixture(scope="module")
def truth(official_test_labels):
    return official_test_labels.primary["success"]


@pytest.fixture(scope="module")
def tasks(official_test_labels):
    names = [f"{t.benchmark}/{t.task}" for t in official_test_labels.trajectories]
    return np.unique(names, return_inverse=True)[1]


@pytest.fixture(scope="module")
def verdicts(real_verdicts):
    return [real_verdicts(name).targets["success"] for name in NAMES]


@pytest.fixture(scope="module")
def records(real_verdicts, official_test_labels):
    """The three files as scored records."""
    found = []
    for name in NAMES:
        file = real_verdicts(name)
        found.append(
            ScoredRecord(
                id=name, file_sha256="0" * 64,
                info=JudgeInfo(judge=name, account="a", kind="Other", inputs="other", test_labels_used=False),
                submitted_at=f"2026-01-01T00:00:0{len(found)}",
                report=score_report(file, official_test_labels),
                counts_by_task=counts_by_task(file, official_test_labels),
            )
        )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def compared(records, verdicts, official_test_labels):
    """A function that compares the three on a figure; each is computed once."""
    board = make_board("agent-reward-bench", records, (), official_test_labels.version)
    rows = {row.id: row for row in board.rows}
    entrants = [Entrant(rows[name], column) for name, column in zip(NAMES, verdicts, strict=True)]
    return {figure: compare(entrants, official_test_labels, "success", figure) for figure in COMPARED_METRICS}


# Differences


STATISTICS = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
}


@pytest.mark.slow
@pytest.mark.parametrize("figure", STATISTICS)
def test_the_intervals_are_scipys_paired_bootstrap_over_tasks(compared, verdicts, truth, tasks, figure):
    from scipy.stats import bootstrap

    for pair in compared[figure].pairs:
        by_task = [
            np.bincount(tasks[(verdicts[judge] == said) & (truth == was)], minlength=300)
            for judge in (pair.first, pair.second)
            for was, said in ((1, 1), (0, 1), (1, 0), (0, 0))
        ]

        def statistic(*counts, axis):
            sums = [count.sum(axis=axis) for count in counts]
            return STATISTICS[figure](*sums[:4]) - STATISTICS[figure](*sums[4:])

        expected = bootstrap(
            by_task, statistic, paired=True, vectorized=True, method="percentile", n_resamples=9_999,
            batch=1_000, rng=np.random.default_rng(11),
        ).confidence_interval  # fmt: skip
        # Two bootstraps of 10,000: an end of each is off by about 0.03 of its standard deviation of 3 points.
        assert pair.overall.interval == pytest.approx((expected.low, expected.high), abs=0.004)
        assert pair.overall.basis == "paired"


def test_who_is_separated_on_the_board_is_separated_here(compared, records):
    contenders = []
    for record in records:
        cell, by_task = record.report["labels"]["success"]["overall"], record.counts_by_task["success"]
        value = float(compared_value("precision", *np.sum(by_task, axis=0), 0, 0))
        ends = [compared_share("precision", end) for end in cell["precision_ci"]]
        contenders.append(Contender(value, ends, metric_samples([by_task])[0], cell["precision"]))
    separated = separated_pairs(contenders)
    assert separated.sum() == 3  # three judges far apart: every pair
    for pair in compared["precision"].pairs:
        if separated[pair.first, pair.second] or separated[pair.second, pair.first]:
            assert pair.overall.favours == (1 if separated[pair.first, pair.second] else -1)
