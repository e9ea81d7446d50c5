"""The leaderboard's two plots: precision against recall with lines of equal F1, and the chosen figure against
what judges cost with the Pareto front.

Points, intervals and names are geometry in pixels; ``templates/leaderboard/plots.html`` draws them as SVG. A
name stands where it covers nothing else. A plot needs no script, and its colours follow the page.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log
from typing import Final

import numpy as np

from arb.core.console import interval, percent
from arb.core.vocabulary import LOWER_IS_BETTER, METRIC_TITLES
from leaderboard.board.board import BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from space.pages.leaderboard.query import LeaderboardQuery, cell_of, figure_name
from space.web.cells import short_name

WIDTH, HEIGHT = 600, 400
"""Pixels of the plotting area."""
RIGHT_EDGE: Final = 1.02
"""The fraction at the right edge, which leaves room for a point at 1."""
CHARACTER, LINE = 6.2, 14
"""Pixels that a character is wide and a line high, at 11 pixels."""
BASELINE: Final = 0.76
"""How far down its line the feet of the letters stand."""
MOST_NAMES: Final = 40
"""Points that a name is tried for; among more there is no room anyway."""
CROWD: Final = 40
"""More judges than this are drawn smaller and paler."""
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
ISO_F1: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
STEPS: Final = 40
"""Pieces of a line of equal F1."""
MARGIN: Final = 0.04
"""Room below the lowest and above the highest value of an axis, as a fraction."""
FREE_SHARE: Final = 0.12
"""The part of the axis of costs, which is logarithmic, that stands apart for judges that cost nothing."""
TICK_STEPS: Final = (0.02, 0.05, 0.1, 0.2)
MOST_TICKS: Final = 7

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle in pixels, y downwards."""


@dataclass(frozen=True)
class Point:
    """A judge with its place and the ends of its interval as fractions; lower ``order`` is named first."""

    row: BoardRow
    x: float
    y: float
    low: float
    high: float
    name: str
    order: int = 0


@dataclass(frozen=True)
class NamePlace:
    """A name with the place of its baseline, in pixels, and the side of it that is anchored there.

    ``leader`` is the end of the line from the point to the name; None where the name is beside it.
    """

    text: str
    x: float
    y: float
    anchor: str
    leader: tuple[float, float] | None = None


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
    label: NamePlace | None


