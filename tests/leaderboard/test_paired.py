import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suites.targets import default_targets
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.metrics import OF_BINARY, answers_of
from leaderboard.paired import (
    COMPARED_METRICS,
    Difference,
    approximate_difference,
    exact_p,
    joint_errors,
    mcnemar,
    paired_difference_of,
    resample_judges,
    shared_errors,
    verdict_agreement,
)

LABELS = np.array([1, 1, 1, 0, 0, 0, 0, -1], dtype=np.int8)
FIRST = np.array([1, 0, 1, 1, 1, 0, 0, 1], dtype=np.int8)
"""Wrong on places 1 (a miss), 3 and 4 (false alarms)."""
SECOND = np.array([1, 0, -1, 1, 0, 0, 1, 0], dtype=np.int8)
"""Wrong on places 1 and 2 (misses, one for want of a verdict), 3 and 6 (false alarms)."""

codes = st.lists(st.tuples(*[st.integers(-1, 1)] * 3), min_size=1, max_size=60)


def columns(rows):
    return [np.array(column, dtype=np.int8) for column in zip(*rows, strict=True)]


def test_mcnemar_counts_runs_by_who_is_right():
    found = mcnemar(FIRST, SECOND, LABELS)
    # both right: 0, 5; only first: 2, 6; only second: 4; both wrong: 1, 3; the unsure run is left out
    assert (found.n, found.both_right, found.only_first, found.only_second, found.both_wrong) == (
        7,
        2,
        2,
        1,
        2,
    )
    # 3 throws, at most 1 on the rarer side: 2 * (1 + 3) / 8 = 1
    assert found.p == 1.0


def test_the_exact_p_is_that_of_a_fair_coin():
    assert exact_p(0, 0) == 1.0
    assert exact_p(5, 5) == 1.0
    assert exact_p(1, 9) == 2 * (1 + 10) / 2**10
    assert exact_p(0, 1074) == 2 / 2**1074  # the smallest number of a float: no p is lost before it
    assert exact_p(0, 5000) == 0.0


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_exact_p_is_statsmodels_and_scipys(only_first, only_second):
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as reference

    found = exact_p(only_first, only_second)
    table = [[7, only_first], [only_second, 9]]
    assert found == pytest.approx(min(1.0, reference(table, exact=True).pvalue), rel=1e-9)
    if only_first + only_second:
        expected = binomtest(only_first, only_first + only_second).pvalue
        assert found == pytest.approx(expected, rel=1e-9)


def test_agreement_takes_the_runs_on_which_both_have_a_verdict():
    found = verdict_agreement(FIRST, SECOND)
    assert (found.n, found.percent) == (7, 4 / 7)
    # p_e = (4*3 + 3*4) / 49 = 24/49, kappa = (28/49 - 24/49) / (25/49)
    assert found.kappa == pytest.approx(4 / 25)


def test_judges_without_a_common_run_have_no_agreement():
    none = np.array([-1, -1], dtype=np.int8)
    assert (verdict_agreement(none, none).percent, verdict_agreement(none, none).kappa) == (None, None)


def test_shared_errors_count_false_alarms_and_misses_apart():
    found = shared_errors(FIRST, SECOND, LABELS)
    assert (found.first, found.second) == (3, 4)
    assert (found.false_alarms, found.misses, found.shared) == (1, 1, 2)  # places 3 and 1
    # by chance: false alarms 2 * 2 / 4 negatives, misses 1 * 2 / 3 positives
    assert found.by_chance == pytest.approx(1 + 2 / 3)
    assert found.jaccard == 2 / (3 + 4 - 2)


@given(codes)
def test_shared_errors_agree_with_mcnemar_and_with_scikit_learn(rows):
    from sklearn.metrics import jaccard_score

    first, second, labels = columns(rows)
    errors, table = shared_errors(first, second, labels), mcnemar(first, second, labels)
    assert errors.shared == table.both_wrong
    assert errors.first == table.both_wrong + table.only_second
    assert errors.second == table.both_wrong + table.only_first
    sure = labels >= 0
    wrong = [((column == 1) != (labels == 1))[sure] for column in (first, second)]
    if errors.jaccard is not None:
        assert errors.jaccard == pytest.approx(jaccard_score(*wrong))


