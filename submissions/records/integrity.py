"""The records as a whole: checked from the beginning, and copied into a folder and back.

To check them, everything is computed again from the events, the stored files and the labels, and compared
with what is stored. What cannot be checked is a problem too. A copy is a folder:

    records.jsonl       every record, one canonical line each, with its nonce
    files/ab/<sha256>   the uploaded files and published label sets, as they came
    secret_check.json   the check value of the server's secret, and how its keys are derived
    board.json          the board of the moment; not needed to restore
    board.csv           the same as a table

It holds exact scores and nonces, so it is as private as the labels. The server's secret is not in it: keep
ARB_SECRET (or the file ``secret`` of the state folder) in another place.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from arb.core.files import atomic_write
from arb.core.settings import Settings
from leaderboard.board.export import board_to_csv
from leaderboard.labels.labels import LabelSet
from leaderboard.score import is_known_version, report_of_version
from submissions.app import SubmissionsApp
from submissions.errors import RecordsUnavailable
from submissions.privacy.server_secret import (
    KnownSecret,
    SecretRefused,
    SecretUnavailable,
    ServerSecret,
)
from submissions.records import event_log
from submissions.records.database import (
    Account,
    Event,
    JudgeRow,
    ScoreRow,
    Submission,
    canonical,
    open_database,
    snapshot,
    transaction,
)
from submissions.records.files import FileStore, open_files
from submissions.records.secret_check import known_secret, note_secret, replace_secret
from submissions.records.statuses import fold_statuses
from submissions.scoring.rescore import label_set_of
from submissions.scoring.scorer import score_of
from submissions.scoring.verdicts import check_stored_file

Progress = Callable[[int, int], None]
TABLES = (Account, JudgeRow, Submission, ScoreRow)


@dataclass(frozen=True)
class Verification:
    """What was checked, and everything that is wrong or could not be checked.

    ``scores_of_replaced_secrets`` counts the scores that were made with a secret that was replaced, and whose
    charge was accepted: their halves cannot be made again, and they are not shown any more.
    """

    records: int
    files: int
    scores: int
    scores_of_replaced_secrets: int
    problems: tuple[str, ...]
    board_digest: str | None


def verify(service: SubmissionsApp, progress: Progress = lambda done, all: None) -> Verification:
    """Check everything; changes nothing. Raises SecretRefused."""
    with snapshot(service.engine) as session:
        events = event_log.events_after(session)
    submitted = {event.body["submission_id"]: event for event in events if event.kind == "submitted"}
    scored = [event for event in events if event.kind == "scored"]
    found = fold_statuses(events)
    retired = set() if service.suite.labels_are_public else found.retired_versions
    unreadable, file_problems = _unreadable_files(service, events)
    labels, absent = _label_sets(service, scored, retired)
    problems = [*event_log.check_event_log(events), *_duplicates(events), *file_problems, *absent]
    to_check = [event for event in scored if event.body["label_version"] in labels]
    for place, event in enumerate(to_check, start=1):
        progress(place, len(to_check))
        version, source = event.body["label_version"], submitted.get(event.body["submission_id"])
        if source is None:
            name = event.body["submission_id"]
            problems.append(f"record {event.sequence}: a score of {name}, which was never submitted")
        elif source.file_sha256 not in unreadable:
            problem = _problem_of_score(service, event, source, labels[version], version in retired)
            problems += [f"submission {source.subject}: {problem}"] if problem else []
    problems += _problems_of_tables(service, events)
    of_replaced = sum(event.body["label_version"] in retired for event in scored)
    if of_replaced and found.are_figures_withdrawn:
        problems.append(
            f"{_count(of_replaced, 'score')} cannot be made again, since the server's secret was replaced; "
            "`python -m submissions accept-charge` scores the files with the new one"
        )
    return Verification(
        records=len(events),
        files=len(submitted),
        scores=len(to_check),
        scores_of_replaced_secrets=of_replaced,
        problems=tuple(problems),
        board_digest=service.records.board().digest if not problems else None,
    )


def _label_sets(
    service: SubmissionsApp, scored: Sequence[Event], retired: set[str]
) -> tuple[dict[str, LabelSet], list[str]]:
    """Return the test labels of every version scored under, and a problem for each that is not here."""
    versions = Counter(event.body["label_version"] for event in scored)
    labels, problems = {}, []
    served = service.labels.test
    for version, number in versions.items():
        try:
            found = served if served and served.version == version else label_set_of(service, version)
        except (SecretUnavailable, OSError) as problem:
            problems.append(f"{_count(number, 'score')} could not be checked: {problem}")
            continue
        if found is None and version in retired and served is not None:
            found = replace(served, version=version)  # no key is left that gives labels this name
        if found is None:
            why = service.labels.why_none("test") or "ARB_LABELS names other ones"
            problems.append(
                f"{_count(number, 'score')} could not be checked: the labels of version {version} "
                f"are not here ({why})"
            )
        else:
            labels[version] = found
    return labels, problems


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duplicates(events: Sequence[Event]) -> list[str]:
    seen: set[tuple] = set()
    problems = []
    for event in events:
        if event.kind not in ("submitted", "scored"):
            continue
        noun = "submission" if event.kind == "submitted" else "score"
        key = (noun, event.subject, event.body["label_version"], event.body.get("policy"))
        if key in seen:
            problems.append(f"record {event.sequence}: this {noun} of {event.subject} is recorded twice")
        seen.add(key)
    return problems


def _unreadable_files(service: SubmissionsApp, events: Sequence[Event]) -> tuple[set[str], list[str]]:
    """Return the SHA-256 of each stored file that is missing or damaged, and a problem per use of it."""
    unreadable, problems = set(), []
    for event in events:
        if event.kind not in ("submitted", "labels_published"):
            continue
        try:
            service.files.read(event.file_sha256)
        except (OSError, ValueError):
            is_labels = event.kind == "labels_published"
            what = f"label version {event.body['version']}" if is_labels else f"submission {event.subject}"
            unreadable.add(event.file_sha256)
            problems.append(f"{what}: its stored file is missing or damaged")
    return unreadable, problems


def _problem_of_score(
    service: SubmissionsApp, scored: Event, submitted: Event, labels: LabelSet, is_retired: bool
) -> str | None:
    """Compute one score again from its file and its labels; return what is wrong without naming a figure.

    The halves are not compared if the score was made with a secret that was replaced.
    """
    metric = scored.body.get("metric_version", 1)
    if not is_known_version(metric):
        return (
            f"its score could not be checked, since this version does not know version {metric} of the "
            "metric; use the newest one"
        )
    checked = check_stored_file(service, submitted.file_sha256, submitted.body["split"])
    if checked.aligned is None:
        return "its file is not acceptable now"
    compares_halves = bool(scored.body["halves"]) and not is_retired
    try:
        half_key = service.secret.key("ranking-half") if compares_halves else None
    except SecretUnavailable as problem:
        return f"its score could not be checked: {problem}"
    again = _of_version(json.loads(canonical(score_of(checked.aligned, labels, half_key))), metric)
    recorded = _of_version(scored.body, metric)
    names = ("report", "counts_by_task", "digests", *(["halves"] if compares_halves else []))
    differing = [name for name in names if again[name] != recorded[name]]
    return f"its score, made again, differs ({', '.join(differing)})" if differing else None


def _of_version(score: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a score whose reports have the fields of a version of the metric."""
    halves = {
        name: {**half, "report": report_of_version(half["report"], version)}
        for name, half in score["halves"].items()
    }
    return {**score, "report": report_of_version(score["report"], version), "halves": halves}


