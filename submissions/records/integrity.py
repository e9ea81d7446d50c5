"""Verifies the records: computes everything again from the events, the stored files and the labels."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from arb.core.console import counted
from leaderboard.labels.labels import LabelSet
from leaderboard.score import is_known_version, report_of_version
from submissions.app import SubmissionsApp
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records import database, event_log
from submissions.records.database import Event, canonical, snapshot
from submissions.records.statuses import fold_statuses
from submissions.scoring.rescore import label_set_of
from submissions.scoring.scorer import score_of
from submissions.scoring.verdicts import check_stored_file

Progress = Callable[[int, int], None]
TABLES = (database.Account, database.JudgeRow, database.Submission, database.ScoreRow)


@dataclass(frozen=True)
class Verification:
    """How many records, files and scores were checked, and every problem, including checks that failed.

    ``scores_of_replaced_secrets`` counts the scores that were computed with an earlier secret. Their halves
    cannot be computed again, and they are no longer shown.
    """

    records: int
    files: int
    scores: int
    scores_of_replaced_secrets: int
    problems: tuple[str, ...]
    board_digest: str | None


def verify(service: SubmissionsApp, progress: Progress = lambda done, all: None) -> Verification:
    """Check all records, files and scores without changing anything. Raises SecretRefused."""
    with snapshot(service.engine) as session:
        events = event_log.events_after(session)
    submitted = {event.body["submission_id"]: event for event in events if event.kind == "submitted"}
    scored = [event for event in events if event.kind == "scored"]
    found = fold_statuses(events)
    retired = set() if service.suite.labels_are_public else found.retired_versions
    problems = [*event_log.check_event_log(events), *_duplicates(events)]
    unreadable = _unreadable(service, events, problems)
    labels = _label_sets(service, scored, retired, problems)
    to_check = [event for event in scored if event.body["label_version"] in labels]
    for place, event in enumerate(to_check, start=1):
        progress(place, len(to_check))
        version, source = event.body["label_version"], submitted.get(event.body["submission_id"])
        if source is None:
            name = event.body["submission_id"]
            problems.append(f"record {event.sequence}: it scores {name}, which was never submitted")
        elif source.file_sha256 not in unreadable:
            problem = _problem_of_score(service, event, source, labels[version], version in retired)
            problems += [f"submission {source.subject}: {problem}"] if problem else []
    problems += _problems_of_tables(service, events)
    of_replaced = sum(event.body["label_version"] in retired for event in scored)
    if of_replaced and found.are_figures_withdrawn:
        problems.append(
            f"{counted(of_replaced, 'score')} cannot be recomputed, because the server's secret was "
            "replaced; run `arb submissions accept-charge` to score the files with the new secret"
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
    service: SubmissionsApp, scored: Sequence[Event], retired: set[str], problems: list[str]
) -> dict[str, LabelSet]:
    """Return the test labels of all versions with scores, keyed by version; note a problem if missing."""
    versions = Counter(event.body["label_version"] for event in scored)
    labels, served = {}, service.labels.test
    for version, number in versions.items():
        try:
            found = served if served and served.version == version else label_set_of(service, version)
        except (SecretUnavailable, OSError) as problem:
            problems.append(f"{counted(number, 'score')} could not be checked: {problem}")
            continue
        if version in retired and (found := found or served) is not None:
            found = replace(found, version=version)  # its name was derived from the replaced secret
        if found is None:
            why = service.labels.why_none("test") or f"{service.settings.labels_variable} names other labels"
            problems.append(
                f"{counted(number, 'score')} could not be checked: the labels of version {version} "
                f"are missing ({why})"
            )
        else:
            labels[version] = found
    return labels


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


def _unreadable(service: SubmissionsApp, events: Sequence[Event], problems: list[str]) -> set[str | None]:
    """Return the SHA-256 of each missing or damaged file, and note a problem for each event that names it."""
    unreadable = set()
    for event in events:
        try:
            if event.file_sha256 is not None:
                service.files.read(event.file_sha256)
        except (OSError, ValueError):
            is_labels = event.kind == "labels_published"
            what = f"label version {event.body['version']}" if is_labels else f"submission {event.subject}"
            unreadable.add(event.file_sha256)
            problems.append(f"{what}: its stored file is missing or damaged")
    return unreadable


def _problem_of_score(
    service: SubmissionsApp, scored: Event, submitted: Event, labels: LabelSet, is_retired: bool
) -> str | None:
    """Recompute a score from its file and labels; return what is wrong (without figures), or None.

    The halves are not compared if the score was made with an earlier secret (``is_retired``).
    """
    metric = scored.body.get("metric_version", 1)
    if not is_known_version(metric):
        return (
            f"its score could not be checked, because version {metric} of the metric is newer than this "
            "program; update the program"
        )
    checked = check_stored_file(service, submitted.body["file_sha256"], submitted.body["split"])
    if checked.aligned is None:
        return "its file is no longer acceptable"
    compares_halves = bool(scored.body["halves"]) and not is_retired
    try:
        half_key = service.secret.key("ranking-half") if compares_halves else None
    except SecretUnavailable as problem:
        return f"its score could not be checked: {problem}"
    again = _of_version(json.loads(canonical(score_of(checked.aligned, labels, half_key))), metric)
    recorded = _of_version(scored.body, metric)
    names = ("report", "counts_by_task", "digests", *(["halves"] if compares_halves else []))
    differing = [name for name in names if again[name] != recorded[name]]
    return f"its recomputed score differs ({', '.join(differing)})" if differing else None


def _of_version(score: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a score whose reports have only the fields of one version of the metric."""
    halves = {
        name: {**half, "report": report_of_version(half["report"], version)}
        for name, half in score["halves"].items()
    }
    return {**score, "report": report_of_version(score["report"], version), "halves": halves}


def _problems_of_tables(service: SubmissionsApp, events: Sequence[Event]) -> list[str]:
    """Return a problem for each table that differs from the table rebuilt from the records."""
    restored = database.open_database("sqlite://")
    try:
        with database.transaction(restored) as session:
            event_log.restore_events(session, events)
    except (ValueError, IntegrityError):
        return []  # the log is broken or has duplicates, which are listed already
    with snapshot(service.engine) as used, snapshot(restored) as made:
        return [
            f"the table {table.__tablename__} differs from the records"
            for table in TABLES
            if _rows(used, table) != _rows(made, table)
        ]


def _rows(session: Session, table: type[database.Base]) -> list[Any]:
    """Return the sorted rows of a table, without the ids that the database assigns."""
    numbers = {"judge_id", "account_id"} if table is database.Submission else {"id", "judge_id", "account_id"}
    columns = [column for column in table.__table__.columns if column.name not in numbers]
    return sorted(session.execute(select(*columns)).all(), key=repr)
