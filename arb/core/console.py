"""Tables, percentages and progress for a terminal. rich is imported when something is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from arb.core.lazy import lazy_imports

with lazy_imports():
    from rich import console, progress, table

if TYPE_CHECKING:
    from rich.progress import ProgressColumn
    from rich.table import Table

NOT_DEFINED = "–"


def percent(fraction: float | None, unit: str = "") -> str:
    """A fraction as a percentage with one decimal; a dash where it is undefined."""
    return NOT_DEFINED if fraction is None else f"{100 * fraction:z.1f}{unit}"


def interval(bounds: Sequence[float] | None) -> str:
    """An interval of fractions as percentages; empty where there is none."""
    return "" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def coefficient(value: float | None) -> str:
    """A coefficient of agreement with three decimals; a dash where it is undefined."""
    return NOT_DEFINED if value is None else f"{value:.3f}"


def text_table(*texts: str, figures: Sequence[str] = (), **options: Any) -> Table:
    """A table with columns of text, then columns of figures, which are aligned to the right."""
    found = table.Table(*texts, **options)
    for heading in figures:
        found.add_column(heading, justify="right")
    return found


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a table in GitHub's Markdown."""
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """The text where Markdown would read some of its characters as markup, in a table too."""
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;")


def printable(text: str) -> str:
    """The text for a terminal: names come from strangers' files, and may hold control characters."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


Progress = Callable[[int, int, str], None]
"""Called as work is done: how many, of how many, and the name of the last one."""


def no_progress(_done: int, _total: int, _name: str) -> None:
    """For callers that do not watch."""


@contextmanager
def progress_bar(
    *, shows_time: bool = False, stays: bool = True, only_on_terminal: bool = False
) -> Iterator[Progress]:
    """A bar on stderr, moved by its calls.

    Where stderr is no terminal it is quiet until the last line, or altogether with ``only_on_terminal``.
    """
    text = progress.TextColumn("{task.description}", markup=False)
    columns: list[ProgressColumn] = [progress.BarColumn(), progress.MofNCompleteColumn(), text]
    if shows_time:
        columns.insert(2, progress.TimeElapsedColumn())
    is_off = only_on_terminal and not sys.stderr.isatty()
    stderr = console.Console(stderr=True)
    with progress.Progress(*columns, console=stderr, transient=not stays, disable=is_off) as bar:
        task = bar.add_task("", total=None)
        try:
            yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)
        finally:
            if bar.tasks[0].total is None:  # nothing was begun: no empty bar before the message that says why
                bar.remove_task(task)
