"""Scores of one judge on one label: overall, by benchmark and by agent, with intervals over clusters."""

from collections.abc import Sequence

import numpy as np

from .confusion import as_column
from .confusion import as_verdicts
from .confusion import confusion_counts
from .confusion import figures
from .confusion import is_missing
from .intervals import N_RESAMPLES
from .intervals import cluster_intervals


def judge_scores(
    predictions,
    references,
    benchmarks: Sequence[str] | None = None,
    agents: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    policy: str = "strict",
    n_resamples: int | None = None,
    seed: int = 0,
) -> dict:
    """Figures of ``predictions`` against ``references``, both with 1 true, 0 false, -1 none; shape (n,).

    The overall figures are the top keys; ``benchmarks`` and ``agents`` (a name a row) add ``by_benchmark``
    and ``by_agent`` with the same keys for each name. ``clusters`` (a task a row) adds 95 % intervals to
    every cell; ``n_resamples`` without clusters takes every row for its own cluster, 0 turns intervals off.
    Overall is pooled over rows. Raises ValueError for unequal lengths or values out of place.
    """
    verdicts = as_verdicts(predictions, "predictions")
    labels = as_verdicts(references, "references")
    n_rows = len(verdicts)
    benchmarks, agents, clusters = (
        None if column is None else as_column(column, name)
        for name, column in (("benchmarks", benchmarks), ("agents", agents), ("clusters", clusters))
    )
    _same_length(n_rows, references=labels, benchmarks=benchmarks, agents=agents, clusters=clusters)
    if n_resamples is not None and (not isinstance(n_resamples, int | np.integer) or n_resamples < 0):
        raise ValueError(f"n_resamples: {n_resamples!r} is no count; give one from 0 (no intervals) on")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed: {seed!r} is no whole number from 0 on; give one")
    if n_resamples is None:
        n_resamples = N_RESAMPLES if clusters is not None else 0

    overall = [(None, None, np.zeros(n_rows, dtype=np.int64))]
    groupings = overall + _groups("by_benchmark", benchmarks) + _groups("by_agent", agents)
    cells = []
    for _, names, groups in groupings:
        counts = confusion_counts(verdicts, labels, groups, len(names or [1]), policy)
        cells += [figures(*row, policy=policy) for row in counts]
    if n_resamples:
        by_cluster = _counts_by_cluster(verdicts, labels, groupings, clusters, policy)
        for cell, intervals in zip(cells, cluster_intervals(by_cluster, n_resamples, seed), strict=True):
            cell.update(intervals)

    result = dict(cells.pop(0))
    for key, names, _ in groupings[1:]:
        result[key] = {name: cells.pop(0) for name in names}
    return result


def cluster_codes(clusters: Sequence[str] | None, n_rows: int) -> tuple[np.ndarray, int]:
    """A whole number for each row's cluster, in sorted order of names, and how many clusters there are."""
    if clusters is None:
        return np.arange(n_rows, dtype=np.int64), n_rows
    names, codes = np.unique(_strings(clusters, "clusters"), return_inverse=True)
    return codes.astype(np.int64), len(names)


def _counts_by_cluster(verdicts, labels, groupings, clusters, policy: str) -> np.ndarray:
    """TP, FP, FN of every cluster in every cell: (clusters, cells, 3)."""
    codes, n_clusters = cluster_codes(clusters, len(verdicts))
    parts = []
    for _, names, groups in groupings:
        n_groups = len(names or [1])
        counts = confusion_counts(verdicts, labels, codes * n_groups + groups, n_clusters * n_groups, policy)
        parts.append(counts[:, :3].reshape(n_clusters, n_groups, 3))
    return np.concatenate(parts, axis=1)


def _groups(key: str, values: Sequence[str] | None) -> list[tuple[str, list[str], np.ndarray]]:
    if values is None:
        return []
    names, codes = np.unique(_strings(values, f"{key.removeprefix('by_')}s"), return_inverse=True)
    return [(key, names.tolist(), codes.astype(np.int64))]


def _strings(values: Sequence[str], name: str) -> np.ndarray:
    array = np.asarray(as_column(values, name))
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one name a row, got several in a row; give one column of them")
    can_miss = array.dtype.kind in "fO"
    if can_miss and (nameless := np.flatnonzero([is_missing(value) for value in array.tolist()])).size:
        raise ValueError(
            f"{name}: every row needs a name; row {nameless[0]} has none ({nameless.size} in all)"
        )
    return array.astype(str)


def _same_length(n_rows: int, **columns) -> None:
    wrong = [f"{name} has {len(c)}" for name, c in columns.items() if c is not None and len(c) != n_rows]
    if wrong:
        raise ValueError(f"predictions has {n_rows} rows, but {', '.join(wrong)}; give one value a row")
