"""Two to five rows of the board side by side: pairwise differences, and votes of the judges together.

Where the verdicts of both and the labels are known, a pair is compared over the same tasks; else from the two
rows' own cells, approximately (`leaderboard.paired` says how). No result reveals the label of a trajectory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from leaderboard.board.board import BoardRow
from leaderboard.judge_precision.intervals import N_RESAMPLES
from leaderboard.judge_precision.scores import cluster_codes, judge_scores
from leaderboard.labels.labels import LabelSet
from leaderboard.paired import (
    COMPARED_METRICS,
    Difference,
    JointErrors,
    McNemar,
    Resampled,
    SharedErrors,
    VerdictAgreement,
    approximate_difference,
    joint_errors,
    mcnemar,
    paired_difference_of,
    resample_judges,
    shared_errors,
    verdict_agreement,
)
from leaderboard.report import SEED, task_names


@dataclass(frozen=True)
class Vote:
    """The judges as one that says yes when at least ``needed`` of ``n_judges`` do; ``cells`` is its score.

    ``cells`` is ``{"overall": CELL, "by_benchmark": {…}}``.
    """

    needed: int
    n_judges: int
    cells: Mapping[str, Any]

    @property
    def is_unanimous(self) -> bool:
        """Whether every judge has to say yes."""
        return self.needed == self.n_judges

    @property
    def is_majority(self) -> bool:
        """Whether it takes the fewest that are more than half."""
        return self.needed == self.n_judges // 2 + 1


def vote(judges: Sequence[np.ndarray], needed: int) -> np.ndarray:
    """The verdicts of a vote, int8 of shape (n,): 1 where at least ``needed`` judges say yes, else 0.

    A missing verdict is no yes. Where no judge has a verdict the vote has none either (-1). Raises ValueError
    for a vote that nobody, or nothing, could win.
    """
    if not 1 <= needed <= len(judges):
        raise ValueError(f"needed: {needed} of {len(judges)} judges; give 1 to {len(judges)}")
    answers = np.stack(judges)
    verdicts = ((answers == 1).sum(axis=0) >= needed).astype(np.int8)
    verdicts[(answers < 0).all(axis=0)] = -1
    return verdicts


def score_votes(
    judges: Sequence[np.ndarray], labels: LabelSet, label: str, n_resamples: int = N_RESAMPLES
) -> tuple[Vote, ...]:
    """Every vote of the judges, from one yes to all of them, scored as a judge of its own would be."""
    benchmarks, tasks = [t.benchmark for t in labels.trajectories], task_names(labels)
    found = []
    for needed in range(1, len(judges) + 1):
        overall = judge_scores(
            vote(judges, needed),
            labels.primary[label],
            benchmarks=benchmarks,
            clusters=tasks,
            n_resamples=n_resamples,
            seed=SEED,
        )
        by_benchmark = overall.pop("by_benchmark")
        found.append(Vote(needed, len(judges), {"overall": overall, "by_benchmark": by_benchmark}))
    return tuple(found)


FEWEST: Final = 2
MOST: Final = 5
"""More than five intervals side by side are no longer readable."""


@dataclass(frozen=True, eq=False)
class Entrant:
    """A row of the board with its verdicts on the label compared.

    ``verdicts``: int8 of shape (n,) in the order of the labels, 1, 0, -1; None where only counts are known.
    """

    row: BoardRow
    verdicts: np.ndarray | None


@dataclass(frozen=True)
class PairedVerdicts:
    """What two judges say of the same trajectories."""

    mcnemar: McNemar
    agreement: VerdictAgreement
    shared: SharedErrors


@dataclass(frozen=True)
class Pair:
    """Two entrants, by their places: the difference first - second overall and in each cell.

    ``by_agent`` is empty, and ``runs`` None, where the verdicts of one of the two are not known.
    """

    first: int
    second: int
    overall: Difference
    by_benchmark: Mapping[str, Difference]
    by_agent: Mapping[str, Difference]
    runs: PairedVerdicts | None

    @property
    def is_paired(self) -> bool:
        """Whether the overall interval is of the two over the same tasks; where a figure does not vary over
        the resamples, two judges with verdicts have an approximate one too."""
        return self.overall.basis == "paired"


@dataclass(frozen=True)
class Comparison:
    """Every pair of the entrants, and what those with verdicts (``voters``, places) do together.

    ``votes`` and ``fooled`` are there where at least two have verdicts.
    """

    label: str
    figure: str
    entrants: tuple[Entrant, ...]
    pairs: tuple[Pair, ...]
    voters: tuple[int, ...]
    votes: tuple[Vote, ...]
    fooled: JointErrors | None

    def against_first(self) -> tuple[Pair, ...]:
        """The pairs of the first entrant with each other one."""
        return tuple(pair for pair in self.pairs if pair.first == 0)


def compare(
    entrants: Sequence[Entrant],
    labels: LabelSet | None,
    label: str,
    figure: str = "precision",
    n_resamples: int = N_RESAMPLES,
) -> Comparison:
    """Compare two to five entrants that all answer ``label`` on one of COMPARED_METRICS.

    Without ``labels`` every pair is compared from its cells. Raises ValueError for too few or too many
    entrants, an unknown figure, and an entrant that does not answer the label.
    """
    _check(entrants, label, figure)
    voters = tuple(i for i, entrant in enumerate(entrants) if entrant.verdicts is not None and labels)
    paired = _resample(entrants, voters, labels, label, n_resamples) if len(voters) > 1 else None
    pairs = tuple(
        _pair(entrants, i, j, label, figure, paired)
        for i in range(len(entrants))
        for j in range(i + 1, len(entrants))
    )
    votes, how_many_fooled = (), None
    if paired is not None:
        verdicts = [entrants[i].verdicts for i in voters]
        votes = score_votes(verdicts, labels, label, n_resamples)
        how_many_fooled = joint_errors(verdicts, paired.truth)
    return Comparison(label, figure, tuple(entrants), pairs, voters, votes, how_many_fooled)


def _check(entrants: Sequence[Entrant], label: str, figure: str) -> None:
    if not FEWEST <= len(entrants) <= MOST:
        raise ValueError(f"entrants: {len(entrants)} were given; compare {FEWEST} to {MOST}")
    if figure not in COMPARED_METRICS:
        raise ValueError(f"figure: there is no {figure!r}; use one of {', '.join(COMPARED_METRICS)}")
    if silent := [entrant.row.id for entrant in entrants if not entrant.row.labels.get(label)]:
        raise ValueError(f"label {label}: {', '.join(silent)} do not answer it; leave them out")


@dataclass(frozen=True, eq=False)
class _PairedCells:
    """Counts of the entrants with verdicts (``place``, by entrant) over the same resamples of tasks.

    ``cells`` are the group and the name of each cell, overall first.
    """

    resampled: Resampled
    place: Mapping[int, int]
    cells: Sequence[tuple[str, str]]
    truth: np.ndarray


def _resample(
    entrants: Sequence[Entrant], voters: Sequence[int], labels: LabelSet, label: str, n_resamples: int
) -> _PairedCells:
    cells = {("overall", ""): np.ones(len(labels.trajectories), dtype=bool)}
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    agents = np.array([t.agent for t in labels.trajectories])
    for group, values in (("by_benchmark", benchmarks), ("by_agent", agents)):
        cells |= {(group, str(name)): values == name for name in np.unique(values)}
    tasks, _ = cluster_codes(task_names(labels), len(labels.trajectories))
    verdicts, truth = [entrants[i].verdicts for i in voters], labels.primary[label]
    resampled = resample_judges(verdicts, truth, tasks, list(cells.values()), n_resamples, SEED)
    return _PairedCells(resampled, {entrant: n for n, entrant in enumerate(voters)}, list(cells), truth)


def _pair(
    entrants: Sequence[Entrant], first: int, second: int, label: str, figure: str, paired: _PairedCells | None
) -> Pair:
    scores = [entrants[place].row.labels[label] for place in (first, second)]

    def from_cells(group: str, name: str = "") -> Difference:
        """The difference from the two rows' own cells."""
        cells = [score["overall"] if group == "overall" else score[group].get(name) for score in scores]
        return approximate_difference(*cells, figure)

    if paired is None or not {first, second} <= paired.place.keys():
        names = sorted({*scores[0]["by_benchmark"], *scores[1]["by_benchmark"]})
        by_benchmark = {name: from_cells("by_benchmark", name) for name in names}
        return Pair(first, second, from_cells("overall"), by_benchmark, {}, None)
    found: dict[str, dict[str, Difference]] = {"overall": {}, "by_benchmark": {}, "by_agent": {}}
    judges = paired.place[first], paired.place[second]
    for number, (group, name) in enumerate(paired.cells):
        difference = paired_difference_of(paired.resampled, *judges, number, figure)
        found[group][name] = difference if difference.interval is not None else from_cells(group, name)
    verdicts = entrants[first].verdicts, entrants[second].verdicts
    runs = PairedVerdicts(
        mcnemar(*verdicts, paired.truth),
        verdict_agreement(*verdicts),
        shared_errors(*verdicts, paired.truth),
    )
    return Pair(first, second, found["overall"][""], found["by_benchmark"], found["by_agent"], runs)
