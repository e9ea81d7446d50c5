"""The rank history of the leaderboard: a plot of the best judges' ranks over time, and the latest changes."""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Final

from leaderboard.board.history import History, RankLine
from space.web.cells import short_name

MOST_LINES: Final = 10
MOST_CHANGES: Final = 8
WIDTH: Final = 860
ROW_HEIGHT: Final = 26
LEFT, RIGHT, TOP, BOTTOM = 34, 250, 16, 34
SHORTEST_GAP: Final = 40
"""The smallest distance between two days in pixels, unless the gaps would fill more than half the width."""

DATE_WIDTH: Final = 84
BEND: Final = 9
"""Half the width in pixels of the bend where a line moves to its next rank."""


def view_history(history: History) -> dict[str, Any]:
    """Return the template's values for the plot of today's leading judges, and for the latest changes."""
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
    """Return the x of each day in pixels: proportional to time, but with a minimum gap between days."""
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
    """Return the days whose dates fit below the plot: the first, the last, and others where there is room."""
    kept = [days[0]]
    for day in days[1:-1]:
        if min(across[day] - across[kept[-1]], across[days[-1]] - across[day]) >= DATE_WIDTH:
            kept.append(day)
    return [*kept, days[-1]]


def _down(place: int, deepest: int) -> float:
    """Return the y of a rank in pixels; all ranks too low for the plot share its last line."""
    return TOP + ROW_HEIGHT * (min(place, deepest + 1) - 0.5)


def _drawn(line: RankLine, across: dict[str, float], last_day: str, deepest: int) -> dict[str, Any]:
    points = [(across[day], _down(place, deepest)) for day, place in line.places]
    path = f"M{points[0][0]:g},{points[0][1]:g}"
    for (came, before), (x, y) in pairwise(points):
        bend = min(BEND, (x - came) / 2)
        path += f"H{x - 2 * bend:g}C{x - bend:g},{before:g} {x - bend:g},{y:g} {x:g},{y:g}"
    end = (across[last_day], points[-1][1])
    ranks = ", ".join(f"{place} from {_day(day)}" for day, place in line.places[-6:])
    hover = f"{short_name(line.row)}: rank {ranks}"
    return {"row": line.row, "path": f"{path}H{end[0]:g}", "start": points[0], "end": end, "hover": hover}


def _day(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found.day} {found:%b %Y}"
