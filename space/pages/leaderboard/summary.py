"""Key findings of the board as sentences, and the plot of how its first ranks changed over time."""

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
from leaderboard.score import metric_of
from space.pages.rows import figure_name, overall_of, ranked_rows
from space.web.cells import CALLED, short_name

POSITIVES = {"success": "successes", "side_effect": "side effects", "repetition": "repetitions"}


def sentences(board: Board, label: str, figure: str = "precision") -> list[str]:
    """Return up to four sentences: on ties, the first row, the smallest benchmark and the human reference."""
    ranked = ranked_rows(board, label, figure)
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
    """Return what the ranges of ranks say: the largest group that shares one, or how many ranks are open."""
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
    # A row with a rank has the figure that it is ranked by.
    first, last = (metric_of(overall_of(row, label) or {}, figure) or 0.0 for row in (group[0], group[-1]))
    within = f"{100 * abs(first - last):.1f} points of {figure_name(figure)}"
    return (
        f"From {short_name(group[0])} to {short_name(group[-1])}, {size} judges lie within {within}, and the "
        f"test set cannot order them: the rank of each may be anything from {low} to {high}."
    )


def _first(row: BoardRow, label: str, figure: str) -> str:
    cell = overall_of(row, label)
    if figure != "precision":
        return f"{short_name(row)} leads with {figure_name(figure)} {percent(metric_of(cell or {}, figure))}."
    if cell is None or cell["precision"] is None or cell["recall"] is None:
        return ""
    return (
        f"{short_name(row)} leads: of 100 trajectories {CALLED[label]}, {round(100 * cell['precision'])} "
        f"are; it misses {round(100 * (1 - cell['recall']))} of 100 {POSITIVES[label]}."
    )


def _smallest_benchmark(ranked: Sequence[BoardRow], label: str) -> str:
    sizes: dict[str, tuple[int, int]] = {}
    for row in ranked:
        for name, cell in parts_of(row, label, "by_benchmark").items():
            n, positives = cell["n"], cell["positives"]
            if name not in sizes and n and positives is not None:
                sizes[name] = (positives, n)
    if not sizes:
        return ""
    name, (positives, n) = min(sizes.items(), key=lambda item: item[1][0])
    title = BENCHMARK_TITLES.get(name, name)
    return (
        f"{title} has {positives} {POSITIVES[label]} in {n} trajectories: read its column as "
        "counts, which every cell shows on hover."
    )


def _human(board: Board, label: str) -> str:
    human = board.row(SECOND_ANNOTATOR)
    cell = overall_of(human, label) if human else None
    if cell is None:
        return ""
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
"""The smallest distance of two days in pixels, unless it would take more than half of the room."""

DATE_WIDTH: Final = 84
BEND: Final = 9
"""Half the width of the bend that takes a line to its next rank, just before the day of the change."""


def view_history(history: History) -> dict[str, Any]:
    """Lay out the lines of today's first ranks, and the latest changes, newest first.

    Lines are drawn only if the board has changed on a second day.
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
    """Return the place of each day in pixels: by time, with at least the shortest gap between two days."""
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
    """Return the days whose dates fit below the plot: the first, the last, and others with enough room."""
    kept = [days[0]]
    for day in days[1:-1]:
        if min(across[day] - across[kept[-1]], across[days[-1]] - across[day]) >= DATE_WIDTH:
            kept.append(day)
    return [*kept, days[-1]]


def _down(place: int, deepest: int) -> float:
    """Return the y of a rank; all ranks below those shown share the last line."""
    return TOP + ROW_HEIGHT * (min(place, deepest + 1) - 0.5)


def _drawn(line: RankLine, across: dict[str, float], last_day: str, deepest: int) -> dict[str, Any]:
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
