"""Points with intervals and names as geometry; ``templates/leaderboard/plots.html`` draws them as SVG.

A name stands where it covers nothing else. A plot needs no script, and its colours follow the page.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor
from typing import Final

import numpy as np

from leaderboard.board.board import BoardRow

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


def place_names(
    points: Sequence[Point], window: tuple[float, float], lines: Sequence[Box] = ()
) -> list[Label | None]:
    """For each point its name where it covers nothing else; None where there is no room.

    ``window`` is the smallest x and y shown; both go up to 1. ``lines`` are other things to leave free.
    """
    values = np.array([(point.x, point.y, point.low, point.high) for point in points]).reshape(-1, 4)
    order = np.array([point.order for point in points], dtype=np.int64)
    found = _place_names(values, order, [point.name for point in points].__getitem__, window, lines)
    return [found.get(number) for number in range(len(points))]


def _place_names(
    values: np.ndarray,
    order: np.ndarray,
    name: Callable[[int], str],
    window: tuple[float, float],
    lines: Sequence[Box],
) -> dict[int, Label]:
    """The names that have room, by the number of their point; ``values`` as of `draw_marks`."""
    x, y, high, low = _pixels(values, window).T
    marks, intervals = _Obstacles(x, 5, y - 5, y + 5), _Obstacles(x, 2, high, low)
    others = [*lines]
    found: dict[int, Label] = {}
    first = np.lexsort((-values[:, 1], order))[:MOST_NAMES].tolist()
    points = {number: Point(*values[number].tolist(), name(number)) for number in first}
    for candidates in (_beside, _far):  # first every name that has room beside its point
        for number, point in points.items():
            if number not in found and point.name:
                for box, label in candidates(point, window):
                    is_free = _is_within(box) and not any(_meet(box, other) for other in others)
                    if is_free and not marks.meet(box) and not intervals.meet(box):
                        found[number] = label()
                        others.append(box)
                        break
    return found


class _Obstacles:
    """Boxes of one width, in columns from left to right: a board of thousands has as many marks that a name
    must not cover, and only those beneath it are looked at."""

    def __init__(self, middles: np.ndarray, half: float, tops: np.ndarray, bottoms: np.ndarray) -> None:
        order = np.argsort(middles)
        self._lefts, self._rights = (
            (middles[order] - half).tolist(),
            (middles[order] + half).tolist(),
        )
        self._tops, self._bottoms = tops[order], bottoms[order]

    def meet(self, box: Box) -> bool:
        """Whether one of them shares any room with a box."""
        beneath = slice(bisect_right(self._rights, box.left), bisect_left(self._lefts, box.right))
        return bool(((box.top < self._bottoms[beneath]) & (self._tops[beneath] < box.bottom)).any())


def _meet(one: Box, other: Box) -> bool:
    return (
        one.left < other.right
        and other.left < one.right
        and one.top < other.bottom
        and other.top < one.bottom
    )


def _is_within(box: Box) -> bool:
    return box.left >= 0 and box.right <= WIDTH and box.top >= 0 and box.bottom <= HEIGHT


def to_pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Where a point of fractions stands in the plotting area."""
    left, bottom = window
    across, down = WIDTH * (x - left) / (1.02 - left), HEIGHT * (1 - (y - bottom) / (1.0 - bottom))
    return round(across, 1), round(down, 1)


