"""Coefficients of agreement, their 95 % intervals over tasks, and how many doubles are needed.

Categories are integers from 0, in order if the answers are ordered. Values below 0 are missing and are left
out. A coefficient is None if it is undefined.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from leaderboard.judge_precision.intervals import N_RESAMPLES, percentile_intervals, resampled_counts

Level = Literal["nominal", "ordinal"]
HALF_WIDTH: Final = 0.1
"""The intended half-width of a coefficient's interval."""


def confusion_table(first: np.ndarray, second: np.ndarray, n_categories: int) -> np.ndarray:
    """Count pairs of answers, as int64 of shape (n_categories, n_categories) with a row per first answer.

    ``first`` and ``second`` are integers of shape (n,). Pairs with a missing answer are left out.
    """
    both = (first >= 0) & (second >= 0)
    codes = first[both].astype(np.int64) * n_categories + second[both]
    return np.bincount(codes, minlength=n_categories**2).reshape(n_categories, n_categories)


def rating_counts(units: np.ndarray, values: np.ndarray, n_units: int, n_categories: int) -> np.ndarray:
    """Count the annotators by unit and value, as int64 of shape (n_units, n_categories).

    ``units`` (0 to n_units - 1) and ``values`` are integers of shape (annotations,). Missing values are left
    out.
    """
    is_rated = values >= 0
    codes = units[is_rated].astype(np.int64) * n_categories + values[is_rated]
    return np.bincount(codes, minlength=n_units * n_categories).reshape(n_units, n_categories)


def coefficients(tables: np.ndarray, coincidences: np.ndarray, level: Level) -> dict[str, float | None]:
    """Return ``kappa``, ``alpha`` and ``ac1`` over all tasks; None if undefined.

    For the arguments see `agreement_intervals`.
    """
    values = _coefficients(tables.sum(axis=0)[None], coincidences.sum(axis=0)[None], level)
    return {name: None if np.isnan(value[0]) else float(value[0]) for name, value in values.items()}


def agreement_intervals(
    tables: np.ndarray, coincidences: np.ndarray, level: Level, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, list[float] | None]:
    """Return ``kappa_ci``, ``alpha_ci`` and ``ac1_ci`` as [low, high], or None.

    Tasks are resampled, because the runs of several agents on one task get similar answers. There is no
    interval with fewer than two tasks, or if all resamples give the same value. ``tables`` has the confusion
    table of each task, and ``coincidences`` is the result of `coincidence_matrices`; both are of shape
    (tasks, c, c).
    """
    rests_on = int((tables.sum(axis=(1, 2)) > 0).sum())
    if rests_on < 2 or not n_resamples:
        return {"kappa_ci": None, "alpha_ci": None, "ac1_ci": None}
    n_tasks, c, _ = tables.shape
    columns = np.concatenate([tables.reshape(n_tasks, -1), coincidences.reshape(n_tasks, -1)], axis=1)
    totals = resampled_counts(columns, n_resamples, seed).reshape(n_resamples, 2, c, c)
    found: dict[str, list[float] | None] = {}
    for name, values in _coefficients(totals[:, 0], totals[:, 1], level).items():
        interval = percentile_intervals(values[:, None])[0]
        found[f"{name}_ci"] = interval if interval is not None and interval[0] < interval[1] else None
    return found


def _coefficients(tables: np.ndarray, coincidences: np.ndarray, level: Level) -> dict[str, np.ndarray]:
    return {"kappa": _kappas(tables), "alpha": _alphas(coincidences, level), "ac1": _ac1s(tables)}


def doubles_wanted(pairs: int, interval: Sequence[float] | None) -> int | None:
    """Return how many more doubles are needed to narrow the interval to a half-width of ``HALF_WIDTH``.

    ``interval`` was computed from ``pairs`` doubles. The estimate assumes that new doubles are like those so
    far, so that the width shrinks with the square root of their number. It is None without an interval.
    """
    if interval is None:
        return None
    half = (interval[1] - interval[0]) / 2
    return max(0, math.ceil(pairs * (half / HALF_WIDTH) ** 2) - pairs)


