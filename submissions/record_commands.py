"""The commands over the records on this machine: verify, rescore, receipt, export, restore."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.console import text_table
from dataset_script.command_line import JsonOption, plain_console, read_settings, read_suite, stop

if TYPE_CHECKING:
    from submissions.service import SubmissionService

HUB_SECONDS = 120.0
"""How long a command waits until the Hub has what it recorded."""

OutOption = Annotated[Path, typer.Option("--out", file_okay=False, help="The folder to write.")]


def verify(as_json: JsonOption = False) -> None:
    """Check every record: the chain, the kept files, each score made again, and the board.

    Exit code 1 when anything is not as it was written. Changes nothing.
    """
    from rich.progress import Progress

    from submissions.verifying import verify as check

    service = _service()
    with Progress(console=_stderr(), transient=True) as shown:
        task = shown.add_task("scores made again", total=None)
        found = check(service, lambda done, of: shown.update(task, completed=done, total=of))
    if as_json:
        print(json.dumps({**vars(found), "problems": list(found.problems)}))
    else:
        others = found.scores_of_other_versions
        typer.echo(
            f"{found.records:,} records, {found.files:,} files, {found.scores:,} scores made again"
            + (f", {others:,} of other label versions left as they are" if others else "")
        )
        for problem in found.problems:
            typer.echo(f"problem: {problem}")
        if not found.problems:
            typer.echo(f"all as it was written; board {found.board_digest}")
    raise typer.Exit(1 if found.problems else 0)


def rescore(
    as_json: JsonOption = False,
    maintainer: Annotated[str, typer.Option(help="Who does it; kept with the record.")] = "the command line",
) -> None:
    """Score every submission under the labels as they are now, and show ranks before and after.

    Old scores stay, under their label version. Stopped, it goes on where it was.
    """

    from submissions.accounts import Actor
    from submissions.refusals import SubmissionError
    from submissions.rescoring import rescore as score_again

    try:
        with _writing() as service:
            found = score_again(service, Actor(maintainer, is_maintainer=True))
    except SubmissionError as problem:
        stop(str(problem), code=1)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    typer.echo(f"labels {found.before or 'none'} -> {found.after}: {found.scored:,} submissions scored")
    table = text_table("Judge", "Account", "Place before", "Place after")
    for change in found.changes:
        before, after = ("–" if place is None else str(place) for place in (change.before, change.after))
        table.add_row(change.judge, change.account, before, after)
    if found.changes:
        plain_console().print(table)


def publish_labels(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Released CSV, or our Parquet.")],
    why: Annotated[str, typer.Option(help="What changed and why; kept with the version, and shown.")],
    maintainer: Annotated[str, typer.Option(help="Who does it; kept with the record.")] = "the command line",
) -> None:
    """Make a file the suite's newest label set; ARB_LABELS=records serves it, `rescore` scores everything.

    Old sets stay: ARB_LABELS=records:VERSION serves one again.
    """
    from submissions.accounts import Actor
    from submissions.publishing_labels import publish_file
    from submissions.refusals import SubmissionError

    try:
        with _writing() as service:
            found = publish_file(service, file, Actor(maintainer, is_maintainer=True), why)
    except SubmissionError as problem:
        stop(str(problem), code=1)
    except OSError as problem:
        stop(f"{file.name!r} cannot be read: {problem.strerror or type(problem).__name__}")
    _say_version(found)


def label_versions(as_json: JsonOption = False) -> None:
    """The suite's label sets, oldest first: what changed, when, by whom and why. No label is shown."""
    from submissions.label_versions import published_versions

    service = _service()
    found = published_versions(service.engine, service.suite.name)
    if as_json:
        print(json.dumps([{**vars(v), "at": v.at.isoformat(), "changes": dict(v.changes)} for v in found]))
        return
    if not found:
        typer.echo(f"no label set was published for {service.suite.name}; `publish-labels` does it")
    for version in found:
        _say_version(version)


