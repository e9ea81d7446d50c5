"""The two plots of a judge's scores, which ``templates/judge/scores.html`` draws as SVG."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from leaderboard.calibration import Calibration

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 46, 78, 12, 44
CLEARANCE: Final = 15
"""The smallest distance between the names of two lines, in the plot's units."""


@dataclass(frozen=True)
class Line:
    """A metric's curve over the thresholds, as points of an SVG polyline, and the height of its name."""

    name: str
    metric: str
    points: str
    name_y: float


def plot_values(found: Calibration) -> dict[str, Any]:
    bins = [each for each in found.bins if each.n]
    return {
        "calibration": found,
        "bins": bins,
        "most": max(each.n for each in bins),
        "lines": sweep_lines(found),
        "best": found.best(),
        "x": x,
        "y": y,
    }


def sweep_lines(found: Calibration) -> tuple[Line, ...]:
    """Return the curves of precision, recall and F1 over the thresholds at which they are defined."""
    drawn = []
    for name, metric in (("Precision", "precision"), ("Recall", "recall"), ("F1", "f1")):
        values = [(t.at, getattr(t, metric)) for t in found.thresholds]
        points = [(x(at), y(value)) for at, value in values if value is not None]
        if points:
            drawn.append((name, metric, points))
    ends = _apart([points[-1][1] for _, _, points in drawn])
    return tuple(
        Line(name, metric, " ".join(f"{across},{down}" for across, down in points), end)
        for (name, metric, points), end in zip(drawn, ends, strict=True)
    )


def x(share: float) -> float:
    """Return the horizontal position of a fraction, in the plot's units."""
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def y(share: float) -> float:
    """Return the vertical position of a fraction, in the plot's units; SVG's axis points down."""
    return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)


def _apart(places: list[float]) -> list[float]:
    """Return the positions in the same order, some of them moved down so that names do not overlap."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + CLEARANCE)
    return moved
