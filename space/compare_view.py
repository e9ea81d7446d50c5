"""Judges side by side, as the compare page shows them: cells, whiskers, pairs, votes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_SHORT_TITLES, BENCHMARK_TITLES
from leaderboard.compare import FEWEST, Comparison, Pair
from leaderboard.differences import Difference
from leaderboard.labels import LabelSet
from leaderboard.report_tables import interval, percent
from leaderboard.votes import score_votes
from space.axis import Axis
from space.board_figures import figure_cell
from space.compare_lines import (
    FooledLine,
    Grove,
    PairLine,
    Side,
    VoteLine,
    Whisker,
    interval_in_points,
    p_value,
    points,
    vote_name,
)
from space.row_names import distinct_names, origin

OVERALL: Final = "All trajectories"


@dataclass(frozen=True)
class CompareView:
    """Everything on the page but its sentences."""

    comparison: Comparison
    names: tuple[str, ...]
    sides: tuple[Side, ...]
    other_figures: tuple[str, ...]
    benchmarks: tuple[tuple[str, str], ...]
    axis: Axis
    groves: tuple[Grove, ...]
    difference_axis: Axis
    pairs: tuple[PairLine, ...]
    votes: tuple[VoteLine, ...]
    vote_axis: Axis | None
    fooled: tuple[FooledLine, ...]

    @property
    def has_runs(self) -> bool:
        """Whether any pair was compared run by run."""
        return any(pair.is_paired for pair in self.comparison.pairs)


def view_comparison(found: Comparison) -> CompareView:
    """The comparison with every number formatted; figures in percent, differences in points."""
    names = distinct_names([entrant.row for entrant in found.entrants])
    cells = [entrant.row.labels[found.label] for entrant in found.entrants]
    benchmarks = ordered({name for cell in cells for name in cell["by_benchmark"]}, BENCHMARK_TITLES)
    others = tuple(name for name in ("precision", "recall", "f1") if name != found.figure)
    ends = [end for cell in cells for end in cell["overall"].get(f"{found.figure}_ci") or ()]
    axis = Axis.around([*ends, *(cell["overall"][found.figure] for cell in cells)])
    sides = tuple(
        _side(found, place, names[place], others, benchmarks, axis) for place in range(len(found.entrants))
    )
    difference_axis = _difference_axis(found)
    vote_lines, vote_axis = _votes(found, names)
    return CompareView(
        comparison=found,
        names=names,
        sides=sides,
        other_figures=others,
        benchmarks=tuple(
            (BENCHMARK_SHORT_TITLES.get(name, name), BENCHMARK_TITLES.get(name, name)) for name in benchmarks
        ),
        axis=axis,
        groves=_groves(found, names, difference_axis),
        difference_axis=difference_axis,
        pairs=tuple(_pair_line(pair, names) for pair in found.pairs),
        votes=vote_lines,
        vote_axis=vote_axis,
        fooled=_fooled(found),
    )


def _side(
    found: Comparison, place: int, name: str, others: Sequence[str], benchmarks: Sequence[str], axis: Axis
) -> Side:
    row = found.entrants[place].row
    cells = row.labels[found.label]
    overall = cells["overall"]
    told = " · ".join(part for part in (row.kind, row.model, origin(row), *row.marks) if part)
    return Side(
        name=name,
        row_id=row.id,
        told=told,
        has_verdicts=place in found.voters,
        main=figure_cell(overall, found.figure, found.label),
        span=axis.span(overall[found.figure], overall.get(f"{found.figure}_ci")),
        words=_in_words(overall.get(f"{found.figure}_ci")),
        others=tuple(figure_cell(overall, figure, found.label) for figure in others),
        benchmarks=tuple(
            figure_cell(cells["by_benchmark"].get(b), found.figure, found.label) for b in benchmarks
        ),
    )


def _difference_axis(found: Comparison) -> Axis:
    """Wide enough for every difference, and for every interval but those on few runs: they may run off it."""
    values: list[float | None] = [0.0]
    for pair in found.against_first():
        values += [pair.overall.value, *(pair.overall.interval or ())]
        for group in ("by_benchmark", "by_agent"):
            for name, difference in getattr(pair, group).items():
                few = rests_on_few(found, pair, group, name)
                values += [difference.value, *(() if few else difference.interval or ())]
    return Axis.around(values)


def _groves(found: Comparison, names: Sequence[str], axis: Axis) -> tuple[Grove, ...]:
    against = found.against_first()
    groves = [
        Grove(OVERALL, "overall", tuple(_whisker(found, p, p.overall, None, names, axis) for p in against))
    ]
    for group, kind, titles in (
        ("by_benchmark", "benchmark", BENCHMARK_TITLES),
        ("by_agent", "agent", AGENT_TITLES),
    ):
        cells = ordered({name for pair in against for name in getattr(pair, group)}, titles)
        for cell in cells:
            whiskers = tuple(
                _whisker(found, pair, getattr(pair, group)[cell], (group, cell), names, axis)
                for pair in against
                if cell in getattr(pair, group)
            )
            groves.append(Grove(titles.get(cell, cell), kind, whiskers))
    return tuple(groves)


def _whisker(
    found: Comparison,
    pair: Pair,
    difference: Difference,
    cell: tuple[str, str] | None,
    names: Sequence[str],
    axis: Axis,
) -> Whisker:
    return Whisker(
        place=pair.second,
        name=names[pair.second],
        first=percent(difference.first),
        second=percent(difference.second),
        value=points(difference.value),
        interval=interval_in_points(difference.interval),
        span=axis.span(difference.value, difference.interval),
        words=f"{points(difference.value)} points ({interval_in_points(difference.interval)})"
        if difference.interval
        else "",
        basis=difference.basis or "",
        favours=difference.favours,
        is_few=cell is not None and rests_on_few(found, pair, *cell),
    )


def rests_on_few(found: Comparison, pair: Pair, group: str, name: str) -> bool:
    """Whether the figure of either judge rests on few runs in a cell (``group``: by_benchmark, by_agent)."""
    cells = (found.entrants[place].row.labels[found.label][group] for place in (pair.first, pair.second))
    return any(figure_cell(cell.get(name), found.figure, found.label).is_few for cell in cells)


def _pair_line(pair: Pair, names: Sequence[str]) -> PairLine:
    runs = pair.runs
    told = dict.fromkeys(("agree", "kappa", "only_first", "only_second", "p", "shared", "by_chance"), "–")
    told["shared_hover"] = ""
    if runs is not None:
        shared = runs.shared
        told = {
            "agree": percent(runs.agreement.percent),
            "kappa": "–" if runs.agreement.kappa is None else f"{runs.agreement.kappa:.2f}",
            "only_first": f"{runs.mcnemar.only_first:,}",
            "only_second": f"{runs.mcnemar.only_second:,}",
            "p": p_value(runs.mcnemar.p),
            "shared": f"{shared.shared:,}",
            "by_chance": f"{shared.by_chance:.0f}",
            "shared_hover": f"{shared.false_alarms:,} false alarms and {shared.misses:,} misses of both",
        }
    return PairLine(
        first=names[pair.first],
        second=names[pair.second],
        value=points(pair.overall.value),
        interval=interval_in_points(pair.overall.interval),
        favours=pair.overall.favours,
        **told,
    )


def _votes(found: Comparison, names: Sequence[str]) -> tuple[tuple[VoteLine, ...], Axis | None]:
    """Each vote, then each judge alone for comparison; on one axis."""
    if not found.votes:
        return (), None
    cells = [(vote_name(vote), True, vote.cells["overall"]) for vote in found.votes]
    cells += [
        (names[place], False, found.entrants[place].row.labels[found.label]["overall"])
        for place in found.voters
    ]
    return _vote_lines(cells, found.label)


def view_dev_votes(
    names: Sequence[str], columns: Sequence[np.ndarray], labels: LabelSet, label: str
) -> tuple[tuple[VoteLine, ...], Axis | None]:
    """The same on dev, where the dataset carries verdicts of two or more; columns in the split's order."""
    if len(columns) < FEWEST:
        return (), None
    cells = [(vote_name(vote), True, vote.cells["overall"]) for vote in score_votes(columns, labels, label)]
    alone = [score_votes([column], labels, label)[0] for column in columns]
    cells += [(name, False, vote.cells["overall"]) for name, vote in zip(names, alone, strict=True)]
    return _vote_lines(cells, label)


