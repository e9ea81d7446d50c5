"""The scales of the two plots of a judge's scores; ``templates/judge/scores.html`` draws them as SVG.

Their colours follow the page, they need no script, and every mark has a title that says what it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from leaderboard.calibration import Bin, Calibration, Threshold

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 46, 78, 12, 44
HISTOGRAM: Final = 46
"""Height of the bars under the reliability plot, which tell how many trajectories a point rests on."""
CLEARANCE: Final = 15
"""Between the names of two lines, so that they can be read."""


@dataclass(frozen=True)
class Line:
    """A metric over the thresholds: points for an SVG polyline, and its name beside the last one."""

    name: str
    metric: str
    points: str
    name_y: float


def plot_values(found: Calibration) -> dict[str, Any]:
    """What the template draws the plots with: bins that are not empty, lines, and functions of places."""
    full = [b for b in found.bins if b.n]
    most = max(b.n for b in full)

    def radius(b: Bin) -> float:
        """As large as the bin is full."""
        return round(3 + 4 * (b.n / most) ** 0.5, 1)

    def bar_height(b: Bin) -> float:
        return round(HISTOGRAM * b.n / most, 1)

    return {
        "calibration": found,
        "bins": full,
        "lines": sweep_lines(found),
        "best": found.best(),
        "x": x,
        "y": y,
        "radius": radius,
        "bar_height": bar_height,
    }


def sweep_lines(found: Calibration) -> tuple[Line, ...]:
    """Precision, recall and F1 over the thresholds, each broken off where it is undefined."""
    named = (("Precision", "precision"), ("Recall", "recall"), ("F1", "f1"))
    defined = {
        name: [t for t in found.thresholds if getattr(t, metric) is not None] for name, metric in named
    }
    drawn = [(name, metric) for name, metric in named if defined[name]]
    ends = _apart([y(getattr(defined[name][-1], metric)) for name, metric in drawn])
    return tuple(
        Line(name, metric, _points(defined[name], metric), end)
        for (name, metric), end in zip(drawn, ends, strict=True)
    )


def x(share: float) -> float:
    """Where a fraction lies on the horizontal axis, in the plot's units."""
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def y(share: float) -> float:
    """Where a fraction lies on the vertical axis: up is less."""
    return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)


def _points(thresholds: Sequence[Threshold], metric: str) -> str:
    return " ".join(f"{x(t.at)},{y(getattr(t, metric))}" for t in thresholds)


def _apart(places: list[float]) -> list[float]:
    """The places moved down where they would cover each other, kept in their order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + CLEARANCE)
    return moved
