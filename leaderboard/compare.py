"""Comparisons of judges, from prediction files or from two to five rows of the board.

A pair is compared over the same tasks if the labels and the verdicts of both rows are known. Otherwise it is
compared approximately, from the intervals in the two rows (see `leaderboard.paired`). No result reveals the
label of a trajectory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from arb.core.predictions.table import Predictions
from arb.core.suites.targets import Target
from leaderboard import paired
from leaderboard.board.rows import BoardRow, parts_of
from leaderboard.judge_precision.intervals import N_RESAMPLES
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.labels.labels import LabelSet
from leaderboard.metrics import LabelledAnswers, answers_of, known_metrics
from leaderboard.report import SEED, score_verdicts, task_names, verdicts_of
from leaderboard.score import Cell, Score


@dataclass(frozen=True)
class Vote:
    """A vote of ``n_judges`` judges that says yes if at least ``needed`` do. ``cells`` is its score."""

    needed: int
    n_judges: int
    cells: Score

    @property
    def is_unanimous(self) -> bool:
        return self.needed == self.n_judges

    @property
    def is_majority(self) -> bool:
        """Whether ``needed`` is the smallest number above half of the judges."""
        return self.needed == self.n_judges // 2 + 1


def vote(judges: Sequence[np.ndarray], needed: int) -> np.ndarray:
    """Return the verdicts of a vote, int8 of shape (n,): 1 if at least ``needed`` judges say yes, else 0.

    A missing verdict does not count as yes. If no judge has a verdict, the vote has none either (-1). Raises
    ValueError if ``needed`` is below 1 or above the number of judges.
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
    """Score the votes that need at least 1, 2, … or all judges to say yes."""
    return tuple(
        Vote(needed, len(judges), score_verdicts(
            vote(judges, needed), labels, label, n_resamples=n_resamples, by_agent=False
        ))
        for needed in range(1, len(judges) + 1)
    )  # fmt: skip


@dataclass(frozen=True)
class JudgeDifference:
    """A comparison of two judges on the same tasks.

    ``metrics`` has the difference first - second in each metric. ``p_accuracy`` is McNemar's p-value for
    equal accuracy, or None if answers are numbers, which are neither right nor wrong.
    """

    first: str
    second: str
    metrics: Mapping[str, paired.Difference]
    p_accuracy: float | None

    def to_json(self) -> dict[str, Any]:
        metrics = {
            name: {
                "first": each.first,
                "second": each.second,
                "difference": each.value,
                "ci": None if each.interval is None else list(each.interval),
            }
            for name, each in self.metrics.items()
        }
        return {"first": self.first, "second": self.second, **metrics, "p_accuracy": self.p_accuracy}


def columns_of(judges: Mapping[str, Predictions], label: str) -> dict[str, np.ndarray]:
    """Return each judge's verdicts on a label. Raises ValueError if a judge has no verdict on it."""
    found = {name: verdicts_of(verdicts, label) for name, verdicts in judges.items()}
    if missing := [name for name, column in found.items() if column is None]:
        raise ValueError(f"{', '.join(missing)}: no verdicts on {label}; add them or compare another label")
    return {name: column for name, column in found.items() if column is not None}


def compare_verdicts(
    judges: Mapping[str, np.ndarray],
    labels: LabelSet,
    label: str,
    metrics: Sequence[str] = (),
    n_resamples: int = N_RESAMPLES,
) -> list[JudgeDifference]:
    """Compare each pair of judges on the same resamples of tasks.

    ``judges`` has verdicts in the order of the labels. The default of ``metrics`` is what
    `paired.compared_metrics` returns.
    """
    truth, columns = labels.primary[label], list(judges.values())
    target = labels.target(label)
    known = {name: known_metrics(target)[name] for name in metrics or paired.compared_metrics(target)}
    answers, n_tasks = _answers(columns, labels, target, [np.ones(len(truth), dtype=bool)])
    of_sums = {
        sums: paired.resample_judges(metric, answers, n_tasks, n_resamples, SEED)
        for sums, metric in {metric.sums: metric for metric in known.values()}.items()
    }
    found = []
    for (first, name), (second, other) in combinations(enumerate(judges), 2):
        differences = {
            metric: paired.paired_difference_of(of_sums[formula.sums], first, second, 0, formula)
            for metric, formula in known.items()
        }
        p_accuracy = None
        if target.type != "score":
            p_accuracy = paired.mcnemar(columns[first], columns[second], truth, target.missing).p
        found.append(JudgeDifference(name, other, differences, p_accuracy))
    return found


