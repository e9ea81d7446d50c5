"""Metrics of one judge from a table, with 95 % intervals over groups, also for weighted rows or few rows.

The error of a metric comes from its linearization: the derivative of the metric by the four (weighted)
counts, applied to the counts of each group (Särndal, Swensson and Wretman 1992, section 5.5). The interval of
a share is the Wilson interval for the number of independent rows that would have this error, its effective
sample size, with a t quantile for few groups (Korn and Graubard 1998, Survey Methodology 24). A bootstrap
over 25 groups of 4 covers only 91 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from types import MappingProxyType
from typing import Final

import numpy as np

from leaderboard.judge_precision.confusion import metric_values
from leaderboard.judge_precision.intervals import wilson
from leaderboard.success_rates.estimate import NORMAL_QUANTILE, t_quantile

METRICS: Final = ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "kappa")
LEAST_GROUPS: Final = 5
"""With fewer groups, an error is too uncertain for an interval: the t quantile needs 4 degrees of freedom."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as a fraction (kappa: from -1 to 1) and its 95 % interval; None if undefined."""

    value: float | None
    interval: Interval | None = None


def value_of(metric: str, counts: Sequence[float] | np.ndarray) -> float | None:
    """Return a metric of counts (TP, FP, FN, TN), or None if it is undefined."""
    value = float(metric_values(metric, *np.asarray(counts, dtype=np.float64)))
    return value if isfinite(value) else None


_RESTS_ON: Final = MappingProxyType({"precision": [0, 1], "recall": [0, 2], "f1": [0, 1, 2]})
"""The counts that a metric depends on. Metrics that are not listed depend on all counts."""


def counts_by_group(
    verdicts: np.ndarray, labels: np.ndarray, groups: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the weighted counts TP, FP, FN, TN of each group, of shape (groups, 4).

    A missing verdict (-1) counts as "no". Labels are 1 or 0, or -1 for rows to leave out.
    """
    yes, known = verdicts == 1, labels >= 0
    parts = [
        known & yes & (labels == 1),
        known & yes & (labels == 0),
        known & ~yes & (labels == 1),
        known & ~yes & (labels == 0),
    ]
    n_groups = int(groups.max(initial=-1)) + 1
    return np.stack([np.bincount(groups, weights * part, minlength=n_groups) for part in parts], axis=1)


def influence(metric: str, by_group: np.ndarray) -> np.ndarray | None:
    """Return the effect of each group on a metric, of shape (groups,), or None if it has no derivative.

    The sum of the squared effects of G groups, times G / (G - 1), is the variance of the metric.
    """
    totals = by_group.sum(axis=0)
    gradient = np.zeros(4)
    for place in range(4):
        step = np.zeros(4)
        step[place] = 1e-5 * totals.sum()
        above, below = value_of(metric, totals + step), value_of(metric, totals - step)
        if above is None or below is None:
            return None
        gradient[place] = (above - below) / (2 * step[place])
    return by_group @ gradient


def measure(metric: str, by_group: np.ndarray, rows: np.ndarray) -> Metric:
    """Return a metric and its interval, from the counts of each group.

    Args:
        metric: One of `METRICS`.
        by_group: The weighted counts TP, FP, FN, TN of each group, (groups, 4).
        rows: The same counts without weights, (groups, 4).
    """
    value = value_of(metric, by_group.sum(axis=0))
    rests_on = _RESTS_ON.get(metric, slice(None))
    groups = int((by_group[:, rests_on].sum(axis=1) > 0).sum())
    if value is None or groups < LEAST_GROUPS:
        return Metric(value)
    effects = influence(metric, by_group)
    variance = 0.0 if effects is None else groups / (groups - 1) * float(effects @ effects)
    if metric == "kappa":
        if not variance:
            return Metric(value)
        half = quantile(groups - 1) * sqrt(variance)
        return Metric(value, (max(-1.0, value - half), min(1.0, value + half)))
    share = value / (2 - value) if metric == "f1" else value  # F1 = 2 J / (1 + J) of a share J
    if metric == "f1":
        variance *= (2 / (2 - value) ** 2) ** 2  # the derivative of J by F1, squared
    # If the share is 0 or 1, the groups that it rests on are the sample.
    size = share * (1 - share) / variance if variance > 1e-12 else float(groups)
    size = min(size, float(rows[:, rests_on].sum())) * (NORMAL_QUANTILE / quantile(groups - 1)) ** 2
    low, high = wilson(share, size)
    if metric == "f1":
        low, high = 2 * low / (1 + low), 2 * high / (1 + high)
    return Metric(value, (low, high))


def difference(metric: str, first: np.ndarray, second: np.ndarray) -> Metric:
    """Return the paired difference first - second. Each judge's counts have shape (groups, 4)."""
    one, other = (value_of(metric, counts.sum(axis=0)) for counts in (first, second))
    if one is None or other is None:
        return Metric(None)
    apart, groups = one - other, int((first.sum(axis=1) > 0).sum())
    effects, other_effects = influence(metric, first), influence(metric, second)
    if effects is None or other_effects is None or groups < LEAST_GROUPS:
        return Metric(apart)
    together = effects - other_effects
    variance = groups / (groups - 1) * float(together @ together)
    if variance <= 1e-12:
        return Metric(apart)
    half = quantile(groups - 1) * sqrt(variance)
    return Metric(apart, (max(-2.0, apart - half), min(2.0, apart + half)))


def quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, or of the normal distribution for 200 degrees or more."""
    return NORMAL_QUANTILE if degrees >= 200 else t_quantile(degrees)


def labels_needed(measured: Metric, labelled: int, half_width: float) -> int | None:
    """Return the total number of labels needed for an interval of ± ``half_width``.

    ``labelled`` labels gave the interval in ``measured``, whose width is taken to shrink with the square root
    of their number. The result is None if ``measured`` has no interval.
    """
    if measured.interval is None:
        return None
    now = (measured.interval[1] - measured.interval[0]) / 2
    return max(labelled, round(labelled * (now / half_width) ** 2 + 0.5))
