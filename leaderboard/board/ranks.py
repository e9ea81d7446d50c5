"""Ranks with their uncertainty: each row's place, and the range of places that the data allow.

The ranges hold for the whole board together: if all rows were equally good, the chance that any pair is
called separated would be 5 % (the familywise error). Testing each pair by itself would separate some of 13
equally good judges on 85 of 100 boards. A row's best rank is one more than the number of rows separated above
it; its worst rank is the number of rows minus those separated below it (Mogstad, Romano, Shaikh and Wilhelm
2024, "Inference for ranks", Review of Economic Studies 91, section 3).

The step-down procedure of Romano and Wolf (2005, Econometrica 73, algorithm 4.1) decides which pairs are
separated, with a bootstrap over tasks. A pair's statistic is its difference divided by its standard error. On
each resample, the largest deviation of any pair from its estimate shows how large differences can be by
chance; the 95 % quantile of these maxima is the critical value. Pairs above it are separated, and the others
are tested again with their own, smaller critical value. Unlike Bonferroni's and Holm's methods, this takes
into account that differences with the same judge, or on the same tasks, are correlated.

Metrics that are shares of counts are compared as the logarithm of their odds, with half a count added to both
sides (Haldane 1956, Annals of Human Genetics 20; Anscombe 1956, Biometrika 43). On this scale, errors are
closer to normal, even for a judge that rarely says yes. On the scale of precision itself, some pair of 13
equally good judges with a recall from .05 to .90 was separated on 10 to 12.5 % of boards.

Rows without verdicts (published counts, noisy figures of private suites, judges that were never wrong) are
part of the same family of tests. Instead of resamples they have independent normal draws with the width of
their interval (the parametric case of the same test: Hothorn, Bretz and Westfall 2008, Biometrical Journal
50). Because these draws ignore common tasks, the test may separate too few pairs, but not too many.

The cost of the step-down procedure grows with the square of the number of rows. Boards with more than
``TESTED_TOGETHER`` rows use the critical value of Tukey and Kramer instead: the 95 % quantile of the
studentized range of as many independent normal estimates (Tukey 1953; Kramer 1956, Biometrics 12; the
familywise error is at most 5 %: Hayter 1984, Annals of Statistics 12), for the number of rows rounded up to a
power of two. It too may separate too few pairs, but not too many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil, erf, hypot, log, sqrt
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.suites.targets import Target
from arb.core.vocabulary import LOWER_IS_BETTER
from leaderboard.judge_precision.confusion import metric_values
from leaderboard.judge_precision.intervals import (
    CONFIDENCE,
    FIGURES,
    N_RESAMPLES,
    NORMAL_QUANTILE,
    approximate_interval,
    resampled_counts,
)
from leaderboard.metrics import known_metrics
from leaderboard.score import Cell, interval_of, metric_of

DESIGN_EFFECTS: Final = MappingProxyType(
    {"precision": 1.6, "recall": 1.85, "f1": 1.85, "accuracy": 1.6, "npv": 1.85, "tnr": 1.45, "fpr": 1.45,
     "balanced_accuracy": 1.75, "kappa": 1.7}
)  # fmt: skip
"""The variance over tasks, divided by the variance of independent rows. The values are means over AER-C,
NNetNav and the rule-based judge. Their real verdicts on test give 1.5 to 1.8 for precision, and 1.3 to 2.2
for other metrics."""

RANKED_METRICS: Final = tuple(DESIGN_EFFECTS)

TESTED_TOGETHER: Final = 128
RESAMPLED_IN_FULL: Final = 40
"""Boards with more rows use fewer resamples, because the cost grows with the square of the rows."""
RESAMPLES_OF_LARGE_BOARDS: Final = 1_000
"""The number of resamples for larger boards. It gives a standard error that is precise to about 2 %."""

_SMALLEST_SHARE: Final = 0.0005
"""Shares without counts are compared as if they were at least this far from 0 and 1."""

_ROWS_AT_ONCE = 256
_ONE = 2.0**20


@dataclass(frozen=True)
class Contender:
    """A row to be ranked, with its value (higher is better) and the value's 95 % interval (None if unknown).

    If the row has verdicts, ``samples`` contains the value for each resample, of shape (n_resamples,), NaN if
    undefined. All contenders have the same resamples. Value, interval and samples are on the scale of
    `compared_value`. ``metric`` is the metric itself, by which the rows are ordered. If it is None, ``value``
    orders them.
    """

    value: float
    interval: Sequence[float] | None
    samples: np.ndarray | None = None
    metric: float | None = None

    @property
    def order(self) -> float:
        return self.value if self.metric is None else self.metric

    def reversed(self) -> "Contender":
        """Return the contender with its values times -1, for metrics whose lower values are better."""
        ends = None if self.interval is None else [-self.interval[1], -self.interval[0]]
        return Contender(-self.value, ends, None if self.samples is None else -self.samples, -self.order)


@dataclass(frozen=True)
class Rank:
    """A row's ``place`` on the board, and the range of places, ``low`` to ``high``, that the data allow.

    The row is separated from ``n_separated`` other ranked rows. ``separated_from`` has their ids, best first,
    or is None if they are not listed. Two rows can be separated although their ranges overlap.
    """

    place: int
    low: int
    high: int
    n_separated: int = 0
    separated_from: tuple[str, ...] | None = None

    def range_text(self, separator: str = " to ") -> str:
        """Return the range as text, such as "2 to 5", or "3" if it is a single place."""
        return str(self.low) if self.low == self.high else f"{self.low}{separator}{self.high}"


def compared_value(metric: str, tp: Any, fp: Any, fn: Any, tn: Any) -> np.ndarray:
    """Return a metric on the scale for comparing rows, NaN if undefined. Counts may have any shape.

    A share k / (k + m) becomes log((k + 1/2) / (m + 1/2)). F1 = 2 J / (1 + J) is compared by the share J =
    TP / (TP + FP + FN). Balanced accuracy and kappa stay as they are.
    """
    counts = [np.asarray(count, dtype=np.float64) for count in (tp, fp, fn, tn)]
    share = _share_of(metric, *counts)
    if share is None:
        return metric_values(metric, *counts)
    hits, misses = share
    return np.where(hits + misses > 0, np.log((hits + 0.5) / (misses + 0.5)), np.nan)


def _share_of(metric: str, tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any] | None:
    """Return a metric's hits and misses (for F1, those of J), or None if it is not a share of counts."""
    return {
        "precision": (tp, fp),
        "recall": (tp, fn),
        "f1": (tp, fp + fn),
        "accuracy": (tp + tn, fp + fn),
        "npv": (tn, fn),
        "tnr": (tn, fp),
        "fpr": (fp, tn),
    }.get(metric)