def test_joint_errors_count_trajectories_by_how_many_judges_are_wrong():
    found = joint_errors([FIRST, SECOND, LABELS], LABELS)
    # negatives 3, 4, 5, 6: fooled 2, 1, 0, 1 judges; positives 0, 1, 2: 0, 2, 1
    assert found.negatives == (1, 2, 1, 0)
    assert found.positives == (1, 1, 1, 0)


N = 60


def judges(seed=0, n=N, errors=(6, 14)):
    """Labels, tasks of two runs each, and two judges that are right but for so many random runs."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, n).astype(np.int8)
    columns = []
    for wrong in errors:
        verdicts = labels.copy()
        places = generator.permutation(n)[:wrong]
        verdicts[places] = 1 - verdicts[places]
        columns.append(verdicts)
    return labels, np.arange(n) // 2, columns


def overall(n=N):
    return [np.ones(n, dtype=bool)]


def resampled_judges(columns, labels, tasks, cells, n_resamples, figure="precision"):
    target, runs = default_targets()[0], [str(row) for row in range(len(labels))]
    answers = [
        [answers_of(target, labels, column, tasks, runs, cell) for cell in cells] for column in columns
    ]
    return resample_judges(OF_BINARY[figure], answers, int(tasks.max()) + 1, n_resamples)


def difference(labels, tasks, columns, figure="precision", cells=None, n_resamples=2000):
    resampled = resampled_judges(columns, labels, tasks, cells or overall(len(labels)), n_resamples)
    return paired_difference_of(resampled, 0, 1, 0, OF_BINARY[figure])


# Paired


def test_the_values_are_the_figures_of_the_two_judges():
    # Four tasks of one run: labels 1 1 0 0. First yes to 1st, 2nd, 3rd: TP 2, FP 1. Second: TP 1, FP 0, FN 1.
    labels = np.array([1, 1, 0, 0], dtype=np.int8)
    first, second = np.array([1, 1, 1, 0], dtype=np.int8), np.array([1, 0, 0, 0], dtype=np.int8)
    found = {f: difference(labels, np.arange(4), [first, second], f) for f in COMPARED_METRICS}
    assert (found["precision"].first, found["precision"].second) == (2 / 3, 1)
    assert found["precision"].value == pytest.approx(-1 / 3)
    assert found["recall"].value == pytest.approx(1 - 1 / 2)
    assert found["f1"].value == pytest.approx(4 / 5 - 2 / 3)
    assert found["accuracy"].value == pytest.approx(3 / 4 - 3 / 4)
    # Kappa: first 2 (2*1 - 0) / (3*2 + 1*2) = 1/2, by p_o 3/4 and p_e (3*2 + 1*2)/16 = 1/2; second the same.
    assert (found["kappa"].first, found["kappa"].second) == (0.5, 0.5)


@pytest.mark.parametrize("figure", COMPARED_METRICS)
def test_each_resampled_figure_is_the_figure_of_its_counts(figure):
    labels, tasks, columns = judges()
    resampled = resampled_judges(columns, labels, tasks, overall(), 40)
    expected = [
        a - b
        for row in resampled.totals[:, :, 0]
        if (a := figures(*row[0])[figure]) is not None and (b := figures(*row[1])[figure]) is not None
    ]
    found = paired_difference_of(resampled, 0, 1, 0, OF_BINARY[figure])
    assert found.interval == pytest.approx(np.quantile(expected, [0.025, 0.975]).tolist())


def test_pairing_makes_the_interval_narrower_than_two_separate_ones():
    labels, tasks, columns = judges(n=400, errors=(40, 44))
    shared = columns[0].copy()
    shared[np.flatnonzero(shared == labels)[:4]] ^= 1  # the first judge again with four more errors
    found = difference(labels, tasks, [columns[0], shared])
    cells = []
    for column in (columns[0], shared):
        tp, fp = (int(((column == 1) & (labels == answer)).sum()) for answer in (1, 0))
        cells.append({"precision": tp / (tp + fp), "precision_ci": approximate_interval(tp, tp + fp, 1.0)})
    apart = approximate_difference(*cells)
    assert apart.value == pytest.approx(found.value)
    assert found.interval[1] - found.interval[0] < (apart.interval[1] - apart.interval[0]) / 2
    assert (found.basis, apart.basis) == ("paired", "approximate")


def test_two_judges_with_the_same_verdicts_get_no_interval_of_no_width():
    labels, tasks, columns = judges()
    found = difference(labels, tasks, [columns[0], columns[0]])
    assert (found.value, found.interval) == (0.0, None)


def test_a_cell_of_one_task_has_values_and_no_interval():
    labels, tasks, columns = judges()
    cell = tasks == tasks[np.flatnonzero((columns[0] == 1) & (columns[1] == 1))[0]]
    assert difference(labels, tasks, columns, cells=[cell]).interval is None


def test_an_undefined_figure_has_no_difference():
    labels, tasks, columns = judges()
    found = difference(labels, tasks, [np.zeros(N, dtype=np.int8), columns[1]])
    assert (found.first, found.value, found.interval) == (None, None, None)
    assert found.second is not None


def test_a_missing_verdict_is_a_no_and_an_unsure_label_is_left_out():
    labels = np.array([1, 1, 0, -1], dtype=np.int8)
    first, second = np.array([1, -1, 1, 1], dtype=np.int8), np.array([1, 1, -1, 1], dtype=np.int8)
    found = difference(labels, np.arange(4), [first, second], "recall")
    assert (found.first, found.second) == (0.5, 1.0)
    assert difference(labels, np.arange(4), [first, second], "accuracy").first == 1 / 3


@given(st.integers(0, 10_000), st.sampled_from(COMPARED_METRICS))
def test_the_other_way_round_the_difference_changes_its_sign(seed, figure):
    labels, tasks, columns = judges(seed, n=40)
    resampled = resampled_judges(columns, labels, tasks, overall(40), 200)
    there = paired_difference_of(resampled, 0, 1, 0, OF_BINARY[figure])
    back = paired_difference_of(resampled, 1, 0, 0, OF_BINARY[figure])
    if there.interval is None:
        assert back.interval is None
        return
    assert back.value == pytest.approx(-there.value)
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    assert back.favours == -there.favours


# From two cells


def cell(hits, total, design_effect=1.0):
    return {"precision": hits / total, "precision_ci": approximate_interval(hits, total, design_effect)}


@given(st.integers(0, 80), st.integers(0, 80), st.integers(80, 200), st.integers(80, 200))
def test_it_is_newcombes_interval_of_two_independent_proportions(a, b, n, m):
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = approximate_difference(cell(a, n), cell(b, m))
    expected = confint_proportions_2indep(a, n, b, m, method="newcomb", compare="diff")
    assert found.interval == pytest.approx(expected, abs=1e-9)
    assert found.basis == "approximate"


@pytest.mark.parametrize(
    "first, second, value",
    [
        (None, cell(1, 2), None),
        ({"precision": None, "precision_ci": None}, cell(1, 2), None),
        ({"precision": 0.75, "precision_ci": None}, cell(1, 2), 0.25),
    ],
)
def test_a_cell_without_figure_or_interval_gives_what_there_is(first, second, value):
    found = approximate_difference(first, second)
    assert (found.value, found.interval, found.favours) == (value, None, 0)


# What it says


@pytest.mark.parametrize(
    "interval, favours",
    [((0.01, 0.2), 1), ((-0.2, -0.01), -1), ((-0.1, 0.1), 0), ((0.0, 0.3), 0), ((-0.3, 0.0), 0), (None, 0)],
)
def test_a_difference_favours_a_judge_only_when_its_interval_leaves_out_zero(interval, favours):
    assert Difference(0.5, 0.4, 0.1, interval, "paired").favours == favours
