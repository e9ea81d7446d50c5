"""Tests of how the help of a command lists its options."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from arb.__main__ import PACKAGES
from arb.__main__ import app as arb
from arb.core.cli import UNGROUPED, Application

Data = Annotated[str, typer.Option(rich_help_panel="Data")]
Secret = Annotated[str, typer.Option(hidden=True)]
Out = Annotated[str, typer.Option(rich_help_panel="Output")]

APPS = {"arb": arb} | {
    name: import_module(f"{module}.__main__").app for name, (module, _) in PACKAGES.items()
}


def sections(text: str) -> dict[str, list[str]]:
    """Return the options under each heading of a help text."""
    found: dict[str, list[str]] = {}
    options: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            options = found[line] = []
        elif line.startswith("  --"):
            options.append(line.split()[0])
    return {heading: options for heading, options in found.items() if options}


def help_of(command) -> dict[str, list[str]]:
    app = Application(rich_markup_mode=None, add_completion=False)
    app.command()(command)
    return sections(CliRunner().invoke(app, ["--help"]).stdout)


def test_more_than_twelve_options_are_under_headings_and_required_ones_come_first():
    def command(
        *, a: Data = "", b: Data = "", c: Data = "", d: Data = "", e: Data = "", f: Data = "", g: Data = "",
        plain: str = "", log: Out = "", out: Out, h: Data = "", i: Data = "", k: Data = "", j: Secret = "",
    ): ...  # fmt: skip

    assert list(help_of(command).items()) == [
        ("Required options:", ["--out"]),
        ("Data:", ["--a", "--b", "--c", "--d", "--e", "--f", "--g", "--h", "--i", "--k"]),
        ("Other options:", ["--plain", "--help"]),
        ("Output:", ["--log"]),
    ]


def test_up_to_twelve_options_are_one_list_with_required_ones_first():
    def command(
        *, a: Data = "", b: Data = "", c: Data = "", d: Data = "", e: Data = "", f: Data = "", g: Data = "",
        plain: str = "", log: Out = "", out: Out, h: Data = "", j: Secret = "",
    ): ...  # fmt: skip

    listed = ["--out", *(f"--{name}" for name in "abcdefg"), "--plain", "--log", "--h", "--help"]
    assert help_of(command) == {"Options:": listed}


def commands(command, words: tuple[str, ...]) -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Yield every command below a group, with the words that call it."""
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*words, name))
    if not hasattr(command, "commands"):
        yield " ".join(words), command


@pytest.mark.parametrize("name", APPS)
def test_every_option_of_a_command_with_many_has_a_heading(name):
    for words, command in commands(typer.main.get_command(APPS[name]), (name,)):
        options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
        if len(options) > UNGROUPED:
            plain = [each.name for each in options if not (each.required or each.rich_help_panel)]
            assert not plain, f"{words}: give {', '.join(plain)} a rich_help_panel"


def test_a_wrong_value_is_reported_without_the_words_of_libraries(tmp_path):
    """Typer would say "Value error, 'tst' is …" and "dir 'nowhere' does not exist"."""
    done = CliRunner().invoke(APPS["judges"], ["plan", "aer-c", "--split", "tst"])
    assert "Invalid value for '--split': 'tst' is not one of 'dev', 'test'." in done.output
    done = CliRunner().invoke(APPS["judges"], ["show", str(tmp_path / "nowhere"), "a"])
    assert re.search(r"folder '\S+nowhere' does not exist", done.output)
