"""What an attacker makes of shown figures: sums of labels with a known noise, and the belief that follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from tests.attacks.world import POSITIVES, World

_ROUNDING = 1 / 12
"""Variance of rounding a count to a whole number."""


@dataclass(frozen=True, eq=False)
class Observation:
    """The shown number of positives among ``rows`` (bool of shape (n,)), with its standard deviation."""

    rows: np.ndarray
    count: int
    sd: float


def observations_in(world: World, verdicts: np.ndarray, report: Mapping[str, Any]) -> list[Observation]:
    """Every count of true positives that a report shows of a file."""
    called = verdicts == 1
    shown = report["labels"]["success"]
    cells = [(called, shown["overall"])]
    benchmarks = world.benchmark_rows()
    cells += [(called & benchmarks[name], cell) for name, cell in shown["by_benchmark"].items()]
    return [Observation(rows, cell["tp"], cell.get("noise", {"tp_sd": 0.0})["tp_sd"]) for rows, cell in cells]


def totals(world: World) -> list[Observation]:
    """The positives of each benchmark: every report says them."""
    rows = world.benchmark_rows()
    return [Observation(rows[name], positives, 0.0) for name, positives in POSITIVES.items()]


@dataclass(frozen=True, eq=False)
class Belief:
    """Mean and variance of each label, float of shape (n,)."""

    mean: np.ndarray
    variance: np.ndarray


def belief_after(world: World, observations: Sequence[Observation]) -> Belief:
    """The attacker's belief after some figures and the known totals: Gaussian conditioning.

    Labels are taken as normal with the prior's mean p and variance p (1 - p); each count is a sum of labels
    plus noise. At these signal-to-noise ratios a sampler over labels of 0 and 1 (Gibbs, 1,500 sweeps) gained
    0.1 points more, with a standard error of 0.1.
    """
    found = [*observations, *totals(world)]
    sums = np.array([observation.rows for observation in found], dtype=float)
    counts = np.array([observation.count for observation in found], dtype=float)
    noise = np.array([o.sd**2 + _ROUNDING if o.sd else 1e-3 for o in found])
    variance = world.prior * (1 - world.prior)
    weighted = sums * variance
    covariance = weighted @ sums.T + np.diag(noise)
    # With covariance = L L': of both the mean and the variances only half = L^-1 (...) is needed.
    factor = np.linalg.cholesky(covariance)
    known = np.column_stack([counts - sums @ world.prior, weighted])
    half = solve_triangular(factor, known, lower=True, overwrite_b=True, check_finite=False)
    mean = world.prior + half[:, 1:].T @ half[:, 0]
    left = variance - np.square(half[:, 1:]).sum(axis=0)
    return Belief(mean, np.maximum(left, 1e-9))
