"""Backups of the records in a folder, written by `export` and read by `restore`.

A folder contains

    manifest.json       the version of the format; without the file it is 1
    records.jsonl       every record, one line of canonical JSON each, with its nonce
    files/ab/<sha256>   the uploaded files and published label sets, byte for byte
    secret_check.json   the check value of the server's secret, and how its keys are derived
    board.json          the board at the time; not needed to restore
    board.csv           the same as a table

It contains exact scores and nonces, so it is as private as the labels. It does not contain the server's
secret: keep ARB_SECRET (or the file ``secret`` in the state folder) somewhere else.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from arb.core.files import atomic_write, new_folder
from arb.core.formats import FORMATS, format_problem
from arb.core.settings import Settings
from leaderboard.board.export import board_to_csv
from submissions.app import SubmissionsApp
from submissions.errors import RecordsUnavailable
from submissions.privacy.server_secret import (
    IF_REPLACED,
    KnownSecret,
    SecretRefused,
    SecretUnavailable,
    ServerSecret,
)
from submissions.records import event_log
from submissions.records.database import Event, canonical, open_database, snapshot, transaction
from submissions.records.files import FileStore, open_files
from submissions.records.secret_check import known_secret, note_secret, replace_secret

MANIFEST: Final = "manifest.json"
RECORDS: Final = "records.jsonl"
FILES: Final = "files"
SECRET_CHECK: Final = "secret_check.json"
MAX_PROBLEMS: Final = 20


class BackupError(RecordsUnavailable):
    """Raised when a folder cannot be written or restored; the message lists every problem."""


@dataclass(frozen=True)
class Backup:
    """A summary of a backup folder, with its numbers of records and files.

    ``missing`` has the SHA-256 of each file that could not be copied. ``names_secret`` says whether the
    folder has the check value of the secret. Exports of versions up to commit 7d56a80 do not have it.
    """

    records: int
    files: int
    missing: tuple[str, ...]
    names_secret: bool


def export_to_folder(service: SubmissionsApp, folder: Path) -> Backup:
    """Write everything that a restore needs into a new folder.

    The folder appears once it is complete. Raises BackupError.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BackupError(f"{folder.name!r} exists already and is not empty; name a new folder")
    try:
        with new_folder(folder, 0o700) as unfinished:
            return _write(service, unfinished)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BackupError(f"{folder.name!r} cannot be written: {reason}") from error


def restore_from_folder(settings: Settings, folder: Path, new_secret: bool = False) -> Backup:
    """Fill an empty database and file store from a folder. Records are written last, in one transaction.

    If ``new_secret`` is true, the server's secret replaces the one that the records were made with, which
    withdraws the figures of hidden labels. Otherwise it has to be the same secret.

    Raises BackupError if the folder has problems or the secret is the wrong one, NotEmpty if the database has
    records, and the errors of `ServerSecret.of`.
    """
    _check_format(folder)
    events, known = _read_records(folder), _read_secret_check(folder)
    wanted = {event.file_sha256 for event in events if event.file_sha256}
    source, missing, problems = FileStore(folder / FILES), [], event_log.check_event_log(events)
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
            if event_log.number_of_events(session):
                raise event_log.NotEmpty
        secret = _secret_for(settings, known or KnownSecret(None, 1), new_secret)
        target = open_files(settings, engine)
        for sha256 in sorted(wanted.difference(missing)):
            target.keep(source.read(sha256))
        with transaction(engine) as session:
            number = event_log.restore_events(session, events)
            if new_secret:
                replace_secret(session, secret, datetime.now(UTC))
            else:
                note_secret(session, secret)
    except OSError as error:
        raise BackupError(
            f"a file cannot be stored in ARB_STATE_DIR: {error.strerror or type(error).__name__}"
        ) from error
    finally:
        engine.dispose()
    return Backup(number, len(wanted) - len(missing), tuple(missing), known is not None)


