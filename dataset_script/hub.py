"""The commands that talk to the Hub: `fetch` the release, `publish` a built folder, `show` a trajectory.

Heavy imports wait. The test labels go beside the folder into a private repository. Each repository gets one
commit, or none when it holds the same content already (`arb.core.hub.HubRepository`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from arb.core.cli import JsonOption, print_json, read_settings, read_suite, stop
from arb.core.console import printable
from arb.core.hub import (
    HubError,
    HubRepository,
    Publication,
    PublishError,
    describe_failure,
    hub_of,
    is_ours,
    is_repo_name,
    patiently,
    published_files,
)
from dataset_script.commands import AcceptOption, AllowMissingOption, one_line_errors
from dataset_script.sources.hub import RELEASED_REPO, RELEASED_REVISION, Selection
from dataset_script.sources.hub import fetch as fetch_released

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from dataset_script.by_id import TrajectoryReader
    from dataset_script.verify.manifest import VerifyReport

LABELS_IN_REPO: Final = "data/annotations.csv"
"""Where ARB_LABELS=hub:OWNER/REPO looks for the labels."""

MOST_FINDINGS: Final = 20

MOST_FILES: Final = 25_000
"""The Hub takes so many in a commit (`HfApi.create_commit`)."""


@dataclass(frozen=True)
class Publisher:
    """The Hub and how to wait for it; ``say`` gets a line for every pause."""

    hub: HfApi
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep

    def publish(
        self,
        folder: Path,
        repo: str,
        private_labels: str | None = None,
        labels_file: Path | None = None,
        *,
        verify: Callable[[Path], VerifyReport],
    ) -> tuple[Publication, ...]:
        """Put the folder into the dataset repository ``repo``; the labels first, where they are named.

        Everything that can be refused is refused before anything is sent. Raises PublishError for what must
        not be published, HubError for what the Hub does not do.
        """
        _check_names(repo, private_labels, labels_file)
        _check_content(folder, verify)
        files = published_files(folder)
        if len(files) > MOST_FILES:
            raise PublishError(
                f"{folder}: has {len(files):,} files; the Hub takes {MOST_FILES:,} in a commit"
            )
        if labels_file is not None and labels_file.resolve() in {path.resolve() for path in files.values()}:
            raise PublishError(f"{labels_file.name}: the labels lie in the folder to publish; move them out")
        if not self.hub.token:
            raise HubError("publishing needs a token with write access; set HF_TOKEN")
        patiently(self.hub.whoami, "who HF_TOKEN belongs to", self.sleep, self.say)
        if private_labels is not None:
            self._prepare(private_labels, private=True)
        self._prepare(repo, private=False)
        done = []
        if private_labels is not None and labels_file is not None:
            labels = {LABELS_IN_REPO: labels_file}
            done.append(self._repository(private_labels).put(labels, owned=lambda _path: False))
        manifest = json.loads(files["manifest.json"].read_bytes())["files"]
        verified = {name: entry["sha256"] for name, entry in manifest.items()}
        done.append(self._repository(repo, verified).put(files, owned=is_ours))
        return tuple(done)

    def _prepare(self, repo: str, private: bool) -> None:
        """Make the repository if it is not there; refuse one that is public or holds something else."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def info():
            try:
                return self.hub.repo_info(repo, repo_type="dataset")
            except RepositoryNotFoundError:
                self.hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
                return self.hub.repo_info(repo, repo_type="dataset")

        found = self._repository(repo).patiently(info)
        if private and not found.private:
            raise PublishError(f"{repo}: is public; test labels go into a private repository only")
        names = {sibling.rfilename for sibling in found.siblings or ()}
        if not private and "manifest.json" not in names and any(name.startswith("data/") for name in names):
            raise PublishError(
                f"{repo}: holds data that was not published from here (it has no manifest.json); "
                "name another repository, or empty this one"
            )

    def _repository(self, repo: str, sha256s: Mapping[str, str] | None = None) -> HubRepository:
        return HubRepository(self.hub, repo, "dataset", self.say, self.sleep, sha256s=sha256s or {})


def _check_names(repo: str, private_labels: str | None, labels_file: Path | None) -> None:
    if not all(is_repo_name(name) for name in (repo, private_labels) if name is not None):
        raise PublishError("a repository is named owner/name")
    if private_labels == repo:
        raise PublishError(f"{repo}: the labels need a repository of their own, which is private")
    if private_labels is not None and labels_file is None:
        raise PublishError("--private-labels needs the labels: --labels FILE, or ARB_LABELS=csv:FILE")
    if private_labels is not None and labels_file is not None and not labels_file.is_file():
        raise PublishError(f"{labels_file.name}: no such file of labels; check the path")


