"""The ``arb`` command, which runs the commands of all packages, such as ``arb judges run``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.main import get_command

import leaderboard
from arb import hub
from arb.core import __version__
from arb.core.cli import Application, CommandGroup
from leaderboard.cli.score import compare, score
from leaderboard.cli.validate import validate

if TYPE_CHECKING:  # typer ships its own copy of click
    from typer._click import Command, Context, HelpFormatter

PACKAGES: Final = {
    "data": ("dataset_script", "Fetch, build, check and publish the dataset; inspect your own runs."),
    "leaderboard": ("leaderboard", "Print and export the board, estimate success rates, check labels."),
    "judges": ("arb.judges", "List, plan and run judges; certify your own."),
    "submissions": ("submissions", "Check and submit prediction files; manage a Space's records."),
    "suites": ("leaderboard.suites", "List suites; import other benchmarks of judges."),
    "space": ("space", "Serve the Space, or deploy it to the Hub."),
}
"""The commands of ``arb``: for each one, the package that implements it and a line of help."""


class Packages(CommandGroup):
    """A command group that imports a package only to run its commands, so that ``arb --help`` is fast."""

    def list_commands(self, ctx: Context) -> list[str]:
        return [*PACKAGES, *super().list_commands(ctx)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in PACKAGES:
            return super().get_command(ctx, cmd_name)
        return get_command(import_module(f"{PACKAGES[cmd_name][0]}.__main__").app)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        rows = [(name, line) for name, (_, line) in PACKAGES.items()]
        rows += [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = Application(cls=Packages, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
metric = typer.Typer(no_args_is_help=True, help="Show or publish the metric for the `evaluate` library.")
app.add_typer(metric, name="metric")
app.add_typer(hub.app, name="hub")
for command in (validate, score, compare):
    app.command()(command)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"AgentRewardBench {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """AgentRewardBench: evaluate the judges of agents.

    Run `arb COMMAND --help` for help on a command. Exit codes: 0 done; 1 the input has problems, which are
    listed; 2 the command cannot run with these options or settings; 3 partly done; 4 stopped by rate limits;
    5 the endpoint refused the account; 130 interrupted. After 4, 5 and 130, run the same command again to
    resume.
    """


@metric.command("path")
def metric_path() -> None:
    """Print the folder of the metric, which evaluate.load() accepts."""
    typer.echo(Path(leaderboard.__file__).parent / "judge_precision")


metric.command("publish")(hub.publish_metric)


def main() -> None:
    app(prog_name="arb")


if __name__ == "__main__":
    main()
