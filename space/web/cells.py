"""Metrics and rows of the board as text: cells of tables, names of rows, marks, noise; intervals drawn on the
axis that a table's rows share, in percent of it. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from types import MappingProxyType
from typing import Final

from arb.core.console import percent
from leaderboard.board.board import Board, BoardRow
from leaderboard.score import Cell, Score

FEW: Final = 20
"""Cells whose metric rests on fewer trajectories than this are marked."""

CALLED: Final = MappingProxyType(
    {
        "success": "called successful",
        "side_effect": "said to have a side effect",
        "repetition": "said to repeat",
    }
)


@dataclass(frozen=True)
class TableCell:
    """A metric in a table: text, number to sort by, hover text, whether it rests on few trajectories."""

    text: str
    value: float | None
    hover: str = ""
    is_few: bool = False


def metric_cell(cell: Cell | None, figure: str, label: str) -> TableCell:
    """A metric, with the counts it rests on as hover text."""
    if cell is None or cell.get(figure) is None:
        return TableCell("–", None, _hover(cell, label) or "not known")
    value = cell[figure]
    rests_on = _rests_on(cell, figure)
    return TableCell(percent(value), value, _hover(cell, label), rests_on is not None and rests_on < FEW)


def _hover(cell: Cell | None, label: str) -> str:
    if cell is None:
        return ""
    if cell["positives"] is None:
        return "as reported; which trajectories it was evaluated on is not known or not test alone"
    positives = f"{cell['positives']:,} positives in {cell['n']:,} trajectories"
    if cell["tp"] is None:
        return f"{positives}; {cell.get('note') or 'counts not known'}"
    hover = f"{cell['tp']} of {cell['tp'] + cell['fp']} {CALLED[label]} are; {positives}"
    if "noise" in cell:
        hover += f"; ± {cell['noise']['tp_sd']:g} true positives of noise"
    if cell["no_verdict"]:
        hover += f"; {cell['no_verdict']} without a verdict"
    return f"{hover}; {cell['note']}" if cell.get("note") else hover


def _rests_on(cell: Cell, figure: str) -> int | None:
    """How many trajectories the metric's denominator has; of a figure made of two the smaller.

    None where it is not known.
    """
    if figure == "accuracy":
        return cell["n"]
    if cell["tp"] is None:  # printed figures without counts
        return cell["positives"]
    tp, fp, fn, tn = (cell[name] for name in ("tp", "fp", "fn", "tn"))
    return {
        "precision": tp + fp,
        "recall": tp + fn,
        "f1": min(tp + fp, tp + fn),
        "kappa": min(tp + fn, fp + tn),
        "npv": tn + fn,
        "tnr": tn + fp,
        "fpr": tn + fp,
        "balanced_accuracy": min(tp + fn, tn + fp),
    }[figure]


def cost_cell(cost: Mapping[str, float | int] | None) -> TableCell:
    """Dollars for 1,000 trajectories, where the judge's file gave what its rows cost."""
    if not cost:
        return TableCell("", None)
    dollars, rows, of = (cost[name] for name in ("usd_per_1000", "rows", "of"))
    known = "every row" if rows == of else f"{rows:,} of {of:,} rows"
    return TableCell(
        f"{dollars:,.2f}", dollars, f"US dollars for 1,000 trajectories, from {known} of its file"
    )


ORIGINS: Final = MappingProxyType(
    {"published": "paper", "self-reported": "self-reported", "reference": "reference"}
)


def short_name(row: BoardRow) -> str:
    """The judge and what it sees: ``GPT-4o (tree)``."""
    return f"{row.judge} ({row.inputs})" if row.inputs else row.judge


def origin(row: BoardRow) -> str:
    """Where a row comes from, in two words at most: who submitted it, or ``paper``."""
    return f"by {row.account}" if row.provenance == "scored" else ORIGINS[row.provenance]


def distinct_names(rows: Sequence[BoardRow]) -> tuple[str, ...]:
    """A different name for each row: as short as possible, with the id where nothing else differs."""
    spellings = [
        [short_name(row), f"{short_name(row)}, {origin(row)}",
         f"{short_name(row)}, {origin(row)}, {row.date[:10]}", f"{short_name(row)}, {row.id}"]
        for row in rows
    ]  # fmt: skip
    counts = [Counter(spelled) for spelled in zip(*spellings, strict=True)]
    return tuple(
        next((name for name, seen in zip(spelled, counts, strict=True) if seen[name] == 1), spelled[-1])
        for spelled in spellings
    )


