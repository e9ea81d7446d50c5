"""The leaderboard's two plots: precision against recall, and the chosen metric against cost.

Both have the Pareto front, and the first has lines of equal F1. Points, intervals and names are placed in
pixels here; ``templates/leaderboard/plots.html`` draws them as SVG. Names go where they cover nothing else.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, inf, log
from typing import Final

import numpy as np

from arb.core.vocabulary import is_low, metric_name
from leaderboard.board.board import BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import interval_of
from space.pages.leaderboard.query import PAGE_ROWS, LeaderboardQuery, cell_of, figure_of
from space.pages.rows import metric_titles_of
from space.web.cells import cost_cell, ends_text, metric_text, short_name, unit_of

WIDTH, HEIGHT = 600, 400
"""Pixels of the plotting area."""
RIGHT_EDGE: Final = 1.02
"""The fraction at the right edge; it leaves room for a point at 1."""
CHARACTER, LINE = 6.2, 14
"""The width of a character and the height of a line in pixels, for text of 11 pixels."""
BASELINE: Final = 0.76
"""The distance from the top of a line of text to its baseline, as a share of the line's height."""
MOST_LINKED: Final = PAGE_ROWS
"""The maximum number of judges whose points have a link: as many as the table shows at first."""
MOST_NAMES: Final = 40
"""The maximum number of points that get a name. A plot has no room for more."""
CROWD: Final = 40
"""If there are more judges than this, they are drawn smaller and paler."""
SIDES: Final = (
    ("start", 9, 0.0, -0.5), ("end", -9, -1.0, -0.5), ("start", 7, 0.0, -1.2),
    ("start", 7, 0.0, 0.2), ("end", -7, -1.0, -1.2), ("end", -7, -1.0, 0.2),
    ("middle", 0, -0.5, -1.5), ("middle", 0, -0.5, 0.5),
)  # fmt: skip
"""Positions of a name next to its point: SVG's text-anchor, the distance in pixels, and the offset of the
name's top left corner in widths and heights of the name."""
FAR: Final = tuple(
    (away * across, away * down)
    for away in (30, 44, 60, 80, 105, 135)
    for across, down in ((0.7, -0.7), (0.7, 0.7), (-0.7, -0.7), (-0.7, 0.7), (1, 0.3), (1, -0.3), (-1, 0.3),
                         (-1, -0.3), (0.3, 1), (-0.3, 1), (0.3, -1), (-0.3, -1))
)  # fmt: skip
"""Offsets in pixels of a name that has no room next to its point. A line connects it with the point."""
ISO_F1: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
STEPS: Final = 40
"""The number of segments of a line of equal F1."""
MARGIN: Final = 0.04
"""The room below the lowest and above the highest value of an axis, as a fraction."""
FREE_SHARE: Final = 0.12
"""The share of the logarithmic cost axis that is reserved for judges that cost nothing."""
ARROW, ARROW_HEIGHT = 24, 5
"""The length, and half the height, of the arrow that marks a lower bound, in pixels."""
TICK_STEPS: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
MOST_TICKS: Final = 7

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle in pixels, y downwards."""


@dataclass(frozen=True)
class Point:
    """A judge with its position and interval as fractions. Points with a lower ``order`` get names first."""

    row: BoardRow
    x: float
    y: float
    low: float
    high: float
    name: str
    order: int = 0


@dataclass(frozen=True)
class NamePlace:
    """A name with its anchor and baseline in pixels; ``leader`` is the end of the line to it, if any."""

    text: str
    x: float
    y: float
    anchor: str
    leader: tuple[float, float] | None = None


@dataclass(frozen=True)
class Mark:
    """A judge: its point and interval in pixels, its name if there is room, and its hover text.

    ``is_at_least`` says that the judge belongs further to the right, because its cost is a lower bound.
    """

    row_id: str
    x: float
    y: float
    high: float
    low: float
    group: str
    hover: str
    label: NamePlace | None = None
    is_at_least: bool = False


@dataclass(frozen=True)
class PlotView:
    """A plot in pixels.

    ``x_ticks`` and ``y_ticks`` are (pixel, text) pairs, ``lines`` of equal F1 are (value, SVG path, end), and
    ``front`` is the SVG path of the Pareto front.
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
        return len(self.marks) > CROWD

    @property
    def linked(self) -> list[Mark]:
        """The marks with a link. Links for hundreds of judges would take a third of the page's bytes."""
        first, others = self.marks[:MOST_LINKED], self.marks[MOST_LINKED:]
        return [*first, *(mark for mark in others if mark.label is not None or mark.group == "reference")]

    @property
    def dots(self) -> list[Mark]:
        """The other marks, which are drawn as dots only."""
        linked = {mark.row_id for mark in self.linked}
        return [mark for mark in self.marks if mark.row_id not in linked]


