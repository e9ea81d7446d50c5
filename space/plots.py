"""Precision against recall as plain geometry; ``templates/precision_recall.html`` draws it as SVG.

Points carry their intervals and, where there is room, their names; lines of equal F1 stand behind. It needs
no script, and its colours follow the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from leaderboard.board import Board, BoardRow
from leaderboard.report_tables import interval, percent
from space.board_view import SECOND_ANNOTATOR, Choice, cell_of, is_chosen
from space.point_names import HEIGHT, WIDTH, Label, Point, place_names, to_pixels

ISO_F1: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
STEPS: Final = 40
"""Pieces of a line of equal F1."""
CROWD: Final = 40
"""More judges than this are drawn smaller and paler: what tells is their cloud."""
TICK_STEPS: Final = (0.02, 0.05, 0.1, 0.2)
MOST_TICKS: Final = 7

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """A judge: its point and interval in pixels, its name where there is room, what hovering tells."""

    row_id: str
    x: float
    y: float
    high: float
    low: float
    group: str
    hover: str
    label: Label | None

    @property
    def is_reference(self) -> bool:
        """Whether it is the human reference, which has no page of its own."""
        return self.group == "reference"


@dataclass(frozen=True)
class IsoLine:
    """A line of equal F1: an SVG path, and where its name stands."""

    value: float
    path: str
    end: tuple[float, float]


@dataclass(frozen=True)
class PlotView:
    """The plot in pixels; ``x_ticks`` and ``y_ticks`` are (pixel, percentage)."""

    marks: tuple[Mark, ...]
    lines: tuple[IsoLine, ...]
    x_ticks: tuple[tuple[float, int], ...]
    y_ticks: tuple[tuple[float, int], ...]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many judges for marks of full size."""
        return len(self.marks) > CROWD


def precision_recall_plot(board: Board, label: str, choice: Choice | None = None) -> PlotView:
    """Precision against recall of the judges that the choice shows, with 95 % intervals."""
    choice = choice or Choice(label=label)
    drawn = [(row, cell) for row in board.ranking(label) if (cell := _drawn(row, choice)) is not None]
    window = _window([cell for _, cell in drawn])
    labels = _labels(drawn, window)
    left, bottom = window
    return PlotView(
        marks=tuple(_mark(row, cell, window, name) for (row, cell), name in zip(drawn, labels, strict=True)),
        lines=tuple(line for value in ISO_F1 if (line := _iso_line(value, window))),
        x_ticks=tuple((to_pixels(tick, 1.0, window)[0], round(100 * tick)) for tick in _ticks(left)),
        y_ticks=tuple((to_pixels(left, tick, window)[1], round(100 * tick)) for tick in _ticks(bottom)),
    )


def _drawn(row: BoardRow, choice: Choice) -> Cell | None:
    """The cell of a judge that stands for itself, or of the human point; None for the constant references."""
    cell = cell_of(row, choice)
    if not is_chosen(row, choice) or not cell or None in (cell["precision"], cell["recall"]):
        return None
    if row.provenance == "reference":
        return cell if row.id == SECOND_ANNOTATOR else None
    return cell


def _window(cells: Sequence[Cell]) -> tuple[float, float]:
    """The smallest recall and precision that the plot has room for."""
    left = min([cell["recall"] for cell in cells], default=0.0)
    low = min([_precision_interval(cell)[0] for cell in cells], default=0.0)
    return max(0.0, left - 0.08), max(0.0, low - 0.04)


def _precision_interval(cell: Cell) -> list[float]:
    """The interval of the precision, of no width where none is known."""
    return cell["precision_ci"] or [cell["precision"], cell["precision"]]


def _ticks(low: float) -> list[float]:
    """Round fractions from ``low`` up to 1, a few of them."""
    step = next((step for step in TICK_STEPS if (1 - low) / step <= MOST_TICKS), TICK_STEPS[-1])
    number = round(1 / step)
    return [place * step for place in range(number + 1) if place * step >= low - 1e-9]


def _iso_line(value: float, window: tuple[float, float]) -> IsoLine | None:
    """The line precision = F1 * recall / (2 * recall - F1), as far as it lies within the window."""
    first = max(value / (2 - value), window[0])  # the recall at which the precision is 1
    points = []
    for step in range(STEPS + 1):
        recall = first + (1 - first) * step / STEPS
        precision = value * recall / (2 * recall - value) if 2 * recall > value else 2.0
        if window[1] <= precision <= 1 + 1e-9:
            points.append(to_pixels(recall, min(precision, 1.0), window))
    if len(points) < 2:
        return None
    path = "M" + "L".join(f"{x:g},{y:g}" for x, y in points)
    return IsoLine(value, path, points[-1])


def _labels(drawn: Sequence[tuple[BoardRow, Cell]], window: tuple[float, float]) -> list[Label | None]:
    """The name beside each point; what was scored here is named first."""
    counts = Counter(row.judge for row, _ in drawn)
    points = [
        Point(
            cell["recall"],
            cell["precision"],
            *_precision_interval(cell),
            name=f"{row.judge} ({row.inputs})" if counts[row.judge] > 1 and row.inputs else row.judge,
            order={"reference": 0, "scored": 1}.get(row.provenance, 2),
        )
        for row, cell in drawn
    ]
    return place_names(points, window)


def _mark(row: BoardRow, cell: Cell, window: tuple[float, float], label: Label | None) -> Mark:
    x, y = to_pixels(cell["recall"], cell["precision"], window)
    low, high = _precision_interval(cell)
    name = f"{row.judge} · {row.inputs}" if row.inputs else row.judge
    whisker = f" ({interval(cell['precision_ci'])})" if cell["precision_ci"] else ""
    return Mark(
        row_id=row.id,
        x=x,
        y=y,
        high=to_pixels(cell["recall"], high, window)[1],
        low=to_pixels(cell["recall"], low, window)[1],
        group=row.provenance,
        hover=(
            f"{name}\nprecision {percent(cell['precision'])}{whisker}"
            f"\nrecall {percent(cell['recall'])}\nF1 {percent(cell['f1'])}"
        ),
        label=label,
    )