def _answers(
    columns: Sequence[np.ndarray], labels: LabelSet, target: Target, cells: Sequence[np.ndarray]
) -> tuple[list[list[LabelledAnswers]], int]:
    """Return each judge's answers in every cell (a mask of items), and the number of tasks."""
    tasks, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    truth, runs = labels.primary[target.name], [item.trajectory_id for item in labels.trajectories]
    return [
        [answers_of(target, truth, column, tasks, runs, cell) for cell in cells] for column in columns
    ], n_tasks


FEWEST: Final = 2
MOST: Final = 5
"""The maximum number of rows to compare. More intervals side by side would not be readable."""


@dataclass(frozen=True, eq=False)
class Entrant:
    """A row of the board to compare, and its verdicts in the order of the labels (None if not known)."""

    row: BoardRow
    verdicts: np.ndarray | None


@dataclass(frozen=True)
class PairedVerdicts:
    """Statistics of two judges' verdicts on the same trajectories."""

    mcnemar: paired.McNemar
    agreement: paired.VerdictAgreement
    shared: paired.SharedErrors


@dataclass(frozen=True)
class Pair:
    """The difference between two entrants, overall and by group.

    ``first`` and ``second`` are the indexes of the entrants. If one of the entrants has no verdicts,
    ``by_agent`` is empty and ``runs`` is None. ``runs`` is also None if the target is not binary.
    """

    first: int
    second: int
    overall: paired.Difference
    by_benchmark: Mapping[str, paired.Difference]
    by_agent: Mapping[str, paired.Difference]
    runs: PairedVerdicts | None

    @property
    def is_paired(self) -> bool:
        """Whether the overall interval compares the two over the same tasks."""
        return self.overall.basis == "paired"


@dataclass(frozen=True)
class Comparison:
    """The comparison of all pairs of entrants in one metric (``figure``).

    ``voters`` are the indexes of the entrants with verdicts, ``votes`` are the votes of these entrants, and
    ``fooled`` counts their joint errors. If there are fewer than two voters, or the target is not binary,
    ``votes`` is empty and ``fooled`` is None.
    """

    label: str
    figure: str
    entrants: tuple[Entrant, ...]
    pairs: tuple[Pair, ...]
    voters: tuple[int, ...]
    votes: tuple[Vote, ...]
    fooled: paired.JointErrors | None

    def against_first(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.first == 0)

    def comparable(self) -> tuple[Pair, ...]:
        """Return the pairs whose rows can both be compared; the other pairs have no differences."""
        can_be = [entrant.row.is_comparable for entrant in self.entrants]
        return tuple(pair for pair in self.pairs if can_be[pair.first] and can_be[pair.second])


def compare(
    entrants: Sequence[Entrant],
    labels: LabelSet | None,
    label: str,
    figure: str = "precision",
    n_resamples: int = N_RESAMPLES,
) -> Comparison:
    """Compare two to five entrants on ``label`` by ``figure``, one of the `paired.compared_metrics`.

    If ``labels`` is None, every pair is compared by the intervals in its rows. A pair with a row that cannot
    be compared has no differences. Raises ValueError for too few or too many entrants, an unknown metric, or
    an entrant that does not answer the label.
    """
    _check(entrants, labels, label, figure)
    verdicts: dict[int, np.ndarray] = {}
    if labels is not None:
        verdicts = {i: each.verdicts for i, each in enumerate(entrants) if each.verdicts is not None}
    paired_cells: _PairedCells | None = None
    votes: tuple[Vote, ...] = ()
    how_many_fooled: paired.JointErrors | None = None
    if labels is not None and len(verdicts) > 1:
        columns = list(verdicts.values())
        paired_cells = _resample(verdicts, labels, label, figure, n_resamples)
        if paired_cells.target.type == "binary":
            votes = score_votes(columns, labels, label, n_resamples)
            how_many_fooled = paired.joint_errors(columns, labels.primary[label])
    pairs = []
    for places in combinations(range(len(entrants)), 2):
        resampled = paired_cells if {*places} <= verdicts.keys() else None
        pairs.append(_pair(entrants, places, label, figure, resampled))
    return Comparison(label, figure, tuple(entrants), tuple(pairs), tuple(verdicts), votes, how_many_fooled)


