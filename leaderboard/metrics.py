"""The metrics of targets of every type, with 95 % intervals over tasks.

A metric is a function of sums over items, such as the counts of a confusion matrix. So its value on a
resample of tasks follows from the sums of the tasks that are drawn. The formulas of binary targets are in
`leaderboard.judge_precision`, which is also published on its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.predictions.table import is_answered
from arb.core.suites.targets import NO_ANSWER, STEP_METRICS, Target
from arb.core.vocabulary import LOWER_IS_BETTER, METRIC_TITLES
from leaderboard.judge_precision.confusion import FORMULAS
from leaderboard.judge_precision.intervals import percentile_intervals, resampled_counts


@dataclass(frozen=True)
class LabelledAnswers:
    """A judge's answers to a target, next to the labels, for the items that have a label.

    Attributes:
        target: The target.
        labels: The labels as codes of `Target.code`, or as floats for a score: (n,).
        verdicts: The judge's answers in the same form; -1 or nan if missing.
        clusters: The index of each item's task: (n,).
        runs: The index of each item's run: (n,). The items of a run are in the order of its steps.
    """

    target: Target
    labels: np.ndarray
    verdicts: np.ndarray
    clusters: np.ndarray
    runs: np.ndarray

    @property
    def has_verdict(self) -> np.ndarray:
        return is_answered(self.verdicts)


SumsFunction = Callable[[LabelledAnswers], np.ndarray]


@dataclass(frozen=True)
class TargetMetric:
    """A metric that can be registered in `METRICS`.

    Attributes:
        title: Its name on pages.
        formula: How it is computed, in words.
        sums: A function that returns what each item of `LabelledAnswers` adds to the sums: (n, k).
        value: A function from sums (..., k) to values of the metric (...), which are nan if undefined.
        is_lower_better: Whether lower values are better.
        is_share: Whether it is a share of items or runs, from 0 to 1.
        lowest: The lowest possible value.
        highest: The highest possible value, or None if it depends on the answers.
    """

    title: str
    formula: str
    sums: SumsFunction
    value: Callable[[np.ndarray], np.ndarray]
    is_lower_better: bool = False
    is_share: bool = False
    lowest: float = 0.0
    highest: float | None = 1.0


def _confusion(answers: LabelledAnswers) -> np.ndarray:
    """Return each item's row of TP, FP, FN and TN: three zeros and a one.

    A missing verdict is a "no", or the wrong answer if the target says so.
    """
    truth, said_yes = answers.labels == 1, answers.verdicts == 1
    if answers.target.missing == "wrong":
        said_yes = np.where(answers.has_verdict, said_yes, ~truth)
    return np.stack([truth & said_yes, ~truth & said_yes, truth & ~said_yes, ~truth & ~said_yes], axis=1)


def _of_counts(name: str, sums: np.ndarray) -> np.ndarray:
    return FORMULAS[name](*np.moveaxis(sums.astype(np.float64), -1, 0))


def _table(answers: LabelledAnswers) -> np.ndarray:
    """Return each item's table of label by answer, flattened: a one in the item's cell, zeros elsewhere.

    The last column of the table is for missing answers. If the answers are grades, a missing answer counts as
    the grade that is farthest from the label.
    """
    size = answers.target.n_codes
    labels, verdicts = answers.labels.astype(np.int64), answers.verdicts.astype(np.int64)
    if answers.target.ordered:
        farthest = np.where(labels >= size / 2, 0, size - 1)
        verdicts = np.where(verdicts == NO_ANSWER, farthest, verdicts)
    verdicts = np.where(verdicts == NO_ANSWER, size, verdicts)
    cells = labels * (size + 1) + verdicts
    return np.eye(size * (size + 1), dtype=np.int64)[cells]


def _as_table(sums: np.ndarray) -> np.ndarray:
    """Return sums of `_table` as tables (..., size, size + 1). ``size`` follows from the number of sums."""
    size = round((np.sqrt(1 + 4 * sums.shape[-1]) - 1) / 2)  # size * (size + 1) sums
    return sums.reshape(*sums.shape[:-1], size, size + 1)


def _accuracy(sums: np.ndarray) -> np.ndarray:
    table = _as_table(sums)
    return np.trace(table[..., :-1], axis1=-2, axis2=-1) / table.sum(axis=(-2, -1))


def _macro_f1(sums: np.ndarray) -> np.ndarray:
    """Return the mean F1 of the classes that occur among labels or answers."""
    table = _as_table(sums)
    right = np.diagonal(table[..., :-1], axis1=-2, axis2=-1)
    both = table.sum(axis=-1) + table[..., :-1].sum(axis=-2)  # 2 TP + FP + FN of each class
    occurs = both > 0
    return (2 * right / np.where(occurs, both, 1)).sum(axis=-1) / occurs.sum(axis=-1)


def _kappa(sums: np.ndarray) -> np.ndarray:
    """Return Cohen's kappa (1960, Educational and Psychological Measurement 20).

    Missing answers form a separate class.
    """
    table = _as_table(sums)
    n = table.sum(axis=(-2, -1))
    by_chance = (table.sum(axis=-1) * table[..., :-1].sum(axis=-2)).sum(axis=-1) / n
    return (np.trace(table[..., :-1], axis1=-2, axis2=-1) - by_chance) / (n - by_chance)


def _grades(size: int) -> np.ndarray:
    return np.abs(np.arange(size)[:, None] - np.arange(size))


def _weighted_kappa(sums: np.ndarray) -> np.ndarray:
    """Return kappa with quadratic weights (Cohen 1968, Psychological Bulletin 70)."""
    table = _as_table(sums)[..., :-1]
    weights = _grades(table.shape[-1]) ** 2
    n = table.sum(axis=(-2, -1))
    expected = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    return 1 - n * (weights * table).sum(axis=(-2, -1)) / (weights * expected).sum(axis=(-2, -1))


def _grade_error(sums: np.ndarray) -> np.ndarray:
    table = _as_table(sums)[..., :-1]
    return (_grades(table.shape[-1]) * table).sum(axis=(-2, -1)) / table.sum(axis=(-2, -1))


def _grade_spearman(sums: np.ndarray) -> np.ndarray:
    """Return Spearman's rank correlation. Equal grades share their mean rank."""
    table = _as_table(sums)[..., :-1].astype(np.float64)
    ranks = []
    for axis in (-1, -2):
        counts = table.sum(axis=axis)
        ranks.append(np.cumsum(counts, axis=-1) - counts / 2)
    n = table.sum(axis=(-2, -1))
    first, second = ranks[0] - n[..., None] / 2, ranks[1] - n[..., None] / 2
    together = np.einsum("...ij,...i,...j->...", table, first, second)
    return together / np.sqrt(
        (table.sum(axis=-1) * first**2).sum(axis=-1) * (table.sum(axis=-2) * second**2).sum(axis=-1)
    )


