"""Two judges against each other: differences with 95 % intervals, McNemar's test, kappa, error overlap.

Two judges with verdicts are compared on the same resamples of tasks (paired), so what makes a task hard for
both cancels out. Where only counts of one are known (a paper's row without verdicts), the two intervals are
put together; that treats the judges as if they had seen different trajectories, and is wider than need be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, hypot
from typing import Final, Literal

import numpy as np

from leaderboard.judge_precision.confusion import confusion_counts, figures, metric_values, ratio
from leaderboard.judge_precision.intervals import (
    N_RESAMPLES,
    percentile_intervals,
    resampled_counts,
)
from leaderboard.score import Cell

COMPARED_METRICS: Final = ("precision", "recall", "f1", "accuracy", "kappa")
"""Figures that can be compared; rows without verdicts have intervals for the first three."""

Basis = Literal["paired", "approximate"]


@dataclass(frozen=True, slots=True)
class Difference:
    """``value`` = ``first`` - ``second``, fractions (kappa: units of kappa); None where undefined.

    ``interval`` covers the difference; ``basis`` says how it was made: paired over tasks, or approximate from
    two separate intervals. Both are None where there is none.
    """

    first: float | None
    second: float | None
    value: float | None
    interval: tuple[float, float] | None
    basis: Basis | None

    @property
    def favours(self) -> int:
        """1 where the whole interval lies above 0, -1 where below, 0 where the two are not separated."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Resampled:
    """Counts of several judges in several cells, and the same over each resample of tasks.

    ``counts`` is (judges, cells, 4) with TP, FP, FN, TN; ``totals`` (n_resamples, judges, cells, 4), the same
    resamples for every judge and cell; ``n_tasks`` (cells,) says how many tasks a cell rests on.
    """

    counts: np.ndarray
    totals: np.ndarray
    n_tasks: np.ndarray


