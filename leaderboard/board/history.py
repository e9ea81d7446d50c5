"""Rank history: each judge's place by precision on each day, computed from today's board.

Places follow the order of the board: precision, then recall, then date. Unlike the board, the history does
not have the ranges of places that the data allow.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from arb.core.suites.targets import Target
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import is_rankable, judge_of, ranking_order
from leaderboard.score import metric_of


@dataclass(frozen=True, slots=True)
class RankMove:
    """The change of a judge's place on the day on which it was added or got a better row.

    ``before`` is None if the judge is new. ``judges`` is the number of ranked judges after the change.
    """

    day: str
    row: BoardRow
    before: int | None
    after: int
    judges: int


@dataclass(frozen=True, slots=True)
class RankLine:
    """One judge over time: its best row on today's board, and (day, place) for every change of place."""

    row: BoardRow
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class History:
    """The history of ranks.

    ``days`` are those on which a ranked row was added. ``lines`` are in today's order, and ``changes`` are
    sorted by day. ``leaders`` is the number of judges that have ever been first.
    """

    days: tuple[str, ...]
    lines: tuple[RankLine, ...]
    changes: tuple[RankMove, ...]
    leaders: int


def board_history(board: Board, label: str, most_lines: int | None = None) -> History:
    """Return the history of places on one label. A judge's place on a day is that of its best row so far.

    A day is a date in UTC. Rows without a rank (self-reported, references, undefined precision) or a date are
    left out. The result has lines only for today's first ``most_lines`` judges, or for all if it is None.
    """
    rows = _ranked_rows(
        board.rows, board.target(label)
    )  # rows are identified by their index in this list, best first
    judges = [judge_of(row) for row in rows]
    by_day: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_day.setdefault(row.date[:10], []).append(number)

    best: dict[tuple[str, str], int] = {}
    places: dict[tuple[str, str], int] = {}
    changes, leaders = [], set()
    lines: dict[tuple[str, str], list[tuple[str, int]]] = {judge: [] for judge in judges}
    for day in sorted(by_day):
        better = []
        for number in by_day[day]:
            if number < best.get(judges[number], len(rows)):
                best[judges[number]] = number
                better.append(number)
        before = places
        places = {judge: place for place, judge in enumerate(sorted(best, key=best.__getitem__), start=1)}
        for number in better:
            judge = judges[number]
            changes.append(RankMove(day, rows[number], before.get(judge), places[judge], len(places)))
        leaders.add(next(iter(places)))
        for judge, place in places.items():
            if place != before.get(judge):
                lines[judge].append((day, place))
    found = [RankLine(rows[best[judge]], tuple(lines[judge])) for judge in [*places][:most_lines]]
    return History(tuple(sorted(by_day)), tuple(found), tuple(changes), len(leaders))


def _ranked_rows(rows: Iterable[BoardRow], target: Target) -> list[BoardRow]:
    """Return the rows that may be ranked and have the target's main metric, best first."""
    found = []
    for row in rows:
        score = row.labels.get(target.name)
        if score is None or not row.date:
            continue
        if metric_of(score["overall"], target.main_metric) is not None and is_rankable(row):
            found.append((ranking_order(row, score["overall"], target.main_metric, target), row))
    return [row for _, row in sorted(found, key=lambda each: each[0])]
