"""Render the report of `arb validate` as HTML without scripts: one file, or a part of a page."""

from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from arb.core.console import coefficient, text_environment
from leaderboard.calibration import Calibration
from leaderboard.validation.report import METHOD, ValidationReport

_SIDE: Final = 240
"""The side of a calibration plot, in pixels."""


@cache
def _environment() -> Environment:
    environment = text_environment(Path(__file__).parent, autoescape=True)
    environment.filters["coefficient"] = coefficient
    return environment


def render(report: ValidationReport) -> str:
    """Return the report as an HTML file."""
    return _environment().get_template("report.html.j2").render(body=render_body(report))


def render_body(report: ValidationReport) -> Markup:
    """Return the report as HTML for a page, with headings of the second level."""
    template = _environment().get_template("report_body.html.j2")
    values = {"report": report, "method": METHOD, "side": _SIDE, "points": calibration_points}
    return Markup(template.render(values))


def calibration_points(calibration: Calibration) -> list[tuple[float, float, int]]:
    """Return the position (x, y) in pixels and the number of rows of each bin that has rows."""
    found = []
    for each in calibration.bins:
        if each.mean_score is not None and each.share is not None:
            found.append((each.mean_score * _SIDE, (1 - each.share) * _SIDE, each.n))
    return found