def compared_share(metric: str, value: float) -> float:
    """Convert a metric's value, or an end of its interval, to the scale of comparison, without counts."""
    if metric in ("balanced_accuracy", "kappa"):
        return value
    share = value / (2 - value) if metric == "f1" else value
    share = min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)
    return log(share / (1 - share))


def metric_samples(
    judges: Sequence[np.ndarray], metric: str = "precision", n_resamples: int = N_RESAMPLES
) -> list[np.ndarray]:
    """Return each judge's `compared_value` on resamples of tasks, (n_resamples,), NaN if undefined.

    ``judges`` has each judge's counts on the same tasks: (tasks, 4) with TP, FP, FN, TN, or (tasks, 2) with
    TP, FP, which is enough for precision. Drawing the resamples takes most of the time, so 50 judges take
    little longer than one.
    """
    if not judges:
        return []
    counts = np.stack([np.asarray(judge, dtype=np.int64) for judge in judges], axis=1)
    n_tasks, n_judges, n_counts = counts.shape
    totals = resampled_counts(counts.reshape(n_tasks, -1), n_resamples, seed=0)
    columns = list(np.moveaxis(totals.reshape(n_resamples, n_judges, n_counts), 2, 0))
    columns += [np.zeros_like(columns[0])] * (4 - n_counts)
    on_resamples = metric_values(metric, *columns)
    compared = compared_value(metric, *columns)
    # Of a judge that is never wrong, the resamples do not measure an error.
    is_constant = np.fmax.reduce(on_resamples) == np.fmin.reduce(on_resamples)
    compared[:, is_constant] = compared[0, is_constant]
    return list(compared.T)


