"""Values for tables of judges: metrics as text, names of rows, marks, noise, intervals on an axis."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Final

from arb.core.console import percent
from arb.core.vocabulary import metric_name
from leaderboard.board.board import Board, BoardRow
from leaderboard.score import Cell, Score

FEW: Final = 20
"""A metric over fewer trajectories than this is marked."""


@dataclass(frozen=True)
class TableCell:
    """A metric in a table: text, number to sort by, hover text, and whether it rests on few trajectories."""

    text: str
    value: float | None
    hover: str = ""
    is_few: bool = False


def unit_of(figure: str) -> int:
    """Return the factor by which pages multiply a metric: 100 for percent, 1 for a distance in grades."""
    return 1 if figure == "mae" else 100


def metric_title(metric: str) -> str:
    """Return the title of a metric: ``Precision``, ``F1``, ``Weighted kappa``."""
    name = metric_name(metric)
    return name[:1].upper() + name[1:]


def metric_text(value: float | None, figure: str) -> str:
    """Return a metric in percent, or as a distance in grades, or a dash if it is undefined."""
    return percent(value) if value is None or unit_of(figure) == 100 else f"{value:.2f}"


def ends_text(ends: Sequence[float] | None, figure: str) -> str:
    """Return the interval of a metric as text, or an empty string if there is none."""
    return " to ".join(metric_text(end, figure) for end in ends or ())


def metric_cell(cell: Cell | None, figure: str) -> TableCell:
    """Return a metric as a cell of a table, with its counts as hover text."""
    if cell is None:
        return TableCell("–", None, "not known")
    metrics: Mapping[str, Any] = cell
    value = metrics.get(figure)
    if value is None:
        return TableCell("–", None, _hover(cell))
    rests_on = _rests_on(cell, figure)
    is_few = rests_on is not None and rests_on < FEW
    return TableCell(metric_text(value, figure), value, _hover(cell), is_few)


def _hover(cell: Cell) -> str:
    silent = f"; {cell['no_verdict']} without a verdict" if cell.get("no_verdict") else ""
    if "positives" not in cell:  # the target is not binary
        return f"{cell['n']:,} labels{silent}"
    if cell["positives"] is None:
        return "as reported; its trajectories are unknown or not only those of test"
    positives = f"{cell['positives']:,} positives among {cell['n']:,} labels"
    tp, fp = cell["tp"], cell["fp"]
    if tp is None or fp is None:
        return f"{positives}; {cell.get('note') or 'counts not known'}"
    hover = f"a yes is right about {tp} of {tp + fp}; {positives}"
    if "noise" in cell:
        hover += f"; ± {cell['noise']['tp_sd']:g} true positives of noise"
    hover += silent
    return f"{hover}; {cell['note']}" if cell.get("note") else hover


def _rests_on(cell: Cell, figure: str) -> int | None:
    """Return the number of trajectories in the metric's denominator, or None if it is not known.

    For a metric with two denominators this is the smaller one.
    """
    if figure == "accuracy" or "tp" not in cell:
        return cell["n"]
    tp, fp, fn, tn = cell["tp"], cell["fp"], cell["fn"], cell["tn"]
    if tp is None or fp is None or fn is None or tn is None:  # printed figures without counts
        return cell["positives"]
    return {
        "precision": tp + fp,
        "recall": tp + fn,
        "f1": min(tp + fp, tp + fn),
        "kappa": min(tp + fn, fp + tn),
        "npv": tn + fn,
        "tnr": tn + fp,
        "fpr": tn + fp,
        "balanced_accuracy": min(tp + fn, tn + fp),
    }.get(figure, cell["n"])


def cost_cell(cost: Mapping[str, Any] | None) -> TableCell:
    """Return the cost of 1,000 trajectories as a cell. It is empty if no cost is known.

    A lower bound begins with ≥; the hover text says what is not counted.
    """
    if not cost:
        return TableCell("", None)
    dollars, rows, of = (cost[name] for name in ("usd_per_1000", "rows", "of"))
    if cost.get("basis"):
        at_least = "at least so many " if cost["is_at_least"] else ""
        hover = f"{at_least}US dollars per 1,000 trajectories, from {rows:,} of {of:,}: {cost['basis']}"
        return TableCell(f"{'≥ ' if at_least else ''}{dollars:,.2f}", dollars, hover)
    known = "every row" if rows == of else f"{rows:,} of {of:,} rows"
    return TableCell(
        f"{dollars:,.2f}", dollars, f"US dollars per 1,000 trajectories, from {known} of its file"
    )


ORIGINS: Final[Mapping[str, str]] = {
    "published": "paper",
    "self-reported": "self-reported",
    "reference": "reference",
}


def short_name(row: BoardRow) -> str:
    """Return the name by which every page shows a row's judge."""
    return judge_name(row.judge, row.inputs)


