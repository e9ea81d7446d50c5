"""Whether a command that is printed as the next step is one: its package, its name, its options."""

import shlex
from importlib import import_module

from typer.main import get_command


def words_of(line: str) -> list[str]:
    """Return the package of the command in ``Next, do it: …``, and the words that follow."""
    from arb.__main__ import PACKAGES

    words = shlex.split(line.partition(": ")[2])
    assert words[0] == "arb", line
    return [PACKAGES[words[1]][0], *words[2:]] if words[1] in PACKAGES else words


def parse(line: str) -> None:
    """Parse ``Next, do it: arb GROUP …``; raises what typer raises.

    Files that have to exist for the command are looked for.
    """
    package, *rest = words_of(line)
    command = get_command(import_module(f"{package}.__main__").app)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    command.make_context(command.name, rest).close()
