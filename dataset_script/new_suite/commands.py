"""The command ``python -m dataset_script new-suite``. Heavy imports wait for the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.console import progress_bar
from dataset_script.build_commands import DAMAGED_FILES, AllowOption
from dataset_script.command_line import stop, stopped_like_ctrl_c

if TYPE_CHECKING:
    from dataset_script.building.report import BuildReport
    from dataset_script.new_suite.runs import FoundRuns


def new_suite(
    source: Annotated[
        Path,
        typer.Option(help="Folder with runs: released layout, AgentLab's results, or a dataset built here."),
    ],
    out: Annotated[Path, typer.Option(help="The suite's folder; its name is the suite's. A new one.")],
    dev_share: Annotated[
        float, typer.Option(help="Share of each benchmark's tasks for dev; in the paper 0.15.")
    ],
    seed: Annotated[int, typer.Option(help="The same seed draws the same tasks.")] = 0,
    dev_of: Annotated[
        list[str] | None,
        typer.Option(
            help="A suite whose dev labels are published: its dev tasks stay dev here (again for more)."
        ),
    ] = None,
    metadata: Annotated[
        list[Path] | None,
        typer.Option(help="A benchmark's metadata, as BrowserGym has it, for tasks.csv (again for more)."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; by default as many as there are processors, at most 4."),
    ] = None,
    allow_class: AllowOption = None,
) -> None:
    """Make a suite's folder from recorded runs.

    trajectories.csv with every run that can be used, split by task; suite.toml with hidden labels and every
    rule; tasks.csv with the goals. Nothing is written over.

    Exit code 0: made; 2: refused; 3: made, but some files of the source are broken (they are named).
    """
    from dataset_script.building.report import LEFT_OUT, finding_line, lines
    from dataset_script.building.workers import WorkerError, default_workers
    from dataset_script.new_suite.folder import SplitChoice, check_new, suite_texts, write_new
    from dataset_script.new_suite.runs import find_runs
    from dataset_script.sources.base import SourceError
    from dataset_script.sources.recognise import open_source
    from dataset_script.suite import SuiteError, load_suite
    from dataset_script.task_selection import SelectionError, read_metadata

    found = None
    try:
        check_new(out)
        published = [load_suite(name) for name in dev_of or ()]
        always_dev = frozenset((t.benchmark, t.task) for suite in published for t in suite.split("dev"))
        known = [task for path in metadata or () for task in read_metadata(path)]
        with stopped_like_ctrl_c(), progress_bar(stays=False) as progress:
            runs = open_source(source, tuple(allow_class or ()))
            found = find_runs(runs, workers or default_workers(), progress)
        if not found.runs:
            raise SelectionError(f"{source}: no run in it can be used")
        texts = suite_texts(found.runs, SplitChoice(dev_share, seed, always_dev), known)
        write_new(out, texts)
        made = _report(out, found)
    except (SelectionError, SourceError, SuiteError, WorkerError, OSError) as error:
        for finding in found.left_out if found is not None else ():
            typer.echo(f"left out: {finding_line(finding)} ({LEFT_OUT[finding.code]})")
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop("interrupted; nothing was written", 130)
    for line in lines(made):
        typer.echo(line)
    typer.echo(f"wrote {out}: {', '.join(texts)}")
    if made.damaged():
        stop(f"{made.damaged()} broken files were left out; they are named above", DAMAGED_FILES)


def _report(out: Path, found: "FoundRuns") -> "BuildReport":
    """What is in the suite, read again from its folder, and what was left out, in the words of `build`."""
    from dataset_script.building.report import BuildReport
    from dataset_script.suite import load_suite

    suite = load_suite(out)
    report = BuildReport(suite.name)
    for trajectory in suite.trajectories:
        report.count(trajectory.split, trajectory.benchmark)
    for split, counts in report.counts.items():
        tasks = len({(t.benchmark, t.task) for t in suite.split(split)})
        report.rows[f"{split}, {tasks} tasks"] = counts
    report.left_out = list(found.left_out)
    return report
