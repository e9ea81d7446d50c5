"""The commands that make a dataset: `build`, `unblind`. Heavy imports wait for the command."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.console import progress_bar
from core.files import atomic_write
from dataset_script.command_line import stop, stopped_like_ctrl_c

if TYPE_CHECKING:
    from dataset_script.building.report import BuildReport

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-class",
        help="A class of your own in AgentLab's pickles, module.class (again for more); never run.",
    ),
]

DAMAGED_FILES = 3
"""Exit code of a build that is there, but met broken files."""


def build(
    source: Annotated[
        Path,
        typer.Option(help="Folder with runs: released layout, AgentLab's results, or a dataset built here."),
    ],
    out: Annotated[Path, typer.Option(help="The dataset's folder; one built before is replaced.")],
    suite: Annotated[
        str | None,
        typer.Option(help="A shipped suite, or a suite's folder. Default: the one the source belongs to."),
    ] = None,
    strict: Annotated[
        bool, typer.Option(help="Anything left out: exit code 1, and the folder stays as it was.")
    ] = False,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide which agent ran: ids, agent, model, host names.")
    ] = False,
    blind_key: Annotated[
        Path | None, typer.Option(help="The key of the hidden ids; made if absent. Default: OUT.blind-key.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; by default as many as there are processors, at most 4."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write every name left out or noted, as JSON, to this file.")
    ] = None,
    allow_class: AllowOption = None,
) -> None:
    """Build the dataset.

    Makes Parquet in the configurations of the card, splits dev and test, for load_dataset. Labels are filled
    on dev, null on test. A build that was stopped goes on when it is run again.

    Exit code 0: built; 1: nothing built, or --strict and something was left out; 2: the command cannot run as
    given; 3: built, but some files of the source are broken (they are named).
    """
    from dataset_script.blind import BlindError, Blinding, read_key
    from dataset_script.building.build import BuildOptions
    from dataset_script.building.build import build as build_dataset
    from dataset_script.building.output_folder import OutputError
    from dataset_script.building.workers import WorkerError, default_workers
    from dataset_script.sources.base import SourceError
    from dataset_script.suite import SuiteError, load_suite

    if report is not None and not report.absolute().parent.is_dir():
        stop(f"--report {report}: there is no folder {report.parent}", 2)
    try:
        chosen = load_suite(suite) if suite is not None else None
        blinding = None
        if blind or blind_key:
            key = blind_key or out.absolute().with_name(f"{out.absolute().name}.blind-key")
            blinding = Blinding(read_key(key, create=True))
        options = BuildOptions(strict, workers or default_workers(), blinding, tuple(allow_class or ()))
        with stopped_like_ctrl_c(), progress_bar(shows_time=True) as progress:
            done = build_dataset(source, out, chosen, options, progress)
        if report is not None:
            atomic_write(report, json.dumps(done.as_json(), indent=2) + "\n")
    except (BlindError, OutputError, SourceError, SuiteError, WorkerError, OSError) as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop(
            f"interrupted; nothing half-built was left at {out}, and the same command goes on from here", 130
        )
    _tell(done, out)
    if blinding is not None:
        typer.echo(f"the key that maps ids back: {key}; keep it, and do not publish it")
    if done.damaged():
        stop(f"{done.damaged()} broken files were left out; they are named above", DAMAGED_FILES)


def _tell(done: "BuildReport", out: Path) -> None:
    """Print what a build took and left out; ends the command with 1 when nothing was published."""
    from dataset_script.building.report import lines

    for line in lines(done):
        typer.echo(line)
    if not done.published:
        reason = "something was left out (--strict)" if done.built() else "there is no trajectory to publish"
        stop(f"{out} is as it was: {reason}", 1)
    typer.echo(f"wrote {out}")


def unblind(
    predictions: Annotated[Path, typer.Argument(help="A prediction file with blind ids: JSON Lines or CSV.")],
    key: Annotated[Path, typer.Option(help="The key that `build --blind` wrote.")],
    out: Annotated[Path, typer.Option(help="The prediction file to write, with the suite's own ids.")],
    suite: Annotated[
        str | None, typer.Option(help="The suite that was built; agent-reward-bench by default.")
    ] = None,
) -> None:
    """Map the ids of a blind dataset back in a prediction file."""
    from dataset_script.blind import BlindError, Blinding, read_key, restore_ids
    from dataset_script.suite import OFFICIAL, SuiteError, load_suite

    try:
        text = predictions.read_text(encoding="utf-8-sig")
        atomic_write(out, restore_ids(text, load_suite(suite or OFFICIAL), Blinding(read_key(key))))
    except UnicodeDecodeError:
        stop(f"{predictions}: is not UTF-8 text; save it as JSON Lines or CSV", 2)
    except (BlindError, SuiteError, OSError) as error:
        stop(str(error), 2)
    typer.echo(f"wrote {out}")
