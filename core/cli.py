"""What the five commands share: options, settings, one-line errors. Heavy imports wait for the command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from core.console import printable

if TYPE_CHECKING:
    from rich.console import Console

    from core.settings import Settings
    from core.suite import Suite

PIPE_WIDTH = 140
"""A pipe has no width of its own, and 80 columns squeeze the messages."""

SplitOption = Annotated[Literal["dev", "test"], typer.Option("--split", help="The split the file is for.")]
SuiteOption = Annotated[
    str | None,
    typer.Option("--suite", help="A shipped suite's name or a suite folder; ARB_SUITE if left out."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def new_command() -> typer.Typer:
    """A typer application that shows its help when called bare, and never a decorated traceback.

    Its help is plain text: drawing boxes would take two thirds of the time that help takes.
    """
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )


def stop(message: str, code: int = 2) -> NoReturn:
    """End the command with a message on stderr; code 2 is a usage error.

    The message may quote strangers' files, so it is made fit for a terminal.
    """
    lines = "\n".join(map(printable, message.splitlines()))
    typer.echo(f"error: {lines}", err=True)
    raise typer.Exit(code)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """A polite kill ends as Ctrl-C does, so that no half-written folder stays."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def read_settings() -> Settings:
    """The settings of the environment; a bad one ends the command with a line that names it."""
    from pydantic import ValidationError

    from core.settings import Settings, variable_of

    try:
        return Settings()
    except ValidationError as problem:
        problems = "; ".join(f"{variable_of(str(e['loc'][0]))}: {e['msg']}" for e in problem.errors())
        stop(f"a setting in the environment cannot be used: {problems}")


def read_suite(name: str | None, settings: Settings) -> Suite:
    """The suite named on the command line, else the one of the settings."""
    from core.suite import SuiteError, load_suite

    try:
        return load_suite(name or settings.suite)
    except SuiteError as problem:
        stop(str(problem))


def plain_console() -> Console:
    """A console that prints text as it is: what strangers wrote is never read as markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)
