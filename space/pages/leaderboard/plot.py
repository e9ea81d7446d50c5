"""Precision against recall as geometry; ``templates/leaderboard/precision_recall.html`` draws it as SVG.

Points carry their intervals and, where it covers nothing else, their names; lines of equal F1 stand behind.
It needs no script, and its colours follow the page.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.console import interval, percent
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from space.pages.leaderboard.table import LeaderboardQuery, cell_of, is_chosen

WIDTH, HEIGHT = 600, 400
"""Pixels of the plotting area."""

CHARACTER, LINE = 6.2, 14
"""Pixels that a character is wide and a line high, at 11 pixels."""

MOST_NAMES: Final = 40
"""Points that a name is tried for; among more there is no room anyway."""

SIDES: Final = (
    ("start", 9, 0.0, -0.5), ("end", -9, -1.0, -0.5), ("start", 7, 0.0, -1.2),
    ("start", 7, 0.0, 0.2), ("end", -7, -1.0, -1.2), ("end", -7, -1.0, 0.2),
    ("middle", 0, -0.5, -1.5), ("middle", 0, -0.5, 0.5),
)  # fmt: skip
"""SVG's text-anchor; where the name begins: pixels from the point, and shares of its own size."""

FAR: Final = tuple(
    (away * across, away * down)
    for away in (30, 44, 60, 80, 105, 135)
    for across, down in ((0.7, -0.7), (0.7, 0.7), (-0.7, -0.7), (-0.7, 0.7), (1, 0.3), (1, -0.3), (-1, 0.3),
                         (-1, -0.3), (0.3, 1), (-0.3, 1), (0.3, -1), (-0.3, -1))
)  # fmt: skip
"""Where the near end of a name stands from its point, in pixels, when there is no room at its sides: a line
leads to it then."""

BASELINE: Final = 0.76
"""How far down its line the feet of the letters stand."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether the two share any room."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its interval and name; fractions. Names of lower ``order`` are placed first."""

    x: float
    y: float
    low: float
    high: float
    name: str
    order: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A name with the place of its baseline, in pixels, and the side of it that is anchored there.

    ``leader`` is the end of the line from the point to the name; None where the name is beside it.
    """

    text: str
    x: float
    y: float
    anchor: str
    leader: tuple[float, float] | None = None


def place_names(points: Sequence[Point], window: tuple[float, float]) -> list[Label | None]:
    """For each point its name where it covers nothing else; None where there is no room.

    ``window`` is the smallest x and y shown; both go up to 1.
    """
    obstacles = [_mark(point, window) for point in points] + [
        _interval_box(point, window) for point in points
    ]
    found: list[Label | None] = [None] * len(points)
    order = sorted(range(len(points)), key=lambda n: (points[n].order, -points[n].y))[:MOST_NAMES]
    for candidates in (_beside, _far):  # first every name that has room beside its point
        for number in order:
            if found[number] is None and points[number].name:
                for label, box in candidates(points[number], window):
                    if _is_within(box) and not any(box.meets(other) for other in obstacles):
                        found[number] = label
                        obstacles.append(box)
                        break
    return found


def _is_within(box: Box) -> bool:
    return box.left >= 0 and box.right <= WIDTH and box.top >= 0 and box.bottom <= HEIGHT


def to_pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Where a point of fractions stands in the plotting area."""
    left, bottom = window
    across = WIDTH * (x - left) / (1.02 - left)
    return round(across, 1), round(HEIGHT * (1 - (y - bottom) / (1.0 - bottom)), 1)


def _mark(point: Point, window: tuple[float, float]) -> Box:
    x, y = to_pixels(point.x, point.y, window)
    return Box(x - 5, y - 5, x + 5, y + 5)


def _interval_box(point: Point, window: tuple[float, float]) -> Box:
    x, top = to_pixels(point.x, point.high, window)
    return Box(x - 2, top, x + 2, to_pixels(point.x, point.low, window)[1])


def _beside(point: Point, window: tuple[float, float]) -> Iterator[tuple[Label, Box]]:
    x, y = to_pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for anchor, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        at = {"start": left, "end": left + width, "middle": left + width / 2}[anchor]
        box = Box(left, top, left + width, top + LINE)
        yield Label(point.name, round(at, 1), round(top + BASELINE * LINE, 1), anchor), box


def _far(point: Point, window: tuple[float, float]) -> Iterator[tuple[Label, Box]]:
    x, y = to_pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for across, down in FAR:
        at, middle = x + across, y + down
        left, top = at if across > 0 else at - width, middle - LINE / 2
        anchor, end = ("start", at - 2) if across > 0 else ("end", at + 2)
        leader = (round(end, 1), round(middle, 1))
        box = Box(left, top, left + width, top + LINE)
        yield Label(point.name, round(at, 1), round(top + BASELINE * LINE, 1), anchor, leader), box


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


def precision_recall_plot(board: Board, label: str, choice: LeaderboardQuery | None = None) -> PlotView:
    """Precision against recall of the judges that the choice shows, with 95 % intervals."""
    choice = choice or LeaderboardQuery(label=label)
    drawn = [(row, cell) for row in board.ranking(label) if (cell := _drawn(row, choice)) is not None]
    window = _window([cell for _, cell in drawn])
    labels = _labels(drawn, window)
    left, bottom = window
    return PlotView(
        marks=tuple(
            _mark_of(row, cell, window, name) for (row, cell), name in zip(drawn, labels, strict=True)
        ),
        lines=tuple(line for value in ISO_F1 if (line := _iso_line(value, window))),
        x_ticks=tuple((to_pixels(tick, 1.0, window)[0], round(100 * tick)) for tick in _ticks(left)),
        y_ticks=tuple((to_pixels(left, tick, window)[1], round(100 * tick)) for tick in _ticks(bottom)),
    )


def _drawn(row: BoardRow, choice: LeaderboardQuery) -> Cell | None:
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


def _mark_of(row: BoardRow, cell: Cell, window: tuple[float, float], label: Label | None) -> Mark:
    x, y = to_pixels(cell["recall"], cell["precision"], window)
    low, high = _precision_interval(cell)
    name = f"{row.judge} · {row.inputs}" if row.inputs else row.judge
    bounds = f" ({interval(cell['precision_ci'])})" if cell["precision_ci"] else ""
    return Mark(
        row_id=row.id,
        x=x,
        y=y,
        high=to_pixels(cell["recall"], high, window)[1],
        low=to_pixels(cell["recall"], low, window)[1],
        group=row.provenance,
        hover=(
            f"{name}\nprecision {percent(cell['precision'])}{bounds}"
            f"\nrecall {percent(cell['recall'])}\nF1 {percent(cell['f1'])}"
        ),
        label=label,
    )