def count_interval(metric: str, tp: int, fp: int, fn: int, tn: int) -> list[float] | None:
    """Return the approximate 95 % interval of a metric from counts, or None if it is undefined.

    Proportions use the Wilson interval. F1 is 2 J / (1 + J), so its interval follows from the interval of the
    proportion J = TP / (TP + FP + FN). For balanced accuracy, the errors of recall and TNR are added in
    quadrature (Zou and Donner 2008). Kappa uses the large-sample standard error of Fleiss, Cohen and Everitt
    (1969). In each case, the number of rows is divided by the metric's design effect.
    """
    effect = DESIGN_EFFECTS[metric]
    if metric == "kappa":
        return _kappa_interval(np.array([[tn, fp], [fn, tp]]) / effect)
    if metric == "balanced_accuracy":
        ends = [approximate_interval(*part, effect) for part in ((tp, tp + fn), (tn, tn + fp))]
        if ends[0] is None or ends[1] is None:
            return None
        recall, tnr = tp / (tp + fn), tn / (tn + fp)
        below = hypot(recall - ends[0][0], tnr - ends[1][0]) / 2
        above = hypot(ends[0][1] - recall, ends[1][1] - tnr) / 2
        return [(recall + tnr) / 2 - below, (recall + tnr) / 2 + above]
    hits, misses = _share_of(metric, tp, fp, fn, tn) or (0, 0)
    interval = approximate_interval(hits, hits + misses, effect)
    return [2 * end / (1 + end) for end in interval] if interval and metric == "f1" else interval


def _kappa_interval(table: np.ndarray) -> list[float] | None:
    """Return kappa's interval from a 2 x 2 table with one row per label, or None if it has no width."""
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
    """Return a bool array of shape (n, n): whether row ``i`` is better than ``j`` and separated from it.

    Two rows whose resamples vary are compared on the same resamples. All other pairs are compared by the
    facing ends of their intervals, with the errors added in quadrature (Newcombe 1998, method 10). A row with
    neither resamples nor an interval is not separated from any row. Two rows with the same verdicts are not
    separated from each other.
    """
    n = len(contenders)
    values, order = _values_and_order(contenders)
    has_samples = np.array([_varies(contender.samples) for contender in contenders], dtype=bool)
    has_interval = np.array([contender.interval is not None for contender in contenders], dtype=bool)
    takes_part = has_samples | has_interval
    apart = np.abs(values[:, None] - values)
    family = np.triu(takes_part[:, None] & takes_part, k=1)
    if not family.any():
        return np.zeros((n, n), dtype=bool)
    errors = _errors(contenders, values, has_samples)
    spread = _standard_errors(errors)
    statistics = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
    if not has_samples.all():
        by_intervals = ~(has_samples[:, None] & has_samples)
        statistics[by_intervals] = _interval_statistics(contenders, values, apart)[by_intervals]
    errors = np.nan_to_num(errors, nan=0.0).astype(np.float32)
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0).astype(np.float32)
    found = _step_down(statistics, errors, scale, family)
    return (found | found.T) & (values[:, None] > values) & (order[:, None] > order)


def _values_and_order(contenders: Sequence[Contender]) -> tuple[np.ndarray, np.ndarray]:
    """Return the compared values, and the metrics that order the rows: two arrays of shape (n,)."""
    values = np.array([contender.value for contender in contenders], dtype=np.float64)
    return values, np.array([contender.order for contender in contenders], dtype=np.float64)


def _varies(samples: np.ndarray | None) -> bool:
    """Return whether resamples vary. If a judge is never wrong, they do not, and so they show no error."""
    if samples is None:
        return False
    defined = samples[~np.isnan(samples)]
    return bool(len(defined)) and float(np.ptp(defined)) > 1e-9


