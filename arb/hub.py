"""Publish to the Hub: everything (``arb hub publish-all``), or only the metric (``arb metric publish``).

The dataset and the leaderboard are published with the code of `arb data publish` and `arb space deploy`. The
metric is a Space, because the `evaluate` library reads metrics from Spaces:
``evaluate.load("OWNER/judge_precision")`` loads that Space's ``judge_precision.py`` and the files it imports.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from arb.core.cli import (
    JsonOption,
    SuiteOption,
    file_option,
    folder_option,
    plain_console,
    print_json,
    read_settings,
    read_suite,
    stop,
    stopped_like_ctrl_c,
)
from arb.core.console import counted, printable, text_table
from arb.core.lazy import lazy_imports

with lazy_imports():
    import leaderboard
    from arb.core import hub
    from dataset_script import hub as data_hub
    from space.deploy import commands as space_commands
    from space.deploy import files as space_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arb.core.hub import Publication
    from arb.core.settings import Settings
    from arb.core.suite import Suite

METRIC: Final = "judge_precision"
"""The name of the metric's Space, which must equal the name of the metric's module."""

IN_A_CHECKOUT: Final = f"leaderboard/{METRIC}"
"""The metric's path as written in its card and docstring. Publishing replaces it with the Space's name."""

INTERRUPTED: Final = 130
PARTLY_DONE: Final = 3

app = typer.Typer(no_args_is_help=True, help="Publish dataset, metric and leaderboard together.")

OwnerArgument = Annotated[str, typer.Argument(help="Your name, or an organization's, on the Hub.")]


@dataclass
class RepositoryState:
    """A repository to publish: the number and total size of its files (None if unknown), and its state."""

    what: str
    repo: str
    kind: str
    files: int | None = None
    bytes: int | None = None
    state: str = "planned"
    commit: str | None = None


@dataclass(frozen=True)
class PublishPlan:
    """The suite, built dataset and file of hidden labels to publish, and the owner on the Hub.

    ``suite`` is the name or folder from which ``chosen`` was loaded.
    """

    owner: str
    suite: str
    chosen: Suite
    folder: Path
    labels: Path | None

    def repo(self, part: str = "") -> str:
        """Return OWNER/SUITE, the dataset's repository, or OWNER/SUITE-PART for a part such as "labels"."""
        return f"{self.owner}/{self.chosen.name}{part and f'-{part}'}"

    @property
    def space_labels(self) -> str:
        """The value of ARB_LABELS on the Space."""
        if self.labels is not None:
            return f"hub:{self.repo('labels')}"
        return "wheel" if self.chosen.is_official else "none"

    def targets(self, settings: Settings) -> list[RepositoryState]:
        """Return all repositories, in the order in which they are published.

        Raises:
            PublishError: The owner's name is not valid, or the folder is not a build of the suite.
        """
        if not hub.is_repo_name(self.repo()):
            raise hub.PublishError(f"{self.owner}: the Hub does not accept this owner's name; correct OWNER")
        if not self.folder.is_dir():
            raise hub.PublishError(
                f"{self.folder}: there is no such folder; get the dataset with `arb data get`, or use --data"
            )
        data = hub.published_files(self.folder)
        held = json.loads(data["manifest.json"].read_bytes()).get("suite")
        if held != self.chosen.name:
            raise hub.PublishError(
                f"{self.folder}: contains the suite {held}, not {self.chosen.name}; add --suite {held}, or "
                "get the dataset with `arb data get`"
            )
        metric, space = metric_sources(), space_commands.checked_files({self.suite: self.chosen}, settings)
        board = len(space) + len(space_files.MADE["gradio"]), _bytes(space.values())
        labels = [RepositoryState("labels", self.repo("labels"), "private dataset", 1, _bytes([self.labels]))]
        return [
            *(labels if self.labels else ()),
            RepositoryState("dataset", self.repo(), "public dataset", len(data), _bytes(data.values())),
            RepositoryState("metric", f"{self.owner}/{METRIC}", "Space", len(metric), _bytes(metric)),
            RepositoryState("leaderboard", self.repo("leaderboard"), "Space", *board),
            RepositoryState("records", self.repo("records"), "private dataset"),
            RepositoryState("board", self.repo("board"), "public dataset"),
        ]