def judge_name(judge: str, inputs: str) -> str:
    """Return a judge's name with what it sees: ``GPT-4o (tree)``, ``WebJudge (o4-mini, all screenshots)``."""
    if not inputs:
        return judge
    return f"{judge[:-1]}, {inputs})" if judge.endswith(")") else f"{judge} ({inputs})"


def origin(row: BoardRow) -> str:
    """Return where a row comes from: ``by ACCOUNT``, ``paper``, ``self-reported`` or ``reference``."""
    return f"by {row.account}" if row.provenance == "scored" else ORIGINS[row.provenance]


def distinct_names(rows: Sequence[BoardRow]) -> tuple[str, ...]:
    """Return a different name for each row, as short as possible. Ids are used only if necessary."""
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
    """Return (text, id) of every row for a menu, in the order of the board.

    The text has the judge, what it sees, its source and, if it was submitted more than once, the day.
    """
    submissions = Counter((row.account, row.judge) for row in board.rows if row.provenance == "scored")
    found = []
    for row in board.rows:
        text = f"{short_name(row)} · {origin(row)}"
        if submissions[row.account, row.judge] > 1:
            text += f" · {row.date[:10]} · {row.id[:6]}"
        found.append((text, row.id))
    return found


MARKS: Final[Mapping[str, str]] = {
    "verified": "a maintainer ran it again, or saw it run, and got the same result",
    "labels exposed": "a maintainer found that test labels leaked into it",
}


def describe_marks(row: BoardRow) -> str:
    """Return the marks of a row, each with its meaning, or an empty string."""
    return "; ".join(f"{mark}: {MARKS.get(mark, 'set by a maintainer')}" for mark in row.marks)


def describe_noise(found: Score | None) -> str:
    """Return sentences on the noise in a score and on the basis of its ranks, or "" if it is exact."""
    if not found or "noise" not in found["overall"]:
        return ""
    overall = found["overall"]["noise"]["tp_sd"]
    parts = {cell["noise"]["tp_sd"] for cell in found["by_benchmark"].values() if "noise" in cell}
    apart = f", ± {max(parts):g} in each benchmark" if parts else ""
    ranks = found.get("ranked_by") or "the same noisy figures and their intervals"
    return (
        f"The labels of this suite are private, so counts carry noise of ± {overall:g} true positives{apart} "
        f"(standard deviations). Intervals include the noise. Ranks come from {ranks}."
    )


def noise_on_board(rows: Iterable[BoardRow], label: str) -> str:
    """Return the result of `describe_noise` for the first row that has noise, or an empty string."""
    return next(filter(None, (describe_noise(row.labels.get(label)) for row in rows)), "")


STEP = 0.1
MOST_TICKS = 3
"""The maximum number of steps between the first and the last tick. More would overlap in a table."""

_LAST_DIGIT = 1e-9
"""A value this far off the axis still counts as on it, because sums of fractions are not exact."""


@dataclass(frozen=True, slots=True)
class Span:
    """A dot with its interval, as percentages of the axis.

    ``off`` is -1 if the dot is left of the axis, 1 if it is right of it, else 0. ``runs_left`` and
    ``runs_right`` say whether the interval is cut off at that end.
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
        """Return an axis that fits all values and ends at whole tenths, or one from 0 to 1 without values."""
        known = [value for value in (*values, *include) if value is not None]
        if not known:
            return cls.over(0, 10)
        low, high = floor(min(known) / STEP + _LAST_DIGIT), ceil(max(known) / STEP - _LAST_DIGIT)
        if low == high:  # all values are equal: make room below or, at 0, above
            low, high = (low - 1, high) if low > 0 else (low, high + 1)
        return cls.over(low, high)

    @classmethod
    def over(cls, low: int, high: int) -> "Axis":
        """Return an axis from ``low`` to ``high`` tenths, with a few ticks at whole tenths."""
        every = max(1, ceil((high - low) / MOST_TICKS))
        if low < 0 < high:  # puts a tick on zero
            places = sorted({*range(0, high + 1, every), *range(0, low - 1, -every)})
        else:
            places = list(range(low, high + 1, every))
        return cls(low * STEP, high * STEP, tuple(round(place * STEP, 6) for place in places))

    def place(self, value: float) -> float:
        """Return the position of a value in percent of the axis, limited to 0 to 100."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def span(self, value: float | None, interval: Sequence[float] | None) -> Span | None:
        """Return a value with its interval in percent of this axis, or None if there is no value."""
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
