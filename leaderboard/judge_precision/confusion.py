"""Confusion counts of verdicts against labels, and the figures that follow from them."""

from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, NoReturn

import numpy as np

POLICIES = ("strict", "published")


def as_column(values: Any, name: str) -> np.ndarray | list | tuple:
    """Return ``values`` as a column with one value per row: an array, a list or a tuple.

    ``values`` may be an array, a column of pandas, Arrow or ``datasets``, a tensor or a generator. Raises
    ValueError, which names the argument ``name``, if the rows have no order (a dict, a set), if there are no
    rows (a number, a string), or if a row has several values.
    """
    has_no_rows = isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__iter__")
    if has_no_rows or getattr(values, "ndim", 1) == 0:
        raise ValueError(
            f"{name}: expected a column with one value per row, got {type(values).__name__}; "
            "give a list, an array or a column with its rows in the order of the trajectories"
        )
    if isinstance(values, list | tuple):
        return values
    column: Any
    if hasattr(values, "__array__"):
        column = np.asarray(values)
    else:
        try:
            column = values[:]  # reads a column of datasets as a whole
        except TypeError:
            column = list(values)
    if getattr(column, "ndim", 1) != 1 or isinstance(column, Mapping):  # the rows of a table
        raise ValueError(f"{name}: expected one value per row, got several; give only one column")
    return column


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN or the NA of pandas."""
    # NA is recognised by the name of its type, so that pandas is not imported.
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def as_verdicts(values: Any, name: str) -> np.ndarray:
    """Return verdicts or labels as int8 of shape (n,): 1 true, 0 false, -1 missing.

    Accepts the same ``values`` as `as_column`. None, NaN and NA become -1. Raises ValueError with the name of
    the argument and the first wrong rows.
    """
    column = as_column(values, name)
    array: np.ndarray
    try:
        array = np.asarray(column)
    except ValueError:  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one value per row, got several; give only one column")
    if array.dtype.kind not in "biuf":
        array = _numbers(np.fromiter(column, dtype=object, count=len(column)), name)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1.0, array)
    wrong = np.flatnonzero((array != 0) & (array != 1) & (array != -1))
    if wrong.size:
        _refuse(name, wrong, array)
    return array.astype(np.int8)


def _numbers(objects: np.ndarray, name: str) -> np.ndarray:
    """Return Python objects as floats, missing ones as NaN. Raises ValueError for strings, even "1"."""
    # The numpy format of datasets gives a nullable bool column as arrays without a shape.
    bare = [v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for v in objects]
    missing = np.array([is_missing(value) for value in bare], dtype=bool)
    readable = np.array([isinstance(v, int | float | np.number | np.bool_) for v in bare], dtype=bool)
    if not (readable | missing).all():
        _refuse(name, np.flatnonzero(~(readable | missing)), objects)
    return np.array([np.nan if is_missing(value) else float(value) for value in bare])


def _refuse(name: str, wrong: np.ndarray, values: np.ndarray) -> NoReturn:
    found = [f"row {row} is {repr(values[row : row + 1].tolist()[0])[:40]}" for row in wrong[:5]]
    more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
    raise ValueError(f"{name}: every value must be 1, 0 or -1 (no verdict); {', '.join(found)}{more}")


def confusion_counts(
    verdicts: np.ndarray, labels: np.ndarray, groups: np.ndarray, n_groups: int, policy: str = "strict"
) -> np.ndarray:
    """Return each group's TP, FP, FN, TN and missing verdicts, as int64 of shape (n_groups, 5).

    ``verdicts`` and ``labels`` are int8 of shape (n,): 1, 0, -1; ``groups`` has the number of each row's
    group. Rows whose label is -1 (unsure) are left out. Under ``strict`` a missing verdict counts as "no": FN
    if the label is 1, TN if it is 0. Under ``published`` it is left out, as in the released scorer. The last
    column counts missing verdicts under both policies.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy: {policy!r} is unknown; use one of {', '.join(POLICIES)}")
    labelled = labels >= 0
    # One code for each (label, verdict): negative 0..2, positive 3..5, verdict -1, 0, 1 within each.
    codes = labels[labelled].astype(np.int64) * 3 + verdicts[labelled] + 1
    tally = np.bincount(groups[labelled] * 6 + codes, minlength=n_groups * 6).reshape(n_groups, 6)
    missed_negative, true_negative, false_positive, missed_positive, false_negative, true_positive = tally.T
    if policy == "strict":
        true_negative = true_negative + missed_negative
        false_negative = false_negative + missed_positive
    no_verdict = missed_negative + missed_positive
    return np.stack([true_positive, false_positive, false_negative, true_negative, no_verdict], axis=1)


def ratio(numerator: float, denominator: float) -> float | None:
    """Return the quotient, or None if the denominator is 0."""
    return float(numerator) / float(denominator) if denominator else None


def _kappa(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Return Cohen's kappa, (p_o - p_e) / (1 - p_e), computed with both terms multiplied by n**2."""
    n = tp + fp + fn + tn
    by_chance = (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)
    return (n * (tp + tn) - by_chance) / (n * n - by_chance)


FORMULAS: Final[Mapping[str, Callable[..., np.ndarray]]] = MappingProxyType(
    {
        "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
        "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
        "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
        "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
        "npv": lambda tp, fp, fn, tn: tn / (tn + fn),
        "tnr": lambda tp, fp, fn, tn: tn / (tn + fp),
        "fpr": lambda tp, fp, fn, tn: fp / (tn + fp),
        "balanced_accuracy": lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
        "kappa": _kappa,
    }
)
"""The metrics, as functions of float64 arrays of counts. They give NaN for 0 / 0."""


def metric_values(metric: str, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Return a metric for each element of the arrays of counts, or NaN where it is undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return FORMULAS[metric](tp, fp, fn, tn)


def figures(tp: int, fp: int, fn: int, tn: int, no_verdict: int = 0, policy: str = "strict") -> dict:
    """Return the figures of one group as fractions in [0, 1] (kappa in [-1, 1]), None if undefined.

    ``n`` is the number of rows that count, TP + FP + FN + TN. ``coverage`` is the share of labelled rows
    that have a verdict.
    """
    tp, fp, fn, tn, no_verdict = (int(count) for count in (tp, fp, fn, tn, no_verdict))
    n = tp + fp + fn + tn
    labelled = n if policy == "strict" else n + no_verdict
    counts = np.array((tp, fp, fn, tn), dtype=np.float64)
    return {
        "n": n,
        "positives": tp + fn,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "no_verdict": no_verdict,
        "coverage": ratio(labelled - no_verdict, labelled),
        **{metric: _defined(metric_values(metric, *counts)) for metric in FORMULAS},
    }


def _defined(value: np.ndarray) -> float | None:
    return None if np.isnan(value) else float(value)
