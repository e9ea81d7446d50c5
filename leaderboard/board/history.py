"""Rank history: each judge's rank by precision, day by day. A pure function of the board.

Ranks are those of the order alone (precision, then recall, then the earlier row), as the board has them
today; the ties that the intervals leave open are worked out for today's board only.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import is_rankable

Judge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """A judge that came, or got better: its place before (None: it was not there) and after, that day."""

    day: str
    row: BoardRow
    before: int | None
    after: int
    judges: int


@dataclass(frozen=True, slots=True)
class Line:
    """One judge through time: the row that stands for it today, and (day, place) whenever that changed."""

    row: BoardRow
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class History:
    """Days on which a ranked row was added, judges' lines in today's order, every change by day.

    ``leaders`` is how many judges were ever first.
    """

    days: tuple[str, ...]
    lines: tuple[Line, ...]
    changes: tuple[Change, ...]
    leaders: int


def board_history(board: Board, label: str, most_lines: int | None = None) -> History:
    """The history of one label: all rows by day, each judge by its best one until then.

    A day is a date in UTC. Rows without a rank (self-reported, references, undefined precision) are left out.
    Lines are those of today's first ``most_lines`` judges, all where that is None.
    """
    rows = [(_order(row, label), _judge(row), row) for row in board.rows if _is_ranked(row, label)]
    rows.sort(key=lambda each: (each[2].date[:10], each[2].id))
    today: dict[Judge, tuple] = {}
    for order, judge, _ in rows:
        today[judge] = min(order, today.get(judge, order))
    drawn = sorted(today, key=lambda judge: today[judge])[:most_lines]
    best: dict[Judge, tuple[tuple, BoardRow]] = {}
    standing: list[tuple] = []  # the orders of all judges, best first
    owners: dict[tuple, Judge] = {}
    places: dict[Judge, list[tuple[str, int]]] = {judge: [] for judge in drawn}
    days, changes, leaders = [], [], set()
    for day, added in groupby(rows, key=lambda each: each[2].date[:10]):
        better: dict[Judge, tuple[tuple, BoardRow]] = {}
        for order, judge, row in added:
            if order < better.get(judge, best.get(judge, ((inf,), None)))[0]:
                better[judge] = (order, row)
        before = {judge: _place(standing, best[judge][0]) for judge in better if judge in best}
        for judge, (order, _) in better.items():
            if judge in best:
                del standing[_place(standing, best[judge][0]) - 1]
            insort(standing, order)
            owners[order] = judge
        best |= better
        days.append(day)
        leaders.add(owners[standing[0]])
        for judge in drawn:
            if judge in best:
                place = _place(standing, best[judge][0])
                if not places[judge] or places[judge][-1][1] != place:
                    places[judge].append((day, place))
        for judge, (order, row) in sorted(better.items(), key=lambda each: each[1][0]):
            place = _place(standing, order)
            changes.append(Change(day, row, before.get(judge), place, len(standing)))
    lines = [Line(best[judge][1], tuple(places[judge])) for judge in drawn]
    return History(tuple(days), tuple(lines), tuple(changes), len(leaders))


def _place(standing: Sequence[tuple], order: tuple) -> int:
    return bisect_left(standing, order) + 1


def _is_ranked(row: BoardRow, label: str) -> bool:
    found = row.labels.get(label)
    is_defined = bool(found) and found["overall"]["precision"] is not None
    return is_defined and is_rankable(row)


def _judge(row: BoardRow) -> Judge:
    """What the board ranks as one: the name of an account's judge, or a published row."""
    return (row.account, row.judge) if row.provenance == "scored" else ("", row.id)


def _order(row: BoardRow, label: str) -> tuple:
    overall = row.labels[label]["overall"]
    recall = -1.0 if overall["recall"] is None else overall["recall"]
    return (-overall["precision"], -recall, row.date, row.id)
