"""What can be looked up, made from the records: accounts, judges, submissions, scores."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from submissions.records.event_log import Event, Kind, append, check_event_log, insert, number_of_events
from submissions.records.models import Account, Judge, Score, Submission

DECLARED = ("kind", "inputs", "model", "authors", "link", "test_labels_used")
FILED = (
    "suite",
    "split",
    "file_sha256",
    "content_hash",
    "file_name",
    "size_bytes",
    "rows",
    "coverage",
    "label_version",
)
SCORED = ("submission_id", "label_version", "policy", "report", "counts_by_task", "digests", "halves")


class NotEmpty(Exception):
    """Records were to be restored into a place that holds some."""


def add_event(session: Session, kind: Kind, actor: str, at: datetime, body: dict[str, Any]) -> Event:
    """Add a record and what follows from it, in the session's transaction."""
    record = append(session, kind, actor, at, body)
    apply(session, record)
    return record


def apply(session: Session, record: Event) -> None:
    """Write the rows that follow from a record; most kinds have none (`standing` reads those)."""
    body = record.body
    if record.kind == "submitted":
        judge = find_or_add_judge(session, body["account"], body["judge"], record.at)
        values = {name: body[name] for name in (*DECLARED, *FILED)}
        session.add(Submission(id=body["submission_id"], judge_id=judge.id, submitted_at=record.at, **values))
    elif record.kind == "scored":
        session.add(Score(scored_at=record.at, **{name: body[name] for name in SCORED}))
    session.flush()


def restore_events(session: Session, records: Iterable[Event]) -> int:
    """Write a whole chain into an empty database; how many records it has.

    Raises NotEmpty where there are records, ValueError naming every problem of the chain.
    """
    chain = list(records)
    if number_of_events(session):
        raise NotEmpty("this place already has records; restore into an empty ARB_STATE_DIR or DATABASE_URL")
    if problems := check_event_log(chain):
        raise ValueError("; ".join(problems))
    for record in chain:
        insert(session, record)
        apply(session, record)
    return len(chain)


def find_judge(session: Session, account: str, judge: str) -> Judge | None:
    """A judge by its account and the name that it was first submitted under."""
    found = select(Judge).join(Account).where(Account.name == account, Judge.name == judge)
    return session.scalar(found)


def find_or_add_judge(session: Session, account: str, judge: str, now: datetime) -> Judge:
    """The same, made with its account where it is not there."""
    owner = session.scalar(select(Account).where(Account.name == account))
    if owner is None:
        owner = Account(name=account, created_at=now)
        session.add(owner)
        session.flush()
    found = session.scalar(select(Judge).where(Judge.account_id == owner.id, Judge.name == judge))
    if found is None:
        found = Judge(account_id=owner.id, name=judge, created_at=now)
        session.add(found)
        session.flush()
    return found