def precision_recall_plot(
    rows: Sequence[BoardRow], choice: LeaderboardQuery, front: Collection[str] = ()
) -> PlotView:
    """Return the plot of precision against recall for the chosen rows, with 95 % intervals.

    Judges that are not comparable are left out, as are all references except the human one. ``front`` has the
    ids of the judges on the precision-recall front, which a line joins.
    """
    points = []
    for row in rows:
        is_judge_or_human = row.provenance != "reference" or row.id == SECOND_ANNOTATOR
        recall, precision = (figure_of(row, choice, figure) for figure in ("recall", "precision"))
        if row.is_comparable and is_judge_or_human and recall is not None and precision is not None:
            low, high = _ends(row, choice, "precision", precision)
            order = {"reference": 0, "scored": 1}.get(row.provenance, 2)
            points.append(Point(row, recall, precision, low, high, short_name(row), order))
    left = max(0.0, min((point.x for point in points), default=0.0) - 2 * MARGIN)
    bottom = max(0.0, min((point.low for point in points), default=0.0) - MARGIN)
    window = (left, bottom)
    steps = sorted(to_pixels(point.x, point.y, window) for point in points if point.row.id in front)
    path = f"M{steps[0][0]:g},{steps[0][1]:g}" if steps else ""
    return PlotView(
        name="precision-recall",
        titles=("Recall, %", "Precision, %"),
        marks=marks_of(
            points,
            window,
            lambda row: _hover(row, choice, ("precision", "recall", "f1")),
            # The line goes down from each point, and then to the right.
            [(x - 2, y, x + 2, low) for (x, y), (_, low) in pairwise(steps)]
            + [(x, y - 2, right, y + 2) for (x, _), (right, y) in pairwise(steps)],
        ),
        x_ticks=tuple((to_pixels(tick, 1, window)[0], f"{100 * tick:.0f}") for tick in round_ticks(left)),
        y_ticks=tuple((to_pixels(1, tick, window)[1], f"{100 * tick:.0f}") for tick in round_ticks(bottom)),
        lines=tuple(filter(None, (_iso_line(value, window) for value in ISO_F1))),
        front=path + "".join(f"V{y:g}H{x:g}" for x, y in steps[1:]),
    )


def _ends(row: BoardRow, choice: LeaderboardQuery, figure: str, value: float) -> tuple[float, float]:
    """Return the ends of a metric's interval, or the value twice if the interval is unknown."""
    low, high = interval_of(cell_of(row, choice) or {}, figure) or (value, value)
    return low, high


def _hover(row: BoardRow, choice: LeaderboardQuery, figures: Sequence[str]) -> str:
    """Return the hover text of a judge: its name and metrics, the first metric with its interval."""
    lines = [short_name(row)]
    for figure in figures:
        ends = interval_of(cell_of(row, choice) or {}, figure) if figure == figures[0] else None
        bounds = f" ({ends_text(ends, figure)})" if ends else ""
        lines.append(f"{metric_name(figure)} {metric_text(figure_of(row, choice, figure), figure)}{bounds}")
    return "\n".join(lines)


def _iso_line(value: float, window: tuple[float, float]) -> tuple[float, str, tuple[float, float]] | None:
    """Return (value, SVG path, end) of a line of equal F1 within the window, or None if it is outside."""
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


