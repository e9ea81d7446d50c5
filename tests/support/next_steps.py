"""Whether a command that is printed as the next step is one: its package, its name, its options."""

import shlex
from importlib import import_module

from typer.main import get_command


def parse(line: str) -> None:
    """Parse ``Next, do it: python -m PACKAGE …`` or ``… arb GROUP …``; raises what typer raises.

    Files that have to exist for the command are looked for.
    """
    from arb.__main__ import PACKAGES

    _, _, typed = line.partition(": ")
    words = shlex.split(typed)
    if words[:3] == ["python", "-m", "arb"]:
        words = words[2:]
    if words[:2] == ["python", "-m"]:
        package, *rest = words[2:]
    else:
        assert words[0] == "arb", line
        package, rest = PACKAGES[words[1]][0], words[2:]
    command = get_command(import_module(f"{package}.__main__").app)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    command.make_context(command.name, rest).close()
