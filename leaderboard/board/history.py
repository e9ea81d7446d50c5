"""Rank history: each judge's rank by precision, day by day. A pure function of the board.

Ranks are those of the order alone (precision, then recall, then the earlier row), as the board has them
today; the ties that the intervals leave open are worked out for today's board only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from leaderboard.board.board import Board, BoardRow, is_rankable

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
    """Days on which a ranked row was added, every judge's line in today's order, every change by day."""

    days: tuple[str, ...]
    lines: tuple[Line, ...]
    changes: tuple[Change, ...]


def board_history(board: Board, label: str) -> History:
    """The history of one label: all rows by day, each judge by its best one until then.

    A day is a date in UTC. Rows without a rank (self-reported, references, undefined precision) are left out.
    """
    rows = sorted(
        (row for row in board.rows if _is_ranked(row, label)), key=lambda row: (row.date[:10], row.id)
    )
    best: dict[Judge, BoardRow] = {}
    current: dict[Judge, int] = {}
    places: dict[Judge, list[tuple[str, int]]] = {}
    days, changes = [], []
    for day, added in groupby(rows, key=lambda row: row.date[:10]):
        before = dict(best)
        for row in added:
            judge = _judge(row)
            if judge not in best or _order(row, label) < _order(best[judge], label):
                best[judge] = row
        previous, current = current, _places(best, label)
        days.append(day)
        for judge, place in current.items():
            if previous.get(judge) != place:
                places.setdefault(judge, []).append((day, place))
            if before.get(judge) is not best[judge]:
                changes.append(Change(day, best[judge], previous.get(judge), place, len(current)))
    lines = [Line(best[judge], tuple(places[judge])) for judge in current]
    return History(tuple(days), tuple(lines), tuple(changes))


def _is_ranked(row: BoardRow, label: str) -> bool:
    found = row.labels.get(label)
    is_defined = bool(found) and found["overall"]["precision"] is not None
    return is_defined and is_rankable(row)


def _judge(row: BoardRow) -> Judge:
    """What the board ranks as one: the name of an account's judge, or a published row."""
    return (row.account, row.judge) if row.provenance == "scored" else ("", row.id)


def _places(best: Mapping[Judge, BoardRow], label: str) -> dict[Judge, int]:
    ordered: Sequence[Judge] = sorted(best, key=lambda judge: _order(best[judge], label))
    return {judge: place for place, judge in enumerate(ordered, start=1)}


def _order(row: BoardRow, label: str) -> tuple:
    overall = row.labels[label]["overall"]
    recall = -1.0 if overall["recall"] is None else overall["recall"]
    return (-overall["precision"], -recall, row.date, row.id)
