"""Coefficients of agreement from counts: percent, Cohen's kappa, Krippendorff's alpha.

Categories are whole numbers from 0, in their order where they have one; a value below 0 is missing (not
answered, or Unsure) and is left out. None where a coefficient is undefined.
"""

from typing import Literal

import numpy as np

from leaderboard.judge_precision.confusion import ratio

Level = Literal["nominal", "ordinal"]


def confusion_table(first: np.ndarray, second: np.ndarray, n_categories: int) -> np.ndarray:
    """How often each pair of answers occurs: int64 of shape (n_categories, n_categories), rows the first's.

    ``first`` and ``second`` are whole numbers of shape (n,); pairs in which one is missing are left out.
    """
    both = (first >= 0) & (second >= 0)
    codes = first[both].astype(np.int64) * n_categories + second[both]
    return np.bincount(codes, minlength=n_categories**2).reshape(n_categories, n_categories)


def percent_agreement(table: np.ndarray) -> float | None:
    """The share of equal answers in a confusion table, as a fraction; None without pairs."""
    return ratio(int(np.trace(table)), int(table.sum()))


def cohen_kappa(table: np.ndarray) -> float | None:
    """Cohen's kappa of a confusion table, (p_o - p_e) / (1 - p_e), unweighted, in [-1, 1].

    None without pairs, and where both always give one and the same answer: then p_e is 1.
    Source: Cohen 1960; in whole numbers up to the one division.
    """
    n = int(table.sum())
    by_chance = sum(int(a) * int(b) for a, b in zip(table.sum(axis=0), table.sum(axis=1), strict=True))
    return ratio(n * int(np.trace(table)) - by_chance, n * n - by_chance)


def rating_counts(units: np.ndarray, values: np.ndarray, n_units: int, n_categories: int) -> np.ndarray:
    """How many annotators gave each unit each value: int64 of shape (n_units, n_categories).

    ``units`` (0 to n_units - 1) and ``values`` are whole numbers of shape (annotations,); missing values are
    left out.
    """
    given = values >= 0
    codes = units[given].astype(np.int64) * n_categories + values[given]
    return np.bincount(codes, minlength=n_units * n_categories).reshape(n_units, n_categories)


def krippendorff_alpha(counts: np.ndarray, level: Level = "nominal") -> float | None:
    """Krippendorff's alpha of ``rating_counts``: 1 full agreement, 0 that of chance; may be below 0.

    Any number of annotators a unit; units with fewer than two values say nothing and are left out. Under
    ``ordinal`` categories farther apart differ more. None where no unit has two values, and where all values
    are one and the same: then chance cannot disagree. Source: Krippendorff 2011, sections C and E.
    """
    pairable = counts[counts.sum(axis=1) > 1].astype(np.float64)
    if not len(pairable):
        return None
    weighted = pairable / (pairable.sum(axis=1, keepdims=True) - 1)
    coincidences = weighted.T @ pairable - np.diag(weighted.sum(axis=0))
    totals = pairable.sum(axis=0)
    distances = _distances(totals, level)
    expected = float(totals @ distances @ totals)
    if not expected:
        return None
    observed = float((coincidences * distances).sum())
    return 1 - (float(totals.sum()) - 1) * observed / expected


def _distances(totals: np.ndarray, level: Level) -> np.ndarray:
    """Squared distances of the categories: (c, c). Ordinal: the values in between, the two ends by half."""
    places = np.arange(len(totals))
    if level == "nominal":
        return (places[:, None] != places).astype(np.float64)
    # With half of its own values before it, each category has a place on one line.
    middles = np.cumsum(totals) - totals / 2
    return (middles[:, None] - middles) ** 2
