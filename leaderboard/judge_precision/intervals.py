"""95 % intervals, from a bootstrap over clusters or approximately from counts.

The runs of several agents on one task tend to succeed or fail together, so tasks are resampled, not rows. The
weights of a resample do not depend on the judge. With the same seed, judges of the same tasks get the same
resamples, so comparisons between them are paired.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from .confusion import metric_values

CONFIDENCE = 0.95
N_RESAMPLES = 10_000
FIGURES = ("precision", "recall", "f1")
NORMAL_QUANTILE = 1.959963984540054
_DRAWS_IN_MEMORY = 4_000_000


def resampling_weights(n_clusters: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield blocks of weights: how often a resample draws each cluster.

    A block is float32 of shape (resamples in the block, n_clusters); each row sums to n_clusters. Blocks
    limit the memory used. The weights depend only on the arguments.
    """
    if n_clusters * n_resamples <= _DRAWS_IN_MEMORY:
        yield _only_block(n_clusters, n_resamples, seed)
    else:
        yield from _draw_blocks(n_clusters, n_resamples, seed)


@lru_cache(maxsize=8)
def _only_block(n_clusters: int, n_resamples: int, seed: int) -> np.ndarray:
    """Return all weights as one cached block, since all labels and judges of a split share it."""
    (weights,) = _draw_blocks(n_clusters, n_resamples, seed)
    weights.flags.writeable = False
    return weights


def _draw_blocks(n_clusters: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    block = max(1, _DRAWS_IN_MEMORY // n_clusters)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        drawn = generator.integers(0, n_clusters, size=(rows, n_clusters), dtype=np.int32).astype(np.int64)
        drawn += (np.arange(rows) * n_clusters)[:, None]
        counted = np.bincount(drawn.ravel(), minlength=rows * n_clusters)
        yield counted.reshape(rows, n_clusters).astype(np.float32)


def resampled_counts(cluster_counts: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """Return each resample's sums of counts (clusters, columns), of shape (n_resamples, columns)."""
    # float32 is exact for whole numbers up to 2**24. Weights rarely exceed 12, so 2**20 is a safe limit.
    exact = np.float32 if cluster_counts.sum() < 2**20 else np.float64
    columns = cluster_counts.astype(exact)
    blocks = [weights @ columns for weights in resampling_weights(len(columns), n_resamples, seed)]
    return np.concatenate(blocks).astype(np.float64)


def percentile_intervals(samples: np.ndarray) -> list[list[float] | None]:
    """Return the central 95 % of each column of ``samples`` (n_resamples, columns) as [low, high].

    NaN means that a figure is undefined in a resample, and is left out. A column of only NaN gives None.
    Source: percentile bootstrap, Efron 1979; linear interpolation between order statistics.
    """
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    found: list[list[float] | None] = []
    if not np.isnan(samples).any():  # all columns at once are faster
        found += np.quantile(samples, ends, axis=0).T.tolist()
        return found
    for column in samples.T:
        defined = column[~np.isnan(column)]
        found.append(np.quantile(defined, ends).tolist() if len(defined) else None)
    return found


def cluster_intervals(cluster_counts: np.ndarray, n_resamples: int, seed: int) -> list[dict]:
    """Return the intervals of several cells from one set of resamples.

    ``cluster_counts`` is (clusters, cells, 3) with TP, FP, FN. The result has for each cell
    ``{"precision_ci": [low, high], "recall_ci": …, "f1_ci": …}``. The interval of a figure is None if it is
    undefined on the whole cell or rests on a single cluster. If a figure is exactly 0 or 1, it is the same in
    every resample and the bootstrap would claim certainty. In this case, the result is the Wilson interval,
    with the number of clusters that the figure rests on as the sample size.
    """
    n_clusters, n_cells, _ = cluster_counts.shape
    if n_clusters < 2 or not n_resamples:
        return [{f"{figure}_ci": None for figure in FIGURES} for _ in range(n_cells)]
    totals = resampled_counts(cluster_counts.reshape(n_clusters, n_cells * 3), n_resamples, seed)
    tp, fp, fn = np.moveaxis(totals.reshape(n_resamples, n_cells, 3), 2, 0)
    rests_on = {"precision": [0, 1], "recall": [0, 2], "f1": [0, 1, 2]}
    cells: list[dict] = [{} for _ in range(n_cells)]
    for figure in FIGURES:
        samples = metric_values(figure, tp, fp, fn, np.zeros_like(tp))  # none of the three uses TN
        supports = (cluster_counts[:, :, rests_on[figure]].sum(axis=2) > 0).sum(axis=0)
        for cell, interval, support in zip(cells, percentile_intervals(samples), supports, strict=True):
            cell[f"{figure}_ci"] = _without_false_certainty(interval, int(support)) if support > 1 else None
    return cells


def _without_false_certainty(interval: list[float] | None, support: int) -> list[float] | None:
    """Return the interval, or the Wilson interval for ``support`` clusters if it is only the point 0 or 1."""
    if interval == [1.0, 1.0]:
        return approximate_interval(support, support, 1.0)
    if interval == [0.0, 0.0]:
        return approximate_interval(0, support, 1.0)
    return interval


def approximate_interval(hits: int, total: int, design_effect: float) -> list[float] | None:
    """Return the 95 % Wilson interval of hits / total, or None if total is 0.

    Use it for published rows, for which only counts are known. The sample size is divided by the design
    effect of clustering: the variance over tasks relative to that of as many independent rows (Kish 1965).
    """
    return wilson(hits / total, total / design_effect) if total else None


def wilson(share: float, n: float) -> list[float]:
    """Return the 95 % Wilson interval of a share of ``n`` independent rows. ``n`` need not be an integer."""
    z2 = NORMAL_QUANTILE**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return [float(max(0.0, centre - half)), float(min(1.0, centre + half))]
