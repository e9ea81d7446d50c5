"""Fill in the text templates in this folder, for the output of the judges' commands."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import typer

from arb.core.console import printable, text_environment
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import STATES

with lazy_imports():
    import jinja2


def print_template(template: str, *, err: bool = False, **values: Any) -> None:
    """Fill in a template and print it, with control characters replaced."""
    for line in fill_in(template, **values).splitlines():
        typer.echo(printable(line), err=err)


def fill_in(template: str, **values: Any) -> str:
    """Fill in a template, and return its text."""
    return _environment().get_template(template).render(values)


def dollars(usd: float | None) -> str:
    """Return an amount such as ``$12.34`` or, below one dollar, ``$0.1234``; ``unknown`` for None."""
    if usd is None:
        return "unknown"
    return f"${usd:,.{2 if usd >= 1 else 4}f}"


@cache
def _environment() -> jinja2.Environment:
    environment = text_environment(Path(__file__).parent)
    environment.filters |= {
        "dollars": dollars,
        "dollars_paid": lambda usd: "an unknown amount" if usd is None else f"${usd:.4f}",
        "mean": lambda total, number: "unknown" if total is None else f"{total / number:,.0f}",
    }
    environment.globals["STATES"] = STATES
    return environment
