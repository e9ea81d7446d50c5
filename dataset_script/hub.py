"""The commands that use the Hub: `fetch` the release, `publish` a built folder, `show` a trajectory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arb.core.cli import JsonOption, print_json, read_settings, read_suite, stop
from arb.core.console import printable
from arb.core.hub import RELEASED_REPO, RELEASED_REVISION, HubError, Publication, hub_of, is_repo_name
from arb.core.lazy import lazy_imports
from dataset_script.commands import AcceptOption, AllowMissingOption, RevisionOption, one_line_errors

with lazy_imports():
    from rich import console as rich_console
    from rich import progress as rich_progress

    from dataset_script import by_id, repository, schema
    from dataset_script.build import workers
    from dataset_script.sources import hub as released
    from dataset_script.verify import check

if TYPE_CHECKING:
    from dataset_script.by_id import TrajectoryReader
    from dataset_script.verify.manifest import VerifyReport


def fetch(
    out: Annotated[Path, typer.Option(help="Download into this folder, resuming an earlier download.")],
    repo: Annotated[str, typer.Option(help="Read this repository (released layout).")] = RELEASED_REPO,
    revision: Annotated[str, typer.Option(help="Read this commit, branch or tag.")] = RELEASED_REVISION,
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Fetch only this benchmark's folder. Repeat to add another.")
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Fetch only this agent. Repeat to add one.")] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(help="Fetch only cleaned, screenshots or judgments. Repeat to add another."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the released layout from the Hub.

    All of it is 38 GB. Files that are already there are not fetched again. HF_ENDPOINT is the Hub's address.

    Exit code 0: all files are there; 1: some files could not be fetched (they are named); 2: the command
    cannot run as given.
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


def publish(
    folder: Annotated[Path, typer.Argument(help="The folder that `build` wrote.")],
    repo: Annotated[str, typer.Option(help="Publish to this dataset repository, created if missing.")],
    private_labels: Annotated[
        str | None, typer.Option(help="Put the test labels into this private dataset repository.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Read the labels for --private-labels here (default: ARB_LABELS=csv:FILE)."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(help="A shipped suite's name or a suite's folder, to verify against."),
    ] = None,
    accept: AcceptOption = None,
    allow_missing: AllowMissingOption = None,
    as_json: JsonOption = False,
) -> tuple[Publication, ...]:
    """Publish a built folder on the Hub.

    Data, card and eval.yaml go into one commit, and the test labels into one commit of a private repository.
    The command refuses a dataset that does not pass `verify`, or has warnings about words that you have not
    accepted by name. Without changes it makes no commit. HF_TOKEN needs write access.

    Exit code 0: published, or published already; 2: refused, here or by the Hub.
    """
    settings = read_settings()
    expected = read_suite(suite, settings) if suite is not None else None
    kind, _, path = settings.labels.partition(":")
    if labels is None and private_labels is not None and kind == "csv" and path:
        labels = Path(path).expanduser()
    if not sys.stderr.isatty():
        repository.disable_progress_bars()

    def verified(built: Path) -> VerifyReport:
        return check.verify(
            built,
            suite=expected,
            accept=accept or (),
            allow_missing=allow_missing or (),
            workers=workers.default_workers(),
        )

    with one_line_errors(
        "interrupted; a repository has all of a commit or none of it. Run the same command again to resume"
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


def show(
    what: Annotated[str, typer.Argument(metavar="FOLDER_OR_REPO", help="A built folder or its repository.")],
    trajectory_id: Annotated[str, typer.Argument(help="The trajectory's id, as spelled in the dataset.")],
    revision: RevisionOption = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Write the screenshots into this folder (default: not read).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show one trajectory of a published dataset.

    Prints goal, steps and answer; with --json also the trees, labels and published judgments. From a
    repository it reads only what it shows, 1 to 2 MB in a dataset of a million trajectories.

    Exit code 0: shown; 2: the trajectory does not exist, or the command cannot run as given.
    """
    try:
        with repository.hub_errors(what):
            if Path(what).is_dir():
                reader = by_id.reader_of_folder(Path(what))
            elif is_repo_name(what):
                reader = repository.reader_of_repository(hub_of(read_settings()), what, revision)
            else:
                stop(f"{what}: is neither a folder nor a repository's name (OWNER/NAME)", 2)
            found = _trajectory(reader, trajectory_id, with_pictures=pictures is not None)
    except HubError as error:
        stop(str(error), 2)
    except (OSError, ValueError, KeyError) as error:
        stop(f"{what}: cannot be read as a dataset ({error})", 2)
    if found is None:
        stop(f"{trajectory_id}: there is no such trajectory in {what}", 2)
    for step in found["steps"]:
        picture = step.pop("screenshot", None)
        if pictures is not None and picture is not None:
            kind = {b"\x89": "png", b"R": "webp"}.get(picture["bytes"][:1], "jpg")
            pictures.mkdir(parents=True, exist_ok=True)
            (pictures / f"step-{step['num']}.{kind}").write_bytes(picture["bytes"])
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
    """Return everything of a trajectory except its rewards, or None if it does not exist."""
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
    """Show how many of the wanted bytes are there: a bar on a terminal, a line per tenth in a log."""
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
    with rich_progress.Progress(*columns, console=rich_console.Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(line: str) -> None:
    """Print a line on stderr, without control characters: names of files come from strangers."""
    typer.echo(printable(line), err=True)