def _vote_lines(
    cells: Sequence[tuple[str, bool, Mapping[str, Any]]], label: str
) -> tuple[tuple[VoteLine, ...], Axis | None]:
    values = [end for _, _, cell in cells for end in cell["precision_ci"] or ()]
    axis = Axis.around([*values, *(cell["precision"] for _, _, cell in cells)])
    lines = tuple(
        VoteLine(
            name,
            is_vote,
            figure_cell(cell, "precision", label),
            axis.span(cell["precision"], cell["precision_ci"]),
            _in_words(cell["precision_ci"]),
            figure_cell(cell, "recall", label),
            figure_cell(cell, "f1", label),
        )
        for name, is_vote, cell in cells
    )
    return lines, axis


def _fooled(found: Comparison) -> tuple[FooledLine, ...]:
    if found.fooled is None:
        return ()
    judges = len(found.voters)
    runs = sum(found.fooled.negatives) + sum(found.fooled.positives)
    lines = []
    for wrong in range(judges + 1):
        how_many = "none" if wrong == 0 else f"all {judges}" if wrong == judges else f"{wrong} of {judges}"
        alarms, misses = found.fooled.negatives[wrong], found.fooled.positives[wrong]
        here = alarms + misses
        lines.append(FooledLine(how_many, alarms, misses, here, round(100 * here / runs, 1) if runs else 0))
    return tuple(lines)


def ordered(names: set[str], titles: Mapping[str, str]) -> list[str]:
    """The known names in their usual order, then the others by name."""
    return [*(name for name in titles if name in names), *sorted(names - set(titles))]


def _in_words(ends: Sequence[float] | None) -> str:
    return f"95 %: {interval(list(ends))}" if ends else ""