def _check_content(folder: Path, verify: Callable[[Path], VerifyReport]) -> None:
    report = verify(folder)
    if not report.ok:
        found = [f"{one.file}: {one.message}" for one in report.findings if one.level == "error"]
        more = f"; and {len(found) - MOST_FINDINGS} more" if len(found) > MOST_FINDINGS else ""
        listed = "; ".join(found[:MOST_FINDINGS])
        raise PublishError(f"{folder}: does not pass `python -m dataset_script verify`: {listed}{more}")
    if report.to_accept:
        options = " ".join(f"--accept {name}" for name in report.to_accept[:MOST_FINDINGS])
        more = len(report.to_accept) - MOST_FINDINGS
        raise PublishError(
            f"{folder}: `python -m dataset_script verify` warns of words; look at them, then add: {options}"
            + (f" and {more} more that it names" if more > 0 else "")
        )


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
    as_json: JsonOption = False,
) -> None:
    """Fetch the released layout from the Hub.

    All of it is 38 GB. What is there already is not fetched again; the address of the Hub is HF_ENDPOINT.

    Exit code 0: all there; 1: some files could not be had (they are named); 2: it cannot run as given.
    """
    wanted = Selection(tuple(part or ()), tuple(benchmark or ()), tuple(agent or ()))
    hub = hub_of(read_settings())
    interrupted = f"interrupted; {out} holds whole files only: the same command goes on from there"
    with one_line_errors(interrupted), _byte_progress() as progress:
        done = fetch_released(hub, out, wanted, repo, revision, progress, _say)
    if as_json:
        print_json({"folder": str(out), **asdict(done)})
    else:
        typer.echo(
            f"{out}: {done.files} files, {done.bytes / 1e6:.1f} MB, {done.fetched} of them fetched now"
        )
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
    accept: AcceptOption = None,
    allow_missing: AllowMissingOption = None,
    as_json: JsonOption = False,
) -> tuple[Publication, ...]:
    """Publish a built folder on the Hub.

    Data, card and eval.yaml go into one commit; the test labels into one of a private repository. What does
    not pass `verify` is refused, and so are its warnings about words until they are accepted by name; what is
    there already is not committed again. HF_TOKEN needs write access.

    Exit code 0: published, or there already; 2: refused, or the Hub does not do it.
    """
    from huggingface_hub.utils import disable_progress_bars

    from dataset_script.build.parts import default_workers
    from dataset_script.verify.check import verify

    settings = read_settings()
    expected = read_suite(suite, settings) if suite is not None else None
    kind, _, path = settings.labels.partition(":")
    if labels is None and private_labels is not None and kind == "csv" and path:
        labels = Path(path).expanduser()
    if not sys.stderr.isatty():
        disable_progress_bars()

    def verified(built: Path) -> VerifyReport:
        return verify(
            built,
            suite=expected,
            accept=accept or (),
            allow_missing=allow_missing or (),
            workers=default_workers(),
        )

    with one_line_errors(
        "interrupted; a repository holds either all of a commit or none: run again to go on"
    ):
        publisher = Publisher(hub_of(settings), _say)
        done = publisher.publish(folder, repo, private_labels, labels, verify=verified)
    if as_json:
        print_json([asdict(one) | {"committed": one.committed} for one in done])
        return done
    for one in done:
        what = f"{len(one.written)} files written, {len(one.removed)} removed"
        typer.echo(f"{one.repo} at {one.commit}: {what if one.committed else 'was there already; no commit'}")
    return done


def show(
    what: Annotated[
        str, typer.Argument(metavar="FOLDER_OR_REPO", help="A folder that `build` wrote, or a repository.")
    ],
    trajectory_id: Annotated[str, typer.Argument(help="The trajectory, as the dataset spells it.")],
    revision: Annotated[str | None, typer.Option(help="Commit, branch or tag of the repository.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Write its screenshots into this folder; they are not read without.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show one trajectory of a published dataset.

    Goal, steps and answer; with --json the trees, labels and published judgments too. Of a repository only
    what is shown is read, 1 to 2 MB in a dataset of a million.

    Exit code 0: shown; 2: there is no such trajectory, or the command cannot run as given.
    """
    from huggingface_hub.errors import HTTPError

    from dataset_script.by_id import reader_of_folder, reader_of_repository

    try:
        if Path(what).is_dir():
            reader = reader_of_folder(Path(what))
        elif is_repo_name(what):
            reader = reader_of_repository(hub_of(read_settings()), what, revision)
        else:
            stop(f"{what}: is no folder, and no repository's name (owner/name)", 2)
        found = _trajectory(reader, trajectory_id, with_pictures=pictures is not None)
    except HTTPError as error:
        stop(f"{what}: {describe_failure(error)}", 2)
    except (OSError, ValueError, KeyError) as error:
        stop(f"{what}: is no dataset that can be read ({error})", 2)
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


def _trajectory(reader: TrajectoryReader, trajectory_id: str, *, with_pictures: bool) -> dict | None:
    """Everything of a trajectory but its rewards; None where there is none of this id."""
    from dataset_script.schema import CONFIGURATIONS, DEFAULT

    large = ("steps", "final_axtree", "final_axtree_pruned")  # the last step has the trees
    columns = [c.name for c in CONFIGURATIONS[DEFAULT].columns if c.name not in large]
    rows = reader.rows(DEFAULT, trajectory_id, columns)
    if not rows:
        return None
    columns = [c.name for c in CONFIGURATIONS["steps"].columns if with_pictures or c.name != "screenshot"]
    of_id = {name: reader.rows(name, trajectory_id) for name in ("judgments", "annotations")}
    return {"trajectory": rows[0], "steps": reader.rows("steps", trajectory_id, columns), **of_id}


@contextmanager
def _byte_progress() -> Iterator[Callable[[int, int], None]]:
    """Bytes there and wanted: a bar on a terminal, a line for each tenth elsewhere (a log)."""
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
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(line: str) -> None:
    """A line on stderr; names of files come from strangers, so it is made fit for a terminal."""
    typer.echo(printable(line), err=True)
