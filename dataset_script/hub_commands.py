"""The commands that talk to the Hub: `fetch` and `publish`. Heavy imports wait for the command."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from core.console import printable
from dataset_script.command_line import read_settings, read_suite, stop, stopped_like_ctrl_c
from dataset_script.sources.hub import RELEASED_REPO, RELEASED_REVISION


def fetch(
    out: Annotated[Path, typer.Option(help="The folder to fetch into; a fetch stopped before goes on.")],
    repo: Annotated[str, typer.Option(help="Dataset repository in the released layout.")] = RELEASED_REPO,
    revision: Annotated[str, typer.Option(help="Commit, branch or tag.")] = RELEASED_REVISION,
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only this benchmark's folder (again for more).")
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent (again for more).")] = None,
    part: Annotated[
        list[str] | None, typer.Option(help="Only cleaned, screenshots or judgments (again for more).")
    ] = None,
) -> None:
    """Fetch the released layout from the Hub.

    All of it is 38 GB. What is there already is not fetched again; the address of the Hub is HF_ENDPOINT.

    Exit code 0: all there; 1: some files could not be had (they are named); 2: it cannot run as given.
    """
    from dataset_script.hub_calls import HubError, hub_of
    from dataset_script.sources.hub import Selection
    from dataset_script.sources.hub import fetch as fetch_released

    wanted = Selection(tuple(part or ()), tuple(benchmark or ()), tuple(agent or ()))
    hub = hub_of(read_settings())
    try:
        with stopped_like_ctrl_c(), _byte_progress() as progress:
            done = fetch_released(hub, out, wanted, repo, revision, progress, _say)
    except (HubError, OSError) as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop(f"interrupted; {out} holds whole files only: the same command goes on from there", 130)
    typer.echo(f"{out}: {done.files} files, {done.bytes / 1e6:.1f} MB, {done.fetched} of them fetched now")
    for path, reason in done.failed.items():
        typer.echo(printable(f"failed: {path}: {reason}"))
    if done.failed:
        stop(f"{len(done.failed)} files could not be had; the same command tries them again", 1)


def publish(
    folder: Annotated[Path, typer.Argument(help="The folder that `build` wrote.")],
    repo: Annotated[str, typer.Option(help="Dataset repository for the public data; made if not there.")],
    private_labels: Annotated[
        str | None, typer.Option(help="Private dataset repository for the test labels.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="The labels, for --private-labels. Default: ARB_LABELS=csv:FILE.")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(help="What the folder should hold: a shipped suite or a suite's folder, for verify."),
    ] = None,
) -> None:
    """Publish a built folder on the Hub.

    Data, card and eval.yaml go into one commit; the test labels into one of a private repository. What does
    not pass `verify` is refused; what is there already is not committed again. HF_TOKEN needs write access.

    Exit code 0: published, or there already; 2: refused, or the Hub does not do it.
    """
    from huggingface_hub.utils import disable_progress_bars

    from dataset_script.hub_calls import HubError, hub_of
    from dataset_script.publish import Publisher
    from dataset_script.published_files import PublishError
    from dataset_script.verify import verify

    settings = read_settings()
    expected = read_suite(suite, settings) if suite is not None else None
    kind, _, path = settings.labels.partition(":")
    if labels is None and private_labels is not None and kind == "csv" and path:
        labels = Path(path).expanduser()
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        with stopped_like_ctrl_c():
            done = Publisher(hub_of(settings), _say).publish(
                folder, repo, private_labels, labels, verify=lambda built: verify(built, suite=expected)
            )
    except (PublishError, HubError, OSError) as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop("interrupted; a repository holds either all of a commit or none: run again to go on", 130)
    for one in done:
        what = f"{len(one.written)} files written, {len(one.removed)} removed"
        typer.echo(f"{one.repo} at {one.commit}: {what if one.committed else 'was there already; no commit'}")


@contextmanager
def _byte_progress() -> Iterator[Callable[[int, int], None]]:
    """Bytes there and wanted: a bar on a terminal, a line for each tenth elsewhere (a log)."""
    if not sys.stderr.isatty():
        yield _tenths()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _tenths() -> Callable[[int, int], None]:
    told = -1

    def progress(done: int, total: int) -> None:
        nonlocal told
        tenth = 10 * done // max(total, 1)
        if tenth > told:
            told = tenth
            _say(f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

    return progress


def _say(line: str) -> None:
    """A line on stderr; names of files come from strangers, so it is made fit for a terminal."""
    typer.echo(printable(line), err=True)
