"""Rank history: each judge's rank by precision, day by day. A pure function of the board.

Ranks are those of the order alone (precision, then recall, then the earlier row), as the board has them
today; the ties that the intervals leave open are worked out for today's board only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import is_rankable, judge_of, ranking_order


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
    """Days on which a ranked row was added, judges' lines in today's order, changes by day.

    ``n_changes`` are all changes, ``n_at_first`` those of the first day; ``leaders`` is how many judges were
    ever first.
    """

    days: tuple[str, ...]
    lines: tuple[Line, ...]
    changes: tuple[Change, ...]
    n_changes: int
    n_at_first: int
    leaders: int


def board_history(
    board: Board, label: str, most_lines: int | None = None, most_changes: int | None = None
) -> History:
    """The history of one label: all rows by day, each judge by its best one until then.

    A day is a date in UTC. Rows without a rank (self-reported, references, undefined precision) are left out.
    Lines are those of today's first ``most_lines`` judges, changes the last ``most_changes``; None: all.
    """
    keys = board.columns.get(_order, label)
    ranked = [place for place in board.order(label).tolist() if keys[place] is not None]
    ranked.sort(key=keys.__getitem__)  # from here on a row is its number in this order, 0 the best
    rows = [board.plain_rows[place] for place in ranked]
    names = board.columns.get(_day)[ranked]
    days = sorted(set(names))
    day = _codes(names, dict(zip(days, range(len(days)), strict=True)))
    judge = _codes(board.columns.get(judge_of)[ranked], {})
    better = _Better.of(day, judge)

    order = np.lexsort((better.new, better.day))
    shown = order[max(0, len(order) - most_changes) :] if most_changes is not None else order
    changes = []
    for number in shown.tolist():
        at, new, old = int(better.day[number]), int(better.new[number]), int(better.old[number])
        before = None if old < 0 else better.place(old, at - 1)
        n_judges = int(np.sum((better.old < 0) & (better.day <= at)))
        changes.append(Change(days[at], rows[new], before, better.place(new, at), n_judges))

    _, best = np.unique(judge, return_index=True)  # of each judge the first row, which is its best
    lines = []
    for number in np.sort(best)[:most_lines].tolist():
        places = better.places_of(judge[number], len(days))
        lines.append(Line(rows[number], tuple((days[at], place) for at, place in places)))
    firsts = np.full(len(days), len(rows), dtype=np.int64)
    np.minimum.at(firsts, better.day, better.new)
    leaders = {int(judge[number]) for number in np.minimum.accumulate(firsts)}
    at_first = int(np.sum(better.day == 0))
    return History(tuple(days), tuple(lines), tuple(changes), len(order), at_first, len(leaders))


@dataclass(frozen=True)
class _Better:
    """When judges came or got better: the day, the judge, its new row, and the one before (-1: none)."""

    day: np.ndarray
    judge: np.ndarray
    new: np.ndarray
    old: np.ndarray

    @classmethod
    def of(cls, day: np.ndarray, judge: np.ndarray) -> "_Better":
        """From day and judge of each row, best row first; of one day only a judge's best row counts."""
        n = len(day)
        by_judge = np.lexsort((np.arange(n), day, judge))
        of_judge, of_day = judge[by_judge], day[by_judge]
        is_first = np.ones(n, dtype=bool)
        is_first[1:] = (of_judge[1:] != of_judge[:-1]) | (of_day[1:] != of_day[:-1])
        new, of_judge, of_day = by_judge[is_first], of_judge[is_first], of_day[is_first]
        # The best until then, judge by judge: those of later judges are lower than all before.
        best = np.minimum.accumulate(new - of_judge * (n + 1)) + of_judge * (n + 1)
        old = np.full(len(new), -1, dtype=np.int64)
        is_same = of_judge[1:] == of_judge[:-1]
        old[1:][is_same] = best[:-1][is_same]
        is_better = (old < 0) | (new < old)
        return cls(of_day[is_better], of_judge[is_better], new[is_better], old[is_better])

    def place(self, row: int, day: int) -> int:
        """Which place a row has at the end of a day among the best rows of judges."""
        until = self.day <= day
        left = (self.old >= 0) & (self.old < row)
        return 1 + int(np.sum(until & (self.new < row)) - np.sum(until & left))

    def places_of(self, judge: int, n_days: int) -> list[tuple[int, int]]:
        """A judge's place on the day it came, and on each day that changed it."""
        own = np.flatnonzero(self.judge == judge)
        ends = [*self.day[own][1:].tolist(), n_days]
        found: list[tuple[int, int]] = []
        for number, end in zip(own.tolist(), ends, strict=True):
            row = self.new[number]
            above = (self.new < row).astype(np.int64) - ((self.old >= 0) & (self.old < row))
            places = 1 + np.cumsum(np.bincount(self.day, weights=above, minlength=n_days)).astype(np.int64)
            for day in range(int(self.day[number]), end):
                if not found or found[-1][1] != places[day]:
                    found.append((day, int(places[day])))
        return found


def _codes(values: Sequence, codes: dict) -> np.ndarray:
    """A number for each value, the same for the same ones."""
    return np.fromiter((codes.setdefault(value, len(codes)) for value in values), np.int64, len(values))


def _day(row: BoardRow) -> str:
    return row.date[:10]


def _order(row: BoardRow, label: str) -> tuple | None:
    """Where the row stands by its figures; None where it has no rank."""
    found = row.labels.get(label)
    if not found or found["overall"]["precision"] is None or not is_rankable(row):
        return None
    return ranking_order(row, found["overall"])
