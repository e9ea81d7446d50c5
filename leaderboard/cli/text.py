"""Fill in the text templates in this folder, for the output of the commands.

A table is a block ``{% call table() %}``. Its first line has the headings, with ``|`` between them. Headings
of numeric columns begin with ``>``. With ``no_wrap=true``, only the column whose heading begins with ``~``
shrinks in a narrow terminal. The line ``---`` begins a section. Text from users must pass through the filter
``cell``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from arb.core.cli import plain_console
from arb.core.console import coefficient, printable, text_environment
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES

with lazy_imports():
    import jinja2
    from rich import console as rich_console
    from rich import table as rich_table

_TABLE: Final = "\0"
"""The placeholder for a table in the text."""
_BAR: Final = "\1"
"""The placeholder for a bar in a cell."""


def print_template(template: str, console: rich_console.Console | None = None, /, **values: Any) -> None:
    """Fill in a template and print it."""
    console = console or plain_console()
    tables: list[rich_table.Table] = []

    def add_table(caller: Callable[[], str], **options: Any) -> str:
        tables.append(_table(caller(), options))
        return _TABLE

    text = _environment().get_template(template).render(**values, table=add_table)
    for number, part in enumerate(text.replace(_BAR, "|").split(_TABLE)):
        if number:
            console.print(tables[number - 1])
        if lines := part.strip("\n"):
            console.print(lines)


def _table(text: str, options: dict[str, Any]) -> rich_table.Table:
    headings, *lines = (
        [cell.strip().replace(_BAR, "|") for cell in line.split("|")]
        for line in text.splitlines()
        if line.strip()
    )
    no_wrap = options.pop("no_wrap", False)
    table = rich_table.Table(**options)
    for heading in headings:
        title = heading.lstrip(">~ ")
        if heading.startswith("~"):
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="right" if heading.startswith(">") else "left", no_wrap=no_wrap)
    for cells in lines:
        if cells == ["---"]:
            table.add_section()
        else:
            table.add_row(*cells)
    return table


@cache
def _environment() -> jinja2.Environment:
    environment = text_environment(Path(__file__).parent)
    environment.filters |= {
        "cell": lambda text: printable(str(text)).replace("|", _BAR),
        "coefficient": coefficient,
        "coefficients": lambda ends: " to ".join(map(coefficient, ends or ())),
    }
    environment.globals |= {"agent_titles": AGENT_TITLES, "benchmark_titles": BENCHMARK_TITLES}
    return environment
