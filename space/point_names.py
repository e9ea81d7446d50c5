"""Which points of a plot carry their names, and on which side: those whose name covers nothing else. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH, HEIGHT = 600, 400
"""Pixels of the plotting area that names are placed for; a wider one only gives more room."""

CHARACTER, LINE = 6.8, 14
"""Pixels that a character is wide and a line high, at 11 pixels."""

MOST_NAMES: Final = 40
"""Points that a name is tried for; among more there is no room anyway."""

SIDES: Final = (
    ("middle right", 9, 0.0, -0.5), ("middle left", -9, -1.0, -0.5), ("top right", 7, 0.0, -1.2),
    ("bottom right", 7, 0.0, 0.2), ("top left", -7, -1.0, -1.2), ("bottom left", -7, -1.0, 0.2),
    ("top center", 0, -0.5, -1.5), ("bottom center", 0, -0.5, 0.5),
)  # fmt: skip
"""Plotly's word for a side; where the name begins: pixels from the point, and shares of its own size."""


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
    """A point with its whisker and name; fractions. Names of lower ``order`` are placed first."""

    x: float
    y: float
    low: float
    high: float
    name: str
    order: int = 0


def place_names(points: Sequence[Point], window: tuple[float, float]) -> list[tuple[str, str]]:
    """For each point its name and the side it stands on; an empty name where there is no room.

    ``window`` is the smallest x and y shown; both go up to 1.
    """
    marks = [_mark(point, window) for point in points]
    whiskers = [_whisker(point, window) for point in points]
    taken: list[Box] = []
    found = [("", SIDES[0][0])] * len(points)
    for number in sorted(range(len(points)), key=lambda n: (points[n].order, -points[n].y))[:MOST_NAMES]:
        for side, box in _boxes(points[number], window):
            others = (*taken, *marks, *(w for n, w in enumerate(whiskers) if n != number))
            if box.left >= 0 and box.right <= WIDTH and not any(box.meets(other) for other in others):
                found[number] = (points[number].name, side)
                taken.append(box)
                break
    return found


def _pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    left, bottom = window
    return WIDTH * (x - left) / (1.02 - left), HEIGHT * (1 - (y - bottom) / (1.0 - bottom))


def _mark(point: Point, window: tuple[float, float]) -> Box:
    x, y = _pixels(point.x, point.y, window)
    return Box(x - 5, y - 5, x + 5, y + 5)


def _whisker(point: Point, window: tuple[float, float]) -> Box:
    x, top = _pixels(point.x, point.high, window)
    return Box(x - 2, top, x + 2, _pixels(point.x, point.low, window)[1])


def _boxes(point: Point, window: tuple[float, float]):
    x, y = _pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for side, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        yield side, Box(left, top, left + width, top + LINE)
