"""Success rates of agents, by whoever says what a success is: experts, a judge, a benchmark's own rules.

Paper, section 5: who evaluates changes not only the rates but the ranking of the agents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

import numpy as np

from arb.core.suite import Trajectory
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.success_rates.estimate import AgentEstimate, estimate_agents
from leaderboard.success_rates.runs import AgentRuns, draw_runs

OVERALL: Final = "overall"
INDEPENDENT: Final = 1.0
"""An agent tries a task once, so its trajectories are of different tasks: no design effect."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often an agent succeeded: ``successes`` of ``n``, a fraction with Wilson's 95 % interval.

    ``value`` and ``interval`` are None where ``n`` is 0. ``successes`` is None where only a rate was printed.
    """

    value: float | None
    n: int
    successes: int | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Evaluator:
    """Who says what a success is, and the rates that follow, by (benchmark or ``overall``, agent)."""

    name: str
    basis: str
    rates: Mapping[tuple[str, str], Rate]

    def rate(self, benchmark: str, agent: str) -> Rate | None:
        """The rate of an agent on a benchmark or ``overall``; None where the agent did not run there."""
        return self.rates.get((benchmark, agent))


def evaluate_agents(
    name: str, basis: str, values: np.ndarray, trajectories: Sequence[Trajectory], policy: str = "strict"
) -> Evaluator:
    """The rates behind ``values``, int8 of shape (n,) in the order of ``trajectories``: 1, 0, -1.

    -1 (unsure, or no verdict) counts as no success under ``strict`` and is left out under ``published``.
    """
    benchmarks = np.array([t.benchmark for t in trajectories])
    agents = np.array([t.agent for t in trajectories])
    counted = np.ones(len(values), dtype=bool) if policy == "strict" else values >= 0
    rates = {}
    for agent in sorted(set(agents.tolist())):
        for benchmark in (OVERALL, *sorted(set(benchmarks[agents == agent].tolist()))):
            rows = counted & (agents == agent)
            if benchmark != OVERALL:
                rows &= benchmarks == benchmark
            rates[benchmark, agent] = rate_of(int((values[rows] == 1).sum()), int(rows.sum()))
    return Evaluator(name, basis, MappingProxyType(rates))


def rate_of(successes: int, n: int) -> Rate:
    """A rate from counts, with its interval."""
    if not n:
        return Rate(None, 0, 0)
    low, high = approximate_interval(successes, n, INDEPENDENT)
    return Rate(successes / n, n, successes, (low, high))


def ranking(evaluator: Evaluator, benchmark: str) -> tuple[str, ...]:
    """The agents that ran on a benchmark (or ``overall``), best first; equal rates in the order of names."""
    found = [
        (agent, rate.value)
        for (cell, agent), rate in evaluator.rates.items()
        if cell == benchmark and rate.value is not None
    ]
    return tuple(agent for agent, value in sorted(found, key=lambda pair: (-pair[1], pair[0])))


def estimate_by_draw(
    verdicts: Mapping[str, np.ndarray], labels: LabelSet, n_labels: int, seed: int
) -> tuple[tuple[AgentEstimate, ...], Mapping[str, float], tuple[str, ...]]:
    """What the labels of ``n_labels`` drawn runs of each agent would have said, beside what all of them say.

    ``verdicts`` are int8 of shape (n,) in the order of the labels: 1, 0, -1, which is no success. Gives the
    estimates, each agent's rate by all labels, and warnings. Only for labels that are public.
    """
    success = labels.primary["success"]
    rows = np.flatnonzero(success >= 0)
    truth = {labels.trajectories[row].trajectory_id: bool(success[row]) for row in rows}
    runs = AgentRuns(
        tuple(truth), {name: (column[rows] == 1).astype(np.int8) for name, column in verdicts.items()}
    )
    draw = draw_runs(runs, n_labels, seed)
    drawn = {run: truth[run] for stratum in draw for run in stratum.drawn}
    rates = {agent: float((success[rows][own] == 1).mean()) for agent, own in runs.rows_of.items()}
    agents, warnings = estimate_agents(runs, drawn, draw)
    return agents, rates, warnings


@dataclass(frozen=True, slots=True)
class Swap:
    """Two agents that two evaluators put in opposite order: the reference has ``better`` above ``worse``."""

    benchmark: str
    better: str
    worse: str


def swapped_pairs(reference: Evaluator, other: Evaluator, benchmark: str) -> tuple[Swap, ...]:
    """The pairs of agents on which ``other`` contradicts the reference; ties of either contradict nothing."""
    both = [a for a in ranking(reference, benchmark) if _value(other, benchmark, a) is not None]
    return tuple(
        Swap(benchmark, better, worse)
        for better, worse in combinations(both, 2)
        if _value(reference, benchmark, better) > _value(reference, benchmark, worse)
        and _value(other, benchmark, better) < _value(other, benchmark, worse)
    )


def _value(evaluator: Evaluator, benchmark: str, agent: str) -> float | None:
    rate = evaluator.rate(benchmark, agent)
    return rate.value if rate else None


@dataclass(frozen=True, slots=True)
class FinetuningEffect:
    """What training on the trajectories that a judge accepts means, for every 1,000 (paper, section 4.2).

    ``wrong`` of the 1,000 are failures, between ``wrong_interval``; ``lost`` successes were thrown away for
    every 1,000 kept; ``judged`` have to be judged to keep 1,000. None where the judge keeps none.
    """

    wrong: float
    wrong_interval: tuple[float, float] | None
    lost: float
    judged: float


def rejection_finetuning(
    tp: int, fp: int, fn: int, tn: int, precision_ci: Sequence[float] | None = None
) -> FinetuningEffect | None:
    """From a judge's counts: wrong = 1000 FP / (TP + FP), lost = 1000 FN / (TP + FP)."""
    kept = tp + fp
    if not kept:
        return None
    ends = (1000 * (1 - precision_ci[1]), 1000 * (1 - precision_ci[0])) if precision_ci else None
    return FinetuningEffect(1000 * fp / kept, ends, 1000 * fn / kept, 1000 * (tp + fp + fn + tn) / kept)
