"""Ranks kept from one board to the next: resamples are drawn once for a judge, a new row costs O(rows).

Up to ``TESTED_TOGETHER`` rows all pairs are tested together by the step-down of `ranks`, anew for each board.
Its work grows with the square of the rows, and every new row changes the critical value of all pairs. Larger
boards take the critical value of Tukey and Kramer instead: the 95 % quantile of the studentized range of so
many independent normal estimates (Tukey 1953; Kramer 1956, Biometrics 12; the familywise error is at most
5 %: Hayter 1984, Annals of Statistics 12), for the next power of two of the rows. A pair is then separated or
not whatever the other rows are, and only the pairs of a row that comes, changes or goes are looked at. Common
tasks and the lack of a step-down make it separate too little rather than too much.

The same rows give the same ranks, in whatever order they came and went: errors on the resamples are rounded
to whole multiples of 2**-20, so that sums of their products are exact in float64 however they are summed.
"""

import threading
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from math import erf, inf, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from cachetools import LRUCache

from leaderboard.board.ranks import (
    Contender,
    RankingData,
    Ranks,
    contenders_of,
    numbers_of,
    rank_contenders,
)
from leaderboard.board.rows import BoardRow, in_order, is_rankable, judge_of, ranking_order
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES, NORMAL_QUANTILE

TESTED_TOGETHER: Final = 128
RESAMPLES: Final = 1_000
"""Of a judge on a larger board: a standard error from them is off by 2 % (one standard deviation)."""
_ONE: Final = 2.0**20
_MOST_CHANGES: Final = 64
"""Rows that come or go one by one; of more, all pairs are looked at in blocks, which takes matrices."""
_BLOCK: Final = 1_024
_PIECE: Final = 128
"""Rows whose errors are multiplied at once with those of one: 1 MB, which stays in the processor's cache."""
_RANKINGS_KEPT: Final = 8
"""Of label and metric: 40 MB each on a board of 10,000 rows."""


@lru_cache(maxsize=64)
def critical_value(n: int) -> float:
    """Of the largest |difference| / standard error among ``n`` independent estimates, the 95 % quantile.

    The studentized range q of n standard normals, over sqrt 2: P(range <= q) is the integral of
    n phi(z) (Phi(z) - Phi(z - q))**(n - 1) over z; found by bisection.
    """
    if n < 2:
        return 0.0
    step = 0.01
    z = np.arange(-9, 18 + step, step)
    density = n * np.exp(-z * z / 2) / sqrt(2 * np.pi) * step
    below = np.array([(1 + erf(point / sqrt(2))) / 2 for point in z])
    low, high = 0, len(z) // 2  # in steps: Phi(z - q) is then Phi moved by so many points
    while high - low > 1:
        shift = (low + high) // 2
        moved = np.concatenate([np.zeros(shift), below[: len(below) - shift]])
        if float(density @ (below - moved) ** (n - 1)) < CONFIDENCE:
            low = shift
        else:
            high = shift
    return high * step / sqrt(2)


class KeptRanks:
    """The ranks of one label by one metric, carried over from board to board."""

    def __init__(self) -> None:
        self._found: dict[str, Contender | None] = {}
        """By row id what larger boards keep in arrays."""
        self._pairs: _Pairs | None = None
        self._last: tuple[list[str], np.ndarray] = ([], np.zeros((0, 3), dtype=np.int64))

    def ranks(
        self,
        cells: Mapping[str, Mapping[str, Any]],
        label: str,
        metric: str,
        data: RankingData,
        changed: Iterable[str] = (),
    ) -> np.ndarray:
        """Place, low and high of each row, in the order of ``cells``: best first, as `rank_contenders`.

        ``changed`` are rows that have other figures than the last time; new ones need not be named.
        """
        is_large = len(cells) > TESTED_TOGETHER
        if is_large != (self._pairs is not None):
            self._found, self._pairs = {}, _Pairs() if is_large else None
        for name in (*(self._found.keys() - cells), *changed):
            self._found.pop(name, None)
        new = cells.keys() - self._found
        if not new and self._last[0] == [*cells]:
            return self._last[1]
        self._last = [*cells], self._ranks(cells, new, label, metric, data)
        return self._last[1]

    def _ranks(
        self,
        cells: Mapping[str, Mapping[str, Any]],
        new: Iterable[str],
        label: str,
        metric: str,
        data: RankingData,
    ) -> np.ndarray:
        size = N_RESAMPLES if self._pairs is None else RESAMPLES
        of_new = {name: cells[name] for name in new}
        contenders = dict(zip(of_new, contenders_of(of_new, label, metric, data, size), strict=True))
        if self._pairs is None:
            self._found |= contenders
            return rank_contenders([self._found[name] for name in cells])
        self._found |= dict.fromkeys(contenders)
        self._pairs.update(contenders, cells.keys())
        return numbers_of(*self._pairs.numbers(cells))


