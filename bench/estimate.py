"""Check the intervals of `leaderboard estimate`: ``python -m bench.estimate --verdicts FOLDER``.

For each agent of the official test split, 60 labelled runs are drawn 2,000 times from the official labels and
the real verdicts of judges (``aer-c.jsonl``, ``nnetnav.jsonl``, ``rule-based.jsonl`` in the folder). Printed
are, for uniform and for stratified draws: how often the 95 % intervals cover the experts' rate over all runs,
their half width in points, and the share of labels saved. Next to it are the error of each judge alone, the
textbook interval of the same estimate (`textbook_interval`), which is too narrow with several judges or few
successes, and the largest share of labels that can be saved (`most_saved`). Use ``--draws`` for a quick look.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.core.vocabulary import AGENT_TITLES
from leaderboard.labels.labels import load_labels
from leaderboard.success_rates.estimate import estimate_rate
from leaderboard.success_rates.runs import strata_of_patterns, stratum_sizes
from leaderboard.verdict_files import read_verdict_file

ALL, TEXTBOOK = "all of them", "textbook"
JUDGES = ("aer-c", "nnetnav", "rule-based")
N_LABELS, N_DRAWS = 60, 2_000
LOWEST, HIGHEST = 0.92, 0.96
"""The range of an acceptable coverage of a 95 % interval."""
CHANCE = 0.005
"""The standard deviation of a coverage over 2,000 draws."""


@dataclass(frozen=True)
class Coverage:
    """How often intervals covered the true rate, and their mean half width, as fractions."""

    covered: float
    half_width: float

    def saved(self, labels_only: "Coverage") -> float:
        """Return the share of labels that verdicts save at the width of ``labels_only``."""
        return 1 - (self.half_width / labels_only.half_width) ** 2


Interval = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], tuple[float, float]]
"""Takes verdicts (n, judges), labels (n,) with -1 for none, tasks (n,), and strata (n,) or None."""


def our_interval(
    verdicts: np.ndarray, labels: np.ndarray, tasks: np.ndarray, strata: np.ndarray | None
) -> tuple[float, float]:
    """Return the interval of `estimate_rate`, or 0 to 1 if there is none."""
    return estimate_rate(verdicts, labels, tasks, strata).ci or (0.0, 1.0)


def textbook_interval(
    verdicts: np.ndarray, labels: np.ndarray, tasks: np.ndarray, strata: np.ndarray | None = None
) -> tuple[float, float]:
    """Return the regression estimate plus and minus 1.96 standard errors (Cochran 1977, chapter 7).

    The textbook assumes a uniform draw of independent runs.
    """
    known = labels >= 0
    design = np.column_stack([np.ones(len(labels)), verdicts])
    x, y = design[known], labels[known]
    coefficients, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    residuals = y - x @ coefficients
    value = float(design.mean(axis=0) @ coefficients)
    variance = residuals @ residuals / (len(y) - rank) / len(y) * (1 - len(y) / len(labels))
    return value - 1.96 * float(np.sqrt(variance)), value + 1.96 * float(np.sqrt(variance))


def most_saved(verdicts: np.ndarray, truth: np.ndarray) -> float:
    """Return R^2: the share of the labels' variance that the verdicts (n, judges) explain over all runs.

    With many labels, a regression saves this share of them. If more are saved, the intervals are too narrow.
    """
    design = np.column_stack([np.ones(len(truth)), verdicts])
    coefficients = np.linalg.lstsq(design, truth, rcond=None)[0]
    return 1 - float(((truth - design @ coefficients) ** 2).mean() / truth.var())


def simulate(
    verdicts: np.ndarray,
    truth: np.ndarray,
    tasks: np.ndarray,
    n_draws: int,
    stratified: bool = False,
    interval: Interval = our_interval,
    n_labels: int = N_LABELS,
) -> Coverage:
    """Return the coverage over ``n_draws`` draws of ``n_labels`` runs of an agent.

    ``verdicts`` (n, judges) and ``truth`` (n,) are 0 or 1.
    """
    n, generator = len(truth), np.random.default_rng(0)
    strata = strata_of_patterns(verdicts if stratified else verdicts[:, :0], n_labels)
    groups = [np.flatnonzero(strata == number) for number in range(strata.max() + 1)]
    sizes = stratum_sizes([len(group) for group in groups], n_labels)
    covered, width = 0, 0.0
    for _ in range(n_draws):
        drawn = np.concatenate(
            [generator.choice(g, size, replace=False) for g, size in zip(groups, sizes, strict=True)]
        )
        labels = np.full(n, -1)
        labels[drawn] = truth[drawn]
        low, high = interval(verdicts, labels, tasks, strata if stratified else None)
        covered += low <= truth.mean() <= high
        width += (high - low) / 2
    return Coverage(covered / n_draws, width / n_draws)


def rows_of(
    verdicts: Mapping[str, np.ndarray], truth: np.ndarray, tasks: np.ndarray, n_draws: int
) -> Iterator[tuple[str, str, Coverage, Coverage]]:
    """Yield (judges, kind of draw or "textbook", coverage from labels only, coverage with judges)."""
    n = len(truth)
    without = simulate(np.zeros((n, 0)), truth, tasks, n_draws)
    textbook = simulate(np.zeros((n, 0)), truth, tasks, n_draws, interval=textbook_interval)
    choices = {name: [column] for name, column in verdicts.items()}
    for name, columns in {**choices, ALL: list(verdicts.values())}.items():
        matrix = np.column_stack(columns)
        yield name, "uniform", without, simulate(matrix, truth, tasks, n_draws)
        yield name, "stratified", without, simulate(matrix, truth, tasks, n_draws, stratified=True)
        found = simulate(matrix, truth, tasks, n_draws, interval=textbook_interval)
        yield name, TEXTBOOK, textbook, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--verdicts", type=Path, required=True, help="folder with verdict files (required)")
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="draws per agent and judge")
    chosen = parser.parse_args(arguments)
    settings, suite = Settings(), load_suite()
    labels = load_labels(suite, "test", settings)
    truth = (labels.primary["success"] == 1).astype(int)
    verdicts = {
        name: (
            read_verdict_file(chosen.verdicts / f"{name}.jsonl", suite, "test", 50_000_000).codes("success")
            == 1
        )
        for name in JUDGES
    }
    agents = np.array([trajectory.agent for trajectory in labels.trajectories])
    tasks = np.unique([f"{t.benchmark}/{t.task}" for t in labels.trajectories], return_inverse=True)[1]
    holds, widths, short = True, [], 0
    for agent in sorted(set(agents)):
        rows = agents == agent
        rate = truth[rows].mean()
        print(f"{AGENT_TITLES.get(agent, agent)}: experts say {100 * rate:.1f} % of {rows.sum()} runs")
        own = {name: column[rows].astype(float) for name, column in verdicts.items()}
        for name, column in own.items():
            off = 100 * (column.mean() - rate)
            print(f"  {name:<12} says {100 * column.mean():5.1f} %, off by {off:+5.1f}")
        for name, draw, without, found in rows_of(own, truth[rows], tasks[rows], chosen.draws):
            is_textbook = draw == TEXTBOOK
            as_it_should = is_textbook or LOWEST - CHANCE <= found.covered <= HIGHEST + CHANCE
            holds &= as_it_should
            most = most_saved(
                np.column_stack(list(own.values()) if name == ALL else [own[name]]), truth[rows]
            )
            if draw == "uniform":
                ours = found.half_width
            if is_textbook and name != ALL:
                widths.append(ours / found.half_width)
                short += found.covered < LOWEST
            print(
                f"  {name:<12} {draw:<10}  coverage {found.covered:.3f}{'' if as_it_should else ' MISSED'}"
                f"  ±{100 * found.half_width:.1f} points, labels only ±{100 * without.half_width:.1f}"
                f" ({without.covered:.3f})  saves {found.saved(without):.0%} of labels, at most {most:.0%}"
            )
    print(
        f"with one judge, intervals {min(widths):.2f} to {max(widths):.2f} times as wide as the textbook's; "
        f"of the textbook's, {short} of {len(widths)} cover less than {LOWEST:.0%}"
    )
    print(f"coverage {LOWEST:.0%} to {HIGHEST:.0%} for every judge and agent: {'met' if holds else 'MISSED'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
