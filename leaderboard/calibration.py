"""Calibration of a judge's ``score`` (the probability of a "yes"): reliability, Brier score, thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import N_RESAMPLES, cluster_intervals

N_BINS: Final = 10
SEED: Final = 0
FEWEST_SCORES: Final = 20
"""With fewer scored trajectories, a reliability curve or a threshold would be meaningless."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The trajectories whose score is in [``low``, ``high``); the last bin includes ``high``.

    ``share`` is the share of true labels. It and ``mean_score`` are fractions, or None if the bin is empty.
    ``interval`` is the 95 % interval of ``share`` over tasks. It is None if the bin has fewer than two tasks.
    """

    low: float
    high: float
    n: int
    mean_score: float | None
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ThresholdFigures:
    """Counts and metrics if a score of at least ``at`` counts as yes, and a lower or missing score as no."""

    at: float
    tp: int
    fp: int
    fn: int
    tn: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Calibration:
    """The quality of a judge's scores on the ``n`` labelled trajectories that have a score.

    ``without_score`` counts the labelled trajectories without a score, which are in no bin. ``brier`` is the
    mean squared difference between score and label (0 is best), and ``brier_of_base_rate`` is what it would
    be if every score were the share of positives. ``error`` is the expected calibration error: the difference
    between mean score and share of positives in a bin, averaged over trajectories. ``auc`` is the probability
    that a random positive trajectory has a higher score than a random negative one, with ties counting half;
    it is None if all labels are equal.
    """

    n: int
    without_score: int
    brier: float
    brier_of_base_rate: float
    error: float
    auc: float | None
    bins: tuple[Bin, ...]
    thresholds: tuple[ThresholdFigures, ...]

    def best(self) -> ThresholdFigures | None:
        """Return the figures at the lowest threshold with the highest F1, or None if F1 is never defined."""
        best: ThresholdFigures | None = None
        highest = -1.0
        for threshold in self.thresholds:  # rising
            if threshold.f1 is not None and threshold.f1 > highest:
                best, highest = threshold, threshold.f1
        return best


def calibrate(
    scores: np.ndarray, labels: np.ndarray, tasks: np.ndarray, n_resamples: int = N_RESAMPLES
) -> Calibration | None:
    """Evaluate scores (float of shape (n,), NaN if absent) against labels (int8: 1, 0, or -1 if unsure).

    ``tasks`` has an integer from 0 for each row, which identifies its task. The result is None if fewer than
    20 labelled trajectories have a score. Raises ValueError for a score outside 0 to 1.
    """
    wrong = np.flatnonzero((scores < 0) | (scores > 1))
    if wrong.size:
        raise ValueError(f"scores: row {wrong[0]} is {scores[wrong[0]]}; a score must be from 0 to 1, or NaN")
    scored = (labels >= 0) & ~np.isnan(scores)
    if scored.sum() < FEWEST_SCORES:
        return None
    known_scores, truth = scores[scored], labels[scored].astype(np.float64)
    base_rate = truth.mean()
    bins = reliability_bins(known_scores, truth, tasks[scored], N_BINS, n_resamples, SEED)
    off_by = 0.0
    for each in bins:
        if each.mean_score is not None and each.share is not None:
            off_by += each.n * abs(each.mean_score - each.share)
    return Calibration(
        n=int(scored.sum()),
        without_score=int(((labels >= 0) & np.isnan(scores)).sum()),
        brier=float(np.mean((known_scores - truth) ** 2)),
        brier_of_base_rate=float(base_rate * (1 - base_rate)),
        error=off_by / len(known_scores),
        auc=area_under_curve(known_scores, truth),
        bins=bins,
        thresholds=sweep(scores, labels),
    )


def reliability_bins(
    scores: np.ndarray, labels: np.ndarray, tasks: np.ndarray, n_bins: int, n_resamples: int, seed: int
) -> tuple[Bin, ...]:
    """Return ``n_bins`` bins of equal width from 0 to 1. Every row must have a score and a label (0 or 1)."""
    edges = np.arange(n_bins + 1) / n_bins  # 3 / 10 equals the float "0.3"; linspace gives another number
    # A score on an edge belongs to the bin that begins there; 1 belongs to the last bin.
    place = np.minimum(np.searchsorted(edges, scores, side="right") - 1, n_bins - 1)
    n_tasks = int(tasks.max()) + 1
    counts = np.zeros((n_tasks, n_bins, 3), dtype=np.int64)
    np.add.at(counts, (tasks, place, 1 - labels.astype(np.int64)), 1)  # as TP and FP: the share is TP / all
    intervals = cluster_intervals(counts, n_resamples, seed)
    found = []
    for number, interval in enumerate(intervals):
        inside = place == number
        n, share_of = int(inside.sum()), interval["precision_ci"]
        found.append(
            Bin(
                low=float(edges[number]),
                high=float(edges[number + 1]),
                n=n,
                mean_score=float(scores[inside].mean()) if n else None,
                share=float(labels[inside].mean()) if n else None,
                interval=None if share_of is None else (share_of[0], share_of[1]),
            )
        )
    return tuple(found)


def sweep(
    scores: np.ndarray, labels: np.ndarray, thresholds: Sequence[float] | None = None
) -> tuple[ThresholdFigures, ...]:
    """Return the judge's figures at each threshold, lowest first. The default is 0.05, 0.10, … 0.95.

    Rows whose label is -1 are left out; a row without a score is a "no" (policy ``strict``).
    """
    chosen = [step / 20 for step in range(1, 20)] if thresholds is None else sorted(thresholds)
    positives, negatives = int((labels == 1).sum()), int((labels == 0).sum())
    found = []
    for at in chosen:
        yes = scores >= at  # False for NaN
        tp, fp = int((yes & (labels == 1)).sum()), int((yes & (labels == 0)).sum())
        fn = positives - tp
        known = figures(tp, fp, fn, negatives - fp)
        metrics = known["precision"], known["recall"], known["f1"]
        found.append(ThresholdFigures(at, tp, fp, fn, negatives - fp, *metrics))
    return tuple(found)


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the area under the ROC curve (Mann and Whitney 1947), or None if all labels are equal."""
    positives, negatives = int((labels == 1).sum()), int((labels == 0).sum())
    if not positives or not negatives:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2  # of all rows with the same score
    above = mean_rank[place][labels == 1].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))
