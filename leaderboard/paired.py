"""Comparison of two judges: differences with 95 % intervals, McNemar's test, kappa, shared errors.

Two judges with verdicts are compared on the same resamples of tasks (paired), so the difficulty of a task
cancels out. If only the counts of a judge are known (a paper's row without verdicts), the two separate
intervals are combined. That treats the judges as if they had seen different trajectories, so the result is
wider than necessary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, hypot
from typing import Final, Literal

import numpy as np

from arb.core.suites.targets import MissingRule, Target
from leaderboard.judge_precision.confusion import confusion_counts, figures, ratio
from leaderboard.judge_precision.intervals import N_RESAMPLES, percentile_intervals, resampled_counts
from leaderboard.metrics import LabelledAnswers, TargetMetric, by_cluster
from leaderboard.score import Cell, interval_of, metric_of

COMPARED_METRICS: Final = ("precision", "recall", "f1", "accuracy", "kappa")
"""Metrics of binary targets that can be compared. Rows without verdicts have intervals only for the first
three."""


def compared_metrics(target: Target) -> tuple[str, ...]:
    """Return the metrics by which judges can be compared on a target."""
    if target.type != "binary":
        return target.metrics
    return tuple(dict.fromkeys((*COMPARED_METRICS, target.main_metric)))


Basis = Literal["paired", "approximate"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two judges in one metric: ``value`` = ``first`` - ``second``.

    Metrics are fractions, or None if undefined. ``interval`` is the 95 % interval of ``value``. ``basis``
    says how it was computed: paired over tasks, or approximately from two separate intervals. Both are None
    if there is no interval.
    """

    first: float | None
    second: float | None
    value: float | None = None
    interval: tuple[float, float] | None = None
    basis: Basis | None = None

    @property
    def favours(self) -> int:
        """1 if the whole interval is above 0, -1 if it is below, 0 if the two are not separated."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Resampled:
    """The sums of a metric for several judges and cells, over all tasks and over each resample of tasks.

    ``counts`` is (judges, cells, k), such as TP, FP, FN, TN. ``totals`` is (n_resamples, judges, cells, k),
    with the same resamples for every judge and cell. ``n_tasks`` (cells,) is the number of tasks in a cell.
    """

    counts: np.ndarray
    totals: np.ndarray
    n_tasks: np.ndarray


def resample_judges(
    metric: TargetMetric,
    judges: Sequence[Sequence[LabelledAnswers]],
    n_tasks: int,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Resampled:
    """Compute the sums behind a metric. ``judges`` has each judge's answers in every cell.

    With the board's seed and tasks, the resamples are the same as for the board's intervals.
    """
    parts = [by_cluster(metric.sums(each), each.clusters, n_tasks) for cells in judges for each in cells]
    by_task = np.stack(parts, axis=1).reshape(n_tasks, len(judges), len(judges[0]), -1)
    totals = resampled_counts(by_task.reshape(n_tasks, -1), n_resamples, seed)
    rests_on = (by_task[:, 0] != 0).any(axis=2).sum(axis=0)
    return Resampled(
        by_task.sum(axis=0), totals.reshape(n_resamples, *by_task.shape[1:]), np.asarray(rests_on)
    )


def paired_difference_of(
    resampled: Resampled, first: int, second: int, cell: int, metric: TargetMetric
) -> Difference:
    """Return the difference between two judges, given by their indexes in ``resampled``, in one cell.

    It has no interval if a metric is undefined or the cell has only one task. It also has none if a judge's
    metric is the same in all resamples (a judge that was never wrong) or the difference is (two judges with
    equal verdicts), because resamples that do not vary cannot measure an error.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        values = [float(metric.value(resampled.counts[judge, cell])) for judge in (first, second)]
        samples = [metric.value(resampled.totals[:, judge, cell]) for judge in (first, second)]
    one, other = (None if np.isnan(value) else value for value in values)
    if one is None or other is None:
        return Difference(one, other)
    apart = samples[0] - samples[1]
    ends = percentile_intervals(apart[:, None])[0]
    varies = all(_varies(found) for found in (*samples, apart))
    if ends is None or resampled.n_tasks[cell] < 2 or not varies:
        return Difference(one, other, one - other)
    return Difference(one, other, one - other, (ends[0], ends[1]), "paired")


def approximate_difference(first: Cell | None, second: Cell | None, figure: str = "precision") -> Difference:
    """Return the difference between two cells in a metric, with an interval computed from their intervals.

    The interval is None if one of the cells has no interval. The board tests all pairs together, so it may
    not separate two judges that differ here. Source: Newcombe 1998, method 10 (hybrid score).
    """
    one = None if first is None else metric_of(first, figure)
    other = None if second is None else metric_of(second, figure)
    if first is None or second is None or one is None or other is None:
        return Difference(one, other)
    value = one - other
    ends, other_ends = interval_of(first, figure), interval_of(second, figure)
    if ends is None or other_ends is None:
        return Difference(one, other, value)
    below = hypot(one - ends[0], other_ends[1] - other)
    above = hypot(ends[1] - one, other - other_ends[0])
    return Difference(one, other, value, (value - below, value + above), "approximate")


