"""A made-up label set of the real shape, and what an attacker knows before asking anything.

The trajectories are the 1,106 of the official test split; their labels here are drawn, with the real number
of positives in each benchmark. An attacker has the verdicts of five judges that err together, and knows how
far to trust them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np

from arb.core.suite import Trajectory, load_suite
from leaderboard.labels.labels import LabelSet

POSITIVES: Final = MappingProxyType(
    {"assistantbench": 8, "visualwebarena": 79, "webarena": 119, "workarena": 37, "workarena++": 52}
)
N_JUDGES: Final = 5
KEPT: Final = 300
"""How many trajectories an attacker's final file calls successful: about what an honest judge does (270 to
350), so that precision is not bought with recall."""

# Strength of the evidence for the label, and the errors on it in the same unit: those that all judges make
# together, and each judge's own. They give single judges a precision of 0.65 to 0.7, and the best 300 by all
# five 0.73 or so: AER-C, NNetNav and the rule-based judge have 0.68, 0.52 and 0.84 (of 197) on the real
# labels, and the best 300 by all three 0.74.
EVIDENCE: Final = 2.8
SHARED_ERROR: Final = 1.4
OWN_ERROR: Final = 1.1


@dataclass(frozen=True, eq=False)
class World:
    """Hidden labels, and an attacker's prior: the probability of each label, float of shape (n,)."""

    trajectories: tuple[Trajectory, ...]
    benchmarks: np.ndarray
    truth: np.ndarray
    votes: np.ndarray
    prior: np.ndarray

    @property
    def labels(self) -> LabelSet:
        """The same as the scorer takes them; side effects and repetition have labels that nobody asks for."""
        none = np.full(len(self.truth), -1, dtype=np.int8)
        other = (np.arange(len(self.truth)) % 4 == 0).astype(np.int8)
        primary = {"success": self.truth, "side_effect": other, "repetition": other}
        return LabelSet(
            "generated", "test", "csv", "generated-1", self.trajectories, primary,
            dict.fromkeys(primary, none), np.zeros(len(none), dtype=bool),
        )  # fmt: skip

    def benchmark_rows(self) -> Mapping[str, np.ndarray]:
        """Bool of shape (n,) for each benchmark."""
        return {name: self.benchmarks == name for name in POSITIVES}


@lru_cache(maxsize=1)
def test_trajectories() -> tuple[Trajectory, ...]:
    """The official test split."""
    return load_suite().split("test")


def make_world(seed: int) -> World:
    """Labels, judges and prior of one seed; the prior is calibrated on three other drawn label sets."""
    trajectories = test_trajectories()
    benchmarks = np.array([trajectory.benchmark for trajectory in trajectories])
    truth, votes = _labels_and_votes(np.random.default_rng([seed, 0]), trajectories, benchmarks)
    others = [
        _labels_and_votes(np.random.default_rng([seed, other]), trajectories, benchmarks)
        for other in (1, 2, 3)
    ]
    prior = _calibrated(votes.sum(axis=0), others, benchmarks)
    return World(trajectories, benchmarks, truth, votes, prior)


def _labels_and_votes(
    generator: np.random.Generator, trajectories: tuple[Trajectory, ...], benchmarks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Labels that lean on task and agent, int8 of shape (n,), and judges' verdicts, of shape (judges, n)."""
    n = len(trajectories)
    tasks = np.unique([f"{t.benchmark}/{t.task}" for t in trajectories], return_inverse=True)[1]
    agents = np.unique([t.agent for t in trajectories], return_inverse=True)[1]
    ease = (
        generator.normal(size=tasks.max() + 1)[tasks] + 0.4 * generator.normal(size=agents.max() + 1)[agents]
    )
    ease += generator.normal(size=n)
    truth = np.zeros(n, dtype=np.int8)
    base_rate = np.zeros(n)
    for benchmark, positives in POSITIVES.items():
        rows = np.flatnonzero(benchmarks == benchmark)
        truth[rows[np.argsort(-ease[rows])[:positives]]] = 1
        base_rate[rows] = positives / len(rows)
    evidence = EVIDENCE * truth + 0.6 * np.log(base_rate / (1 - base_rate))
    evidence += SHARED_ERROR * generator.normal(size=n)
    seen = evidence + OWN_ERROR * generator.normal(size=(N_JUDGES, n))
    votes = [one >= np.sort(one)[-generator.integers(270, 350)] for one in seen]
    return truth, np.array(votes, dtype=np.int8)


def _calibrated(ayes: np.ndarray, others: list, benchmarks: np.ndarray) -> np.ndarray:
    """How often so many ayes meant success in other label sets, shifted to each benchmark's known total."""
    truths = np.concatenate([truth for truth, _ in others])
    counts = np.concatenate([votes.sum(axis=0) for _, votes in others])
    rates = np.array(
        [(truths[counts == k].sum() + 0.5) / ((counts == k).sum() + 1) for k in range(N_JUDGES + 1)]
    )
    log_odds = np.log(rates / (1 - rates))[ayes]
    prior = np.empty(len(ayes))
    for benchmark, positives in POSITIVES.items():
        rows = benchmarks == benchmark
        low, high = -12.0, 12.0
        for _ in range(60):
            middle = (low + high) / 2
            prior[rows] = 1 / (1 + np.exp(-(log_odds[rows] + middle)))
            low, high = (low, middle) if prior[rows].sum() > positives else (middle, high)
    return prior


def precision_of(world: World, belief: np.ndarray, kept: int = KEPT) -> float:
    """Precision, in points, of the file that calls the ``kept`` most probable successful.

    Of trajectories with the same belief at the edge the share that fits is counted, not some of them.
    """
    edge = np.sort(belief)[-kept]
    above, at_edge = belief > edge, belief == edge
    hits = world.truth[above].sum() + world.truth[at_edge].mean() * (kept - above.sum())
    return 100 * float(hits) / kept


def gain_of(world: World, belief: np.ndarray) -> float:
    """Points of precision that a belief adds to the prior's."""
    return precision_of(world, belief) - precision_of(world, world.prior)