class _Pairs:
    """How many rows each row is separated from, above and below it; any order of rows."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._place: dict[str, int] = {}
        self._critical = 0.0
        self._values, self._below, self._above = (np.zeros(0) for _ in range(3))
        self._squares = np.zeros(0)  # sums of squared errors; NaN for rows that are compared by intervals
        self._errors = np.zeros((0, RESAMPLES), dtype=np.float32)  # whole numbers: multiples of 2**-20
        self._better, self._worse = (np.zeros(0, dtype=np.int64) for _ in range(2))

    def update(self, new: Mapping[str, Contender], wanted: Set[str]) -> None:
        """Take rows in and out, so that ``wanted`` are there; ``new`` are the ones that came or changed."""
        gone = (self._place.keys() - wanted) | (self._place.keys() & new.keys())
        critical = critical_value(1 << (len(wanted) - 1).bit_length())
        one_by_one = critical == self._critical and len(gone) + len(new) <= _MOST_CHANGES
        self._critical = critical
        for name in gone:
            self._remove(name, one_by_one)
        self._reserve(len(self._names) + len(new))
        for name, contender in new.items():
            self._add(name, contender, one_by_one)
        if not one_by_one:
            self._count_all()

    def numbers(self, names: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
        """Of each row, how many are separated above it, and how many below it."""
        places = np.fromiter(map(self._place.__getitem__, names), dtype=np.int64, count=len(names))
        return self._better[places], self._worse[places]

    def _add(self, name: str, contender: Contender, count: bool) -> None:
        place = len(self._names)
        self._names.append(name)
        self._place[name] = place
        low, high = contender.interval or (np.nan, np.nan)
        self._values[place] = contender.value
        self._below[place], self._above[place] = contender.value - low, high - contender.value
        self._squares[place] = np.nan
        self._better[place] = self._worse[place] = 0
        if contender.samples is not None and not np.isnan(contender.samples).any():
            errors = np.rint((contender.samples - contender.value) * _ONE)
            if np.ptp(errors) > 1:
                self._errors[place] = errors
                self._squares[place] = float(errors @ errors)
        if count:
            self._count_one(place, place, 1)

    def _remove(self, name: str, count: bool) -> None:
        """Take a row out; the last one moves to its place."""
        place, last = self._place.pop(name), len(self._names) - 1
        if count:
            self._count_one(place, last + 1, -1)
        moved = self._names.pop()
        if place != last:
            self._names[place] = moved
            self._place[moved] = place
            for column in self._columns():
                column[place] = column[last]

    def _columns(self) -> tuple[np.ndarray, ...]:
        return (
            self._values, self._below, self._above, self._squares, self._errors, self._better, self._worse,
        )  # fmt: skip

    def _reserve(self, n: int) -> None:
        if n <= len(self._values):
            return
        size = n + n // 4
        (
            self._values, self._below, self._above, self._squares, self._errors, self._better, self._worse,
        ) = (
            np.concatenate([column, np.zeros((size - len(column), *column.shape[1:]), column.dtype)])
            for column in self._columns()
        )  # fmt: skip

    def _count_one(self, place: int, n: int, sign: int) -> None:
        """Add or take away the pairs of one row with the ``n`` first ones."""
        is_above, is_below = self._separated(slice(place, place + 1), slice(0, n))
        self._better[:n] += sign * is_above[0]
        self._worse[:n] += sign * is_below[0]
        self._worse[place] += sign * int(is_above[0].sum())
        self._better[place] += sign * int(is_below[0].sum())

    def _count_all(self) -> None:
        n = len(self._names)
        self._better[:n] = self._worse[:n] = 0
        for start in range(0, n, _BLOCK):
            rows = slice(start, min(start + _BLOCK, n))
            for first in range(start, n, _BLOCK):
                others = slice(first, min(first + _BLOCK, n))
                is_above, is_below = self._separated(rows, others)
                self._worse[rows] += is_above.sum(axis=1)
                self._better[rows] += is_below.sum(axis=1)
                if first != start:  # within one block every pair is there both ways
                    self._better[others] += is_above.sum(axis=0)
                    self._worse[others] += is_below.sum(axis=0)

    def _separated(self, rows: slice, others: slice) -> tuple[np.ndarray, np.ndarray]:
        """Whether each of ``rows`` is separated above, and below, each of ``others``: two of (rows, others).

        Rows with resamples are compared paired: difference**2 > critical**2 variance of the difference. Any
        other two by the ends of their intervals that face each other (Newcombe 1998, method 10).
        """
        apart = self._values[rows, None] - self._values[None, others]
        products = self._products(rows, others)
        spread = self._squares[rows, None] + self._squares[None, others] - 2 * products
        is_paired = ~np.isnan(spread)
        squared, border = apart * apart, self._critical**2
        paired = (squared * (RESAMPLES * _ONE**2) > border * spread) & (spread > 0)
        # The better row's lower end faces the worse one's upper end.
        better_is_first = apart > 0
        down = np.where(better_is_first, self._below[rows, None], self._above[rows, None])
        up = np.where(better_is_first, self._above[None, others], self._below[None, others])
        by_interval = squared * NORMAL_QUANTILE**2 > border * (down * down + up * up)
        found = np.where(is_paired, paired, by_interval)
        return found & better_is_first, found & (apart < 0)

    def _products(self, rows: slice, others: slice) -> np.ndarray:
        """Sums of products of errors, (rows, others); exact, see the module."""
        first = self._errors[rows].astype(np.float64)
        found = np.empty((len(first), others.stop - others.start))
        size = _BLOCK if len(first) > 1 else _PIECE
        for start in range(others.start, others.stop, size):
            some = self._errors[start : min(start + size, others.stop)].astype(np.float64)
            np.matmul(first, some.T, out=found[:, start - others.start :][:, : len(some)])
        return found


Changes = tuple[Mapping[str, BoardRow], set[str]]
"""The rows of the board before, and the ids of those that came, went or changed since."""


class _Entry(NamedTuple):
    """A row that may be ranked: where it stands, ending with its id; its judge; the CELL that ranks it."""

    order: tuple
    judge: tuple[str, str]
    cell: Mapping[str, Any]


class _BestRows:
    """The rows that may be ranked by one label and metric, best first, and the best one of each judge."""

    def __init__(self, label: str, metric: str) -> None:
        self._label, self._metric = label, metric
        self._rows: Mapping[str, BoardRow] = {}
        self._entries: dict[str, _Entry] = {}
        self._judges: dict[tuple[str, str], set[str]] = {}
        self._best_of: dict[tuple[str, str], _Entry] = {}
        self._best: list[_Entry] = []

    def update(
        self, rows: Mapping[str, BoardRow], changes: Changes | None, hidden: Mapping[str, Any]
    ) -> set[str]:
        """Take the rows in place of those of the last time; the ids of those that came, went or changed."""
        if changes is not None and changes[0] is self._rows:
            changed = changes[1]
        else:
            changed = {row_id for row_id, row in rows.items() if self._rows.get(row_id) is not row}
            changed |= self._rows.keys() - rows
        self._rows, judges = rows, set()
        for row_id in changed:
            if (before := self._entries.pop(row_id, None)) is not None:
                self._judges[before.judge].discard(row_id)
                judges.add(before.judge)
            if row_id in rows and (entry := self._place(rows[row_id], hidden)) is not None:
                self._entries[row_id] = entry
                self._judges.setdefault(entry.judge, set()).add(row_id)
                judges.add(entry.judge)
        gone, new = [], []
        for judge in judges:
            before = self._best_of.pop(judge, None)
            found = min((self._entries[row_id] for row_id in self._judges[judge]), default=None)
            if found is not None:
                self._best_of[judge] = found
            if found is not before:
                gone += [before] * (before is not None)
                new += [found] * (found is not None)
        self._best = in_order(self._best, gone, new)
        return changed

    def best(self) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
        """Of the best rows of judges, best first, the CELL by row id; and those whose metric is undefined."""
        n = bisect_left(self._best, ((inf,),))
        cells = {entry.order[-1]: entry.cell for entry in self._best[:n]}
        return cells, [entry.order[-1] for entry in self._best[n:]]

    def _place(self, row: BoardRow, hidden: Mapping[str, Mapping[str, Any]]) -> _Entry | None:
        """None for a row without the label, one that may not be ranked, and one of a half that is not shown
        where the metric is another than precision: each rank would tell more of that half."""
        found = row.labels.get(self._label)
        if not found or not is_rankable(row) or (self._metric != "precision" and "ranked_by" in found):
            return None
        cell = hidden[row.id].get(self._label) if row.id in hidden else found.get("overall")
        return _Entry(ranking_order(row, cell or {}, self._metric), judge_of(row), cell or {})


class Ranker:
    """Ranks rows by any label and metric; keeps what it made for the next board. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[tuple[str, str], tuple[threading.Lock, _BestRows, KeptRanks]]
        self._kept = LRUCache(_RANKINGS_KEPT)

    def ranks(
        self,
        rows: Mapping[str, BoardRow],
        label: str,
        metric: str,
        data: RankingData,
        changes: Changes | None = None,
    ) -> Ranks:
        """The ranks of the rows, by id and without ranks of their own, that stand for their judges.

        None where the metric is undefined. ``rows`` is not to be changed: it is looked at the next time.
        """
        with self._lock:
            if (label, metric) not in self._kept:
                self._kept[label, metric] = (threading.Lock(), _BestRows(label, metric), KeptRanks())
            lock, best, kept = self._kept[label, metric]
        with lock:
            try:
                changed = best.update(rows, changes, data.hidden)
                cells, undefined = best.best()
                return Ranks([*cells], kept.ranks(cells, label, metric, data, changed), undefined)
            except BaseException:
                with self._lock:
                    self._kept.pop((label, metric), None)  # one may have seen what the other has not
                raise