def difference_of_shares(
    is_equal: np.ndarray, is_theirs: np.ndarray, is_rest: np.ndarray, tasks: np.ndarray, error: float
) -> tuple[float, float]:
    """Return a confidence interval of the share of equal answers in one group minus that in the rest.

    ``is_theirs`` and ``is_rest`` say which rows are in the group and in the rest. To both, one equal and one
    unequal row are added, each in a new task, so that a few equal rows do not look certain (Agresti and Caffo
    2000, The American Statistician 54). The variance is linearized and clustered by ``tasks`` (integers from
    0; Kish and Frankel 1974). ``error`` is the probability that the interval is wrong: 0.05 divided by the
    number of comparisons.
    """
    is_equal = np.concatenate([is_equal, [True, False, True, False]])
    is_theirs = np.concatenate([is_theirs, [True, True, False, False]])
    is_rest = np.concatenate([is_rest, [False, False, True, True]])
    tasks = np.concatenate([tasks, np.arange(4) + tasks.max(initial=-1) + 1])
    shares = [is_equal[side].mean() for side in (is_theirs, is_rest)]
    theirs, rest = (
        side * (is_equal - share) / side.sum()
        for side, share in zip((is_theirs, is_rest), shares, strict=True)
    )
    squares = (np.bincount(tasks, weights=theirs - rest) ** 2).sum()
    n_tasks = len(np.unique(tasks[is_theirs | is_rest]))
    half = NormalDist().inv_cdf(1 - error / 2) * math.sqrt(squares * n_tasks / (n_tasks - 1))
    difference = float(shares[0] - shares[1])
    return difference - half, difference + half


def coincidence_matrices(counts: np.ndarray, tasks: np.ndarray, n_tasks: int) -> np.ndarray:
    """Return Krippendorff's coincidence matrix of each task, float64 of shape (n_tasks, c, c).

    ``counts`` is the result of `rating_counts`. ``tasks`` (units,) has the index of each unit's task.
    """
    # Each unit adds n_i n_j / (n - 1) pairs of values, but no pairs of a value with itself.
    n = counts.sum(axis=1)
    weighted = counts / np.maximum(n - 1, 1)[:, None] * (n > 1)[:, None]
    of_units = weighted[:, :, None] * counts[:, None, :]
    diagonal = np.arange(counts.shape[1])
    of_units[:, diagonal, diagonal] -= weighted
    found = np.zeros((n_tasks, *of_units.shape[1:]))
    np.add.at(found, tasks, of_units)
    return found


def _kappas(tables: np.ndarray) -> np.ndarray:
    """Return Cohen's unweighted kappa, (p_o - p_e) / (1 - p_e), of tables of shape (resamples, c, c).

    It is NaN if a table is empty, or if all answers are the same, so that p_e is 1. Source: Cohen 1960.
    """
    n = tables.sum(axis=(1, 2))
    by_chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (n * np.trace(tables, axis1=1, axis2=2) - by_chance) / (n * n - by_chance)


def _ac1s(tables: np.ndarray) -> np.ndarray:
    """Return Gwet's AC1 of each table, NaN if undefined. ``tables`` has shape (resamples, c, c).

    AC1 is (p_o - p_e) / (1 - p_e) with p_e = sum(q (1 - q)) / (categories - 1), where ``q`` is a category's
    share of both annotators' answers. If nearly all answers are the same, kappa is close to 0 no matter how
    often annotators agree, but AC1 is not. Source: Gwet 2008, British Journal of Mathematical and Statistical
    Psychology 61.
    """
    n = tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (tables.sum(axis=1) + tables.sum(axis=2)) / (2 * n)[:, None]
        by_chance = (shares * (1 - shares)).sum(axis=1) / (tables.shape[1] - 1)
        return (np.trace(tables, axis1=1, axis2=2) / n - by_chance) / (1 - by_chance)


def _alphas(coincidences: np.ndarray, level: Level) -> np.ndarray:
    """Return Krippendorff's alpha of matrices (resamples, c, c): 1 is full agreement, 0 chance level.

    The ordinal distance of two categories is the number of values between them, plus half of their own.
    Alpha is NaN if all values are equal, since chance cannot disagree then. Source: Krippendorff 2011, C, E.
    """
    totals = coincidences.sum(axis=2)
    places = np.arange(totals.shape[1])
    if level == "nominal":
        distances = np.broadcast_to((places[:, None] != places).astype(np.float64), coincidences.shape)
    else:
        middles = np.cumsum(totals, axis=1) - totals / 2
        distances = (middles[:, :, None] - middles[:, None, :]) ** 2
    expected = np.einsum("ri,rij,rj->r", totals, distances, totals)
    observed = (coincidences * distances).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - (totals.sum(axis=1) - 1) * observed / expected