@dataclass(frozen=True)
class PlotView:
    """A plot in pixels.

    ``x_ticks`` and ``y_ticks`` are (pixel, text), ``lines`` of equal F1 (value, SVG path, end), ``front`` is
    the path of the front.
    """

    name: str
    titles: tuple[str, str]
    marks: tuple[Mark, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    lines: tuple[tuple[float, str, tuple[float, float]], ...] = ()
    front: str = ""
    figure: str = ""
    n_left_out: int = 0
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many judges for marks of full size."""
        return len(self.marks) > CROWD


# Precision against recall


def precision_recall_plot(rows: Sequence[BoardRow], choice: LeaderboardQuery) -> PlotView:
    """Draw precision against recall of the chosen rows, with 95 % intervals.

    Judges that cannot be compared are left out: a point would stand among points that it is not one of. So
    are the constant references; the human one stands for itself.
    """
    drawn = [row for row in rows if row.is_comparable and _is_judge_or_human(row)]
    drawn = [row for row in drawn if _figures(row, choice, "precision", "recall")]
    points = []
    for row, name in zip(drawn, _names(drawn), strict=True):
        precision, recall = _figures(row, choice, "precision", "recall")
        low, high = cell_of(row, choice).get("precision_ci") or (precision, precision)
        order = {"reference": 0, "scored": 1}.get(row.provenance, 2)
        points.append(Point(row, recall, precision, low, high, name, order))
    left = max(0.0, min((point.x for point in points), default=0.0) - 2 * MARGIN)
    bottom = max(0.0, min((point.low for point in points), default=0.0) - MARGIN)
    window = (left, bottom)
    return PlotView(
        name="precision-recall",
        titles=("Recall, %", "Precision, %"),
        marks=_marks(points, window, lambda row: _hover(row, choice, ("precision", "recall", "f1"))),
        x_ticks=tuple((to_pixels(tick, 1, window)[0], f"{100 * tick:.0f}") for tick in round_ticks(left)),
        y_ticks=tuple((to_pixels(1, tick, window)[1], f"{100 * tick:.0f}") for tick in round_ticks(bottom)),
        lines=tuple(line for value in ISO_F1 if (line := _iso_line(value, window))),
    )


def _is_judge_or_human(row: BoardRow) -> bool:
    return row.provenance != "reference" or row.id == SECOND_ANNOTATOR


def _figures(row: BoardRow, choice: LeaderboardQuery, *names: str) -> list[float]:
    """Return these figures of a row; empty if one of them is not known."""
    cell = cell_of(row, choice) or {}
    found = [cell.get(name) for name in names]
    return [] if None in found else found


def _names(rows: Sequence[BoardRow]) -> list[str]:
    """The names of rows: with what the judge sees, where several share a name."""
    counts = Counter(row.judge for row in rows)
    return [short_name(row) if counts[row.judge] > 1 else row.judge for row in rows]


def _hover(row: BoardRow, choice: LeaderboardQuery, figures: Sequence[str]) -> str:
    """What hovering tells of a judge: its name and figures, the first with its interval."""
    cell = cell_of(row, choice)
    lines = [f"{row.judge} · {row.inputs}" if row.inputs else row.judge]
    for figure in figures:
        ends = cell.get(f"{figure}_ci") if figure == figures[0] else None
        bounds = f" ({interval(ends)})" if ends else ""
        lines.append(f"{figure_name(figure)} {percent(cell[figure])}{bounds}")
    return "\n".join(lines)


def _iso_line(value: float, window: tuple[float, float]) -> tuple[float, str, tuple[float, float]] | None:
    """Return value, SVG path and end of the line precision = F1 * recall / (2 * recall - F1).

    It is drawn as far as it lies within the window; None if it does not.
    """
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
    return value, path, points[-1]


# Quality against cost


def cost_plot(rows: Sequence[BoardRow], choice: LeaderboardQuery) -> PlotView | None:
    """Draw the chosen figure against dollars for 1,000 trajectories; None if fewer than two rows have both.

    The Pareto front joins the judges that no other one beats at the same cost or less.
    """
    judges, figure = [row for row in rows if row.provenance != "reference"], choice.figure
    drawn = [row for row in judges if row.cost and _figures(row, choice, figure)]
    if len(drawn) < 2:
        return None
    costs = [row.cost["usd_per_1000"] for row in drawn]
    values = [cell_of(row, choice)[figure] for row in drawn]
    ends = [
        cell_of(row, choice).get(f"{figure}_ci") or (value, value)
        for row, value in zip(drawn, values, strict=True)
    ]
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    bottom, top = max(least - MARGIN, min(0.0, least)), min(most + MARGIN, 1.0)
    scale, front = _CostScale.around(costs), _pareto_front(costs, values, figure in LOWER_IS_BETTER)

    def share(value: float) -> float:
        return (value - bottom) / (top - bottom)

    points = []
    for number, (row, name) in enumerate(zip(drawn, _names(drawn), strict=True)):
        is_named = number in front or len(drawn) <= CROWD  # of a crowd those worth their price
        low, high = map(share, ends[number])
        x, y = scale.share(costs[number]), share(values[number])
        points.append(Point(row, x, y, low, high, name if is_named else "", int(number not in front)))

    def hover(row: BoardRow) -> str:
        name, figures = _hover(row, choice, (figure,)).split("\n", 1)
        return f"{name}\n${row.cost['usd_per_1000']:,.2f} for 1,000 trajectories\n{figures}"

    window = (0.0, 0.0)
    steps = [to_pixels(points[number].x, points[number].y, window) for number in front]
    path = f"M{steps[0][0]:g},{steps[0][1]:g}" + "".join(f"H{x:g}V{y:g}" for x, y in steps[1:])
    return PlotView(
        name="cost-quality",
        titles=("US dollars for 1,000 trajectories", f"{METRIC_TITLES[figure]}, %"),
        marks=_marks(points, window, hover, _along(steps)),
        x_ticks=tuple((to_pixels(scale.share(cost), 0, window)[0], f"{cost:g}") for cost in scale.ticks()),
        y_ticks=tuple(
            (to_pixels(0, share(tick), window)[1], f"{100 * tick:.0f}") for tick in round_ticks(bottom, top)
        ),
        front=f"{path}H{WIDTH}",
        figure=figure_name(figure),
        n_left_out=len(judges) - len(drawn),
    )


def _along(steps: Sequence[tuple[float, float]]) -> list[Box]:
    """The room that the steps of the front take, so that no name lies on it."""
    ends = [*(x for x, _ in steps[1:]), float(WIDTH)]
    across = [(x, y - 2, end, y + 2) for (x, y), end in zip(steps, ends, strict=True)]
    return across + [(x - 2, y, x + 2, before) for (_, before), (x, y) in pairwise(steps)]


def _pareto_front(costs: Sequence[float], values: Sequence[float], is_lower_better: bool) -> list[int]:
    """The numbers of those that none at the same cost or less beats, from the cheapest on."""
    sign = -1 if is_lower_better else 1
    front: list[int] = []
    for number in sorted(range(len(costs)), key=lambda number: (costs[number], -sign * values[number])):
        if not front or sign * values[number] > sign * values[front[-1]]:
            front.append(number)
    return front


@dataclass(frozen=True)
class _CostScale:
    """Dollars on a logarithmic axis; what costs nothing stands at its left end."""

    low: float
    high: float
    has_free: bool

    @classmethod
    def around(cls, costs: Sequence[float]) -> "_CostScale":
        """An axis with room for all of them, a tenth to spare at each end."""
        paid = [cost for cost in costs if cost > 0]
        low, high = (min(paid) / 1.5, max(paid) * 1.5) if paid else (1.0, 10.0)
        return cls(low, high, len(paid) < len(costs))

    def share(self, cost: float) -> float:
        """Where a cost stands, as a fraction of the axis."""
        if cost <= 0:
            return FREE_SHARE / 4
        begin = FREE_SHARE if self.has_free else 0.0
        return begin + (1 - begin) * log(cost / self.low) / log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Round amounts within the axis, a few of them; 0 where a judge costs nothing."""
        powers = range(floor(log(self.low, 10)), ceil(log(self.high, 10)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [cost for cost in found if self.low <= cost <= self.high]
            if len(found) <= MOST_TICKS:
                break
        return [0.0, *found] if self.has_free else found


def round_ticks(low: float, high: float = 1.0) -> list[float]:
    """Round fractions from ``low`` to ``high``, a few of them."""
    step = next((step for step in TICK_STEPS if (high - low) / step <= MOST_TICKS), TICK_STEPS[-1])
    number = round(1 / step)
    return [place / number for place in range(ceil(low * number - 1e-9), floor(high * number + 1e-9) + 1)]


# Where points and names stand


def to_pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Where a point of fractions stands; ``window`` is the smallest x and y shown."""
    left, bottom = window
    across = WIDTH * (x - left) / (RIGHT_EDGE - left)
    return round(across, 1), round(HEIGHT * (1 - (y - bottom) / (1.0 - bottom)), 1)


def _marks(
    points: Sequence[Point],
    window: tuple[float, float],
    hover: Callable[[BoardRow], str],
    lines: Sequence[Box] = (),
) -> tuple[Mark, ...]:
    """Return the points in pixels with the names that have room; ``lines`` are to be left free of names."""
    marks = []
    for point, name in zip(points, place_names(points, window, lines), strict=True):
        x, y = to_pixels(point.x, point.y, window)
        high, low = (to_pixels(point.x, end, window)[1] for end in (point.high, point.low))
        marks.append(Mark(point.row.id, x, y, high, low, point.row.provenance, hover(point.row), name))
    return tuple(marks)


def place_names(
    points: Sequence[Point], window: tuple[float, float], lines: Sequence[Box] = ()
) -> list[NamePlace | None]:
    """For each point its name where it covers nothing else; None where there is no room."""
    taken = [*lines]
    for point in points:
        x, y = to_pixels(point.x, point.y, window)
        high, low = (to_pixels(point.x, end, window)[1] for end in (point.high, point.low))
        taken += [(x - 5, y - 5, x + 5, y + 5), (x - 2, high, x + 2, low)]
    obstacles = np.array(taken).reshape(-1, 4)

    found: list[NamePlace | None] = [None] * len(points)
    tried = sorted(range(len(points)), key=lambda number: (points[number].order, -points[number].y))
    for candidates in (_beside, _far):  # first every name that has room beside its point
        for number in tried[:MOST_NAMES]:
            if found[number] is not None or not points[number].name:
                continue
            x, y = to_pixels(points[number].x, points[number].y, window)
            for box, place in candidates(points[number].name, x, y):
                if _is_free(box, obstacles):
                    found[number] = place
                    obstacles = np.vstack([obstacles, box])
                    break
    return found


def _is_free(box: Box, obstacles: np.ndarray) -> bool:
    """Whether a box lies within the plot and shares no room with any of the obstacles, (n, 4)."""
    left, top, right, bottom = box
    if left < 0 or top < 0 or right > WIDTH or bottom > HEIGHT:
        return False
    across = (left < obstacles[:, 2]) & (obstacles[:, 0] < right)
    return not (across & (top < obstacles[:, 3]) & (obstacles[:, 1] < bottom)).any()


def _beside(name: str, x: float, y: float) -> Iterator[tuple[Box, NamePlace]]:
    """Yield the places for a name next to its point."""
    width = CHARACTER * len(name)
    for anchor, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        at = {"start": left, "end": left + width, "middle": left + width / 2}[anchor]
        place = NamePlace(name, round(at, 1), round(top + BASELINE * LINE, 1), anchor)
        yield (left, top, left + width, top + LINE), place


def _far(name: str, x: float, y: float) -> Iterator[tuple[Box, NamePlace]]:
    """Yield the places for a name that a line leads to."""
    width = CHARACTER * len(name)
    for across, down in FAR:
        at, middle = x + across, y + down
        left, top = at if across > 0 else at - width, middle - LINE / 2
        anchor, end = ("start", at - 2) if across > 0 else ("end", at + 2)
        leader = (round(end, 1), round(middle, 1))
        place = NamePlace(name, round(at, 1), round(top + BASELINE * LINE, 1), anchor, leader)
        yield (left, top, left + width, top + LINE), place