def _problems_of_tables(service: SubmissionsApp, events: Sequence[Event]) -> list[str]:
    """Restore the records into an empty database and compare its tables with those in use."""
    restored = open_database("sqlite://")
    try:
        with transaction(restored) as session:
            event_log.restore_events(session, events)
    except (ValueError, IntegrityError):
        return []  # the log is broken, or has something twice: these problems are named already
    with snapshot(service.engine) as used, snapshot(restored) as made:
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
SECRET_CHECK: Final = "secret_check.json"
MAX_PROBLEMS: Final = 20


class BackupError(RecordsUnavailable):
    """Raised when a folder cannot be written or restored from; the message lists every problem."""


@dataclass(frozen=True)
class Backup:
    """What a folder holds.

    ``missing`` has the SHA-256 of files that were not there to copy. ``names_secret`` is whether it says
    which secret its records were made with; exports of 7d56a80 do not.
    """

    records: int
    files: int
    missing: tuple[str, ...]
    names_secret: bool


def export_to_folder(service: SubmissionsApp, folder: Path) -> Backup:
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


def restore_from_folder(settings: Settings, folder: Path, new_secret: bool = False) -> Backup:
    """Fill an empty database and file store from such a folder; the records come last, in one transaction.

    With ``new_secret`` the records go on with another secret, which withdraws the figures of hidden labels.

    Raises:
        BackupError: With every problem of the folder, or because the secret is not the one of the export.
        NotEmpty, SecretUnavailable, SecretTooWeak: There are records here already, or see `ServerSecret.of`.
    """
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
    """Return the secret that restored records go on with. Raises BackupError if it is not theirs."""
    try:
        secret = ServerSecret.of(settings, may_make=new_secret)
    except SecretUnavailable as problem:
        if new_secret or settings.secret is not None:
            raise
        raise BackupError(f"{problem}. {SECRET_NEEDED}") from None
    is_theirs = secret.is_known_as(known)
    if new_secret and is_theirs and known.check_value:
        raise BackupError("the secret here is the one of this export: leave --new-secret out")
    if not (new_secret or is_theirs):
        raise BackupError(f"the secret here is not the one that this export was made with. {SECRET_NEEDED}")
    return secret if new_secret else secret.under(known.derivation)