def _errors(contenders: Sequence[Contender], values: np.ndarray, has_samples: np.ndarray) -> np.ndarray:
    """Return resamples minus estimates, or normal draws without resamples, of shape (n, n_resamples)."""
    paired: list[tuple[int, np.ndarray]] = []
    drawing: list[tuple[float, float, float, int]] = []
    for place, contender in enumerate(contenders):
        if contender.samples is not None and has_samples[place]:
            paired.append((place, contender.samples))
        elif contender.interval is not None:
            low, high = contender.interval
            drawing.append((contender.value, low, high, place))
    size = min([len(samples) for _, samples in paired], default=N_RESAMPLES)
    errors = np.zeros((len(values), size))
    for place, samples in paired:
        errors[place] = samples[:size] - values[place]
    # Rows are drawn in the order of their figures, so that the result does not depend on their order.
    generator = np.random.default_rng(len(drawing))
    for _, low, high, place in sorted(drawing):
        errors[place] = generator.standard_normal(size) * (high - low) / (2 * NORMAL_QUANTILE)
    return errors


def _standard_errors(errors: np.ndarray) -> np.ndarray:
    """Return each difference's standard error, of shape (n, n); 0 if no resample has values of both rows."""
    defined = (~np.isnan(errors)).astype(np.float64)
    filled = np.nan_to_num(errors, nan=0.0)
    squares = filled**2 @ defined.T
    compared = defined @ defined.T
    total = squares + squares.T - 2 * (filled @ filled.T)
    total[total <= 1e-12 * (squares + squares.T)] = 0.0  # rounding errors of two judges with equal verdicts
    return np.sqrt(np.divide(total, compared, out=np.zeros_like(total), where=compared > 0))


