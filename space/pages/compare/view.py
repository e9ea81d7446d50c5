"""The values of the compare page: judges side by side, with their cells and differences on common axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from arb.core.suites.targets import Target
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, is_low
from leaderboard.board.rows import parts_of
from leaderboard.compare import FEWEST, Comparison, Pair, Vote, score_votes
from leaderboard.labels.labels import LabelSet
from leaderboard.paired import Difference
from leaderboard.score import Cell, metric_of
from space.pages.rows import in_order, overall_of
from space.web.cells import Axis, distinct_names, metric_cell

GROUP_TITLES: Final = {"by_benchmark": BENCHMARK_TITLES, "by_agent": AGENT_TITLES}


@dataclass(frozen=True)
class ForestGroup:
    """The differences from the first judge over all trajectories, on a benchmark or for an agent.

    ``kind`` is "overall", "by_benchmark" or "by_agent". Each line has a pair, its difference, and whether the
    metric of either judge rests on few trajectories.
    """

    title: str
    kind: str
    lines: tuple[tuple[Pair, Difference, bool], ...]


@dataclass(frozen=True)
class Ensembles:
    """Lines of (name, whether it is an ensemble, cell), first for all ensembles, then for single judges."""

    lines: tuple[tuple[str, bool, Cell], ...]
    axis: Axis


def view_comparison(found: Comparison, target: Target) -> dict[str, Any]:
    """Return the template's values for a comparison: names of judges, benchmarks, groups and axes."""
    rows = [entrant.row for entrant in found.entrants]
    ends: list[float | None] = []
    benchmarks: set[str] = set()
    for row in rows:
        cell = overall_of(row, found.label)
        if cell is not None:
            ends += [metric_of(cell, found.figure), *(row.interval(cell, found.figure) or ())]
        benchmarks |= parts_of(row, found.label, "by_benchmark").keys()
    names = distinct_names(rows)
    others = ("precision", "recall", "f1") if target.type == "binary" else target.metrics
    groups = _groups(found, target)
    return {
        "found": found,
        "names": names,
        "other_metrics": [name for name in others if name != found.figure],
        "benchmarks": in_order(benchmarks, BENCHMARK_TITLES),
        "axis": Axis.around(ends),
        "groups": groups,
        "difference_axis": _difference_axis(groups),
        "ensembles": _on_one_axis(found.votes, single_judges(found, names)) if found.votes else None,
    }


def _difference_axis(groups: Sequence[ForestGroup]) -> Axis:
    """Return an axis that fits all differences, and those intervals that rest on enough trajectories."""
    values: list[float | None] = [0.0]
    for group in groups:
        for _, difference, is_few in group.lines:
            values += [difference.value, *(() if is_few else difference.interval or ())]
    return Axis.around(values)


def _groups(found: Comparison, target: Target) -> tuple[ForestGroup, ...]:
    against = found.against_first()
    overall = tuple((pair, pair.overall, False) for pair in against)
    groups = [ForestGroup(f"All {target.nouns}", "overall", overall)]
    for kind, titles in GROUP_TITLES.items():
        for cell in in_order({name for pair in against for name in getattr(pair, kind)}, titles):
            lines = tuple(
                (pair, getattr(pair, kind)[cell], rests_on_few(found, pair, kind, cell))
                for pair in against
                if cell in getattr(pair, kind)
            )
            groups.append(ForestGroup(titles.get(cell, cell), kind, lines))
    return tuple(groups)


def rests_on_few(found: Comparison, pair: Pair, group: str, name: str) -> bool:
    """Return whether the metric of either judge rests on few trajectories in a cell of a group."""
    for place in (pair.first, pair.second):
        cell = parts_of(found.entrants[place].row, found.label, group).get(name)
        if metric_cell(cell, found.figure).is_few:
            return True
    return False


def single_judges(found: Comparison, names: Sequence[str]) -> list[tuple[str, Cell]]:
    """Return the name and the overall cell of each judge that takes part in the votes."""
    cells = [(names[place], overall_of(found.entrants[place].row, found.label)) for place in found.voters]
    return [(name, cell) for name, cell in cells if cell is not None]


def view_dev_ensembles(
    names: Sequence[str], columns: Sequence[np.ndarray], labels: LabelSet, label: str
) -> Ensembles | None:
    """Return ensembles on dev, or None for fewer than two judges. ``columns`` are the judges' answers."""
    if len(columns) < FEWEST:
        return None
    single = [score_votes([column], labels, label)[0].cells["overall"] for column in columns]
    return _on_one_axis(score_votes(columns, labels, label), list(zip(names, single, strict=True)))


def _on_one_axis(votes: Sequence[Vote], single: Sequence[tuple[str, Cell]]) -> Ensembles:
    lines = [(vote_name(vote), True, vote.cells["overall"]) for vote in votes]
    lines += [(name, False, cell) for name, cell in single]
    values = [end for _, _, cell in lines for end in (cell["precision"], *(cell["precision_ci"] or ()))]
    return Ensembles(tuple(lines), Axis.around(values))


def favours(figure: str, difference: Difference) -> int:
    """Return 1 if the first judge is better, -1 if the second is, 0 if the two are not separated."""
    return -difference.favours if is_low(figure) else difference.favours


def points(value: float | None, unit: int = 100) -> str:
    """Return a difference in points, with its sign: ``+15.2``, ``−0.4``; a dash if undefined.

    Distances, whose unit is 1 and not percent, have two decimals.
    """
    if value is None:
        return "–"
    text = f"{unit * value:+.{1 if unit == 100 else 2}f}".replace("-", "−")
    return text[1:] if not text[1:].strip("0.") else text


def interval_in_points(interval: tuple[float, float] | None, unit: int = 100) -> str:
    """Return an interval as ``+10.6 to +20.0``, or an empty string for None."""
    return "" if interval is None else f"{points(interval[0], unit)} to {points(interval[1], unit)}"


def p_value(p: float) -> str:
    """Return a p-value as ``0.14``, ``0.0032`` or ``< 0.0001``."""
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.2g}" if p < 0.995 else "1"


def vote_name(vote: Vote) -> str:
    """Return ``All 3 say yes (unanimous)``, ``At least 2 of 3 (majority)`` or ``At least 1 of 3``."""
    if vote.is_unanimous:
        return "Both say yes" if vote.n_judges == 2 else f"All {vote.n_judges} say yes (unanimous)"
    name = f"At least {vote.needed} of {vote.n_judges}"
    return f"{name} (majority)" if vote.is_majority else name
