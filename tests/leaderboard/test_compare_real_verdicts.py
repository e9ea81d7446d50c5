"""The comparison of the three real verdict files against statsmodels, scipy and scikit-learn."""

import numpy as np
import pytest

from arb.core.judge_info import JudgeInfo
from leaderboard.board.board import ScoredRecord, make_board
from leaderboard.board.ranks import Contender, metric_samples, separated_pairs
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
    return [real_verdicts(name).success for name in NAMES]


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


@pytest.mark.parametrize("figure", COMPARED_METRICS)
def test_the_differences_of_every_cell_are_scikit_learns(
    compared, verdicts, truth, official_test_labels, figure
):
    from sklearn import metrics

    name = {"kappa": "cohen_kappa_score"}.get(figure, f"{figure}_score")
    score = getattr(metrics, name)
    benchmarks = np.array([t.benchmark for t in official_test_labels.trajectories])
    agents = np.array([t.agent for t in official_test_labels.trajectories])
    for pair in compared[figure].pairs:
        first, second = verdicts[pair.first], verdicts[pair.second]

        def expected(rows, first=first, second=second):
            return score(truth[rows], first[rows]) - score(truth[rows], second[rows])

        assert pair.overall.value == pytest.approx(expected(slice(None)))
        for benchmark, found in pair.by_benchmark.items():
            assert found.value == pytest.approx(expected(benchmarks == benchmark)), benchmark
        for agent, found in pair.by_agent.items():
            assert found.value == pytest.approx(expected(agents == agent)), agent


STATISTICS = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
}


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


def test_the_accuracy_intervals_are_near_statsmodels_with_errors_clustered_by_task(
    compared, verdicts, truth, tasks
):
    import statsmodels.api as sm

    for pair in compared["accuracy"].pairs:
        right = [(verdicts[judge] == truth).astype(float) for judge in (pair.first, pair.second)]
        fit = sm.OLS(right[0] - right[1], np.ones(len(truth))).fit(
            cov_type="cluster", cov_kwds={"groups": tasks}
        )
        assert pair.overall.value == pytest.approx(fit.params[0])
        # The bootstrap has no normal shape to hold to; half a point apart at most.
        assert pair.overall.interval == pytest.approx(tuple(fit.conf_int()[0]), abs=0.005)


def test_who_is_separated_on_the_board_is_separated_here(compared, records):
    contenders = [
        Contender(
            record.report["labels"]["success"]["overall"]["precision"],
            record.report["labels"]["success"]["overall"]["precision_ci"],
            metric_samples([record.counts_by_task["success"]])[0],
        )
        for record in records
    ]
    separated = separated_pairs(contenders)
    assert separated.sum() == 3  # three judges far apart: every pair
    for pair in compared["precision"].pairs:
        if separated[pair.first, pair.second] or separated[pair.second, pair.first]:
            assert pair.overall.favours == (1 if separated[pair.first, pair.second] else -1)


def test_a_judge_that_was_never_wrong_on_a_benchmark_is_compared_there_approximately(compared):
    # AER-C and rule-based have a precision of 100 % on WorkArena.
    pairs = {(pair.first, pair.second): pair for pair in compared["precision"].pairs}
    assert {pair.by_benchmark["workarena"].basis for pair in pairs.values()} == {"approximate"}
    assert pairs[0, 1].by_benchmark["webarena"].basis == "paired"


# Runs


@pytest.mark.parametrize("place", range(3))
def test_mcnemar_is_that_of_statsmodels(compared, verdicts, truth, place):
    from statsmodels.stats.contingency_tables import mcnemar

    pair = compared["precision"].pairs[place]
    right = [verdicts[judge] == truth for judge in (pair.first, pair.second)]
    table = [
        [int(((right[0] == first) & (right[1] == second)).sum()) for second in (True, False)]
        for first in (True, False)
    ]
    found = pair.runs.mcnemar
    assert [[found.both_right, found.only_first], [found.only_second, found.both_wrong]] == table
    expected = mcnemar(table, exact=True)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert min(found.only_first, found.only_second) == expected.statistic


@pytest.mark.parametrize("place", range(3))
def test_agreement_is_that_of_statsmodels_and_scikit_learn(compared, verdicts, place):
    from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix
    from statsmodels.stats.inter_rater import cohens_kappa

    pair = compared["precision"].pairs[place]
    first, second = verdicts[pair.first], verdicts[pair.second]
    found = pair.runs.agreement
    table = confusion_matrix(first, second)
    assert found.kappa == pytest.approx(cohens_kappa(table).kappa)
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
    assert found.percent == pytest.approx(accuracy_score(first, second))
    assert [[found.both_no, found.only_second_yes], [found.only_first_yes, found.both_yes]] == table.tolist()


@pytest.mark.parametrize("place", range(3))
def test_shared_errors_are_those_of_scikit_learn_and_scipy(compared, verdicts, truth, place):
    from scipy.stats.contingency import crosstab, expected_freq
    from sklearn.metrics import jaccard_score

    pair = compared["precision"].pairs[place]
    wrong = [verdicts[judge] != truth for judge in (pair.first, pair.second)]
    found = pair.runs.shared
    assert found.jaccard == pytest.approx(jaccard_score(*wrong))
    by_chance = 0.0
    for answer, shared in ((0, found.false_alarms), (1, found.misses)):
        table = crosstab(*(column[truth == answer] for column in wrong)).count
        assert table[1, 1] == shared
        by_chance += expected_freq(table)[1, 1]
    assert found.by_chance == pytest.approx(by_chance)


# Together


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_the_votes_score_what_scikit_learn_scores(compared, verdicts, truth, official_test_labels, needed):
    from sklearn.metrics import precision_recall_fscore_support

    passed = np.sum(verdicts, axis=0) >= needed
    found = compared["precision"].votes[needed - 1]
    assert found.needed == needed
    benchmarks = np.array([t.benchmark for t in official_test_labels.trajectories])
    cells = {"overall": (found.cells["overall"], slice(None))}
    cells |= {name: (cell, benchmarks == name) for name, cell in found.cells["by_benchmark"].items()}
    for name, (cell, rows) in cells.items():
        *expected, _ = precision_recall_fscore_support(
            truth[rows], passed[rows], average="binary", zero_division=np.nan
        )
        shown = [np.nan if cell[figure] is None else cell[figure] for figure in ("precision", "recall", "f1")]
        assert shown == pytest.approx(expected, nan_ok=True), name


def test_the_runs_that_fool_all_three_are_counted(compared, verdicts, truth):
    wrong = np.sum([column != truth for column in verdicts], axis=0)
    found = compared["precision"].fooled
    assert found.negatives == tuple(int(((wrong == k) & (truth == 0)).sum()) for k in range(4))
    assert found.positives == tuple(int(((wrong == k) & (truth == 1)).sum()) for k in range(4))
    assert sum(found.negatives) + sum(found.positives) == 1106