@app.callback()
def _about() -> None:
    """Publish dataset, metric and leaderboard together."""


@app.command()
def publish_all(  # noqa: PLR0913 - typer reads the options from the parameters
    owner: OwnerArgument,
    data: Annotated[
        Path | None,
        folder_option(help="Publish the built dataset in this folder (default: the suite's name)."),
    ] = None,
    suite: SuiteOption = None,
    labels: Annotated[
        Path | None,
        file_option(help="Read your suite's hidden labels from this CSV (default: ARB_LABELS=csv:FILE)."),
    ] = None,
    maintainer: Annotated[
        list[str] | None, typer.Option(help="Let this account moderate. Repeat to add maintainers.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE:TRAJECTORY_ID", help="Accept this warning. Repeat to add another."),
    ] = None,
    allow_missing: Annotated[
        list[str] | None, typer.Option(help="Allow this trajectory to be missing. Repeat to add another.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be published, without contacting the Hub.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Publish dataset, metric and leaderboard.

    The dataset goes to OWNER/SUITE, the metric for evaluate.load to OWNER/judge_precision, and the Space to
    OWNER/SUITE-leaderboard. The Space keeps its records in the private OWNER/SUITE-records and its rows in
    OWNER/SUITE-board. Hidden labels go to the private OWNER/SUITE-labels. Files that the Hub already has are
    not sent again, so you can resume an interrupted command by running it again. HF_TOKEN needs write access.

    Exit code 0: everything is published; 2: nothing is published, or an option or setting is wrong; 3: only
    some repositories are published, see the table.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    hidden = _labels(labels, chosen, settings)
    plan = PublishPlan(owner, suite or settings.suite, chosen, data or Path(chosen.name), hidden)
    try:
        targets = plan.targets(settings)
    except (hub.PublishError, OSError) as error:
        stop(str(error))
    if dry_run:
        _print(targets, as_json)
        typer.echo(
            "nothing was sent (--dry-run); `arb space deploy --dry-run` lists the Space's files", err=True
        )
        return
    if settings.hf_token is None:
        stop("publishing needs a token with write access; set HF_TOKEN")
    labels_repo = plan.repo("labels") if hidden else None
    space, records, board = (plan.repo(part) for part in ("leaderboard", "records", "board"))
    steps: Mapping[tuple[str, ...], Callable[[], Iterable[Publication | None]]] = {
        ("labels", "dataset"): lambda: data_hub.publish(
            plan.folder, plan.repo(), labels_repo, hidden, plan.suite, accept, allow_missing
        ),
        ("metric",): lambda: [_put_metric(f"{owner}/{METRIC}", settings)],
        ("leaderboard", "records", "board"): lambda: [
            space_commands.deploy(
                space, plan.repo(), records, board, [plan.suite], plan.space_labels, maintainer, dry_run=False
            )
        ],
    }
    codes: list[int] = []
    for names, step in steps.items():
        if INTERRUPTED not in codes:
            codes.append(_publish(step, [target for target in targets if target.what in names]))
    _print(targets, as_json)
    if any(codes):
        typer.echo("error: not everything is published; run the same command again to resume", err=True)
        if INTERRUPTED in codes:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(PARTLY_DONE if 0 in codes else max(codes))
    typer.echo(
        f'Published: load_dataset("{plan.repo()}") and evaluate.load("{owner}/{METRIC}") now work. '
        f"Next, set the secrets named above in the settings of {plan.repo('leaderboard')}",
        err=True,
    )


def publish_metric(owner: OwnerArgument, as_json: JsonOption = False) -> None:
    """Publish the metric as a Space, for evaluate.load("OWNER/judge_precision").

    Files that the Hub already has are not sent again. HF_TOKEN needs write access.

    Exit code 0: the metric is published; 2: this command or the Hub refused to publish it.
    """
    done = _put_metric(f"{owner}/{METRIC}", read_settings())
    if as_json:
        print_json(asdict(done) | {"committed": done.committed})
        return
    what = f"{counted(len(done.written), 'file')} written, {len(done.removed)} removed"
    typer.echo(f"{done.repo} at {done.commit}: {what if done.committed else 'unchanged; no commit'}")


def metric_sources() -> list[Path]:
    """Return the metric's files except ``__init__.py``, which a Space does not need."""
    folder = Path(leaderboard.__file__).parent / METRIC
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != "__init__.py")


def _put_metric(repo: str, settings: Settings) -> Publication:
    """Upload the metric to its Space. Exits with code 2 on an error and with 130 on Ctrl-C."""
    client = hub.hub_of(settings)
    space = hub.HubRepository(client, repo, "space", lambda line: typer.echo(printable(line), err=True))
    try:
        if not hub.is_repo_name(repo):
            raise hub.PublishError(f"{repo}: the Hub does not accept this name; correct OWNER")
        if not client.token:
            raise hub.HubError("publishing needs a token with write access; set HF_TOKEN")
        with stopped_like_ctrl_c(), tempfile.TemporaryDirectory(prefix="arb-metric-") as name:
            space.patiently(
                lambda: client.create_repo(repo, repo_type="space", space_sdk="gradio", exist_ok=True)
            )
            there = {path for path in space.read()[1] if path.endswith(".py")}
            if there and f"{METRIC}.py" not in there:
                raise hub.PublishError(f"{repo}: this Space is not the metric; rename it or change OWNER")
            files = {path.name: Path(name) / path.name for path in metric_sources()}
            for path in metric_sources():
                text = path.read_text(encoding="utf-8").replace(IN_A_CHECKOUT, repo)
                files[path.name].write_text(text, encoding="utf-8", newline="\n")
            return space.put(files, lambda path: "/" not in path and path.endswith(".py"))
    except (hub.PublishError, hub.HubError, OSError) as error:
        stop(str(error))
    except KeyboardInterrupt:
        stop("interrupted; nothing is half-published. Run the same command again to resume", INTERRUPTED)


def _publish(step: Callable[[], Iterable[Publication | None]], targets: list[RepositoryState]) -> int:
    """Run a step of the publication, update the state of its targets, and return its exit code."""
    try:
        with redirect_stdout(sys.stderr):  # stdout is for the table
            done = {one.repo: one for one in step() if one is not None}
    except typer.Exit as ended:
        for target in targets:
            target.state = "interrupted" if ended.exit_code == INTERRUPTED else "failed, see above"
        return ended.exit_code
    for target in targets:
        target.state = "there"
        if (one := done.get(target.repo)) is not None:
            target.commit, target.state = one.commit, "published" if one.committed else "was there already"
    return 0


def _labels(labels: Path | None, suite: Suite, settings: Settings) -> Path | None:
    """Return ``labels``, or else the file in ARB_LABELS. None if there is none or the suite is official."""
    kind, _, path = settings.labels.partition(":")
    if labels is not None or suite.is_official or kind != "csv":
        return labels
    return Path(path).expanduser()


def _bytes(paths: Iterable[Path | None]) -> int:
    return sum(path.stat().st_size for path in paths if path is not None)


def _print(targets: list[RepositoryState], as_json: bool) -> None:
    if as_json:
        print_json([asdict(target) for target in targets])
        return
    table = text_table("what", "repository", "kind", "state", figures=("files", "kB"), box=None)
    for target in targets:
        size = "" if target.bytes is None else f"{target.bytes / 1e3:,.0f}"
        commit = f", {target.commit[:7]}" if target.commit else ""
        files = "" if target.files is None else f"{target.files:,}"
        table.add_row(target.what, target.repo, target.kind, f"{target.state}{commit}", files, size)
    plain_console().print(table)