def choices_of(board: Board) -> list[tuple[str, str]]:
    """Every row for a list to choose from, as (text, id), in the order of the success ranking.

    The text names the judge, what it sees, its source, and the day where it was submitted more than once.
    """
    submissions = Counter((row.account, row.judge) for row in board.rows if row.provenance == "scored")
    found = []
    for row in board.rows:
        text = f"{short_name(row)} · {origin(row)}"
        if submissions[row.account, row.judge] > 1:
            text += f" · {row.date[:10]} · {row.id[:6]}"
        found.append((text, row.id))
    return found


MARKS: Final = MappingProxyType(
    {
        "verified": "a maintainer ran it again, or saw it run, and found the same",
        "labels exposed": "a maintainer found that test labels got into how it was made",
    }
)


def describe_marks(row: BoardRow) -> str:
    """The marks of a row, each with what it means; empty where it has none."""
    return "; ".join(f"{mark}: {MARKS.get(mark, 'set by a maintainer')}" for mark in row.marks)


def describe_noise(found: Score | None) -> str:
    """How noisy the counts of a label of a row are, and what ranks come from; empty where they are exact."""
    if not found or "noise" not in found["overall"]:
        return ""
    overall = found["overall"]["noise"]["tp_sd"]
    parts = {cell["noise"]["tp_sd"] for cell in found["by_benchmark"].values() if "noise" in cell}
    apart = f", ± {max(parts):g} in each benchmark" if parts else ""
    ranks = found.get("ranked_by") or "the same noisy figures and their intervals"
    return (
        f"The labels of this suite are private: counts carry noise of ± {overall:g} true positives{apart} "
        f"(standard deviations), which intervals hold too; ranks come from {ranks}."
    )


def noise_on_board(rows: Iterable[BoardRow], label: str) -> str:
    """The same for a table of rows, from the first that is noisy."""
    return next((text for row in rows if (text := describe_noise(row.labels.get(label)))), "")


STEP = 0.1
MOST_TICKS = 3
"""Steps between the first tick and the last; more would run into each other in a table."""

_LAST_DIGIT = 1e-9
"""Sums of fractions may differ in their last digits; a value on the edge is on the axis."""


@dataclass(frozen=True, slots=True)
class Span:
    """A dot with its interval, as percentages of the axis.

    ``off`` says on which side the dot itself lies off the axis: -1, 0, 1; ``runs_left`` and ``runs_right``
    whether the interval was cut at an end.
    """

    dot: float
    left: float
    width: float
    off: int = 0
    runs_left: bool = False
    runs_right: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of fractions and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def around(cls, values: Iterable[float | None], include: Sequence[float] = ()) -> "Axis":
        """From the tenth below the lowest value to the one above the highest; 0 to 1 if there is none."""
        known = [value for value in (*values, *include) if value is not None]
        if not known:
            return cls.over(0, 10)
        low, high = floor(min(known) / STEP + _LAST_DIGIT), ceil(max(known) / STEP - _LAST_DIGIT)
        if low == high:  # every value is the same: room below it, at 0 above
            low, high = (low - 1, high) if low > 0 else (low, high + 1)
        return cls.over(low, high)

    @classmethod
    def over(cls, low: int, high: int) -> "Axis":
        """From ``low`` to ``high`` tenths, with a few ticks on whole tenths."""
        every = max(1, ceil((high - low) / MOST_TICKS))
        if low < 0 < high:  # a tick on zero
            places = sorted({*range(0, high + 1, every), *range(0, low - 1, -every)})
        else:
            places = list(range(low, high + 1, every))
        return cls(low * STEP, high * STEP, tuple(round(place * STEP, 6) for place in places))

    def place(self, value: float) -> float:
        """Where a value stands, in percent of the width; cut at the ends."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def span(self, value: float | None, interval: Sequence[float] | None) -> Span | None:
        """A value with its interval; None where there is no value."""
        if value is None:
            return None
        low, high = interval or (value, value)
        left = self.place(low)
        return Span(
            dot=self.place(value),
            left=left,
            width=round(self.place(high) - left, 2),
            off=int(self._is_above(value)) - int(self._is_below(value)),
            runs_left=self._is_below(low),
            runs_right=self._is_above(high),
        )

    def _is_below(self, value: float) -> bool:
        return value < self.low - _LAST_DIGIT

    def _is_above(self, value: float) -> bool:
        return value > self.high + _LAST_DIGIT
