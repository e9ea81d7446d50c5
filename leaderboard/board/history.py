"""Rank history: each judge's rank by precision, day by day. A pure function of the board.

Ranks are those of the order alone (precision, then recall, then the earlier row), as the board has them
today; the ties that the intervals leave open are worked out for today's board only.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import is_rankable, judge_of, ranking_order


@dataclass(frozen=True, slots=True)
class RankMove:
    """A judge that came, or got better: its place before (None: it was not there) and after, that day."""

    day: str
    row: BoardRow
    before: int | None
    after: int
    judges: int


@dataclass(frozen=True, slots=True)
class RankLine:
    """One judge through time: the row that stands for it today, and (day, place) whenever that changed."""

    row: BoardRow
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class History:
    """Days on which a ranked row was added, judges' lines in today's order, changes by day.

    ``leaders`` is how many judges were ever first.
    """

    days: tuple[str, ...]
    lines: tuple[RankLine, ...]
    changes: tuple[RankMove, ...]
    leaders: int


def board_history(board: Board, label: str, most_lines: int | None = None) -> History:
    """Return the history of one label: all rows by day, each judge by its best one until then.

    A day is a date in UTC. Rows without a rank (self-reported, references, undefined precision) are left out.
    Lines are those of today's first ``most_lines`` judges; None: all.
    """
    rows = _ranked_rows(board.rows, label)  # from here on a row is its number in this order, 0 the best
    judges = [judge_of(row) for row in rows]
    today: dict[tuple[str, str], int] = {}
    by_day: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        today.setdefault(judges[number], number)
        by_day.setdefault(row.date[:10], []).append(number)
    places: dict[tuple[str, str], list[tuple[str, int]]] = {judge: [] for judge in [*today][:most_lines]}

    best: dict[tuple[str, str], int] = {}
    current: list[int] = []  # the best row of each judge so far, sorted
    changes, leaders = [], set()
    for day in sorted(by_day):
        before, came = current.copy(), []
        for number in by_day[day]:
            old = best.get(judges[number])
            if old is None or number < old:
                if old is not None:
                    current.remove(old)
                insort(current, number)
                best[judges[number]] = number
                came.append((number, old))
        for number, old in came:
            was = None if old is None else _place(before, old)
            changes.append(RankMove(day, rows[number], was, _place(current, number), len(current)))
        leaders.add(judges[current[0]])
        for judge, found in places.items():
            if judge in best:
                place = _place(current, best[judge])
                if not found or found[-1][1] != place:
                    found.append((day, place))
    lines = tuple(RankLine(rows[today[judge]], tuple(found)) for judge, found in places.items())
    return History(tuple(sorted(by_day)), lines, tuple(changes), len(leaders))


def _ranked_rows(rows: Iterable[BoardRow], label: str) -> list[BoardRow]:
    """Return the rows that may be ranked and have a precision, best first."""
    found = []
    for row in rows:
        overall = (row.labels.get(label) or {}).get("overall")
        if overall and overall["precision"] is not None and is_rankable(row):
            found.append((ranking_order(row, overall), row))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def _place(current: list[int], number: int) -> int:
    return bisect_left(current, number) + 1
