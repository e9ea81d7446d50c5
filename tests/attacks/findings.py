"""What an attack comes back with, and how a file is dressed up as a judge's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.attacks.observations import Observation, observations_in
from tests.attacks.oracle import Oracle
from tests.attacks.world import KEPT, POSITIVES, World


@dataclass(frozen=True, eq=False)
class Findings:
    """``claims``: labels (by place) that would follow for certain if the figures were exact.

    ``observations`` are all counts that were shown: what is left to reason with when they are not.
    """

    claims: Mapping[int, int]
    observations: Sequence[Observation] = field(repr=False)

    def wrong(self, world: World) -> int:
        """How many claims are false."""
        return sum(int(world.truth[place]) != label for place, label in self.claims.items())


class Notebook:
    """Asks an oracle and keeps every count that it shows."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self.world, self.oracle = world, oracle
        self.observations: list[Observation] = []

    def ask(self, rows: np.ndarray, is_public: bool = False) -> int:
        """The true positives that are shown of a file with these positives: bool of shape (n,), or places."""
        called = np.zeros(len(self.world.truth), dtype=np.int8)
        called[rows] = 1
        report = (self.oracle.public_figures if is_public else self.oracle.figures)(called)
        self.observations += observations_in(self.world, called, report)
        return self.observations[-1 - len(report["labels"]["success"]["by_benchmark"])].count


def disguise(world: World, without: np.ndarray) -> np.ndarray:
    """Places of 40 trajectories spread over benchmarks, the most probable successes apart from ``without``.

    Added to a file they let it pass for a small judge's; their own count is asked once and taken off.
    """
    free = np.ones(len(world.truth), dtype=bool)
    free[without] = False
    chosen = []
    for benchmark in POSITIVES:
        rows = np.flatnonzero((world.benchmarks == benchmark) & free)
        chosen += rows[np.argsort(-world.prior[rows], kind="stable")[:8]].tolist()
    return np.array(chosen)


def undecided(world: World, count: int) -> np.ndarray:
    """Places of the trajectories whose labels the prior knows least about, near the edge of the best file."""
    edge = np.sort(world.prior)[-KEPT]
    return np.argsort(np.abs(world.prior - edge), kind="stable")[:count]


def likely_negatives(world: World, count: int) -> np.ndarray:
    """Places of the least probable successes, least first, benchmarks mixed."""
    least = np.argsort(world.prior, kind="stable")[:count]
    tiers = np.split(least, range(240, count, 240))
    return np.concatenate([np.random.default_rng(0).permutation(tier) for tier in tiers])