def resample_judges(
    verdicts: Sequence[np.ndarray],
    labels: np.ndarray,
    tasks: np.ndarray,
    cells: Sequence[np.ndarray],
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Resampled:
    """Counts of judges (int8, shape (n,), 1, 0, -1 each) against labels, under the policy ``strict``.

    ``tasks`` gives each row's task as a number from 0; ``cells`` are masks of rows, bool of shape (n,). With
    one seed and number of tasks the resamples are those of the board's intervals.
    """
    n_tasks = int(tasks.max(initial=0)) + 1
    parts = []
    for column in verdicts:
        for cell in cells:
            counts = confusion_counts(column[cell], labels[cell], tasks[cell], n_tasks)
            parts.append(counts[:, :4])
    by_task = np.stack(parts, axis=1).reshape(n_tasks, len(verdicts), len(cells), 4)
    totals = resampled_counts(by_task.reshape(n_tasks, -1), n_resamples, seed)
    rests_on = (by_task[:, 0].sum(axis=2) > 0).sum(axis=0)
    return Resampled(
        by_task.sum(axis=0), totals.reshape(n_resamples, len(verdicts), len(cells), 4), np.asarray(rests_on)
    )


def paired_difference_of(
    resampled: Resampled, first: int, second: int, cell: int, figure: str = "precision"
) -> Difference:
    """The difference of two judges (places in ``resampled``) in one cell.

    Without an interval where a figure is undefined, where the cell rests on one task, or where every resample
    repeats one of the two figures (a judge that was never wrong) or their difference (two that gave the same
    verdicts here): a repetition is no measure of error.
    """
    values = [figures(*resampled.counts[judge, cell])[figure] for judge in (first, second)]
    if values[0] is None or values[1] is None:
        return Difference(*values, None, None, None)
    samples = [metric_values(figure, *resampled.totals[:, judge, cell].T) for judge in (first, second)]
    apart = samples[0] - samples[1]
    value = values[0] - values[1]
    if resampled.n_tasks[cell] < 2 or not all(_varies(found) for found in (*samples, apart)):
        return Difference(*values, value, None, None)
    low, high = percentile_intervals(apart[:, None])[0]
    return Difference(*values, value, (low, high), "paired")


def approximate_difference(first: Cell | None, second: Cell | None, figure: str = "precision") -> Difference:
    """The difference of two cells (CELL of product.md) from their own intervals, errors added in squares.

    Source: Newcombe 1998, method 10 (hybrid score). The board tests the same difference, but with all other
    pairs at once: two judges apart here may tie there. Without an interval where either cell has none for
    the figure.
    """
    values = [None if cell is None else cell.get(figure) for cell in (first, second)]
    if first is None or second is None or values[0] is None or values[1] is None:
        return Difference(*values, None, None, None)
    value = values[0] - values[1]
    ends = [cell.get(f"{figure}_ci") for cell in (first, second)]
    if ends[0] is None or ends[1] is None:
        return Difference(*values, value, None, None)
    below = hypot(values[0] - ends[0][0], ends[1][1] - values[1])
    above = hypot(ends[0][1] - values[0], values[1] - ends[1][0])
    return Difference(*values, value, (value - below, value + above), "approximate")


def _varies(samples: np.ndarray) -> bool:
    defined = samples[~np.isnan(samples)]
    return bool(defined.size) and defined.min() < defined.max()


@dataclass(frozen=True, slots=True)
class McNemar:
    """Of ``n`` labelled trajectories ``both_right`` were judged right by both; ``p`` is exact and two-sided.

    It tests whether both are equally accurate, which says nothing of precision or recall: ``p`` asks whether
    ``only_first`` and ``only_second`` could come from a fair coin. It takes trajectories for independent;
    those of several agents on one task are not, so it is smaller than it should be.
    """

    n: int
    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Two judges on the ``n`` trajectories on which both gave a verdict; no label is used.

    ``percent`` is the share of equal verdicts as a fraction, ``kappa`` Cohen's; None where undefined.
    """

    n: int
    percent: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class SharedErrors:
    """Trajectories that both judges get wrong: false alarms (false positives) and misses (false negatives).

    ``by_chance`` is how many it would be if their errors had nothing to do with each other:
    FP1 FP2 / negatives + FN1 FN2 / positives. ``jaccard`` is the share of shared ones among the errors of
    either; None where neither has any.
    """

    first: int
    second: int
    false_alarms: int
    misses: int
    by_chance: float
    jaccard: float | None

    @property
    def shared(self) -> int:
        """Trajectories that both get wrong."""
        return self.false_alarms + self.misses


@dataclass(frozen=True, slots=True)
class JointErrors:
    """How many of the chosen judges are wrong: position k counts the trajectories that exactly k get wrong.

    ``negatives`` counts those whose label is false (wrong: a false alarm), ``positives`` the others (a miss).
    """

    negatives: tuple[int, ...]
    positives: tuple[int, ...]


def mcnemar(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> McNemar:
    """McNemar's counts and exact p of two judges; int8 of shape (n,), 1, 0, -1 each.

    Rows whose label is -1 are left out; a missing verdict counts as "no" (policy ``strict``).
    """
    right_first, right_second = (~is_wrong(verdicts, labels) for verdicts in (first, second))
    labelled = labels >= 0
    only_first = int((labelled & right_first & ~right_second).sum())
    only_second = int((labelled & ~right_first & right_second).sum())
    both_right = int((labelled & right_first & right_second).sum())
    n = int(labelled.sum())
    both_wrong = n - both_right - only_first - only_second
    return McNemar(n, both_right, only_first, only_second, both_wrong, exact_p(only_first, only_second))


def exact_p(only_first: int, only_second: int) -> float:
    """P of ``only_first + only_second`` throws of a fair coin falling at least as unevenly, either way.

    Source: McNemar 1947, exact binomial form. In whole numbers, so that no small p is lost; 1 for no throw.
    """
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**n)


def verdict_agreement(first: np.ndarray, second: np.ndarray) -> VerdictAgreement:
    """Agreement of two judges' verdicts; int8 of shape (n,), 1, 0, -1 each."""
    both = (first >= 0) & (second >= 0)
    one_group = np.zeros(int(both.sum()), dtype=np.int64)
    # The second judge stands where labels do, so the share of equal verdicts is the accuracy.
    found = figures(*confusion_counts(first[both], second[both], one_group, 1)[0])
    return VerdictAgreement(found["n"], found["accuracy"], found["kappa"])


def shared_errors(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> SharedErrors:
    """How far two judges are wrong about the same trajectories; arguments as for `mcnemar`."""
    wrong_first, wrong_second = is_wrong(first, labels), is_wrong(second, labels)
    by_chance = 0.0
    together = []
    for answer in (0, 1):
        rows = labels == answer
        found = [int((wrong & rows).sum()) for wrong in (wrong_first, wrong_second)]
        by_chance += found[0] * found[1] / int(rows.sum()) if rows.any() else 0.0
        together.append(int((wrong_first & wrong_second & rows).sum()))
    errors = int(wrong_first.sum()), int(wrong_second.sum())
    jaccard = ratio(sum(together), sum(errors) - sum(together))
    return SharedErrors(*errors, together[0], together[1], by_chance, jaccard)


def joint_errors(judges: Sequence[np.ndarray], labels: np.ndarray) -> JointErrors:
    """How many trajectories none, one, … all of the judges get wrong."""
    how_many = np.sum([is_wrong(verdicts, labels) for verdicts in judges], axis=0)
    counts = [np.bincount(how_many[labels == answer], minlength=len(judges) + 1) for answer in (0, 1)]
    return JointErrors(*(tuple(int(count) for count in found) for found in counts))


def is_wrong(verdicts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which labelled rows a judge gets wrong, bool of shape (n,); a missing verdict is a "no"."""
    return (labels >= 0) & ((verdicts == 1) != (labels == 1))
