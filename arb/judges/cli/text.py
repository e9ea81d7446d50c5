"""What the judges' commands print, made of the templates in this folder."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arb.core.cli import as_called
from arb.core.console import interval, percent, printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> list[str]:
    """Return the lines of a template; words of endpoints and strangers are made fit for a terminal."""
    return [printable(line) for line in as_called(fill_in(template, **values)).splitlines()]


def fill_in(template: str, **values: Any) -> str:
    """Return the text of a template as it is."""
    return _environment().get_template(template).render(values)


def dollars(usd: float | None) -> str:
    """Return dollars with as many places as small sums need, or ``unknown``."""
    if usd is None:
        return "unknown"
    return f"${usd:,.{2 if usd >= 1 else 4}f}"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from arb.core.vocabulary import STATES

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "dollars": dollars,
        "dollars_paid": lambda usd: "an unknown sum" if usd is None else f"${usd:.4f}",
        "interval": interval,
        "mean": lambda total, number: "unknown" if total is None else f"{total / number:,.0f}",
        "number": "{:,}".format,
        "percent": percent,
    }
    environment.globals["STATES"] = STATES
    return environment
