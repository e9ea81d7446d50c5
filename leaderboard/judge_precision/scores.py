"""Scores of one judge on one label: overall, by benchmark and by agent, with intervals over clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .confusion import as_column
from .confusion import as_verdicts
from .confusion import confusion_counts
from .confusion import figures
from .confusion import is_missing
from .intervals import N_RESAMPLES
from .intervals import cluster_intervals


def judge_scores(
    predictions: Any,
    references: Any,
    benchmarks: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    policy: str = "strict",
    n_resamples: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the figures of ``predictions`` against ``references``, over all rows and by group.

    Both are of shape (n,): 1 true, 0 false, -1 missing or unsure. ``benchmarks`` and ``agents`` (one name per
    row) add ``by_benchmark`` and ``by_agent``, with the figures of each name. ``clusters`` (the task of each
    row) adds 95 % intervals to every cell. If you give ``n_resamples`` without clusters, every row is a
    cluster of its own; 0 turns intervals off. Raises ValueError for unequal lengths or wrong values.
    """
    verdicts = as_verdicts(predictions, "predictions")
    labels = as_verdicts(references, "references")
    n_rows = len(verdicts)
    columns = {
        name: as_column(column, name)
        for name, column in (("benchmarks", benchmarks), ("agents", agents), ("clusters", clusters))
        if column is not None
    }
    _check_lengths(n_rows, {"references": labels, **columns})
    if n_resamples is not None and (not isinstance(n_resamples, int | np.integer) or n_resamples < 0):
        raise ValueError(f"n_resamples: {n_resamples!r} is not a count; give 0 (no intervals) or more")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed: {seed!r} is not a seed; give a whole number of 0 or more")
    if n_resamples is None:
        n_resamples = N_RESAMPLES if clusters is not None else 0

    # Each grouping: its key in the result, its names, and the index of each row's name. The first is overall.
    groupings = [("", [""], np.zeros(n_rows, dtype=np.int64))]
    for key, name in (("by_benchmark", "benchmarks"), ("by_agent", "agents")):
        if name in columns:
            groupings.append((key, *_coded(columns[name], name)))
    cells = []
    for _, names, groups in groupings:
        for counts in confusion_counts(verdicts, labels, groups, len(names), policy):
            tp, fp, fn, tn, no_verdict = counts
            cells.append(figures(tp, fp, fn, tn, no_verdict, policy))
    if n_resamples:
        codes, n_clusters = cluster_codes(columns.get("clusters"), n_rows)
        parts = []
        for _, names, groups in groupings:
            in_cells = codes * len(names) + groups
            counts = confusion_counts(verdicts, labels, in_cells, n_clusters * len(names), policy)
            parts.append(counts[:, :3].reshape(n_clusters, len(names), 3))
        by_cluster = np.concatenate(parts, axis=1)  # (clusters, cells, 3) with TP, FP, FN
        for cell, intervals in zip(cells, cluster_intervals(by_cluster, n_resamples, seed), strict=True):
            cell.update(intervals)

    result = cells.pop(0)
    for key, names, _ in groupings[1:]:
        result[key] = {name: cells.pop(0) for name in names}
    return result


def cluster_codes(clusters: Sequence[str] | np.ndarray | None, n_rows: int) -> tuple[np.ndarray, int]:
    """Return each row's cluster as an index into the sorted names, and the number of clusters.

    Without ``clusters`` every row is a cluster of its own.
    """
    if clusters is None:
        return np.arange(n_rows, dtype=np.int64), n_rows
    names, codes = _coded(as_column(clusters, "clusters"), "clusters")
    return codes, len(names)


def _coded(column: np.ndarray | list | tuple, name: str) -> tuple[list[str], np.ndarray]:
    """Return the sorted names in a column, and the index of each row's name among them."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one name per row, got several; give only one column")
    can_miss = array.dtype.kind in "fO"
    if can_miss and (nameless := np.flatnonzero([is_missing(value) for value in array.tolist()])).size:
        raise ValueError(
            f"{name}: every row needs a name; row {nameless[0]} has none ({nameless.size} rows in total)"
        )
    names, codes = np.unique(array.astype(str), return_inverse=True)
    return names.tolist(), codes.astype(np.int64)


def _check_lengths(n_rows: int, columns: dict[str, np.ndarray | list | tuple]) -> None:
    wrong = [f"{name} has {len(column)}" for name, column in columns.items() if len(column) != n_rows]
    if wrong:
        raise ValueError(f"predictions has {n_rows} rows, but {', '.join(wrong)}; give one value per row")
