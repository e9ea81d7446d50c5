"""Which points of a plot carry their names, and on which side: those whose name covers nothing else. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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
    """A point with its whisker and name; fractions. Names of lower ``order`` are placed first."""

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
    obstacles = [_mark(point, window) for point in points] + [_whisker(point, window) for point in points]
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


def _whisker(point: Point, window: tuple[float, float]) -> Box:
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
