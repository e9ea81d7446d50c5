"""Render the report of `arb validate` as one HTML file without scripts."""

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arb.core.console import coefficient, interval, percent
from leaderboard.calibration import Calibration
from leaderboard.validation.report import METHOD, ValidationReport

_SIDE: Final = 240
"""The side of a calibration plot, in pixels."""


def render(report: ValidationReport) -> str:
    """Return the report as HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, interval=interval, coefficient=coefficient)
    return environment.get_template("report.html.j2").render(
        report=report, method=METHOD, side=_SIDE, points=calibration_points
    )


def calibration_points(calibration: Calibration) -> list[tuple[float, float, int]]:
    """Return the position (x, y) in pixels and the number of rows of each bin that has rows."""
    found = []
    for each in calibration.bins:
        if each.mean_score is not None and each.share is not None:
            found.append((each.mean_score * _SIDE, (1 - each.share) * _SIDE, each.n))
    return found