def _interval_statistics(
    contenders: Sequence[Contender], values: np.ndarray, apart: np.ndarray
) -> np.ndarray:
    """Return each pair's difference divided by its standard error.

    The error combines two half-widths: from the better row's value down to its lower end, and from the worse
    row's value up to its upper end.
    """
    ends = np.array([contender.interval or [np.nan, np.nan] for contender in contenders])
    below, above = values - ends[:, 0], ends[:, 1] - values
    margin = np.hypot(below[:, None], above)  # of row i above row j
    margin = np.where(values[:, None] > values, margin, margin.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(NORMAL_QUANTILE * apart / margin, nan=0.0, posinf=np.inf)


def _step_down(
    statistics: np.ndarray, errors: np.ndarray, scale: np.ndarray, family: np.ndarray
) -> np.ndarray:
    """Return the pairs of ``family`` (bool, upper triangle) that are separated, as the module describes."""
    separated = np.zeros_like(family)
    while True:
        maxima = _maxima(errors, scale, family)
        critical = float(np.sort(maxima)[min(len(maxima), ceil(CONFIDENCE * (len(maxima) + 1))) - 1])
        found = family & (statistics > critical)
        if not found.any():
            return separated
        separated |= found
        family = family & ~found


def _maxima(errors: np.ndarray, scale: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return each resample's largest difference of any pair, in standard errors, of shape (n_resamples,).

    A row that is undefined on a resample has error 0 there. This may be too small, but such a row has a large
    standard error.
    """
    found = np.zeros(errors.shape[1], dtype=np.float32)
    for first, row in enumerate(pairs):
        others = np.flatnonzero(row)
        if len(others):
            apart = np.abs(errors[others] - errors[first]) * scale[first, others, None]
            np.maximum(found, apart.max(axis=0), out=found)
    return found


@lru_cache(maxsize=64)
def critical_value(n: int) -> float:
    """Return the 95 % quantile of the largest |difference| / standard error among ``n`` estimates.

    It is q / sqrt(2), where q is the 95 % quantile of the range of n standard normals. P(range <= q) is the
    integral of n phi(z) (Phi(z) - Phi(z - q))**(n - 1) over z; q is found by bisection.
    """
    if n < 2:
        return 0.0
    step = 0.01
    z = np.arange(-9, 18 + step, step)
    density = n * np.exp(-z * z / 2) / sqrt(2 * np.pi) * step
    below = np.array([(1 + erf(point / sqrt(2))) / 2 for point in z])
    low, high = 0, len(z) // 2  # q in steps of z, so that Phi(z - q) is Phi shifted by whole points
    while high - low > 1:
        shift = (low + high) // 2
        moved = np.concatenate([np.zeros(shift), below[: len(below) - shift]])
        if float(density @ (below - moved) ** (n - 1)) < CONFIDENCE:
            low = shift
        else:
            high = shift
    return high * step / sqrt(2)


def count_separated(contenders: Sequence[Contender]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows separated above each row, and below it, on a large board.

    Two rows with resamples are separated if difference**2 > critical**2 * variance of the difference. All
    other pairs are compared by the facing ends of their intervals (Newcombe 1998, method 10). Errors are
    rounded to multiples of 2**-20, so that sums of their products are exact in float64 in any order.
    """
    n = len(contenders)
    values, order = _values_and_order(contenders)
    ends = np.array([contender.interval or (np.nan, np.nan) for contender in contenders], dtype=np.float64)
    to_low, to_high = values - ends[:, 0], ends[:, 1] - values
    errors = np.zeros((n, RESAMPLES_OF_LARGE_BOARDS))
    squares = np.full(n, np.nan)  # sums of squared errors; NaN for rows that are compared by intervals
    for place, contender in enumerate(contenders):
        if contender.samples is not None and not np.isnan(contender.samples).any():
            rounded = np.rint((contender.samples - contender.value) * _ONE)
            if np.ptp(rounded) > 1:
                errors[place], squares[place] = rounded, rounded @ rounded
    border = critical_value(1 << (n - 1).bit_length()) ** 2
    above, below = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        apart = values[rows, None] - values
        squared = apart * apart
        spread = squares[rows, None] + squares - 2 * (errors[rows] @ errors.T)
        by_resamples = (squared * (RESAMPLES_OF_LARGE_BOARDS * _ONE**2) > border * spread) & (spread > 0)
        # The better row's lower end faces the worse one's upper end.
        facing = np.where(apart > 0, to_low[rows, None], to_high[rows, None])
        opposite = np.where(apart > 0, to_high, to_low)
        by_interval = squared * NORMAL_QUANTILE**2 > border * (facing * facing + opposite * opposite)
        separated = np.where(np.isnan(spread), by_interval, by_resamples)
        separated &= apart * (order[rows, None] - order) > 0
        above[rows] = (separated & (apart < 0)).sum(axis=1)
        below[rows] = (separated & (apart > 0)).sum(axis=1)
    return above, below


def rank_contenders(contenders: Sequence[Contender], ids: Sequence[str] | None = None) -> list[Rank]:
    """Return the rank of each contender; ``contenders`` are in the order of the board, best first.

    A row's range begins after the rows that are separated above it, and ends before those separated below it.
    ``separated_from`` lists the rows by their ``ids``. It is None if ``ids`` is None or the board is large.
    """
    n = len(contenders)
    pairs = separated_pairs(contenders) if n <= TESTED_TOGETHER else None
    if pairs is None:
        above, below = count_separated(contenders)
    else:
        above, below = pairs.sum(axis=0), pairs.sum(axis=1)
    found = []
    for place in range(n):
        names = None
        if pairs is not None and ids is not None:
            apart = np.flatnonzero(pairs[place] | pairs[:, place]).tolist()
            names = tuple(ids[other] for other in apart)
        better, worse = int(above[place]), int(below[place])
        found.append(Rank(place + 1, better + 1, n - worse, better + worse, names))
    return found


@dataclass(frozen=True, repr=False)
class RankingData:
    """Data needed for ranking in addition to the rows. It reveals labels, so it must not leave the server.

    ``counts_by_task`` has the counts of every task for rows whose verdicts are known, keyed by row id, then
    by target (see `leaderboard.report.counts_by_task`). ``labels_by_task`` has [positives, negatives] of
    every task, keyed by label. ``hidden`` has the cells on the hidden half of the tasks for rows that are
    ranked by that half, keyed by row id, then by label.
    """

    counts_by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels_by_task: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    hidden: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)

    def all_counts(self, row_id: str, target: str) -> np.ndarray | None:
        """Return a row's TP, FP, FN and TN on every task, of shape (tasks, 4), or None if not known."""
        found = self.counts_by_task.get(row_id, {}).get(target)
        labelled = self._labels.get(target)
        if found is None or labelled is None:
            return None
        # Under the policy `strict`, no verdict counts as no: FN = positives - TP, TN = negatives - FP.
        counts = np.asarray(found)
        return np.concatenate([counts, labelled - counts], axis=1)

    @cached_property
    def _labels(self) -> dict[str, np.ndarray]:
        """``labels_by_task`` as arrays of shape (tasks, 2), cached because every row needs them."""
        return {target: np.array(found) for target, found in self.labels_by_task.items() if len(found)}


def rank_cells(cells: Mapping[str, Cell], target: Target, metric: str, data: RankingData) -> dict[str, Rank]:
    """Return ranks, keyed by row id. ``cells`` are best first, and each must define the metric.

    If the target is not ranked by counts, rows are resampled only for its main metric. If rows are ranked by
    a hidden half of the tasks, the ranks do not list which rows are separated, because such a list would
    reveal more about that half.
    """
    size = N_RESAMPLES if len(cells) <= RESAMPLED_IN_FULL else RESAMPLES_OF_LARGE_BOARDS
    ids = None if data.hidden else list(cells)
    known = {name: data.counts_by_task.get(name, {}).get(target.name) for name in cells}
    if not target.is_ranked_by_counts or metric not in RANKED_METRICS:
        others = [_other_contender(cell, target, metric, known[name], size) for name, cell in cells.items()]
        return dict(zip(cells, rank_contenders(others, ids), strict=True))
    counts = {}
    for name, found in known.items():
        by_task = found if metric == "precision" else data.all_counts(name, target.name)
        if by_task is not None:
            counts[name] = by_task
    drawn = metric_samples(list(counts.values()), metric, n_resamples=size)
    samples = dict(zip(counts, drawn, strict=True))
    contenders = [
        _contender(cell, metric, counts.get(name), samples.get(name)) for name, cell in cells.items()
    ]
    return dict(zip(cells, rank_contenders(contenders, ids), strict=True))


def _other_contender(cell: Cell, target: Target, metric: str, by_task: Any, n_resamples: int) -> Contender:
    """Return a row on a target that is not ranked by counts, compared by the metric itself."""
    measured = metric_of(cell, metric)
    if measured is None:
        raise ValueError(f"{metric}: a row cannot be ranked if its metric is undefined")
    formula, samples = known_metrics(target)[metric], None
    if by_task is not None and metric == target.main_metric:
        with np.errstate(invalid="ignore", divide="ignore"):
            samples = formula.value(resampled_counts(np.asarray(by_task), n_resamples, seed=0))
    found = Contender(measured, interval_of(cell, metric), samples)
    return found.reversed() if formula.is_lower_better else found


def _contender(cell: Cell, metric: str, by_task: np.ndarray | None, samples: np.ndarray | None) -> Contender:
    measured = metric_of(cell, metric)
    if measured is None:
        raise ValueError(f"{metric}: a row cannot be ranked if its metric is undefined")
    counts = _counts_of(cell)
    interval = interval_of(cell, metric)
    if interval is None and counts and metric not in FIGURES:
        interval = count_interval(metric, *counts)
    ends = interval and [compared_share(metric, end) for end in interval]
    if by_task is not None:  # the counts that the resamples are drawn from
        tp, fp, *others = np.sum(by_task, axis=0)
        value = float(compared_value(metric, tp, fp, *(others or (0, 0))))
    elif counts:
        value = float(compared_value(metric, *counts))
    else:
        value = compared_share(metric, measured)
    found = Contender(value, ends, samples, measured)
    return found.reversed() if metric in LOWER_IS_BETTER else found


def _counts_of(cell: Cell) -> tuple[int, int, int, int] | None:
    """Return TP, FP, FN and TN, or None if they are unknown or noisy, as intervals would ignore the noise."""
    tp, fp, fn, tn = cell.get("tp"), cell.get("fp"), cell.get("fn"), cell.get("tn")
    if "noise" in cell or tp is None or fp is None or fn is None or tn is None:
        return None
    return tp, fp, fn, tn
