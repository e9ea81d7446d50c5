"""Ranks that say what the test set can tell apart: a place, and the range of places it may be a tie for.

The ranges hold for the whole board at once. Every two rows are a test of equality, and if no row were better
than another, the chance that any two are called separated would be 5 %: the familywise error, where pairs
tested one by one would separate some of 13 equally good judges on 85 boards of 100. A rank is then one more
than the number of rows separated above, up to the number of rows less those separated below (Mogstad, Romano,
Shaikh and Wilhelm 2024, "Inference for ranks", Review of Economic Studies 91, section 3).

Which pairs are separated is decided by the step-down of Romano and Wolf (2005, Econometrica 73, algorithm
4.1) on the bootstrap over tasks. A pair's statistic is its difference by its standard error; on each resample
the largest of all pairs, each taken from its estimate, is one draw of what chance alone can do; the 95 %
quantile of these is the critical value. The pairs beyond it are separated, and the rest is tested again with
the smaller critical value of the pairs that are left. The maximum knows that differences with a common judge,
or on common tasks, move together, which Bonferroni's and Holm's bounds do not.

Rows without verdicts (published counts, noisy figures of private suites, judges that were never wrong) are in
the same family: in place of resamples they have normal draws with the width of their interval, independent of
all others (the parametric case of the same test: Hothorn, Bretz and Westfall 2008, Biometrical Journal 50).
Independence makes their differences look less certain than on common tasks, so it separates too little rather
than too much.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import ceil, hypot, sqrt
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.vocabulary import LOWER_IS_BETTER
from leaderboard.judge_precision.intervals import (
    CONFIDENCE,
    FIGURES,
    N_RESAMPLES,
    NORMAL_QUANTILE,
    approximate_interval,
    metric_values,
    resampled_counts,
)

DESIGN_EFFECTS: Final = MappingProxyType(
    {"precision": 1.6, "recall": 1.85, "f1": 1.85, "accuracy": 1.6, "npv": 1.85, "tnr": 1.45, "fpr": 1.45,
     "balanced_accuracy": 1.75, "kappa": 1.7}
)  # fmt: skip
"""Variance over tasks against variance of independent rows: means over AER-C, NNetNav and the rule-based
judge, whose real test verdicts give 1.5 to 1.8 for precision and 1.3 to 2.2 for the others."""

RANKED_METRICS: Final = tuple(DESIGN_EFFECTS)

_RESAMPLES_AT_ONCE = 512
_LARGEST_WORK = 500_000_000
_FEWEST_RESAMPLES = 1_000
_WINDOW = 0.25


@dataclass(frozen=True)
class Contender:
    """A row in the race: its metric (higher is better), the 95 % interval, resamples where it has verdicts.

    ``samples`` has shape (n_resamples,), over the same resamples for all contenders of one split; NaN where
    the metric is undefined.
    """

    value: float
    interval: Sequence[float] | None
    samples: np.ndarray | None = None


@dataclass(frozen=True)
class Rank:
    """``place`` in the order; ``low`` to ``high`` are the places that the intervals leave open."""

    place: int
    low: int
    high: int


class Ranks(Mapping[str, Rank | None]):
    """Ranks by row id, None where the metric is undefined: kept as arrays, a `Rank` is made where it is read.

    ``numbers`` has place, low and high of each of ``ids``: int of shape (len(ids), 3).
    """

    def __init__(self, ids: Sequence[str], numbers: np.ndarray, undefined: Iterable[str] = ()) -> None:
        self.ids, self.numbers = ids, numbers
        self._places = {**dict.fromkeys(undefined, len(ids)), **dict(zip(ids, range(len(ids)), strict=True))}

    @classmethod
    def of(cls, ranks: Mapping[str, Rank | None]) -> "Ranks":
        """The same ranks as arrays."""
        known = {row_id: rank for row_id, rank in ranks.items() if rank is not None}
        numbers = [(rank.place, rank.low, rank.high) for rank in known.values()]
        return cls(list(known), np.array(numbers, dtype=np.int64).reshape(-1, 3), ranks.keys() - known.keys())

    def take(self, row_ids: Sequence[str]) -> np.ndarray:
        """Place, low and high of each of these rows, (len(row_ids), 3); zeros where it has no rank."""
        places = map(self._places.get, row_ids, repeat(len(self.ids)))
        with_none = np.concatenate([self.numbers, np.zeros((1, 3), dtype=np.int64)])
        return with_none[np.fromiter(places, dtype=np.int64, count=len(row_ids))]

    def __getitem__(self, row_id: str) -> Rank | None:
        place = self._places[row_id]
        return Rank(*self.numbers[place].tolist()) if place < len(self.ids) else None

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def metric_samples(
    judges: Sequence[np.ndarray], metric: str = "precision", seed: int = 0, n_resamples: int = N_RESAMPLES
) -> list[np.ndarray]:
    """Of each judge, from its counts a task: the metric over resamples of tasks; NaN where undefined.

    Counts are (tasks, 2) with TP, FP, enough for precision, or (tasks, 4) with TP, FP, FN, TN. The draws, not
    the products with them, take the time: 50 judges cost little more than one.
    """
    counts = [np.asarray(judge, dtype=np.int64) for judge in judges]
    samples: list[np.ndarray] = [np.empty(0)] * len(counts)
    for shape in {judge.shape for judge in counts}:
        places = [place for place, judge in enumerate(counts) if judge.shape == shape]
        totals = resampled_counts(np.concatenate([counts[p] for p in places], axis=1), n_resamples, seed)
        columns = [totals[:, column :: shape[1]] for column in range(shape[1])]
        columns += [np.zeros_like(columns[0])] * (4 - len(columns))
        found = metric_values(metric, *columns)
        for column, place in enumerate(places):
            samples[place] = found[:, column]
    return samples


def count_interval(metric: str, tp: int, fp: int, fn: int, tn: int) -> list[float] | None:
    """The approximate 95 % interval of a metric of which only the counts are known; None where undefined.

    Shares: Wilson's. F1 = 2 J / (1 + J) from the share J = TP / (TP + FP + FN). Balanced accuracy: the errors
    of recall and TNR in squares (Zou and Donner 2008). Kappa: the large-sample error of Fleiss, Cohen and
    Everitt 1969. All with the design effect of the metric, as if so many fewer rows had been labelled.
    """
    effect = DESIGN_EFFECTS[metric]
    shares = {
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "f1": (tp, tp + fp + fn),
        "accuracy": (tp + tn, tp + fp + fn + tn),
        "npv": (tn, tn + fn),
        "tnr": (tn, tn + fp),
        "fpr": (fp, tn + fp),
    }
    if metric == "kappa":
        return _kappa_interval(np.array([[tn, fp], [fn, tp]]) / effect)
    if metric == "balanced_accuracy":
        parts = [shares[name] for name in ("recall", "tnr")]
        ends = [approximate_interval(hits, total, effect) for hits, total in parts]
        if ends[0] is None or ends[1] is None:
            return None
        of_recall, of_tnr = (hits / total for hits, total in parts)
        below = hypot(of_recall - ends[0][0], of_tnr - ends[1][0]) / 2
        above = hypot(ends[0][1] - of_recall, ends[1][1] - of_tnr) / 2
        middle = (of_recall + of_tnr) / 2
        return [middle - below, middle + above]
    interval = approximate_interval(*shares[metric], effect)
    return [2 * end / (1 + end) for end in interval] if interval and metric == "f1" else interval


def _kappa_interval(table: np.ndarray) -> list[float] | None:
    """Of a table of counts, rows the labels; None where kappa or its error is undefined or 0."""
    n = table.sum()
    if not n:
        return None
    shares = table / n
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    by_chance = float(rows @ columns)
    if by_chance == 1:
        return None
    kappa = (np.trace(shares) - by_chance) / (1 - by_chance)
    agreed = sum(shares[k, k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in (0, 1))
    differed = sum(shares[k, 1 - k] * (columns[k] + rows[1 - k]) ** 2 for k in (0, 1)) * (1 - kappa) ** 2
    variance = (agreed + differed - (kappa - by_chance * (1 - kappa)) ** 2) / n / (1 - by_chance) ** 2
    half = NORMAL_QUANTILE * sqrt(max(0.0, variance))
    return [float(kappa - half), float(kappa + half)] if half else None


def separated_pairs(contenders: Sequence[Contender]) -> np.ndarray:
    """Whether row ``i`` is separated above row ``j``: bool of shape (n, n), for all pairs at once.

    Two rows whose resamples vary are compared paired; any other two by their intervals, the errors that face
    each other added in squares (Newcombe 1998, method 10). A contender with neither is separated from nobody,
    nor are two with the same verdicts.
    """
    n = len(contenders)
    values = np.array([contender.value for contender in contenders], dtype=np.float64)
    has_samples = np.array([_varies(contender.samples) for contender in contenders], dtype=bool)
    has_interval = np.array([contender.interval is not None for contender in contenders], dtype=bool)
    takes_part = has_samples | has_interval
    apart = np.abs(values[:, None] - values)
    family = np.triu(takes_part[:, None] & takes_part, k=1)
    if not family.any():
        return np.zeros((n, n), dtype=bool)
    errors = _errors(contenders, values, has_samples, family)
    spread = _standard_errors(errors)
    statistics = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
    if not has_samples.all():
        by_intervals = ~(has_samples[:, None] & has_samples)
        statistics[by_intervals] = _interval_statistics(contenders, values, apart)[by_intervals]
    errors = np.nan_to_num(errors, nan=0.0).astype(np.float32)
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0).astype(np.float32)
    found = _step_down(statistics, errors, scale, family)
    return (found | found.T) & (values[:, None] > values)


def _varies(samples: np.ndarray | None) -> bool:
    """Whether resamples say anything of the error: those of a judge that is never wrong do not."""
    if samples is None:
        return False
    defined = samples[~np.isnan(samples)]
    return bool(len(defined)) and float(np.ptp(defined)) > 1e-9


def _errors(
    contenders: Sequence[Contender], values: np.ndarray, has_samples: np.ndarray, family: np.ndarray
) -> np.ndarray:
    """How far each resample lies from the estimate: (n, n_resamples), NaN where undefined.

    A board of more than 316 rows takes fewer of the resamples, 500 rows 4,000, so that it is made in a second
    or so: the familywise level is then within 0.3 points (one standard error) of 5 %.
    """
    drawn = {len(contenders[place].samples) for place in np.flatnonzero(has_samples)} or {N_RESAMPLES}
    size = max(_FEWEST_RESAMPLES, _LARGEST_WORK // int(family.sum()))
    size = min(size, *drawn)
    errors = np.zeros((len(values), size))
    for place in np.flatnonzero(has_samples):
        errors[place] = contenders[place].samples[:size] - values[place]
    # In the order of their figures, so that the order in which rows come makes no difference.
    drawing = [
        (contender.value, *contender.interval, place)
        for place, contender in enumerate(contenders)
        if not has_samples[place] and contender.interval is not None
    ]
    generator = np.random.default_rng(len(drawing))
    for _, low, high, place in sorted(drawing):
        errors[place] = generator.standard_normal(size) * (high - low) / (2 * NORMAL_QUANTILE)
    return errors


def _standard_errors(errors: np.ndarray) -> np.ndarray:
    """Of each difference: (n, n), over the resamples on which both are defined; 0 where there is none."""
    defined = (~np.isnan(errors)).astype(np.float64)
    filled = np.nan_to_num(errors, nan=0.0)
    squares = filled**2 @ defined.T
    compared = defined @ defined.T
    total = squares + squares.T - 2 * (filled @ filled.T)
    total[total <= 1e-12 * (squares + squares.T)] = 0.0  # what rounding leaves of two judges that are alike
    return np.sqrt(np.divide(total, compared, out=np.zeros_like(total), where=compared > 0))


def _interval_statistics(
    contenders: Sequence[Contender], values: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    """Of each pair, difference by standard error from the ends of the two intervals that face each other."""
    ends = np.array([contender.interval or [np.nan, np.nan] for contender in contenders])
    below, above = values - ends[:, 0], ends[:, 1] - values
    margin = np.hypot(below[:, None], above)  # of row i above row j
    margin = np.where(values[:, None] > values, margin, margin.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(NORMAL_QUANTILE * apart / margin, nan=0.0, posinf=np.inf)


def _step_down(
    statistics: np.ndarray, errors: np.ndarray, scale: np.ndarray, family: np.ndarray
) -> np.ndarray:
    """The pairs of ``family`` (bool, upper triangle) that are separated; see the module for the source.

    Each step needs the maxima over the pairs that are left, but only pairs just below the last critical value
    can go next: the maxima over all the others are taken once.
    """
    separated = np.zeros_like(family)
    critical, border, settled = np.inf, np.inf, None
    while True:
        if settled is None or critical <= border:
            border = critical - _WINDOW
            settled = _maxima(errors, scale, family & (statistics <= border))
        maxima = np.maximum(settled, _maxima(errors, scale, family & (statistics > border)))
        critical = float(np.sort(maxima)[min(len(maxima), ceil(CONFIDENCE * (len(maxima) + 1))) - 1])
        found = family & (statistics > critical)
        if not found.any():
            return separated
        separated |= found
        family = family & ~found


def _maxima(errors: np.ndarray, scale: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """On each resample the largest of the pairs' differences by their standard errors, (n_resamples,).

    A resample that leaves a row undefined has an error of 0 there: less than it could be, of a row with a
    large standard error. In blocks that stay in the processor's cache: 500 judges are 125,000 pairs.
    """
    found = np.zeros(errors.shape[1], dtype=np.float32)
    partners = [(first, others) for first, row in enumerate(pairs) if len(others := np.flatnonzero(row))]
    for start in range(0, errors.shape[1], _RESAMPLES_AT_ONCE):
        block = np.ascontiguousarray(errors[:, start : start + _RESAMPLES_AT_ONCE])
        largest = found[start : start + _RESAMPLES_AT_ONCE]
        for first, others in partners:
            apart = block[others]
            apart -= block[first]
            np.abs(apart, out=apart)
            apart *= scale[first, others, None]
            np.maximum(largest, apart.max(axis=0), out=largest)
    return found


def rank_contenders(contenders: Sequence[Contender]) -> np.ndarray:
    """Place, low and high of each contender, (n, 3); they come in the board's order, best first."""
    separated = separated_pairs(contenders)
    return numbers_of(separated.sum(axis=0), separated.sum(axis=1))


