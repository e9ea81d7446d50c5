"""Tables, numbers and progress for a terminal. rich is loaded when something is printed."""

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
    """Return a fraction as a percentage with one decimal, or a dash if it is undefined."""
    return NOT_DEFINED if fraction is None else f"{100 * fraction:z.1f}{unit}"


def interval(bounds: Sequence[float] | None) -> str:
    """Return an interval of fractions as percentages, or an empty text for None."""
    return "" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def coefficient(value: float | None) -> str:
    """Return a coefficient of agreement with three decimals, or a dash if it is undefined."""
    return NOT_DEFINED if value is None else f"{value:.3f}"


def text_table(*texts: str, figures: Sequence[str] = (), **options: Any) -> Table:
    """Return a table with columns of text, then columns of figures, which are aligned to the right."""
    found = table.Table(*texts, **options)
    for heading in figures:
        found.add_column(heading, justify="right")
    return found


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """Escape the characters that Markdown would read as markup, in a table too."""
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;")


def printable(text: str) -> str:
    """Replace control characters, which names in strangers' files may have, before printing a text."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


Progress = Callable[[int, int, str], None]
"""A function that is called with the number of items done, the total, and the name of the last item."""


def no_progress(_done: int, _total: int, _name: str) -> None:
    """Ignore the progress."""


@contextmanager
def progress_bar(
    *, shows_time: bool = False, stays: bool = True, only_on_terminal: bool = False
) -> Iterator[Progress]:
    """Yield the function that moves a progress bar on stderr.

    If stderr is not a terminal, only the last line is printed, or nothing with ``only_on_terminal``.
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
            if bar.tasks[0].total is None:  # nothing was done: no empty bar above the error message
                bar.remove_task(task)
