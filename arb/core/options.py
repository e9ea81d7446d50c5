"""Read the options of commands from a TOML file, which has typer.Option's arguments for each option.

Options that commands share are grouped by their heading in the help; the others are grouped by command. An
option is named after its parameter, unless ``flag`` gives another name. ``path`` says what a path
must be: a ``file`` or ``folder`` to read, or a ``new_file`` or ``new_folder`` to write.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_origin, get_type_hints

from typer import Argument, Option

from arb.core.cli import file_option, folder_option, new_file_option, new_folder_option

_PATHS: Final = {
    "file": file_option.keywords,
    "folder": folder_option.keywords,
    "new_file": new_file_option.keywords,
    "new_folder": new_folder_option.keywords,
}
Command = TypeVar("Command", bound=Callable[..., Any])


def described_by(file: Path) -> Callable[[Command], Command]:
    """Return a decorator that turns the parameters of a command into the options that the file describes."""

    def described(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        returned = {"return": hints.pop("return", None)}
        types = {name: described_type(file, command.__name__, name, hint) for name, hint in hints.items()}
        command.__annotations__ = types | returned
        return command

    return described


def described_type(file: Path, command: str, name: str, hint: Any) -> Any:
    """Return the annotation that typer needs for a command's option: its type with its description."""
    if get_origin(hint) is Annotated:
        return hint
    headings, commands = _tables(file)["headings"], _tables(file)["commands"]
    if name in commands.get(command, {}):
        about = dict(commands[command][name])
    else:
        heading = next(each for each, options in headings.items() if name in options)
        about = {"rich_help_panel": heading, **headings[heading][name]}
    about |= _PATHS[about.pop("path")] if "path" in about else {}
    if about.pop("is_argument", False):
        return Annotated[hint, Argument(**about)]
    # Without a flag of its own, typer would add `--no-NAME`.
    flag = about.pop("flag", f"--{name.replace('_', '-')}")
    return Annotated[hint, Option(flag, **about)]


@cache
def _tables(file: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
