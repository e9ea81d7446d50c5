"""Ranks that say what the test set can tell apart: a place, and the range of places it may be a tie for."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot

import numpy as np

from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES, resampled_counts

_RESAMPLES_AT_ONCE = 1_024


@dataclass(frozen=True)
class Contender:
    """A row in the race: its precision, the interval of it, and resampled precisions where it has verdicts.

    ``samples`` has shape (n_resamples,), over the same resamples for all contenders of one split.
    """

    precision: float
    precision_ci: Sequence[float] | None
    samples: np.ndarray | None


@dataclass(frozen=True)
class Rank:
    """``place`` in the order; ``low`` to ``high`` are the places that the intervals leave open."""

    place: int
    low: int
    high: int


def precision_samples(judges: Sequence[Sequence[Sequence[int]]], seed: int = 0) -> list[np.ndarray]:
    """Of each judge, from [TP, FP] a task: precision over 10,000 resamples of tasks; NaN where undefined.

    The draws, not the products with them, take the time: 50 judges cost little more than one.
    """
    counts = [np.asarray(judge, dtype=np.int64) for judge in judges]
    samples: list[np.ndarray] = [np.empty(0)] * len(counts)
    for n_tasks in {len(judge) for judge in counts}:
        places = [place for place, judge in enumerate(counts) if len(judge) == n_tasks]
        totals = resampled_counts(np.concatenate([counts[p] for p in places], axis=1), N_RESAMPLES, seed)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = totals[:, 0::2] / (totals[:, 0::2] + totals[:, 1::2])
        for column, place in enumerate(places):
            samples[place] = precision[:, column]
    return samples


def is_separated(better: Contender, worse: Contender) -> bool:
    """Whether the 95 % interval of the difference of two precisions lies above 0.

    Paired where both have verdicts and were right at times and wrong at times: at most 2.5 % of the resamples
    of tasks do not favour the better one. Otherwise from the two intervals, their errors added in squares
    (Newcombe 1998, method 10). A contender without an interval is separated from nobody.
    """
    if better.precision_ci is None or worse.precision_ci is None:
        return False
    if _can_be_paired(better) and _can_be_paired(worse):
        return bool(separated_on_resamples(np.stack([better.samples, worse.samples]))[0, 1])
    margin = hypot(better.precision - better.precision_ci[0], worse.precision_ci[1] - worse.precision)
    return better.precision - worse.precision > margin


def _can_be_paired(contender: Contender) -> bool:
    # A judge that was never wrong, or always, has one precision on every resample: no measure of its error.
    return (
        contender.precision_ci is not None
        and contender.samples is not None
        and bool(0 < contender.precision < 1)
    )


def separated_on_resamples(samples: np.ndarray) -> np.ndarray:
    """Whether row ``i`` lies above row ``j`` on enough resamples: bool of shape (n, n), only for i < j.

    ``samples`` has shape (n, n_resamples), NaN where a precision is undefined: such a resample does not count
    for the pair. In blocks that stay in the processor's cache: 500 judges are 125,000 pairs.
    """
    n, n_resamples = samples.shape
    defined = ~np.isnan(samples)
    not_favoured = np.zeros((n, n), dtype=np.int64)
    for start in range(0, n_resamples, _RESAMPLES_AT_ONCE):
        block = np.ascontiguousarray(samples[:, start : start + _RESAMPLES_AT_ONCE])
        for first in range(n - 1):
            at_most = np.packbits(block[first] <= block[first + 1 :], axis=1)  # never true of NaN
            not_favoured[first, first + 1 :] += np.bitwise_count(at_most).sum(axis=1, dtype=np.int64)
    counted = defined.astype(np.float32)
    compared = counted @ counted.T  # exact: float32 holds whole numbers up to 2**24
    with np.errstate(invalid="ignore"):
        is_clear = not_favoured / compared <= (1 - CONFIDENCE) / 2  # never true of 0 / 0
    return np.triu(is_clear, k=1)


def rank_contenders(contenders: Sequence[Contender]) -> list[Rank]:
    """The rank of each contender; they come in the board's order, best first.

    A row may be as high as one place below the rows that are separated above it, and as low as one place
    above those separated below it: so rows that overlap share a range.
    """
    n = len(contenders)
    separated = np.zeros((n, n), dtype=bool)
    paired = [place for place, contender in enumerate(contenders) if _can_be_paired(contender)]
    if paired:
        samples = np.stack([contenders[place].samples for place in paired])
        separated[np.ix_(paired, paired)] = separated_on_resamples(samples)
    unpaired = set(range(n)).difference(paired)
    for first, second in combinations(range(n), 2):
        if first in unpaired or second in unpaired:
            separated[first, second] = is_separated(contenders[first], contenders[second])
    above, below = separated.sum(axis=0), separated.sum(axis=1)
    return [Rank(place + 1, int(above[place]) + 1, n - int(below[place])) for place in range(n)]