def cost_plot(rows: Sequence[BoardRow], choice: LeaderboardQuery) -> PlotView | None:
    """Return the plot of the chosen metric against dollars per 1,000 trajectories.

    Return None if fewer than two rows have both a cost and the metric.
    """
    judges, figure = [row for row in rows if row.provenance != "reference"], choice.metric
    drawn: list[tuple[BoardRow, float, float]] = []
    for row in judges:
        value = figure_of(row, choice, figure)
        if row.cost and value is not None:
            drawn.append((row, row.cost["usd_per_1000"], value))
    if len(drawn) < 2:
        return None
    ends = [_ends(row, choice, figure, value) for row, _, value in drawn]
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    unit, title = unit_of(figure), metric_titles_of(choice.target)[figure]
    bottom, top = max(least - MARGIN, min(0.0, least)), most + MARGIN
    if unit == 100:
        top = min(top, 1.0)
    bounds = [bool(row.cost and row.cost.get("is_at_least")) for row, _, _ in drawn]
    exact = [(number, *drawn[number][1:]) for number, is_bound in enumerate(bounds) if not is_bound]
    scale = _CostScale.around([cost for _, cost, _ in drawn])
    front = _pareto_front(exact, is_low(figure))

    def share(value: float) -> float:
        return (value - bottom) / (top - bottom)

    points = []
    for number, (row, cost, value) in enumerate(drawn):
        is_named = number in front or len(drawn) <= CROWD  # in a crowd only judges on the front are named
        low, high = map(share, ends[number])
        name = short_name(row) if is_named else ""
        points.append(Point(row, scale.share(cost), share(value), low, high, name, int(number not in front)))

    def hover(row: BoardRow) -> str:
        name, figures = _hover(row, choice, (figure,)).split("\n", 1)
        return f"{name}\n{cost_cell(row.cost).text} US dollars per 1,000 trajectories\n{figures}"

    window = (0.0, 0.0)
    steps = [to_pixels(points[number].x, points[number].y, window) for number in front]
    path = "".join(f"H{x:g}V{y:g}" for x, y in steps[1:])
    bounds_at = [to_pixels(p.x, p.y, window) for p, bound in zip(points, bounds, strict=True) if bound]
    arrows = [(x, y - ARROW_HEIGHT, x + ARROW, y + ARROW_HEIGHT) for x, y in bounds_at]
    placed = marks_of(points, window, hover, [*_along(steps), *arrows])
    return PlotView(
        name="cost-quality",
        titles=("US dollars per 1,000 trajectories", f"{title}, %" if unit == 100 else title),
        marks=tuple(replace(mark, is_at_least=bound) for mark, bound in zip(placed, bounds, strict=True)),
        x_ticks=tuple((to_pixels(scale.share(cost), 0, window)[0], f"{cost:g}") for cost in scale.ticks()),
        y_ticks=tuple(
            (to_pixels(0, share(tick), window)[1], f"{round(unit * tick, 6):g}")
            for tick in round_ticks(bottom, top)
        ),
        front=f"M{steps[0][0]:g},{steps[0][1]:g}{path}H{WIDTH}" if steps else "",
        figure=metric_name(figure),
        n_left_out=len(judges) - len(drawn),
    )


def _along(steps: Sequence[tuple[float, float]]) -> list[Box]:
    """Return boxes around the lines of the Pareto front, which names must not cover."""
    ends = [*(x for x, _ in steps[1:]), float(WIDTH)]
    across = [(x, y - 2, end, y + 2) for (x, y), end in zip(steps, ends, strict=False)]
    return across + [(x - 2, y, x + 2, before) for (_, before), (x, y) in pairwise(steps)]


def _pareto_front(judges: Sequence[tuple[int, float, float]], is_lower_better: bool) -> list[int]:
    """Return the numbers of the judges on the Pareto front, cheapest first.

    For each of them, no judge that costs the same or less has a better metric. ``judges`` has (number, cost,
    metric).
    """
    sign = -1 if is_lower_better else 1
    front, best = [], -inf
    for number, _, value in sorted(judges, key=lambda judge: (judge[1], -sign * judge[2])):
        if sign * value > best:
            front.append(number)
            best = sign * value
    return front


