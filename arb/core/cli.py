"""The parts that all commands share: options, settings, exit codes and output."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from arb.core.console import new_console, printable
from arb.core.files import DISK_FULL, atomic_write, install_command
from arb.core.lazy import lazy_imports

with lazy_imports():
    from arb.core import settings as environment
    from arb.core import suite as suites

if TYPE_CHECKING:
    from rich.console import Console
    from typer._click import Context, HelpFormatter  # typer ships its own copy of click

    from arb.core.settings import Settings
    from arb.core.suite import Suite

PIPE_WIDTH = 140
"""The width of output to a pipe, in characters. Rich's default of 80 is too narrow for the tables."""


def complete_suite(incomplete: str) -> list[str]:
    """Return the shipped suites whose names begin with ``incomplete``. The shell itself completes folders."""
    return [name for name in suites.shipped_suites() if name.startswith(incomplete)]


MaybeSplitOption = Annotated[
    Literal["dev", "test"] | None, typer.Option("--split", help="Choose the file's split (default: dev).")
]
SplitOption = Annotated[Literal["dev", "test"], typer.Option("--split", help="Choose the file's split.")]


def suite_option(default: str) -> Any:
    """Return the option ``--suite``, whose help says which suite is the default."""
    return typer.Option(
        "--suite",
        help=f"A shipped suite's name or a suite's folder (default: {default}).",
        autocompletion=complete_suite,
        rich_help_panel="Data",
    )


SuiteOption = Annotated[str | None, suite_option("ARB_SUITE")]
RunSuiteOption = Annotated[str | None, suite_option("the run's suite")]
EXIT_CODES: Final = {
    0: "success, also if there was nothing left to do",
    1: "the input has problems, or a check failed; each problem is listed",
    2: "the command cannot run: an option, a setting or a folder is wrong, or the Hub refuses the request",
    3: "partly done: broken files were left out, `--max-usd` was reached, or something was not published",
    4: "`judges run` stopped because of rate limits; run the same command again to resume",
    5: "`judges run` stopped: the endpoint refused the key or account; fix it and run the command again",
    130: "interrupted; run the same command again to resume",
}
"""The meaning of the exit codes of all commands."""

LIBRARIES_OF_SPACE: Final = frozenset((
    "alembic", "authlib", "confusable_homoglyphs", "cryptography", "fastapi", "fastapi_offline", "gradio",
    "gradio_client", "itsdangerous", "joserfc", "limits", "mcp", "orjson", "prometheus_client", "psycopg",
    "python_multipart", "sqlalchemy", "starlette", "structlog", "uvicorn",
))  # fmt: skip
"""The modules that are installed only with the extra `space`."""

AgentFromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-from",
        metavar="FACT,…",
        help="Name agents after these facts of --source, such as model,temperature.",
        rich_help_panel="Data",
    ),
]


def _can_be_written(path: Path | None) -> Path | None:
    """Return the path if it can be written. Otherwise, stop the command before it does any work."""
    if path is not None:
        folder = next(
            each
            for each in (path if path.is_dir() else path.parent, *path.absolute().parents)
            if each.exists()
        )
        if not folder.is_dir():
            raise typer.BadParameter(f"{folder} is a file, not a folder.")
        if not os.access(folder, os.W_OK):
            raise typer.BadParameter(f"The folder {folder} is not writable.")
    return path


file_option = functools.partial(typer.Option, exists=True, dir_okay=False)
"""An option that names a file to read. If it does not exist, the error message names the option."""
folder_option = functools.partial(typer.Option, exists=True, file_okay=False)
new_file_option = functools.partial(typer.Option, dir_okay=False, callback=_can_be_written)
"""An option that names a file to write. Commands write it with `write_file`."""
new_folder_option = functools.partial(typer.Option, file_okay=False, callback=_can_be_written)

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel="Output"),
]

UNGROUPED: Final = 12
"""If a command has at most this many options, its help lists them without headings."""