def _check(entrants: Sequence[Entrant], labels: LabelSet | None, label: str, figure: str) -> None:
    if not FEWEST <= len(entrants) <= MOST:
        raise ValueError(f"entrants: got {len(entrants)}; compare {FEWEST} to {MOST}")
    scores = {entrant.row.id: entrant.row.labels.get(label) for entrant in entrants}
    if silent := [row_id for row_id, score in scores.items() if not score]:
        raise ValueError(f"label {label}: {', '.join(silent)} have no verdicts on it; leave them out")
    if labels is not None:
        known = paired.compared_metrics(labels.target(label))
    else:
        in_rows = (name for score in scores.values() if score for name in score["overall"])
        with_interval = (name.removesuffix("_ci") for name in in_rows if name.endswith("_ci"))
        known = tuple(dict.fromkeys((*paired.COMPARED_METRICS, *with_interval)))
    if figure not in known:
        raise ValueError(f"figure: there is no {figure!r}; use one of {', '.join(known)}")


@dataclass(frozen=True, eq=False)
class _PairedCells:
    """Sums of a metric over the verdicts of entrants, on the same resamples of tasks.

    ``verdicts`` is keyed by the entrant's index, in the order of the judges in ``resampled``. ``cells`` has
    (group, name) for each cell, overall first.
    """

    target: Target
    figure: str
    verdicts: Mapping[int, np.ndarray]
    truth: np.ndarray
    cells: Sequence[tuple[str, str]]
    resampled: paired.Resampled

    def difference(self, places: tuple[int, int], cell: int) -> paired.Difference:
        """Return the difference between two entrants in a cell."""
        voters, metric = list(self.verdicts), known_metrics(self.target)[self.figure]
        judges = voters.index(places[0]), voters.index(places[1])
        return paired.paired_difference_of(self.resampled, *judges, cell, metric)


def _resample(
    verdicts: Mapping[int, np.ndarray], labels: LabelSet, label: str, figure: str, n_resamples: int
) -> _PairedCells:
    target = labels.target(label)
    cells = {("overall", ""): np.ones(len(labels.trajectories), dtype=bool)}
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    agents = np.array([t.agent for t in labels.trajectories])
    for group, values in (("by_benchmark", benchmarks), ("by_agent", agents)):
        cells |= {(group, str(name)): values == name for name in np.unique(values)}
    answers, n_tasks = _answers(list(verdicts.values()), labels, target, list(cells.values()))
    resampled = paired.resample_judges(known_metrics(target)[figure], answers, n_tasks, n_resamples, SEED)
    return _PairedCells(target, figure, verdicts, labels.primary[label], list(cells), resampled)


def _pair(
    entrants: Sequence[Entrant],
    places: tuple[int, int],
    label: str,
    figure: str,
    paired_cells: _PairedCells | None,
) -> Pair:
    """Compare two entrants over the same tasks, or else by the intervals in their rows.

    If one of the rows cannot be compared, the pair has the metrics of both rows, but no differences.
    """
    rows = [entrants[place].row for place in places]
    runs: PairedVerdicts | None = None
    if paired_cells is None:
        names = {name for row in rows for name in row.score(label)["by_benchmark"]}
        cells: Sequence[tuple[str, str]] = [
            ("overall", ""),
            *(("by_benchmark", name) for name in sorted(names)),
        ]
    else:
        cells = paired_cells.cells
        if paired_cells.target.type == "binary":
            first, second = (paired_cells.verdicts[place] for place in places)
            runs = PairedVerdicts(
                paired.mcnemar(first, second, paired_cells.truth),
                paired.verdict_agreement(first, second),
                paired.shared_errors(first, second, paired_cells.truth),
            )
    found: dict[str, dict[str, paired.Difference]] = {"overall": {}, "by_benchmark": {}, "by_agent": {}}
    for number, (group, name) in enumerate(cells):
        difference = None if paired_cells is None else paired_cells.difference(places, number)
        if difference is None or difference.interval is None:
            ours, theirs = (_cell(row, label, group, name) for row in rows)
            difference = paired.approximate_difference(ours, theirs, figure)
        if not all(row.is_comparable for row in rows):
            difference = paired.Difference(difference.first, difference.second)
        found[group][name] = difference
    return Pair(*places, found["overall"][""], found["by_benchmark"], found["by_agent"], runs)


def _cell(row: BoardRow, label: str, group: str, name: str) -> Cell | None:
    return row.score(label)["overall"] if group == "overall" else parts_of(row, label, group).get(name)
