"""Which points of a plot carry their names, and on which side: those whose name covers nothing else. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH, HEIGHT = 600, 400
"""Pixels of the plotting area."""

CHARACTER, LINE = 6.8, 14
"""Pixels that a character is wide and a line high, at 11 pixels."""

MOST_NAMES: Final = 40
"""Points that a name is tried for; among more there is no room anyway."""

SIDES: Final = (
    ("start", 9, 0.0, -0.5), ("end", -9, -1.0, -0.5), ("start", 7, 0.0, -1.2),
    ("start", 7, 0.0, 0.2), ("end", -7, -1.0, -1.2), ("end", -7, -1.0, 0.2),
    ("middle", 0, -0.5, -1.5), ("middle", 0, -0.5, 0.5),
)  # fmt: skip
"""SVG's text-anchor; where the name begins: pixels from the point, and shares of its own size."""

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
    """A point with its whisker and name; fractions. Names of lower ``order`` are placed first."""

    x: float
    y: float
    low: float
    high: float
    name: str
    order: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A name with the place of its baseline, in pixels, and the side of it that is anchored there."""

    text: str
    x: float
    y: float
    anchor: str


def place_names(points: Sequence[Point], window: tuple[float, float]) -> list[Label | None]:
    """For each point its name where it covers nothing else; None where there is no room.

    ``window`` is the smallest x and y shown; both go up to 1.
    """
    marks = [_mark(point, window) for point in points]
    whiskers = [_whisker(point, window) for point in points]
    taken: list[Box] = []
    found: list[Label | None] = [None] * len(points)
    for number in sorted(range(len(points)), key=lambda n: (points[n].order, -points[n].y))[:MOST_NAMES]:
        for anchor, box in _boxes(points[number], window):
            others = (*taken, *marks, *(w for n, w in enumerate(whiskers) if n != number))
            if box.left >= 0 and box.right <= WIDTH and not any(box.meets(other) for other in others):
                at = {"start": box.left, "end": box.right, "middle": (box.left + box.right) / 2}[anchor]
                feet = box.top + BASELINE * LINE
                found[number] = Label(points[number].name, round(at, 1), round(feet, 1), anchor)
                taken.append(box)
                break
    return found


def to_pixels(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Where a point of fractions stands in the plotting area."""
    left, bottom = window
    across = WIDTH * (x - left) / (1.02 - left)
    return round(across, 1), round(HEIGHT * (1 - (y - bottom) / (1.0 - bottom)), 1)


def _mark(point: Point, window: tuple[float, float]) -> Box:
    x, y = to_pixels(point.x, point.y, window)
    return Box(x - 5, y - 5, x + 5, y + 5)


def _whisker(point: Point, window: tuple[float, float]) -> Box:
    x, top = to_pixels(point.x, point.high, window)
    return Box(x - 2, top, x + 2, to_pixels(point.x, point.low, window)[1])


def _boxes(point: Point, window: tuple[float, float]):
    x, y = to_pixels(point.x, point.y, window)
    width = CHARACTER * len(point.name)
    for side, away, across, down in SIDES:
        left, top = x + away + across * width, y + down * LINE
        yield side, Box(left, top, left + width, top + LINE)