def _say_version(version) -> None:
    changes = ", ".join(f"{question} {count:,}" for question, count in version.changes.items() if count)
    typer.echo(
        f"{version.version}  {version.at:%Y-%m-%d %H:%M} UTC  by {version.by}: {version.why} "
        f"({version.labelled:,} with a success label; labels that changed: {changes or 'none'})"
    )


def receipt(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A receipt, as JSON.")],
    key: Annotated[str, typer.Option(help="The server's public key, from its About page.")],
) -> None:
    """Check a receipt's signature, without asking the server."""
    from submissions.receipts import problem_of

    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(said, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as problem:
        stop(f"{file.name!r} is not a receipt in JSON ({type(problem).__name__}); save it as it was given", 1)
    if problem := problem_of(said, key):
        stop(f"{file.name!r}: {problem}", code=1)
    typer.echo(
        f"{said['submission_id']}: {said['judge']!r} of {said['account']!r}, file {said['file_sha256']}, "
        f"submitted {said['submitted_at']}, record {said['record']}: the signature holds"
    )


def export(
    out: OutOption,
    static: Annotated[
        bool, typer.Option("--static", help="A read-only site of the board instead of the records.")
    ] = False,
) -> None:
    """Write everything to a folder: records, files and board, to restore from; or a static site.

    Without --static the folder holds hidden figures: keep it as private as the labels.
    """
    from submissions.backup import BackupError, export_to_folder
    from submissions.static_export import FolderTaken, write_static_site

    service = _service()
    try:
        if static:
            number = write_static_site(service.board(), out)
            typer.echo(f"{number} files in {out}: open {out / 'index.html'}, or serve the folder as it is")
        else:
            found = export_to_folder(service, out)
            typer.echo(f"{found.records:,} records and {found.files:,} files in {out}")
            _name_missing(found.missing)
    except (FolderTaken, BackupError) as problem:
        stop(str(problem), code=1)
    except OSError as problem:
        stop(f"{str(out)!r} cannot be written: {problem.strerror or type(problem).__name__}", code=1)


def restore(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="What `export` wrote.")],
) -> None:
    """Bring the records and files of an export back, into an empty ARB_STATE_DIR or DATABASE_URL."""
    from submissions.backup import BackupError, restore_from_folder
    from submissions.database import DatabaseUnavailable

    try:
        found = restore_from_folder(read_settings(), folder)
    except (BackupError, DatabaseUnavailable) as problem:
        stop(str(problem), code=1)
    typer.echo(f"{found.records:,} records and {found.files:,} files restored; `verify` checks them")
    _name_missing(found.missing)


def _name_missing(missing: tuple[str, ...]) -> None:
    for sha256 in missing:
        typer.echo(f"missing: the kept file {sha256}; what was submitted with it cannot be scored", err=True)


def _service() -> "SubmissionService":
    """The service over this machine's records; a database that cannot be opened ends the command."""
    from submissions.database import DatabaseUnavailable
    from submissions.service import SubmissionService

    settings = read_settings()
    read_suite(None, settings)
    service = SubmissionService(settings)
    try:
        service.engine  # noqa: B018 - opened here, so that its trouble is told here
    except DatabaseUnavailable as problem:
        stop(str(problem))
    return service


@contextmanager
def _writing() -> Iterator["SubmissionService"]:
    """The same for a command that adds records: where the Hub keeps them, they are there when it ends."""
    from submissions.chain import number_of_events
    from submissions.database import DatabaseUnavailable, snapshot
    from submissions.opening import InvalidRepositoryName, open_service

    settings = read_settings()
    if not settings.records_repo:
        yield _service()
        return
    read_suite(None, settings)
    try:
        service = open_service(settings)
    except (DatabaseUnavailable, InvalidRepositoryName) as problem:
        stop(str(problem))
    try:
        if reason := service.durability.closed:
            stop(f"nothing was done: {reason}", code=1)
        yield service
        with snapshot(service.engine) as session:
            last = number_of_events(session)
        if not service.durability.wait(last, HUB_SECONDS):
            stop("it is recorded here, and the Hub does not have it yet: run the command again", code=1)
    finally:
        service.close()


def _stderr():
    from rich.console import Console

    return Console(stderr=True)