def _secret_for(settings: Settings, known: KnownSecret, new_secret: bool) -> ServerSecret:
    """Return the secret for the restored records. Raises BackupError if the server has the wrong one."""
    try:
        secret = ServerSecret.of(settings, may_make=new_secret)
    except SecretUnavailable as problem:
        if new_secret or settings.secret is not None:
            raise
        raise BackupError(f"{problem}. {SECRET_NEEDED}") from None
    is_theirs = secret.is_known_as(known)
    if not new_secret:
        if not is_theirs:
            raise BackupError(f"this server's secret is not that of the export. {SECRET_NEEDED}")
        return secret.under(known.derivation)
    if is_theirs and known.check_value:
        raise BackupError("this server has the secret of the export; leave out --new-secret")
    return secret


SECRET_NEEDED: Final = (
    "Nothing was restored. Set ARB_SECRET to the server's secret, or copy the file `secret` from its state "
    f"folder into ARB_STATE_DIR. If it is lost, add `--new-secret` to use another one. {IF_REPLACED}"
)


def _write(service: SubmissionsApp, folder: Path) -> Backup:
    board = service.records.board()
    with suppress(SecretUnavailable, SecretRefused):
        service.secret  # noqa: B018 - its first use stores its check value with the records
    with snapshot(service.engine) as session:
        events, known = event_log.events_after(session), known_secret(session)
    files = {"board.json": board.to_bytes(), "board.csv": board_to_csv(board).encode()}
    files[MANIFEST] = canonical({"format": FORMATS["export of the records"]}) + b"\n"
    files[RECORDS] = event_log.to_lines(events)
    if known is not None and known.check_value is not None:
        files[SECRET_CHECK] = canonical(known._asdict()) + b"\n"
    for name, content in files.items():
        atomic_write(folder / name, content)
    store, missing = FileStore(folder / FILES), []
    wanted = sorted({event.file_sha256 for event in events if event.file_sha256})
    for sha256 in wanted:
        try:
            store.keep(service.files.read(sha256))
        except (FileNotFoundError, ValueError):
            missing.append(sha256)
    return Backup(len(events), len(wanted) - len(missing), tuple(missing), SECRET_CHECK in files)


def _read_secret_check(folder: Path) -> KnownSecret | None:
    """Return the check value of an export's secret, if any. Raises BackupError if the file is invalid."""
    with _unchanged(folder, SECRET_CHECK), suppress(FileNotFoundError):
        fields = json.loads((folder / SECRET_CHECK).read_bytes())
        return KnownSecret(str(fields["check_value"]), int(fields["derivation"]))
    return None


def _check_format(folder: Path) -> None:
    """Raise BackupError if a newer version wrote the export, or if the manifest is invalid."""
    with _unchanged(folder, MANIFEST), suppress(FileNotFoundError):
        if problem := format_problem("export of the records", json.loads((folder / MANIFEST).read_bytes())):
            raise BackupError(f"the export {problem}")


@contextmanager
def _unchanged(folder: Path, name: str) -> Iterator[None]:
    """Raise BackupError if the block cannot read a file of the folder."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BackupError(
            f"{name} in {folder.name!r} cannot be read ({type(error).__name__}); restore "
            "from an unchanged copy of the export"
        ) from None


def _read_records(folder: Path) -> list[Event]:
    if not folder.exists():
        raise BackupError(f"{folder}: this path does not exist; check its spelling")
    try:
        lines = (folder / RECORDS).read_bytes().splitlines()
    except OSError as error:
        raise BackupError(
            f"{folder.name!r} has no readable {RECORDS} ({error.strerror or type(error).__name__}); use "
            "a folder that `arb submissions export` wrote"
        ) from None
    events, problems = [], []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(event_log.parse_event(line))
        except event_log.EventLogBroken as problem:
            problems.append(f"{RECORDS}, line {number}: {problem}")
    if problems:
        raise BackupError(_together(problems))
    return events


def _together(problems: Iterable[str]) -> str:
    found = list(problems)
    more = [f"and {len(found) - MAX_PROBLEMS} more"] if len(found) > MAX_PROBLEMS else []
    return "; ".join([*found[:MAX_PROBLEMS], *more])