def _varies(samples: np.ndarray) -> bool:
    defined = samples[~np.isnan(samples)]
    return bool(defined.size) and defined.min() < defined.max()


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test on ``n`` labelled trajectories, with counts by which of two judges was right.

    It tests whether both are equally accurate, which says nothing about precision or recall. ``p`` is the
    exact two-sided probability that a fair coin splits as unevenly as ``only_first`` and ``only_second``. It
    assumes independent trajectories. Trajectories of several agents on one task are not independent, so ``p``
    is too small.
    """

    n: int
    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Agreement of two judges on ``n`` trajectories: share of equal verdicts (a fraction), Cohen's kappa."""

    n: int
    percent: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class SharedErrors:
    """The numbers of errors of the ``first`` and the ``second`` judge, and of the errors they share.

    The shared errors are ``false_alarms`` (false positives) and ``misses`` (false negatives). ``by_chance``
    is the number of shared errors expected if the judges' errors were independent: FP1 FP2 / negatives + FN1
    FN2 / positives. ``jaccard`` is the share of shared errors among all errors, or None if there are none.
    """

    first: int
    second: int
    false_alarms: int
    misses: int
    by_chance: float
    jaccard: float | None

    @property
    def shared(self) -> int:
        return self.false_alarms + self.misses


@dataclass(frozen=True, slots=True)
class JointErrors:
    """The number of trajectories that exactly k judges get wrong, at index k of each tuple.

    ``negatives`` counts trajectories whose label is false (the error is a false alarm), ``positives`` those
    whose label is true (the error is a miss).
    """

    negatives: tuple[int, ...]
    positives: tuple[int, ...]


def mcnemar(
    first: np.ndarray, second: np.ndarray, labels: np.ndarray, missing: MissingRule = "negative"
) -> McNemar:
    """Return McNemar's counts and exact p of two judges. The arrays are codes of answers, int8 of shape (n,).

    Rows whose label is -1 are left out; ``missing`` says how missing verdicts count, by default as "no".
    """
    labelled = labels >= 0
    if missing == "left out":
        labelled &= (first >= 0) & (second >= 0)
    right_first, right_second = (~is_wrong(verdicts, labels, missing) for verdicts in (first, second))
    only_first = int((labelled & right_first & ~right_second).sum())
    only_second = int((labelled & ~right_first & right_second).sum())
    both_right = int((labelled & right_first & right_second).sum())
    n = int(labelled.sum())
    both_wrong = n - both_right - only_first - only_second
    return McNemar(n, both_right, only_first, only_second, both_wrong, exact_p(only_first, only_second))


def exact_p(only_first: int, only_second: int) -> float:
    """Return the two-sided probability that a fair coin falls at least as unevenly as the two counts.

    It is 1 if both counts are 0. The sum uses integers, so that a small p is exact. Source: McNemar
    1947, exact binomial form.
    """
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**n)


def verdict_agreement(first: np.ndarray, second: np.ndarray) -> VerdictAgreement:
    """Return the agreement of two judges' verdicts, int8 of shape (n,): 1, 0, -1."""
    both = (first >= 0) & (second >= 0)
    one_group = np.zeros(int(both.sum()), dtype=np.int64)
    # The second judge takes the place of the labels, so the share of equal verdicts is the accuracy.
    found = figures(*confusion_counts(first[both], second[both], one_group, 1)[0])
    return VerdictAgreement(found["n"], found["accuracy"], found["kappa"])


def shared_errors(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> SharedErrors:
    """Count the errors of each judge and those that they share. Takes the same arguments as `mcnemar`."""
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
    """Count the trajectories that exactly 0, 1, 2, … judges get wrong."""
    how_many = np.sum([is_wrong(verdicts, labels) for verdicts in judges], axis=0)
    counts = [np.bincount(how_many[labels == answer], minlength=len(judges) + 1) for answer in (0, 1)]
    return JointErrors(*(tuple(found.tolist()) for found in counts))


def is_wrong(verdicts: np.ndarray, labels: np.ndarray, missing: MissingRule = "negative") -> np.ndarray:
    """Return which labelled rows a judge gets wrong, bool of shape (n,).

    If ``missing`` is "negative", which only binary targets allow, missing verdicts count as "no". Otherwise
    they are wrong.
    """
    if missing == "negative":
        verdicts = np.where(verdicts < 0, 0, verdicts)
    return (labels >= 0) & (verdicts != labels)