SECRET_NEEDED: Final = (
    "Nothing was restored: set ARB_SECRET to that of the server, or copy the file `secret` of its "
    "state folder into ARB_STATE_DIR. If it is lost, `--new-secret` goes on with another one and "
    "withdraws private figures until an operator runs `python -m submissions accept-charge`, since "
    "their noise is drawn again"
)


def _write(service: SubmissionsApp, folder: Path) -> Backup:
    board = service.records.board()
    with suppress(SecretUnavailable, SecretRefused):
        service.secret  # noqa: B018 - noted with the records at first use
    with snapshot(service.engine) as session:
        events, known = event_log.events_after(session), known_secret(session)
    atomic_write(folder / RECORDS, event_log.to_lines(events))
    names_secret = known is not None and known.check_value is not None
    if names_secret:
        atomic_write(folder / SECRET_CHECK, canonical(known._asdict()) + b"\n")
    store, missing = FileStore(folder / FILES), []
    wanted = sorted({event.file_sha256 for event in events if event.file_sha256})
    for sha256 in wanted:
        try:
            store.keep(service.files.read(sha256))
        except (FileNotFoundError, ValueError):
            missing.append(sha256)
    atomic_write(folder / "board.json", board.to_bytes())
    atomic_write(folder / "board.csv", board_to_csv(board).encode())
    return Backup(len(events), len(wanted) - len(missing), tuple(missing), names_secret)


def _read_secret_check(folder: Path) -> KnownSecret | None:
    """Return what an export says of its secret; None if it says nothing. Raises BackupError."""
    try:
        fields = json.loads((folder / SECRET_CHECK).read_bytes())
        return KnownSecret(str(fields["check_value"]), int(fields["derivation"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BackupError(
            f"{SECRET_CHECK} in {folder.name!r} cannot be read ({type(error).__name__}); restore "
            "from an unchanged copy of the export"
        ) from None


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
