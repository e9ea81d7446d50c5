"""The commands around a dataset: `verify` one, `sample-tasks` and `split` for a new suite.

Heavy imports wait for the command.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from core.console import printable, progress_bar
from core.files import atomic_write
from dataset_script.command_line import JsonOption, read_settings, stop, stopped_like_ctrl_c

OutOption = Annotated[Path | None, typer.Option(help="The CSV file to write; left out: standard output.")]
SeedOption = Annotated[int, typer.Option(help="The same seed draws the same tasks.")]


def verify(
    what: Annotated[
        str, typer.Argument(metavar="FOLDER|OWNER/NAME", help="A built folder, or its repository.")
    ],
    suite: Annotated[
        str | None, typer.Option(help="What it should hold: a suite. Default: the shipped one it names.")
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(help="A text that was planted in what must stay private (again for more)."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Commit, branch or tag of the repository.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Fetch the repository into this folder and keep it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a published dataset.

    Hashes against the manifest, schema, counts and splits against the suite, unique ids, every image decoded;
    and nothing in it that must not be: rewards, prompts, test labels, annotators' names, paths, canaries.

    Exit code 0: nothing is wrong; 1: something is; 2: the command cannot run as given.
    """
    from dataset_script.hub_calls import HubError
    from dataset_script.suite import SuiteError, load_suite
    from dataset_script.verify import verify as verify_folder
    from dataset_script.verify.findings import lines

    try:
        chosen = load_suite(suite) if suite is not None else None
        with (
            stopped_like_ctrl_c(),
            _folder_of(what, revision, keep) as folder,
            progress_bar(only_on_terminal=True) as progress,
        ):
            report = verify_folder(folder, suite=chosen, canaries=canary or (), progress=progress)
    except (HubError, OSError, SuiteError, ValueError) as error:
        stop(str(error))
    except KeyboardInterrupt:
        stop("interrupted", 130)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=1))
    else:
        for line in lines(report):
            typer.echo(printable(line))
    if not report.ok:
        raise typer.Exit(1)


def sample_tasks(
    metadata: Annotated[Path, typer.Option(help="A benchmark's metadata, as BrowserGym has it: a CSV file.")],
    per_group: Annotated[
        int,
        typer.Option(min=1, help="At most so many a group; in the paper 8 (WebArena), 9 (VisualWebArena)."),
    ],
    seed: SeedOption = 0,
    metadata_split: Annotated[str, typer.Option(help="Draw from this split of the metadata.")] = "test",
    out: OutOption = None,
) -> None:
    """Choose tasks for a new suite.

    A group is a task's first site with one of its evaluation methods; from each, up to --per-group tasks are
    drawn. A task that is in two groups is in the sample once.
    """
    from dataset_script.task_selection import SelectionError, count_by_site, read_metadata, sample_tasks

    try:
        tasks = sample_tasks(read_metadata(metadata), per_group, seed, metadata_split)
    except SelectionError as error:
        stop(str(error))
    rows = ((task.task_id, " ".join(task.sites), " ".join(task.evaluations)) for task in tasks)
    _write_csv(out, ("task_id", "sites", "evaluation_types"), rows)
    sizes = ", ".join(f"{site} {count}" for site, count in count_by_site(tasks).items())
    typer.echo(f"{len(tasks)} tasks: {sizes}", err=True)


def split(
    ids: Annotated[Path, typer.Option(help="CSV file with a column trajectory_id or task_id.")],
    dev_tasks: Annotated[
        int, typer.Option(min=1, help="So many tasks are for dev; the paper has 51 of 351.")
    ],
    seed: SeedOption = 0,
    out: OutOption = None,
) -> None:
    """Split ids into dev and test, by task.

    Every run of a task goes with it, in any spelling. Trajectory ids make a suite's trajectories.csv.
    """
    from dataset_script.task_selection import SelectionError, read_ids, split_by_task

    try:
        column, named = read_ids(ids)
        splits = split_by_task(named, dev_tasks, seed)
    except SelectionError as error:
        stop(str(error))
    _write_csv(out, (column, "split"), zip(named, splits, strict=True))
    typer.echo(f"dev {splits.count('dev')}, test {splits.count('test')}", err=True)


@contextmanager
def _folder_of(what: str, revision: str | None, keep: Path | None) -> Iterator[Path]:
    """The folder that was named, or the files of the repository that was."""
    if Path(what).is_dir():
        if revision is not None or keep is not None:
            raise ValueError(f"{what}: is a folder; --revision and --keep are for a repository")
        yield Path(what)
        return
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", what):
        raise ValueError(f"{what}: is no folder, and no repository's name (owner/name)")
    from dataset_script.hub_calls import hub_of
    from dataset_script.verify.from_hub import fetched

    with fetched(hub_of(read_settings()), what, revision, keep) as folder:
        yield folder


def _write_csv(out: Path | None, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    if out is None:
        sys.stdout.write(text.getvalue())
        return
    try:
        atomic_write(out, text.getvalue())
    except OSError as error:
        stop(f"{out}: {error.strerror}")
