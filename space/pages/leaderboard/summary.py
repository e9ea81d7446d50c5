"""What the board says in sentences made from its numbers, and how its first ranks changed over time."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Final

from arb.core.console import percent
from arb.core.vocabulary import BENCHMARK_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.history import History, RankLine
from leaderboard.board.ranks import Rank
from leaderboard.board.rows import parts_of
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import Cell
from space.pages.leaderboard.query import figure_name
from space.web.cells import CALLED, short_name

POSITIVES = {"success": "successes", "side_effect": "side effects", "repetition": "repetitions"}


def sentences(board: Board, label: str, figure: str = "precision") -> list[str]:
    """Two to four sentences on ties, the first row, the smallest benchmark and the human reference."""
    ranks = board.ranks(label, figure)
    ranked = [(row, rank) for row in board.ranking(label, figure) if (rank := ranks.get(row.id))]
    if not ranked:
        return ["No judge is ranked on this label yet."]
    found = [
        _tie(ranked, label, figure),
        _first(ranked[0][0], label, figure),
        _smallest_benchmark([row for row, _ in ranked], label),
        _human(board, label),
    ]
    return [sentence for sentence in found if sentence]


def _tie(ranked: Sequence[tuple[BoardRow, Rank]], label: str, figure: str) -> str:
    """What the ranges of places say: the largest group that shares one, or that some overlap, or none."""
    if len(ranked) < 2:
        return ""
    ranges = Counter((rank.low, rank.high) for _, rank in ranked)
    if all(low == high for low, high in ranges):
        return "Every judge here is separated from its neighbours."
    (low, high), size = max(ranges.items(), key=lambda item: (item[1], -item[0][0]))
    if size < 2:
        open_places = sum(low < high for low, high in ranges)
        return f"The test set leaves the ranks of {open_places} of {len(ranked)} judges open."
    group = [row for row, rank in ranked if (rank.low, rank.high) == (low, high)]
    tied = group[0], group[-1]
    first, last = (row.labels[label]["overall"][figure] for row in tied)
    within = f"{100 * abs(first - last):.1f} points of {figure_name(figure)}"
    return (
        f"From {short_name(tied[0])} to {short_name(tied[-1])}, {size} judges lie within {within}, and the "
        f"test set cannot order them: the rank of each may be anything from {low} to {high}."
    )


def _first(row: BoardRow, label: str, figure: str) -> str:
    cell = row.labels[label]["overall"]
    if figure != "precision":
        return f"{short_name(row)} leads with {figure_name(figure)} {percent(cell[figure])}."
    if cell["recall"] is None:
        return ""
    return (
        f"{short_name(row)} leads: of 100 trajectories {CALLED[label]}, {round(100 * cell['precision'])} "
        f"are; it misses {round(100 * (1 - cell['recall']))} of 100 {POSITIVES[label]}."
    )


def _smallest_benchmark(ranked: Sequence[BoardRow], label: str) -> str:
    cells: dict[str, Cell] = {}
    for row in ranked:
        for name, cell in parts_of(row, label, "by_benchmark").items():
            if name not in cells and cell["n"]:
                cells[name] = cell
    if not cells:
        return ""
    name, cell = min(cells.items(), key=lambda item: item[1]["positives"])
    title = BENCHMARK_TITLES.get(name, name)
    return (
        f"{title} has {cell['positives']} {POSITIVES[label]} in {cell['n']} trajectories: read its column as "
        "counts, which every cell shows on hover."
    )


def _human(board: Board, label: str) -> str:
    human = board.row(SECOND_ANNOTATOR)
    if human is None or not human.labels[label]:
        return ""
    cell = human.labels[label]["overall"]
    return (
        f"A second expert, scored as a judge of the first on {cell['n']} trajectories, reaches a precision "
        f"of {percent(cell['precision'])}: about there labels end and noise begins."
    )


MOST_LINES: Final = 10
MOST_CHANGES: Final = 8
WIDTH: Final = 860
ROW_HEIGHT: Final = 26
LEFT, RIGHT, TOP, BOTTOM = 34, 250, 16, 34
SHORTEST_GAP: Final = 40
"""Days stand apart by their distance in time, and by this at least while half of the room is left to time."""

DATE_WIDTH: Final = 84
BEND: Final = 9
"""Half the width of the bend with which a line goes over to its next place, before the day of the change."""


def view_history(history: History) -> dict[str, Any]:
    """Lay out the lines of today's first places and the latest changes, newest first.

    Without a second day there are no lines, only a sentence.
    """
    lines = history.lines[:MOST_LINES] if len(history.days) > 1 else ()
    deepest = len(lines)
    across = _across(history.days)
    later = [change for change in reversed(history.changes) if change.day != history.days[0]]
    return {
        "history": history,
        "n_at_first": sum(change.day in history.days[:1] for change in history.changes),
        "day": _day,
        "width": WIDTH,
        "height": TOP + ROW_HEIGHT * (deepest + 1) + BOTTOM,
        "lines": [_drawn(line, across, history.days[-1], deepest) for line in lines],
        "days": [(across[day], _day(day)) for day in _labelled(history.days, across)] if lines else [],
        "places": [(_down(place, deepest), place) for place in range(1, deepest + 1)],
        "changes": later[:MOST_CHANGES],
        "more_changes": max(0, len(later) - MOST_CHANGES),
    }


def _across(days: Sequence[str]) -> dict[str, float]:
    """Where each day stands: by time, the room shared so that no two are nearer than the shortest gap."""
    if len(days) < 2:
        return {day: float(LEFT) for day in days}
    room = WIDTH - LEFT - RIGHT
    gap = min(SHORTEST_GAP, room / (len(days) - 1) / 2)
    spare = room - gap * (len(days) - 1)
    ordinals = [date.fromisoformat(day).toordinal() for day in days]
    span = ordinals[-1] - ordinals[0]
    return {
        day: round(LEFT + gap * number + spare * (ordinal - ordinals[0]) / span, 1)
        for number, (day, ordinal) in enumerate(zip(days, ordinals, strict=True))
    }


def _labelled(days: Sequence[str], across: dict[str, float]) -> list[str]:
    """The days whose dates have room beneath the plot: first, last, and others that stand clear of both."""
    kept = [days[0]]
    for day in days[1:-1]:
        if min(across[day] - across[kept[-1]], across[days[-1]] - across[day]) >= DATE_WIDTH:
            kept.append(day)
    return [*kept, days[-1]]


def _down(place: int, deepest: int) -> float:
    """The height of a place; those below the ones shown share the last line."""
    return TOP + ROW_HEIGHT * (min(place, deepest + 1) - 0.5)


def _drawn(line: RankLine, across: dict[str, float], last_day: str, deepest: int) -> dict[str, Any]:
    """Return a judge's line: its row, an SVG path, its ends, and what hovering tells."""
    points = [(across[day], _down(place, deepest)) for day, place in line.places]
    path = f"M{points[0][0]:g},{points[0][1]:g}"
    for (came, before), (x, y) in pairwise(points):
        bend = min(BEND, (x - came) / 2)
        path += f"H{x - 2 * bend:g}C{x - bend:g},{before:g} {x - bend:g},{y:g} {x:g},{y:g}"
    end = (across[last_day], points[-1][1])
    ranks = ", ".join(f"{place} from {_day(day)}" for day, place in line.places[-6:])
    hover = f"{line.row.judge}: rank {ranks}"
    return {"row": line.row, "path": f"{path}H{end[0]:g}", "start": points[0], "end": end, "hover": hover}


def _day(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found.day} {found:%b %Y}"
