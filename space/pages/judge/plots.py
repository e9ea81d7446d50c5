"""The two plots of a judge's scores as geometry; ``templates/judge/scores.html`` draws them as SVG.

Their colours follow the page, they need no script, and every mark has a title that says what it is.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from core.console import interval, percent
from leaderboard.calibration import Calibration, Threshold

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 46, 78, 12, 44
HISTOGRAM: Final = 46
"""Height of the bars under the reliability plot, which tell how many trajectories a point rests on."""
CLEARANCE: Final = 15
"""Between the names of two lines, so that they can be read."""


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in the plot's units, and the words beside it."""

    at: float
    words: str


@dataclass(frozen=True)
class Mark:
    """A point with its interval (``top`` and ``bottom`` are equal where there is none) and its words."""

    x: float
    y: float
    top: float
    bottom: float
    radius: float
    words: str


@dataclass(frozen=True)
class Bar:
    """A bar that stands on the bottom line."""

    x: float
    width: float
    height: float


@dataclass(frozen=True)
class ReliabilityPlot:
    """Share of successes against score; on the diagonal a score means what it says."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    bars: tuple[Bar, ...]
    words: str


@dataclass(frozen=True)
class Line:
    """A figure over the thresholds: points for an SVG polyline, and its name beside the last one."""

    name: str
    style: str
    points: str
    name_y: float


@dataclass(frozen=True)
class SweepPlot:
    """Precision, recall and F1 over the threshold; ``best_x`` marks the highest F1."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    best_x: float | None
    words: str


def reliability_plot(found: Calibration) -> ReliabilityPlot:
    """A point a bin that is not empty, as large as the bin is full, and the histogram below."""
    full = [b for b in found.bins if b.n]
    most = max(b.n for b in full)
    marks = []
    for b in full:
        low, high = b.interval or (b.share, b.share)
        words = (
            f"score {b.low:g} to {b.high:g}: {b.n:,} trajectories, mean score {percent(b.mean_score)}, "
            f"{percent(b.share)} of them successful"
        )
        if b.interval:
            words += f" ({interval(list(b.interval))})"
        radius = round(3 + 4 * (b.n / most) ** 0.5, 1)
        marks.append(Mark(_x(b.mean_score), _y(b.share), _y(high), _y(low), radius, words))
    bars = tuple(
        Bar(_x(b.low) + 1, _x(b.high) - _x(b.low) - 2, round(HISTOGRAM * b.n / most, 1)) for b in full
    )
    words = f"Reliability of the score: {len(full)} groups, {found.n:,} trajectories in all"
    return ReliabilityPlot(_ticks(_x), _ticks(_y), tuple(marks), bars, words)


def sweep_plot(found: Calibration) -> SweepPlot:
    """Three lines over the thresholds, each broken off where its figure is undefined."""
    named = [
        (name, style, [t for t in found.thresholds if getattr(t, figure) is not None], figure)
        for name, style, figure in (
            ("Precision", "precision", "precision"),
            ("Recall", "recall", "recall"),
            ("F1", "f1", "f1"),
        )
    ]
    drawn = [(name, style, defined, figure) for name, style, defined, figure in named if defined]
    ends = _apart([_y(getattr(defined[-1], figure)) for _, _, defined, figure in drawn])
    lines = tuple(
        Line(name, style, _points(defined, figure), end)
        for (name, style, defined, figure), end in zip(drawn, ends, strict=True)
    )
    best = found.best()
    words = "Precision, recall and F1 over the threshold"
    if best is not None:
        words += f"; F1 is highest at {best.at:g}, {percent(best.f1)}"
    return SweepPlot(_ticks(_x), _ticks(_y), lines, None if best is None else _x(best.at), words)


def _points(thresholds: list[Threshold], figure: str) -> str:
    return " ".join(f"{_x(t.at)},{_y(getattr(t, figure))}" for t in thresholds)


def _apart(places: list[float]) -> list[float]:
    """The places moved down where they would cover each other, kept in their order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + CLEARANCE)
    return moved


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)


def _ticks(scale) -> tuple[Tick, ...]:
    return tuple(Tick(scale(step / 5), f"{step * 20}") for step in range(6))
