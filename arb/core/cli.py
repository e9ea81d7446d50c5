"""What the five commands share: options, settings, one-line errors. Heavy imports wait for the command."""

from __future__ import annotations

import functools
import json
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

from arb.core.console import printable

if TYPE_CHECKING:
    from rich.console import Console

    from arb.core.settings import Settings
    from arb.core.suite import Suite

PIPE_WIDTH = 140
"""A pipe has no width of its own, and 80 columns squeeze the messages."""


def complete_suite(incomplete: str) -> list[str]:
    """For the shell: the shipped suites that begin so; a folder is completed by the shell itself."""
    from arb.core.suite import shipped_suites

    return [name for name in shipped_suites() if name.startswith(incomplete)]


SplitOption = Annotated[Literal["dev", "test"], typer.Option("--split", help="The split the file is for.")]
SuiteOption = Annotated[
    str | None,
    typer.Option(
        "--suite",
        help="A shipped suite's name or a suite folder; ARB_SUITE if left out.",
        autocompletion=complete_suite,
    ),
]
GROUPS: Final = {"dataset_script": "data"}
"""The packages that have another name as a command of ``arb``."""
EXIT_CODES: Final = {
    0: "done, or done already",
    1: "the input, or what was checked, has problems; each is named",
    2: "it cannot run as given: an option, a setting, a folder, or what the Hub refuses",
    3: "done in part: broken files were left out, `--max-usd` was reached, or not all was published",
    4: "`judges run` met nothing but rate limits and stopped; the same command continues it",
    5: "`judges run` stopped: the endpoint refuses the account (key, credit); the same command continues it",
    130: "interrupted; the same command goes on from there",
}
"""What the exit codes of all commands mean."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def new_command() -> typer.Typer:
    """A typer application that shows its help when called bare, and never a decorated traceback.

    Its help is plain text: drawing boxes would take two thirds of the time that help takes.
    """
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )


def stop(message: str, code: int = 2) -> NoReturn:
    """End the command with a message on stderr, and a code of `EXIT_CODES`.

    The message may quote strangers' files, so it is made fit for a terminal.
    """
    lines = "\n".join(map(printable, as_called(message).splitlines()))
    typer.echo(f"error: {lines}", err=True)
    raise typer.Exit(code)


def as_called(text: str) -> str:
    """Rewrite ``python -m PACKAGE`` in a text to ``arb``, if the ``arb`` script is running."""
    if Path(sys.argv[0]).stem != "arb":
        return text
    packages = "dataset_script|leaderboard|arb judges|submissions|space"

    def in_arb(found: re.Match[str]) -> str:
        package = found[1].removeprefix("arb ")
        return f"arb {GROUPS.get(package, package)}"

    return re.sub(rf"\bpython -m ({packages})\b", in_arb, text)


def next_step(purpose: str, *command: object) -> None:
    """Say on stderr what comes next, and the command that does it: the package's name, then its arguments."""
    words = shlex.join(map(str, command))
    typer.echo(printable(as_called(f"Next, {purpose}: python -m {words}")), err=True)


def flags(**options: Any) -> list[str]:
    """Options as they are typed: ``flags(split="dev", probe=["a", "b"], suite=None)``; what has no value is
    left out."""
    typed = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool) or value is None:
            typed += [flag] if value else []
        else:
            each = value if isinstance(value, list | tuple) else [value]
            typed += [text for one in each for text in (flag, str(one))]
    return typed


def then(command: Callable[..., object], make: Callable[..., tuple[object, ...]]) -> Callable[..., None]:
    """Return a command that also prints the next step, whose words ``make`` computes from the options."""

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**values)
        if not values.get("as_json"):
            next_step(*make(**values))

    return called


def print_json(value: Any) -> None:
    """What ``--json`` prints: one document on stdout."""
    typer.echo(json.dumps(value, indent=2))


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

    from arb.core.settings import Settings

    try:
        return Settings()
    except ValidationError as problem:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in problem.errors())
        stop(f"a setting in the environment cannot be used: {problems}")


def read_suite(name: str | None, settings: Settings) -> Suite:
    """The suite named on the command line, else the one of the settings."""
    from arb.core.suite import SuiteError, load_suite

    try:
        return load_suite(name or settings.suite)
    except SuiteError as problem:
        stop(str(problem))


def plain_console() -> Console:
    """A console that prints text as it is: what strangers wrote is never read as markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)
