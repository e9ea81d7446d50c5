"""The records from the beginning: checked, and copied into a folder and back.

To check them, everything is made again from the events, the stored files and the labels, and compared with
what is stored. A copy is a folder:

    records.jsonl       every record, a canonical line each, with its nonce
    files/ab/<sha256>   the uploaded files and published label sets, as they came
    board.json          the board of the moment; not needed to restore
    board.csv           the same as a table

It holds exact scores and nonces, so it is as private as the labels. The server's secret is not in it: keep
ARB_SECRET (or the file ``secret`` of the state folder) apart.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import select

from core.settings import Settings
from leaderboard.board.export import board_to_csv
from submissions.intake.upload import read_upload
from submissions.records.database import (
    Account,
    Judge,
    Score,
    Submission,
    open_database,
    snapshot,
    transaction,
)
from submissions.records.event_log import (
    Event,
    EventLogBroken,
    NotEmpty,
    canonical,
    check_event_log,
    events_after,
    number_of_events,
    parse_event,
    restore_events,
)
from submissions.records.files import FileStore, open_files
from submissions.scoring.scorer import score_of
from submissions.service import SubmissionService

Progress = Callable[[int, int], None]
TABLES = (Account, Judge, Submission, Score)


@dataclass(frozen=True)
class Verification:
    """What was checked, and everything that is wrong."""

    records: int
    files: int
    scores: int
    scores_of_other_versions: int
    problems: tuple[str, ...]
    board_digest: str | None


def verify(service: SubmissionService, progress: Progress = lambda done, all: None) -> Verification:
    """Check everything; changes nothing. Scores of label versions that are not here are only counted."""
    with snapshot(service.engine) as session:
        events = events_after(session)
    problems = check_event_log(events)
    submitted = {event.body["submission_id"]: event for event in events if event.kind == "submitted"}
    scored = [event for event in events if event.kind == "scored"]
    version = service.label_version
    to_check = [event for event in scored if event.body["label_version"] == version]
    problems += _duplicates(events)
    for place, event in enumerate(to_check, start=1):
        progress(place, len(to_check))
        problems += _problems_of_score(service, event, submitted)
    not_scored = submitted.keys() - {event.body["submission_id"] for event in scored}
    for submission_id in sorted(not_scored):
        problems += _problems_of_file(service, submitted[submission_id])
    problems += _problems_of_tables(service, events)
    return Verification(
        records=len(events),
        files=len(submitted),
        scores=len(to_check),
        scores_of_other_versions=len(scored) - len(to_check),
        problems=tuple(problems),
        board_digest=service.board().digest if not problems else None,
    )


def _duplicates(events: Sequence[Event]) -> list[str]:
    seen: set[tuple] = set()
    problems = []
    for event in events:
        body = event.body
        if event.kind == "submitted":
            key = ("submission", body["submission_id"])
        elif event.kind == "scored":
            key = ("score", body["submission_id"], body["label_version"], body["policy"])
        else:
            continue
        if key in seen:
            problems.append(f"record {event.sequence}: this {key[0]} of {key[1]} is recorded twice")
        seen.add(key)
    return problems


def _problems_of_file(service: SubmissionService, submitted: Event) -> list[str]:
    try:
        service.files.read(submitted.body["file_sha256"])
    except (OSError, ValueError):
        return [f"submission {submitted.body['submission_id']}: its stored file is missing or damaged"]
    return []


def _problems_of_score(service: SubmissionService, scored: Event, submitted: dict[str, Event]) -> list[str]:
    """Make one score again from its file and the labels. No message names a figure."""
    submission_id = scored.body["submission_id"]
    if submission_id not in submitted:
        return [f"record {scored.sequence}: a score of {submission_id}, which was never submitted"]
    body = submitted[submission_id].body
    if problems := _problems_of_file(service, submitted[submission_id]):
        return problems
    content = service.files.read(body["file_sha256"])
    most = max(len(content), service.settings.max_upload_bytes)
    settings = service.settings.model_copy(update={"max_upload_bytes": most})
    upload = read_upload(
        content,
        body["file_name"],
        settings,
        suite=service.suite,
        split=body["split"],
        parsers=service.parsers,
    )
    if not upload.check.acceptable:
        return [f"submission {submission_id}: its file is not acceptable now"]
    again = json.loads(canonical(score_of(upload, service.labels.test, service.scorer.half_key)))
    differing = [
        name
        for name in ("report", "counts_by_task", "digests", "halves")
        if scored.body[name] and again[name] != scored.body[name]
    ]
    if differing:
        return [f"submission {submission_id}: its score, made again, differs ({', '.join(differing)})"]
    return []


def _problems_of_tables(service: SubmissionService, events: Sequence[Event]) -> list[str]:
    """Restore the records into an empty database and compare its tables with those in use."""
    fresh = open_database("sqlite://")
    try:
        with transaction(fresh) as session:
            restore_events(session, events)
    except ValueError:
        return []  # the log is broken, and its problems are named already
    with snapshot(service.engine) as used, snapshot(fresh) as made:
        return [
            f"the table {table.__tablename__} is not what the records say"
            for table in TABLES
            if _rows(used, table) != _rows(made, table)
        ]


def _rows(session, table) -> list[tuple]:
    columns = [
        column for column in table.__table__.columns if column.name not in ("id", "judge_id", "account_id")
    ]
    names = [table.id] if table is Submission else []
    rows = session.execute(select(*names, *columns)).all()
    return sorted(rows, key=repr)


RECORDS: Final = "records.jsonl"
FILES: Final = "files"
MAX_PROBLEMS: Final = 20


class BackupError(Exception):
    """A folder that cannot be written or restored from; the message lists the problems and what to do."""


@dataclass(frozen=True)
class Backup:
    """What a folder holds. ``missing``: the SHA-256 of files that were not there to copy."""

    records: int
    files: int
    missing: tuple[str, ...]


def export_to_folder(service: SubmissionService, folder: Path) -> Backup:
    """Write all that is needed to restore into a new folder, whole or not at all. Raises BackupError."""
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BackupError(f"{folder.name!r} exists and is not empty; name a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            made = _write(service, beside)
            if folder.exists():
                folder.rmdir()
            beside.replace(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise BackupError(
            f"{folder.name!r} cannot be written: {error.strerror or type(error).__name__}"
        ) from error
    return made


def restore_from_folder(settings: Settings, folder: Path) -> Backup:
    """Fill an empty database and file store from such a folder; the records come last, in one transaction.

    Raises BackupError with every problem: of the folder, or because there are records here already.
    """
    events = _read_records(folder)
    wanted = {event.file_sha256 for event in events if event.file_sha256}
    source, missing, problems = FileStore(folder / FILES), [], check_event_log(events)
    for sha256 in sorted(wanted):
        try:
            source.read(sha256)
        except FileNotFoundError:
            missing.append(sha256)
        except (OSError, ValueError) as problem:
            problems.append(f"{FILES}: {problem}")
    if problems:
        raise BackupError(_together(problems))
    engine = open_database(settings.records_url())
    try:
        with snapshot(engine) as session:
            is_empty = number_of_events(session) == 0
        target = open_files(settings, lambda: engine)
        for sha256 in sorted(wanted.difference(missing)) if is_empty else ():
            target.keep(source.read(sha256))
        with transaction(engine) as session:
            number = restore_events(session, events)
    except NotEmpty as problem:
        raise BackupError(str(problem)) from None
    except OSError as error:
        raise BackupError(
            f"a file cannot be stored in ARB_STATE_DIR: {error.strerror or type(error).__name__}"
        ) from error
    finally:
        engine.dispose()
    return Backup(number, len(wanted) - len(missing), tuple(missing))


def _write(service: SubmissionService, folder: Path) -> Backup:
    board = service.board()
    with snapshot(service.engine) as session:
        events = events_after(session)
    _put(folder / RECORDS, b"".join(event.line() + b"\n" for event in events))
    store, missing = FileStore(folder / FILES), []
    wanted = sorted({event.file_sha256 for event in events if event.file_sha256})
    for sha256 in wanted:
        try:
            store.keep(service.files.read(sha256))
        except (FileNotFoundError, ValueError):
            missing.append(sha256)
    _put(folder / "board.json", board.to_bytes())
    _put(folder / "board.csv", board_to_csv(board).encode())
    return Backup(len(events), len(wanted) - len(missing), tuple(missing))


def _read_records(folder: Path) -> list[Event]:
    try:
        lines = (folder / RECORDS).read_bytes().splitlines()
    except OSError as error:
        raise BackupError(
            f"{folder.name!r} has no readable {RECORDS} ({error.strerror or type(error).__name__}); use "
            "a folder that `python -m submissions export` wrote"
        ) from None
    events, problems = [], []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(parse_event(line))
        except EventLogBroken as problem:
            problems.append(f"{RECORDS}, line {number}: {problem}")
    if problems:
        raise BackupError(_together(problems))
    return events


def _together(problems: Iterable[str]) -> str:
    found = list(problems)
    more = [f"and {len(found) - MAX_PROBLEMS} more"] if len(found) > MAX_PROBLEMS else []
    return "; ".join([*found[:MAX_PROBLEMS], *more])


def _put(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
