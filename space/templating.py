"""Templates: every value that goes into a page is escaped, whoever wrote it; filters format it.

``{{ cell.precision | percent }}``, ``{{ cell.precision_ci | interval }}``, ``{{ n | thousands }}``,
``{{ row.date | day }}``, and ``link_to("/judge", id=row.id)`` are known to every template.
"""

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from leaderboard.report_tables import interval, percent
from space.address import link_to

FOLDER = Path(__file__).parent / "templates"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "interval": interval, "thousands": _thousands, "day": _day}
    environment.globals["link_to"] = link_to
    return environment


def _thousands(number: float) -> str:
    return f"{number:,}"


def _day(date: str) -> str:
    """The day of an ISO date with a time."""
    return date[:10]


def render(template: str, **values) -> str:
    """The HTML of a template in ``templates/`` with these values, all of them escaped."""
    return _environment().get_template(template).render(**values)