def _first_errors(answers: LabelledAnswers) -> np.ndarray:
    """Return an array of shape (n, 2) with zeros, except on the first item of each run.

    There, it has 1 if the judge names the run's first wrong step correctly (else 0), and 1. For a run without
    a wrong step, the judge is right if it names none.
    """
    codes = [answers.target.code(value) for value in answers.target.errors]
    found = np.zeros((len(answers.labels), 2), dtype=np.int64)
    if not len(found):
        return found
    starts = np.flatnonzero(np.r_[True, answers.runs[1:] != answers.runs[:-1]])
    places = np.arange(len(found))
    firsts = []  # the place of each run's first error by labels and by verdicts; the end if it has none
    for column in (answers.labels, answers.verdicts):
        of_errors = np.where(np.isin(column, codes), places, len(found))
        firsts.append(np.minimum.reduceat(of_errors, starts))
    found[starts, 0] = firsts[0] == firsts[1]
    found[starts, 1] = 1
    return found


def _share(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def _distances(answers: LabelledAnswers) -> np.ndarray:
    """Return (distance from the label, 1) for each answer, and zeros for a missing answer."""
    known = answers.has_verdict
    apart = np.abs(answers.labels - np.where(known, answers.verdicts, answers.labels))
    return np.stack([apart, known], axis=1).astype(np.float64)


def _rank_moments(answers: LabelledAnswers) -> np.ndarray:
    """Return 1, x, y, x^2, y^2, xy for each answer (x: label's rank, y: answer's rank), or zeros without one.

    The ranks are computed once, among all answered items, and do not change in resamples.
    """
    known = answers.has_verdict
    found = np.zeros((len(known), 6))
    x, y = (_middle_ranks(column[known]) for column in (answers.labels, answers.verdicts))
    found[known] = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return found


def _middle_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values, minus their mean. Equal values share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[places] - (len(values) + 1) / 2


def _correlation(sums: np.ndarray) -> np.ndarray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


OF_BINARY: Final[Mapping[str, TargetMetric]] = MappingProxyType(
    {
        name: TargetMetric(
            title, "a formula of TP, FP, FN and TN", _confusion, partial(_of_counts, name),
            name in LOWER_IS_BETTER, name != "kappa", -1.0 if name == "kappa" else 0.0,
        )
        for name, title in METRIC_TITLES.items()
    }
)  # fmt: skip
"""The metrics of binary targets, by name."""
OF_CLASSES: Final[Mapping[str, TargetMetric]] = MappingProxyType(
    {
        "accuracy": TargetMetric("Accuracy", "right answers / all items", _table, _accuracy, is_share=True),
        "macro_f1": TargetMetric("Macro F1", "mean of the classes' F1", _table, _macro_f1, is_share=True),
        "kappa": TargetMetric("Kappa", "agreement beyond chance", _table, _kappa, lowest=-1.0),
        "weighted_kappa": TargetMetric(
            "Weighted kappa", "kappa with quadratic weights", _table, _weighted_kappa, lowest=-1.0
        ),
        "mae": TargetMetric(
            "MAE", "mean distance in grades", _table, _grade_error, is_lower_better=True, highest=None
        ),
        "spearman": TargetMetric("Spearman", "correlation of ranks", _table, _grade_spearman, lowest=-1.0),
        "first_error_accuracy": TargetMetric(
            "First error",
            "runs whose first wrong step is named correctly / all runs",
            _first_errors,
            _share,
            is_share=True,
        ),
    }
)
"""The metrics of targets with classes or grades, by name."""
OF_SCORES: Final[Mapping[str, TargetMetric]] = MappingProxyType(
    {
        "mae": TargetMetric("MAE", "mean distance", _distances, _share, is_lower_better=True, highest=None),
        "spearman": TargetMetric(
            "Spearman", "correlation of ranks", _rank_moments, _correlation, lowest=-1.0
        ),
    }
)
"""The metrics of targets whose answers are numbers, by name."""


def known_metrics(target: Target) -> Mapping[str, TargetMetric]:
    """Return all metrics of targets of this type, by name."""
    if target.type == "binary":
        return {**OF_BINARY, **{name: OF_CLASSES[name] for name in STEP_METRICS}}
    return OF_SCORES if target.type == "score" else OF_CLASSES


def metrics_of(target: Target) -> Mapping[str, TargetMetric]:
    """Return the metrics that a target declares, by name, with the main one first."""
    known = known_metrics(target)
    return {name: known[name] for name in target.metrics}


def measure(
    metrics: Mapping[str, TargetMetric], answers: LabelledAnswers, n_resamples: int, seed: int
) -> dict[str, Any]:
    """Return each metric under ``name`` and its interval under ``name_ci``. Undefined values are None."""
    found: dict[str, Any] = {}
    n_clusters = int(answers.clusters.max(initial=-1)) + 1
    sums_of: dict[SumsFunction, np.ndarray] = {}
    drawn: dict[SumsFunction, np.ndarray] = {}  # metrics of the same sums share their resamples
    for name, metric in metrics.items():
        found[name], found[f"{name}_ci"] = None, None
        if not len(answers.labels):
            continue
        if metric.sums not in sums_of:
            sums_of[metric.sums] = by_cluster(metric.sums(answers), answers.clusters, n_clusters)
        sums = sums_of[metric.sums]
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(metric.value(sums.sum(axis=0)))
            if np.isnan(value):
                continue
            found[name] = value
            if n_clusters > 1 and n_resamples:
                if metric.sums not in drawn:
                    drawn[metric.sums] = resampled_counts(sums, n_resamples, seed)
                found[f"{name}_ci"] = percentile_intervals(metric.value(drawn[metric.sums])[:, None])[0]
    return found


def by_cluster(parts: np.ndarray, clusters: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return each cluster's sum of rows. ``parts`` has shape (n, k), and the result (n_clusters, k)."""
    columns = [np.bincount(clusters, column, minlength=n_clusters) for column in parts.T]
    return np.stack(columns, axis=1) if columns else np.zeros((n_clusters, 0))


def answers_of(
    target: Target,
    labels: np.ndarray,
    verdicts: np.ndarray,
    clusters: np.ndarray,
    runs: Sequence[str],
    chosen: np.ndarray | None = None,
) -> LabelledAnswers:
    """Return the answers about items with a label, or only the ``chosen`` ones (bool of shape (n,)).

    If the target leaves missing answers out, the items without an answer are left out too.
    """
    kept = is_answered(labels)
    if chosen is not None:
        kept &= chosen
    if target.missing == "left out":
        kept &= is_answered(verdicts)
    _, numbers = np.unique(np.asarray(runs)[kept], return_inverse=True)
    return LabelledAnswers(target, labels[kept], verdicts[kept], clusters[kept], numbers)