def _pixels(values: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Where points stand, across and down, and the upper and the lower end of their intervals: (n, 4)."""
    left, bottom = window
    across = WIDTH * (values[:, 0] - left) / (1.02 - left)
    down = HEIGHT * (1 - (values[:, [1, 3, 2]] - bottom) / (1.0 - bottom))
    return np.round(np.column_stack([across, down]), 1)


_Candidate = tuple[Box, Callable[[], Label]]
"""Room for a name, and the name there; most are not free."""


def _beside(point: Point, window: tuple[float, float]) -> Iterator[_Candidate]:
    x, y = to_pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for anchor, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        at = {"start": left, "end": left + width, "middle": left + width / 2}[anchor]
        down = round(top + BASELINE * LINE, 1)
        yield Box(left, top, left + width, top + LINE), partial(Label, point.name, round(at, 1), down, anchor)


def _far(point: Point, window: tuple[float, float]) -> Iterator[_Candidate]:
    x, y = to_pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for across, down in FAR:
        at, middle = x + across, y + down
        left, top = at if across > 0 else at - width, middle - LINE / 2
        anchor, end = ("start", at - 2) if across > 0 else ("end", at + 2)
        yield (
            Box(left, top, left + width, top + LINE),
            lambda at=at, top=top, anchor=anchor, end=end, middle=middle: Label(
                point.name,
                round(at, 1),
                round(top + BASELINE * LINE, 1),
                anchor,
                (round(end, 1), round(middle, 1)),
            ),
        )


CROWD: Final = 40
"""More judges than this are drawn smaller and paler: what tells is their cloud."""
TICK_STEPS: Final = (0.02, 0.05, 0.1, 0.2)
MOST_TICKS: Final = 7


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
    """A plot in pixels; ``x_ticks`` and ``y_ticks`` are (pixel, text).

    ``cloud`` are the judges of a crowd that have no name, as two SVG paths, of points and of intervals: some
    hundred points with a link each would be most of the page. ``front`` is the path of the Pareto front.
    """

    name: str
    titles: tuple[str, str]
    marks: tuple[Mark, ...]
    cloud: tuple[str, str] | None
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    lines: tuple[IsoLine, ...] = ()
    front: str = ""
    figure: str = ""
    n_drawn: int = 0
    n_left_out: int = 0
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many judges for marks of full size."""
        return self.n_drawn > CROWD


def draw_marks(
    rows: Sequence[BoardRow],
    values: np.ndarray,
    order: np.ndarray,
    name: Callable[[int], str],
    hover: Callable[[BoardRow], str],
    window: tuple[float, float],
    every_point: bool,
    lines: Sequence[Box] = (),
) -> tuple[tuple[Mark, ...], tuple[str, str] | None]:
    """The points that lead to their judges, and as a cloud those of a crowd that have no name.

    ``values`` are fractions: x, y, low and high of each row, (n, 4). Names of lower ``order`` are placed
    first; ``name`` gives that of a number, ``hover`` is what hovering tells of a row. With ``every_point``
    there is no cloud.
    """
    pixels = _pixels(values, window)
    labels = _place_names(values, order, name, window, lines)
    is_named = np.full(len(rows), every_point or len(rows) <= CROWD)
    is_named[[*labels]] = True
    is_named |= np.fromiter((row.provenance in _ALWAYS_NAMED for row in rows), bool, len(rows))
    named = []
    for number in np.flatnonzero(is_named).tolist():
        row = rows[number]
        mark = Mark(row.id, *pixels[number].tolist(), row.provenance, hover(row), labels.get(number))
        named.append(mark)
    if is_named.all():
        return tuple(named), None
    cloud = pixels[~is_named]
    intervals = cloud[cloud[:, 2] != cloud[:, 3]][:, [0, 2, 3]]
    texts = (_repeat("M%g,%gh0", cloud[:, :2]), _repeat("M%g,%gV%g", intervals))
    return tuple(named), texts


_ALWAYS_NAMED: Final = ("reference", "self-reported")


def _repeat(form: str, numbers: np.ndarray) -> str:
    """The form filled with each row of numbers, one after another."""
    return form * len(numbers) % tuple(numbers.ravel().tolist())


def round_ticks(low: float, high: float = 1.0) -> list[float]:
    """Round fractions from ``low`` to ``high``, a few of them."""
    step = next((step for step in TICK_STEPS if (high - low) / step <= MOST_TICKS), TICK_STEPS[-1])
    number = round(1 / step)
    return [place / number for place in range(ceil(low * number - 1e-9), floor(high * number + 1e-9) + 1)]
