"""How often agents succeed according to experts, a judge, or a benchmark's own rules.

The evaluator changes not only the rates but also the ranking of the agents (paper, section 5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

import numpy as np

from arb.core.ids import Trajectory
from arb.core.suites.targets import outcome_target
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.success_rates.estimate import AgentEstimate, estimate_agents
from leaderboard.success_rates.runs import AgentRuns, draw_runs

OVERALL: Final = "overall"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often an agent succeeds: ``successes`` of ``n``, as a fraction with its 95 % Wilson interval.

    ``value`` and ``interval`` are None if ``n`` is 0. ``successes`` is None if only a rate was printed.
    """

    value: float | None
    n: int
    successes: int | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Evaluator:
    """An evaluator of agents. ``rates`` is keyed by (benchmark or ``overall``, agent)."""

    name: str
    basis: str
    rates: Mapping[tuple[str, str], Rate]

    def rate(self, benchmark: str, agent: str) -> Rate | None:
        """Return an agent's rate on a benchmark or ``overall``, or None if the agent has no runs on it."""
        return self.rates.get((benchmark, agent))


def evaluate_agents(
    name: str, basis: str, values: np.ndarray, trajectories: Sequence[Trajectory], policy: str = "strict"
) -> Evaluator:
    """Return an evaluator from ``values``, int8 of shape (n,) in the order of ``trajectories``: 1, 0, -1.

    Under ``strict`` -1 (unsure, or no verdict) counts as unsuccessful; under ``published`` it is left out.
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
    # An agent tries each task once, so its trajectories are independent.
    interval = approximate_interval(successes, n, design_effect=1.0)
    if interval is None:
        return Rate(None, 0, 0)
    return Rate(successes / n, n, successes, (interval[0], interval[1]))


def ranking(evaluator: Evaluator, benchmark: str) -> tuple[str, ...]:
    """Return the agents that ran on a benchmark (or ``overall``), best first. Ties are ordered by name."""
    found = _values(evaluator, benchmark)
    return tuple(sorted(found, key=lambda agent: (-found[agent], agent)))


def estimate_by_draw(
    verdicts: Mapping[str, np.ndarray], labels: LabelSet, n_labels: int, seed: int
) -> tuple[tuple[AgentEstimate, ...], Mapping[str, float], tuple[str, ...]]:
    """Return estimates from ``n_labels`` drawn labels per agent, the rates by all labels, and warnings.

    ``verdicts`` are int8 of shape (n,) in the order of the labels: 1, 0, -1 (not successful). Use it only
    with public labels. Raises ValueError if the labels have no outcome (see `outcome_target`).
    """
    outcome = labels.primary[outcome_target(labels.targets).name]
    rows = np.flatnonzero(outcome >= 0)
    truth = {labels.trajectories[row].trajectory_id: bool(outcome[row]) for row in rows}
    runs = AgentRuns(
        tuple(truth), {name: (column[rows] == 1).astype(np.int8) for name, column in verdicts.items()}
    )
    draw = draw_runs(runs, n_labels, seed)
    drawn = {run: truth[run] for run in draw.drawn}
    rates = {agent: float((outcome[rows][own] == 1).mean()) for agent, own in runs.rows_of.items()}
    agents, warnings = estimate_agents(runs, drawn, draw)
    return agents, rates, warnings


def swapped_pairs(reference: Evaluator, other: Evaluator, benchmark: str) -> list[tuple[str, str]]:
    """Return the pairs of agents that ``other`` ranks differently; a tie does not contradict the reference.

    The first agent of a pair is the better one according to the reference.
    """
    ours, theirs = _values(reference, benchmark), _values(other, benchmark)
    both = [agent for agent in ranking(reference, benchmark) if agent in theirs]
    return [
        (better, worse)
        for better, worse in combinations(both, 2)
        if ours[better] > ours[worse] and theirs[better] < theirs[worse]
    ]


def _values(evaluator: Evaluator, benchmark: str) -> dict[str, float]:
    """Return the defined rates on a benchmark, keyed by agent."""
    return {
        agent: rate.value
        for (cell, agent), rate in evaluator.rates.items()
        if cell == benchmark and rate.value is not None
    }


@dataclass(frozen=True, slots=True)
class FinetuningEffect:
    """The effect of training an agent on 1,000 trajectories that a judge accepts (paper, section 4.2).

    ``wrong`` of them are failures; ``wrong_interval`` is the 95 % interval of that number. To accept 1,000,
    the judge has to judge ``judged`` trajectories, and rejects ``lost`` successes among them.
    """

    wrong: float
    wrong_interval: tuple[float, float] | None
    lost: float
    judged: float


def rejection_finetuning(
    tp: int, fp: int, fn: int, tn: int, precision_ci: Sequence[float] | None = None
) -> FinetuningEffect | None:
    """Return the effect of rejection fine-tuning from a judge's counts, or None if it accepts nothing."""
    kept = tp + fp
    if not kept:
        return None
    ends = (1000 * (1 - precision_ci[1]), 1000 * (1 - precision_ci[0])) if precision_ci else None
    return FinetuningEffect(1000 * fp / kept, ends, 1000 * fn / kept, 1000 * (tp + fp + fn + tn) / kept)