@dataclass(frozen=True)
class _CostScale:
    """A logarithmic axis of dollars; judges that cost nothing are at its left end."""

    low: float
    high: float
    has_free: bool

    @classmethod
    def around(cls, costs: Sequence[float]) -> "_CostScale":
        """Return an axis with room for all costs and some space at each end."""
        paid = [cost for cost in costs if cost > 0]
        low, high = (min(paid) / 1.5, max(paid) * 1.5) if paid else (1.0, 10.0)
        return cls(low, high, len(paid) < len(costs))

    def share(self, cost: float) -> float:
        """Return the position of a cost, as a fraction of the axis."""
        if cost <= 0:
            return FREE_SHARE / 4
        begin = FREE_SHARE if self.has_free else 0.0
        return begin + (1 - begin) * log(cost / self.low) / log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Return a few round amounts within the axis, and 0 if a judge costs nothing."""
        powers = range(floor(log(self.low, 10)), ceil(log(self.high, 10)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [cost for cost in found if self.low <= cost <= self.high]
            if len(found) <= MOST_TICKS:
                break
        return [0.0, *found] if self.has_free else found


def round_ticks(low: float, high: float = 1.0) -> list[float]:
    """Return a few round numbers from ``low`` to ``high``."""
    step = next((step for step in TICK_STEPS if (high - low) / step <= MOST_TICKS), TICK_STEPS[-1])
    return [round(place * step, 6) for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def to_pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Convert a point from fractions to pixels; ``window`` is the smallest x and y shown."""
    left, bottom = window
    across = WIDTH * (x - left) / (RIGHT_EDGE - left)
    return round(across, 1), round(HEIGHT * (1 - (y - bottom) / (1.0 - bottom)), 1)


def marks_of(
    points: Sequence[Point],
    window: tuple[float, float],
    hover: Callable[[BoardRow], str],
    lines: Sequence[Box] = (),
) -> tuple[Mark, ...]:
    """Return the points in pixels, with names where there is room; no name is put on a box of ``lines``."""
    marks = []
    for point in points:
        x, y = to_pixels(point.x, point.y, window)
        high, low = (to_pixels(point.x, end, window)[1] for end in (point.high, point.low))
        marks.append(Mark(point.row.id, x, y, high, low, point.row.provenance, hover(point.row)))
    taken = [*lines]
    for mark in marks:
        taken.append((mark.x - 5, mark.y - 5, mark.x + 5, mark.y + 5))
        taken.append((mark.x - 2, mark.high, mark.x + 2, mark.low))
    obstacles = np.array(taken).reshape(-1, 4)
    tried = sorted(range(len(points)), key=lambda number: (points[number].order, -points[number].y))
    for candidates in (_beside, _far):  # first every name that has room next to its point
        for number in tried[:MOST_NAMES]:
            mark, name = marks[number], points[number].name
            if mark.label is not None or not name:
                continue
            for box, place in candidates(name, mark.x, mark.y):
                if _is_free(box, obstacles):
                    marks[number] = replace(mark, label=place)
                    obstacles = np.vstack([obstacles, box])
                    break
    return tuple(marks)


def _is_free(box: Box, obstacles: np.ndarray) -> bool:
    """Return whether a box is within the plot and overlaps none of the obstacles, of shape (n, 4)."""
    left, top, right, bottom = box
    if left < 0 or top < 0 or right > WIDTH or bottom > HEIGHT:
        return False
    across = (left < obstacles[:, 2]) & (obstacles[:, 0] < right)
    return not (across & (top < obstacles[:, 3]) & (obstacles[:, 1] < bottom)).any()


def _beside(name: str, x: float, y: float) -> Iterator[tuple[Box, NamePlace]]:
    """Yield (box, place) for each position of a name next to its point."""
    width = CHARACTER * len(name)
    for anchor, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        at = {"start": left, "end": left + width, "middle": left + width / 2}[anchor]
        place = NamePlace(name, round(at, 1), round(top + BASELINE * LINE, 1), anchor)
        yield (left, top, left + width, top + LINE), place


def _far(name: str, x: float, y: float) -> Iterator[tuple[Box, NamePlace]]:
    """Yield (box, place) for each position of a name away from its point, to which a line leads."""
    width = CHARACTER * len(name)
    for across, down in FAR:
        at, middle = x + across, y + down
        left, top = at if across > 0 else at - width, middle - LINE / 2
        anchor, end = ("start", at - 2) if across > 0 else ("end", at + 2)
        leader = (round(end, 1), round(middle, 1))
        place = NamePlace(name, round(at, 1), round(top + BASELINE * LINE, 1), anchor, leader)
        yield (left, top, left + width, top + LINE), place