class CommandGroup(TyperGroup):
    """A command group. It reports an unusable file, or a missing extra `space`, in one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            library = (missing.name or "").partition(".")[0]
            if library not in LIBRARIES_OF_SPACE:
                raise
            stop(f"this command needs {library}, which is not installed; run {install_command('space')}")
        except OSError as problem:
            stop(_describe_file_error(problem))


def _describe_file_error(problem: OSError) -> str:
    """Return a line that names the file. Errors that are not about a file are raised again."""
    if problem.errno is None and problem.args:  # of a library, with a message of its own
        return str(problem)
    if problem.filename is None and problem.errno not in (errno.EIO, *DISK_FULL):
        raise problem
    advice = "free some space on the disk" if problem.errno in DISK_FULL else "check the path"
    what = "a file" if problem.filename is None else f"{os.fsdecode(problem.filename)}:"
    return f"{what} cannot be read or written ({problem.strerror}); {advice}"


class GroupedCommand(TyperCommand):
    """A command whose help lists required options first.

    If there are more than `UNGROUPED` options, they are listed under headings (their ``rich_help_panel``).
    """

    def make_context(self, *args: Any, **settings: Any) -> Context:
        try:
            return super().make_context(*args, **settings)
        except typer.BadParameter as problem:  # typer passes on pydantic's words and its own types
            problem.message = re.sub(
                "^(dir|Directory) ", "folder ", problem.message.removeprefix("Value error, ")
            )
            raise

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        order = self.make_parser(ctx).parse_args(args=[*args])[2]
        for param in order:  # typer cannot repeat options with several values, and would drop the first ones
            if param.nargs > 1 and order.count(param) > 1:
                ctx.fail(f"{param.opts[0]} is given more than once. Use it once per command.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        params = sorted(self.get_params(ctx), key=lambda each: not each.required)
        # A hidden option has no line.
        lines = [(each, line) for each in params if (line := each.get_help_record(ctx)) is not None]
        n_options = sum(each.param_type_name == "option" for each, _ in lines)
        has_headings = n_options > UNGROUPED + 1  # --help is one more
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param, line in lines:
            if param.param_type_name == "argument":
                heading = "Arguments"
            elif not has_headings:
                heading = "Options"
            elif param.required:
                heading = "Required options"
            else:
                heading = getattr(param, "rich_help_panel", None) or "Other options"
            sections.setdefault(heading, []).append(line)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Application(typer.Typer):
    """A typer application whose commands are `GroupedCommand`s."""

    def command(self, *args: Any, **settings: Any) -> Any:
        return super().command(*args, **{"cls": GroupedCommand, **settings})


def new_command() -> typer.Typer:
    """Return a typer application that prints its help if it is called without arguments.

    Help is plain text, because drawing rich's boxes takes longer than everything else.
    """
    return Application(
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def stop(message: str, code: int = 2) -> NoReturn:
    """Print an error message on stderr and exit with one of the `EXIT_CODES`.

    Control characters are replaced, since the message may quote untrusted files.
    """
    lines = "\n".join(map(printable, message.splitlines()))
    typer.echo(f"error: {lines}", err=True)
    raise typer.Exit(code)


def next_step(purpose: str, *command: object) -> None:
    """Print a next step on stderr: "Next, PURPOSE: arb COMMAND"."""
    words = shlex.join(map(str, command))
    typer.echo(printable(f"Next, {purpose}: arb {words}"), err=True)


def flags(**options: object) -> list[str]:
    """Return options as command-line arguments. Options that are None or False are left out.

    ``flags(split="dev", probe=["a", "b"], suite=None)`` gives ``--split dev --probe a --probe b``.
    """
    typed: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool) or value is None:
            typed += [flag] if value else []
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            typed += [flag, str(each)]
    return typed


def then(command: Callable[..., object], make: Callable[..., tuple[object, ...]]) -> Callable[..., None]:
    """Wrap a command so that it prints a next step at the end, except with ``--json``.

    ``make`` is called with the command's options and returns the arguments of `next_step`.
    """

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**values)
        if not values.get("as_json"):
            purpose, *words = make(**values)
            next_step(str(purpose), *words)

    return called


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file that was named by an option. Its folder is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, content)


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C in this block, so that no half-written folder is left behind."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def read_settings() -> Settings:
    """Return the settings from the environment. If one of them is invalid, stop the command."""
    from pydantic import ValidationError  # noqa: PLC0415 - slow to load

    try:
        return environment.Settings()
    except ValidationError as problem:
        problems = "; ".join(
            f"{each['loc'][0]}: {each['msg'].removeprefix('Value error, ')}" for each in problem.errors()
        )
        stop(f"a setting in the environment is invalid: {problems}")


def read_suite(name: str | None, settings: Settings) -> Suite:
    """Return the suite named on the command line, or else in the settings. If it cannot be loaded, stop."""
    try:
        return suites.load_suite(name or settings.suite)
    except suites.SuiteError as problem:
        stop(str(problem))


def plain_console() -> Console:
    """Return a console that prints text as it is, so that untrusted text is not interpreted as markup."""
    return new_console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def words(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the values of an option that can be repeated. Each may be a list separated by commas."""
    return tuple(word for text in texts or () for each in text.split(",") if (word := each.strip()))
