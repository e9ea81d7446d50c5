"""Tables, numbers, templates and progress bars for a terminal. Libraries are loaded only when used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arb.core.lazy import lazy_imports

with lazy_imports():
    import jinja2
    from rich import console, progress, table

if TYPE_CHECKING:
    from rich.progress import ProgressColumn
    from rich.table import Table

NOT_DEFINED = "–"


def percent(fraction: float | None, unit: str = "") -> str:
    """Return a fraction as a percentage with one decimal and the unit, or a dash if it is undefined."""
    return NOT_DEFINED if fraction is None else f"{100 * fraction:z.1f}{unit}"


def interval(bounds: Sequence[float] | None) -> str:
    """Return an interval of fractions as percentages ("12.0 to 34.5"), or an empty string for None."""
    return "" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def coefficient(value: float | None) -> str:
    """Return a coefficient of agreement with three decimals, or a dash if it is undefined."""
    return NOT_DEFINED if value is None else f"{value:.3f}"


def text_table(*texts: str, figures: Sequence[str] = (), **options: Any) -> Table:
    """Return an empty table with columns of text, followed by right-aligned columns for ``figures``."""
    found = table.Table(*texts, **options)
    for heading in figures:
        found.add_column(heading, justify="right")
    return found


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 row", "1,106 rows" or "2 trajectories"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """Escape the characters ``|``, ``*`` and ``<`` for a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;")


def printable(text: str) -> str:
    """Replace control characters, which untrusted files may contain, with U+FFFD."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def new_console(*, stderr: bool = False, width: int | None = None) -> console.Console:
    """Return a console that prints text as it is, and writes escape codes only to a terminal.

    Notebooks set ``FORCE_COLOR``, which would make rich write escape codes into pipes and files too.
    """
    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return console.Console(
        stderr=stderr, width=width, highlight=False, markup=False, emoji=False,
        force_terminal=None if is_terminal else False, force_jupyter=False,
    )  # fmt: skip


Progress = Callable[[int, int, str], None]
"""A callback that takes the number of items done, the total, and the name of the last item."""


def no_progress(_done: int, _total: int, _name: str) -> None:
    """Do nothing. This is the `Progress` callback for callers that show no progress."""


@contextmanager
def progress_bar(
    *, shows_time: bool = False, stays: bool = True, only_on_terminal: bool = False
) -> Iterator[Progress]:
    """Yield a callback that updates a progress bar on stderr.

    With ``stays``, the finished bar remains visible. If stderr is not a terminal, only the final state is
    printed, or nothing with ``only_on_terminal``.
    """
    text = progress.TextColumn("{task.description}", markup=False)
    columns: list[ProgressColumn] = [progress.BarColumn(), progress.MofNCompleteColumn(), text]
    if shows_time:
        columns.insert(2, progress.TimeElapsedColumn())
    is_off = only_on_terminal and not sys.stderr.isatty()
    with progress.Progress(
        *columns, console=new_console(stderr=True), transient=not stays, disable=is_off
    ) as bar:
        task = bar.add_task("", total=None)
        try:
            yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)
        finally:
            if bar.tasks[0].total is None:  # do not leave an empty bar above an error message
                bar.remove_task(task)


def text_environment(folder: Path, **options: Any) -> jinja2.Environment:
    """Return the Jinja environment of the templates in a folder, with filters for numbers.

    ``options`` are passed on to `jinja2.Environment`, for example ``autoescape``.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    environment.filters |= {
        "counted": counted,
        "interval": interval,
        "number": "{:,}".format,
        "percent": percent,
    }
    return environment
