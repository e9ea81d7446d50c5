"""What a judge's ``score`` (its probability of success) is worth: reliability, Brier score, thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import N_RESAMPLES, cluster_intervals

N_BINS: Final = 10
SEED: Final = 0
FEWEST_SCORES: Final = 20
"""Below this many scored trajectories neither a curve nor a threshold says anything."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Trajectories whose score lies in [``low``, ``high``), the last bin closed.

    ``mean_score`` and ``share`` (of those whose label is true) are fractions, ``interval`` the 95 % one of
    the share over tasks; None where the bin is empty, or rests on one task.
    """

    low: float
    high: float
    n: int
    mean_score: float | None
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ThresholdFigures:
    """The judge that says yes from ``at`` on; no score is a no. Metrics are None where undefined."""

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
    """Scores evaluated against labels.

    ``n`` labelled trajectories have a score, ``without_score`` have none and are in no bin. ``brier`` is the
    mean squared distance of score and label, 0 best; ``brier_of_base_rate`` what the share of positives as
    the score of every trajectory would reach. ``error`` is the mean distance of mean score and share over the
    bins, weighted by trajectories (expected calibration error). ``auc`` is the chance that a positive one has
    the higher score of a random pair, ties counting half. Each is None where undefined.
    """

    n: int
    without_score: int
    brier: float | None
    brier_of_base_rate: float | None
    error: float | None
    auc: float | None
    bins: tuple[Bin, ...]
    thresholds: tuple[ThresholdFigures, ...]

    def best(self) -> ThresholdFigures | None:
        """Return the lowest threshold with the highest F1; None where it is defined for none."""
        defined = [t for t in self.thresholds if t.f1 is not None]
        return max(defined, key=lambda t: (t.f1, -t.at), default=None)


def calibrate(
    scores: np.ndarray, labels: np.ndarray, tasks: np.ndarray, n_resamples: int = N_RESAMPLES
) -> Calibration | None:
    """Evaluate scores (float of shape (n,), NaN for none) against labels (int8: 1, 0, -1 unsure).

    ``tasks`` gives each row's task as a number from 0. None where fewer than 20 labelled trajectories have a
    score. Raises ValueError for a score outside 0 to 1.
    """
    _check(scores)
    scored = (labels >= 0) & ~np.isnan(scores)
    if scored.sum() < FEWEST_SCORES:
        return None
    known_scores, truth = scores[scored], labels[scored].astype(np.float64)
    base_rate = truth.mean()
    bins = reliability_bins(known_scores, truth, tasks[scored], N_BINS, n_resamples, SEED)
    return Calibration(
        n=int(scored.sum()),
        without_score=int(((labels >= 0) & np.isnan(scores)).sum()),
        brier=float(np.mean((known_scores - truth) ** 2)),
        brier_of_base_rate=float(base_rate * (1 - base_rate)),
        error=float(sum(b.n * abs(b.mean_score - b.share) for b in bins if b.n) / len(known_scores)),
        auc=area_under_curve(known_scores, truth),
        bins=bins,
        thresholds=sweep(scores, labels),
    )


def reliability_bins(
    scores: np.ndarray, labels: np.ndarray, tasks: np.ndarray, n_bins: int, n_resamples: int, seed: int
) -> tuple[Bin, ...]:
    """Bins of equal width over 0 to 1; every row has a score and a label (0 or 1)."""
    edges = np.arange(n_bins + 1) / n_bins  # 3 / 10 is what is read from "0.3"; linspace gives another number
    # A score on an edge belongs to the bin that it opens, 1 to the last one.
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
    """The judge at each threshold, rising; without ``thresholds`` at 0.05, 0.10, … 0.95.

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
    """Area under the ROC curve, from ranks (Mann and Whitney 1947); None without both kinds of labels."""
    positives, negatives = int((labels == 1).sum()), int((labels == 0).sum())
    if not positives or not negatives:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2  # of all that share a score
    above = mean_rank[place][labels == 1].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def _check(scores: np.ndarray) -> None:
    wrong = np.flatnonzero((scores < 0) | (scores > 1))
    if wrong.size:
        raise ValueError(f"scores: row {wrong[0]} is {scores[wrong[0]]}; every score is from 0 to 1, or NaN")