def numbers_of(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Place, low and high, (n, 3), of rows in their order, of which so many are separated above and below.

    A row may be as high as one place below the rows that are separated above it, and as low as one place
    above those separated below it: so rows that overlap share a range.
    """
    n = len(above)
    return np.stack([np.arange(1, n + 1), above + 1, n - below], axis=1).astype(np.int64)


def counts_of_tasks(found: Sequence[Sequence[int]], labelled: Sequence[Sequence[int]] | None) -> np.ndarray:
    """TP, FP, FN, TN of each task from [TP, FP] and from [positives, negatives] of its labels; (tasks, 4).

    Under the policy ``strict`` a missing verdict is a no, so FN = positives - TP and TN = negatives - FP:
    records need not hold them. Without labels (tasks, 2): TP and FP, which is enough for precision.
    """
    counts = np.asarray(found, dtype=np.int64)
    if labelled is None:
        return counts
    return np.concatenate([counts, np.asarray(labelled, dtype=np.int64) - counts], axis=1)


@dataclass(frozen=True, repr=False)
class RankingData:
    """What ranks stand on beside the rows. It says much about the labels: it never leaves the server.

    ``counts_by_task`` has by row id and label [TP, FP] of every task, ``labels_by_task`` by label its
    [positives, negatives]; ``hidden`` by row id and label the CELL that ranks in place of the one shown.
    """

    counts_by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels_by_task: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    hidden: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def contenders_of(
    cells: Mapping[str, Mapping[str, Any]],
    label: str,
    metric: str,
    data: RankingData,
    n_resamples: int = N_RESAMPLES,
) -> list[Contender]:
    """The rows of ``cells`` (by row id, their CELL of the label, the metric defined), in their order."""
    labelled = None if metric == "precision" else data.labels_by_task.get(label)
    counts = {
        name: counts_of_tasks(found, labelled)
        for name in cells
        if (found := data.counts_by_task.get(name, {}).get(label)) is not None
        and (metric == "precision" or labelled)
    }
    drawn = metric_samples(list(counts.values()), metric, n_resamples=n_resamples)
    samples = dict(zip(counts, drawn, strict=True))
    return [_contender(cell, metric, samples.get(name)) for name, cell in cells.items()]


def _contender(cell: Mapping[str, Any], metric: str, samples: np.ndarray | None) -> Contender:
    if metric in FIGURES:
        interval = cell.get(f"{metric}_ci")
    elif cell.get("tp") is None or "noise" in cell:  # an interval of the counts would leave the noise out
        interval = None
    else:
        interval = count_interval(metric, *(cell[count] for count in ("tp", "fp", "fn", "tn")))
    if metric not in LOWER_IS_BETTER:
        return Contender(cell[metric], interval, samples)
    return Contender(
        -cell[metric], interval and [-interval[1], -interval[0]], None if samples is None else -samples
    )
