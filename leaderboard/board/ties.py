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
from collections.abc import Collection, Mapping
from functools import lru_cache
from math import erf, inf, sqrt
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

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
from leaderboard.board.rows import BoardRow, is_rankable, judge_of, ranking_order
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES, NORMAL_QUANTILE

TESTED_TOGETHER: Final = 128
RESAMPLES: Final = 1_000
"""Of a judge on a larger board: a standard error from them is off by 2 % (one standard deviation)."""
_ONE: Final = 2.0**20
_MOST_CHANGES: Final = 64
"""Rows that come or go one by one; of more, all pairs are looked at in blocks, which takes matrices."""
_BLOCK: Final = 1_024
_PIECE: Final = 128
"""Rows whose errors are multiplied at once: 1 MB, which stays in the processor's cache."""
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
        self._found: dict[str, tuple[Any, Any, Contender | None]] = {}
        """By row id its CELL, its counts, and what was made of them, which larger boards keep in arrays."""
        self._pairs: _Pairs | None = None
        self._last: tuple[list[str], np.ndarray] = ([], np.zeros((0, 3), dtype=np.int64))

    def ranks(
        self, cells: Mapping[str, Mapping[str, Any]], label: str, metric: str, data: RankingData
    ) -> np.ndarray:
        """Place, low and high of each row, in the order of ``cells``: best first, as `rank_contenders`."""
        is_large = len(cells) > TESTED_TOGETHER
        if is_large != (self._pairs is not None):
            self._found, self._pairs = {}, _Pairs() if is_large else None
        changed = self._forget_changed(cells, label, data)
        if not changed and self._last[0] == [*cells]:
            return self._last[1]
        self._last = [*cells], self._ranks(cells, changed, label, metric, data)
        return self._last[1]

    def _ranks(
        self,
        cells: Mapping[str, Mapping[str, Any]],
        changed: Collection[str],
        label: str,
        metric: str,
        data: RankingData,
    ) -> np.ndarray:
        size = N_RESAMPLES if self._pairs is None else RESAMPLES
        drawn = contenders_of({name: cells[name] for name in changed}, label, metric, data, size)
        new = dict(zip(changed, drawn, strict=True))
        for name, contender in new.items():
            kept = contender if self._pairs is None else None
            self._found[name] = (cells[name], _counts(data, name, label), kept)
        if self._pairs is None:
            return rank_contenders([self._found[name][2] for name in cells])
        self._pairs.update(new, cells.keys())
        return numbers_of(*self._pairs.numbers(cells))

    def _forget_changed(
        self, cells: Mapping[str, Mapping[str, Any]], label: str, data: RankingData
    ) -> list[str]:
        """The rows whose figures are not those of the last time. What was made of records is not made again,
        so that the same figures are the same object."""
        for name in self._found.keys() - cells.keys():
            del self._found[name]
        changed = []
        for name, cell in cells.items():
            known = self._found.get(name)
            if known is None or known[0] is not cell or known[1] is not _counts(data, name, label):
                changed.append(name)
        return changed


_NO_COUNTS: Final[Mapping[str, Any]] = MappingProxyType({})


def _counts(data: RankingData, name: str, label: str) -> Any:
    return data.counts_by_task.get(name, _NO_COUNTS).get(label)


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

    def update(self, new: Mapping[str, Contender], wanted: Collection[str]) -> None:
        """Take rows in and out, so that ``wanted`` are there; ``new`` are the ones that came or changed."""
        gone = [name for name in self._names if name not in wanted or name in new]
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
        places = np.fromiter((self._place[name] for name in names), dtype=np.int64, count=len(names))
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
        """Sums of products of errors, (rows, others); exact, see the module. In pieces that fit the cache."""
        first = self._errors[rows].astype(np.float64)
        found = np.empty((len(first), others.stop - others.start))
        for start in range(others.start, others.stop, _PIECE):
            some = self._errors[start : min(start + _PIECE, others.stop)].astype(np.float64)
            np.matmul(first, some.T, out=found[:, start - others.start :][:, : len(some)])
        return found


class _BestRows:
    """The rows that may be ranked by one label and metric, best first, and the best one of each judge."""

    def __init__(self, label: str, metric: str) -> None:
        self._label, self._metric = label, metric
        self._rows: Mapping[str, BoardRow] = {}
        self._ordered: list[tuple[tuple, tuple[str, str], Mapping[str, Any]]] = []
        """Where each row stands, ending with its id; its judge; and the CELL that it is ranked by."""

    def update(
        self, rows: Mapping[str, BoardRow], hidden: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
        """Of the best row of each judge, best first, the CELL by row id; and those whose metric is undefined.

        Only rows that came, or are others than the last time, are looked at.
        """
        gone = {row_id for row_id, row in self._rows.items() if rows.get(row_id) is not row}
        new = [row for row_id, row in rows.items() if self._rows.get(row_id) is not row]
        if gone or new:
            self._ordered = [each for each in self._ordered if each[0][-1] not in gone]
            self._ordered += [found for row in new if (found := self._place(row, hidden)) is not None]
            self._ordered.sort(key=itemgetter(0))
            self._rows = rows
        judges: set[tuple[str, str]] = set()
        cells, undefined = {}, []
        for order, judge, cell in self._ordered:
            if judge in judges:
                continue
            judges.add(judge)
            if order[0] == inf:
                undefined.append(order[-1])
            else:
                cells[order[-1]] = cell
        return cells, undefined

    def _place(self, row: BoardRow, hidden: Mapping[str, Mapping[str, Any]]):
        """None for a row without the label, one that may not be ranked, and one of a half that is not shown
        where the metric is another than precision: each rank would tell more of that half."""
        found = row.labels.get(self._label)
        if not found or not is_rankable(row) or (self._metric != "precision" and "ranked_by" in found):
            return None
        cell = hidden[row.id].get(self._label) if row.id in hidden else found.get("overall")
        return ranking_order(row, cell or {}, self._metric), judge_of(row), cell or {}


class Ranker:
    """Ranks rows by any label and metric; keeps what it made for the next board. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[tuple[str, str], tuple[threading.Lock, _BestRows, KeptRanks]]
        self._kept = LRUCache(_RANKINGS_KEPT)

    def ranks(self, rows: Mapping[str, BoardRow], label: str, metric: str, data: RankingData) -> Ranks:
        """The ranks of the rows, by id and without ranks of their own, that stand for their judges.

        None where the metric is undefined. ``rows`` is not to be changed: it is looked at the next time.
        """
        with self._lock:
            if (label, metric) not in self._kept:
                self._kept[label, metric] = (threading.Lock(), _BestRows(label, metric), KeptRanks())
            lock, best, kept = self._kept[label, metric]
        with lock:
            cells, undefined = best.update(rows, data.hidden)
            return Ranks([*cells], kept.ranks(cells, label, metric, data), undefined)
