"""``arb suites``: list suites, and import other benchmarks of judges from a checkout."""

from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

import typer

from arb.core.cli import (
    JsonOption,
    new_command,
    new_folder_option,
    next_step,
    plain_console,
    print_json,
    stop,
)
from arb.core.console import counted, text_table
from arb.core.lazy import lazy_imports
from arb.core.suite import SuiteError, load_suite, shipped_suites

with lazy_imports():
    from leaderboard.suites import agent_process_bench, imported

IMPORTERS: Final = MappingProxyType({"agent-process-bench": "RUCBM/AgentProcessBench"})
"""The suites that can be imported, and the repository of each."""

app = new_command()


@app.callback()
def about() -> None:
    """List suites, and import other benchmarks of judges from a checkout."""


@app.command("list")
def list_suites(as_json: JsonOption = False) -> None:
    """List the shipped suites with their targets, and the suites that can be imported."""
    suites = [load_suite(name) for name in shipped_suites()]
    if as_json:
        print_json(
            {
                "shipped": [
                    {
                        "name": suite.name,
                        "title": suite.profile.title,
                        "items": len(suite.items("dev")) + len(suite.items("test")),
                        "targets": [target.name for target in suite.targets],
                    }
                    for suite in suites
                ],
                "can be imported": dict(IMPORTERS),
            }
        )
        return
    table = text_table("Shipped suite", "Targets", figures=("Dev", "Test"))
    for suite in suites:
        names = ", ".join(target.name for target in suite.targets)
        table.add_row(suite.name, names, f"{len(suite.items('dev')):,}", f"{len(suite.items('test')):,}")
    console = plain_console()
    console.print(table)
    for name, repository in IMPORTERS.items():
        console.print(f"{name} can be imported from a checkout of github.com/{repository}.")


@app.command("import")
def import_suite(
    name: Annotated[str, typer.Argument(help=f"Suite to import: {', '.join(IMPORTERS)}.")],
    checkout: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="Checkout of the suite's repository.")
    ],
    out: Annotated[
        Path | None, new_folder_option(help="New folder for the suite; by default, its name.")
    ] = None,
) -> None:
    """Write a suite, its labels and its judges' verdicts from a checkout of its repository.

    The folder has the suite's files, its labels in `test_labels.csv` and a prediction file per judge in
    `verdicts`.
    """
    if name not in IMPORTERS:
        stop(f"there is no importer for {name!r}; use one of {', '.join(IMPORTERS)}")
    folder = out or Path(name)
    if folder.exists():
        stop(f"{folder} exists already; choose another --out", code=1)
    try:
        found = agent_process_bench.read(checkout)
        imported.write_suite(found, folder)
    except (imported.ImportProblem, SuiteError, OSError) as problem:
        stop(str(problem), code=1)
    runs = len({item.trajectory_id for item in found.items})
    parts = sum(item.level != "run" for item in found.items)
    judges = counted(len(found.verdicts), "judge")
    typer.echo(f"{folder}: {runs:,} runs, {parts:,} steps, and the verdicts of {judges}.")
    for note in found.notes:
        typer.echo(f"Note: {note}.")
    judge = next(iter(sorted(found.verdicts)), None)
    if judge:
        file = folder / "verdicts" / f"{judge}.jsonl"
        next_step("score a judge", "score", file, "--split", "test", "--suite", folder)


if __name__ == "__main__":
    app(prog_name="arb suites")
