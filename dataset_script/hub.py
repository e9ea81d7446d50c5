"""The commands that use the Hub: `fetch` the release, `publish` a built folder, `show` a trajectory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arb.core.cli import JsonOption, print_json, read_settings, read_suite, stop, write_file
from arb.core.console import new_console, printable
from arb.core.hub import RELEASED_REPO, RELEASED_REVISION, HubError, Publication, hub_of, is_repo_name
from arb.core.lazy import lazy_imports
from dataset_script.commands import described, one_line_errors

with lazy_imports():
    from rich import progress as rich_progress

    from dataset_script import by_id, repository, schema
    from dataset_script.build import workers
    from dataset_script.sources import hub as released
    from dataset_script.verify import check

if TYPE_CHECKING:
    from dataset_script.by_id import TrajectoryReader


def _known_parts(parts: list[str] | None) -> list[str] | None:
    for part in parts or ():
        if part not in released.PARTS:
            raise typer.BadParameter(f"{part!r} is not one of {', '.join(released.PARTS)}.")
    return parts


@described
def fetch(
    out: Path,
    repo: str = RELEASED_REPO,
    revision: str = RELEASED_REVISION,
    benchmark: list[str] | None = None,
    agent: list[str] | None = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            callback=_known_parts,
            help="Fetch only this part: cleaned, screenshots or judgments. Repeat to add another.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download the files of the original release from the Hub.

    The whole release is 38 GB. Files that were downloaded before are not fetched again. Set HF_ENDPOINT to
    use another Hub.

    Exit code 0: all files are in OUT; 1: some files could not be fetched (the output names them); 2: the
    command cannot run as given.
    """
    wanted = released.Selection(tuple(part or ()), tuple(benchmark or ()), tuple(agent or ()))
    hub = hub_of(read_settings())
    interrupted = f"interrupted; {out} has only complete files. Run the same command again to resume"
    with one_line_errors(interrupted), _byte_progress() as progress:
        done = released.fetch(hub, out, wanted, repo, revision, progress, _say)
    if as_json:
        print_json({"folder": str(out), **asdict(done)})
    else:
        typer.echo(
            f"{out}: {done.files} files, {done.bytes / 1e6:.1f} MB, {done.fetched} of them fetched now"
        )
        for path, reason in done.failed.items():
            typer.echo(printable(f"failed: {path}: {reason}"))
    if done.failed:
        stop(f"{len(done.failed)} files could not be fetched; run the same command again to retry them", 1)


@described
def publish(
    folder: Path,
    repo: str,
    private_labels: str | None = None,
    labels: Path | None = None,
    suite: str | None = None,
    accept: list[str] | None = None,
    allow_missing: list[str] | None = None,
    as_json: JsonOption = False,
) -> tuple[Publication, ...]:
    """Publish a dataset on the Hub.

    Uploads the data, the card and eval.yaml in one commit, and the test labels in one commit to a private
    repository. If nothing changed, there is no commit. A dataset is refused if it fails `verify`, or if it
    has warnings that you have not accepted with --accept. HF_TOKEN must have write access.

    Exit code 0: the dataset is published, or was published already; 2: this command or the Hub refused it.
    """
    settings = read_settings()
    expected = read_suite(suite, settings) if suite is not None else None
    kind, _, path = settings.labels.partition(":")
    if labels is None and private_labels is not None and kind == "csv" and path:
        labels = Path(path).expanduser()
    if not sys.stderr.isatty():
        repository.disable_progress_bars()

    verified = partial(
        check.verify,
        suite=expected,
        accept=accept or (),
        allow_missing=allow_missing or (),
        workers=workers.default_workers(),
    )
    with one_line_errors(
        "interrupted; no repository contains part of a commit. Run the same command again to resume"
    ):
        publisher = repository.Publisher(hub_of(settings), _say)
        done = publisher.publish(folder, repo, private_labels, labels, verify=verified)
    if as_json:
        print_json([asdict(one) | {"committed": one.committed} for one in done])
        return done
    for one in done:
        what = f"{len(one.written)} files written, {len(one.removed)} removed"
        typer.echo(f"{one.repo} at {one.commit}: {what if one.committed else 'was there already; no commit'}")
    return done


@described
def show(
    what: str,
    trajectory_id: str,
    revision: str | None = None,
    pictures: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Show one trajectory of a published dataset.

    Prints the goal, steps and answer; with --json also the accessibility trees, labels and published
    judgments. From a repository, it downloads only the parts that it shows: 1 to 2 MB, even if the dataset
    has a million trajectories.

    Exit code 0: shown; 2: the trajectory does not exist, or the command cannot run as given.
    """
    try:
        with repository.hub_errors(what):
            if Path(what).is_dir():
                reader = by_id.reader_of_folder(Path(what))
            elif is_repo_name(what):
                reader = repository.reader_of_repository(hub_of(read_settings()), what, revision)
            else:
                stop(f"{what} is neither a folder nor a repository's name (OWNER/NAME)", 2)
            found = _trajectory(reader, trajectory_id, with_pictures=pictures is not None)
    except HubError as error:
        stop(str(error), 2)
    except (OSError, ValueError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        stop(f"{what} cannot be read as a dataset ({reason}); name a folder with a manifest.json", 2)
    if found is None:
        stop(f"{trajectory_id}: there is no such trajectory in {what}", 2)
    for step in found["steps"]:
        picture = step.pop("screenshot", None)
        if pictures is not None and picture is not None:
            kind = {b"\x89": "png", b"R": "webp"}.get(picture["bytes"][:1], "jpg")
            write_file(pictures / f"step-{step['num']}.{kind}", picture["bytes"])
    if as_json:
        print_json(found)
        return
    run = found["trajectory"]
    typer.echo(printable(f"{trajectory_id}: {run['goal'] or 'no goal'}"))
    for step in found["steps"]:
        parts = (f"{step['num']:>3}", step["action"] or "", step["url"] or "")
        typer.echo(printable("  ".join(part for part in parts if part)))
    if run.get("answer"):
        typer.echo(printable(f"answer: {run['answer']}"))


def _trajectory(
    reader: TrajectoryReader, trajectory_id: str, *, with_pictures: bool
) -> dict[str, Any] | None:
    """Return a trajectory with its steps, judgments and annotations, or None if it does not exist."""
    tables, default = schema.CONFIGURATIONS, schema.DEFAULT
    large = ("steps", "final_axtree", "final_axtree_pruned")  # the last step has the trees
    columns = [column.name for column in tables[default].columns if column.name not in large]
    rows = reader.rows(default, trajectory_id, columns)
    if not rows:
        return None
    columns = [column.name for column in tables["steps"].columns]
    if not with_pictures:
        columns.remove("screenshot")
    of_id = {name: reader.rows(name, trajectory_id) for name in ("judgments", "annotations")}
    return {"trajectory": rows[0], "steps": reader.rows("steps", trajectory_id, columns), **of_id}


@contextmanager
def _byte_progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows (bytes done, bytes in total), as a bar or, in a log, a line per 10 %."""
    if not sys.stderr.isatty():
        last = -1

        def say_tenths(done: int, total: int) -> None:
            nonlocal last
            tenth = 10 * done // max(total, 1)
            if tenth > last:
                last = tenth
                _say(f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

        yield say_tenths
        return
    columns = (
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=new_console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(line: str) -> None:
    """Print a line on stderr without control characters, since file names may come from strangers."""
    typer.echo(printable(line), err=True)
