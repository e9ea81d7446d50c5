"""The event log, and the rows that follow from its events: accounts, judges, submissions and scores.

The log is append-only, and each event contains the hash of the previous one. Rows of the other tables are
written in the transaction of the event that they follow from. Nothing is edited.

Hashes are public (on receipts and the About page), but bodies are not. The body of a score contains exact
counts, so its hash would confirm a correct guess at hidden labels. Therefore every event has a secret nonce
of 32 bytes, which is hashed and stored with it and never served.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final, Literal, get_args

from sqlalchemy import Engine, Select, func, select, text
from sqlalchemy.orm import Session

from arb.core.judge_info import JudgeInfo
from submissions.errors import RecordsUnavailable
from submissions.records.database import (
    Account,
    Event,
    JudgeRow,
    ScoreRow,
    Submission,
    canonical,
    transaction,
)

Kind = Literal[
    "submitted", "scored", "refunded", "held", "released", "withdrawn", "renamed", "published", "hidden",
    "shown", "verified", "rejected", "banned", "unbanned", "label_exposed", "rescored", "labels_published",
    "invited", "uninvited", "assigned", "annotated", "gold_marked", "resolved", "disputed", "dispute_decided",
    "error_tagged", "counted", "refreshed", "identified", "confirmed", "unconfirmed", "unpublished",
    "secret_replaced", "charge_accepted",
]  # fmt: skip
KINDS: Final = frozenset(get_args(Kind))
ANNOTATION_KINDS: Final = frozenset(
    ("invited", "uninvited", "assigned", "annotated", "gold_marked", "resolved")
)
DISPUTE_KINDS: Final = frozenset(("disputed", "dispute_decided"))
ERROR_TAG_KINDS: Final = frozenset(("error_tagged",))
FIGURE_KINDS: Final = frozenset(("submitted", "released", "counted", "refreshed", "published"))
"""Kinds of events that charge for showing figures. The figures are shown once these events are durable."""
KINDS_OFF_THE_BOARD: Final = ANNOTATION_KINDS | DISPUTE_KINDS | ERROR_TAG_KINDS
"""Kinds that no board depends on, so that boards are not rebuilt when annotators save."""
STATUS_KINDS: Final = KINDS - KINDS_OFF_THE_BOARD - {"submitted", "scored", "rescored", "labels_published"}
"""Kinds that change statuses of submissions or accounts, names of judges, or the leak budget."""
NO_HASH: Final = "0" * 64
"""The previous hash of the first event."""

_FIELDS: Final = frozenset(("sequence", "kind", "at", "actor", "body", "previous", "hash", "nonce"))
_NONCE: Final = re.compile("[0-9a-f]{64}")
_APPENDING: Final = 20261121
"""The key of the PostgreSQL advisory lock that is held while an event is added."""


DECLARED = tuple(each.name for each in fields(JudgeInfo) if each.name not in ("account", "judge"))
FILED = (
    "suite", "split", "file_sha256", "content_hash", "file_name", "size_bytes", "rows", "coverage",
    "label_version",
)  # fmt: skip
SCORED = ("submission_id", "label_version", "policy", "report", "counts_by_task", "digests", "halves")
"""Fields of event bodies that are also columns of the tables."""


class EventLogBroken(Exception):
    """Raised for an event that is invalid or was changed; the message names the problem."""


class NotEmpty(RecordsUnavailable):
    """Raised when records are restored into a database that already has some."""

    def __init__(self) -> None:
        super().__init__("there are records already; restore into an empty ARB_STATE_DIR or DATABASE_URL")


def random_nonce() -> bytes:
    return secrets.token_bytes(32)


def add_event(session: Session, kind: Kind, actor: str, at: datetime, body: dict[str, Any]) -> Event:
    """Lock the log, add an event and the rows that follow from it, and return the event."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind of event {kind!r}")
    _lock(session)
    sequence, previous = head(session)
    content = json.loads(canonical(body))
    event = Event(sequence + 1, kind, at, actor, content, previous, "", random_nonce().hex())
    event.hash = hash_of(event)
    return insert(session, event)


@contextmanager
def recording(engine: Engine) -> Iterator[Session]:
    """Yield a session during which nobody else can add events, so that what it reads stays valid."""
    with transaction(engine) as session:
        _lock(session)
        yield session


def _lock(session: Session) -> None:
    if session.get_bind().dialect.name == "postgresql":  # on SQLite, writing transactions wait anyway
        session.execute(text(f"SELECT pg_advisory_xact_lock({_APPENDING})"))


def insert(session: Session, event: Event) -> Event:
    """Store a complete event and the rows that follow from it, and return the stored event."""
    event = replace(event)  # the caller's object may belong to another session
    session.add(event)
    session.flush()
    _apply(session, event)
    return event


def _apply(session: Session, event: Event) -> None:
    """Write the rows that follow from an event. Most kinds have no rows; see `statuses` for their effect."""
    body = event.body
    if event.kind == "submitted":
        judge = find_judge(session, body["account"], body["judge"])
        if judge is None:
            owner = session.scalar(select(Account).where(Account.name == body["account"]))
            owner = owner or Account(name=body["account"], created_at=event.at)
            judge = JudgeRow(account=owner, name=body["judge"], created_at=event.at)
        values = {name: body[name] for name in (*DECLARED, *FILED)}
        session.add(Submission(id=body["submission_id"], judge=judge, submitted_at=event.at, **values))
    elif event.kind == "scored":
        session.add(ScoreRow(scored_at=event.at, **{name: body[name] for name in SCORED}))
    session.flush()


def restore_events(session: Session, events: Iterable[Event]) -> int:
    """Write a whole log into an empty database and return its number of events.

    Raises NotEmpty, or ValueError with every problem of a broken log.
    """
    log = list(events)
    if number_of_events(session):
        raise NotEmpty
    if problems := check_event_log(log):
        raise ValueError("; ".join(problems))
    for event in log:
        insert(session, event)
    return len(log)


def head(session: Session) -> tuple[int, str]:
    """Return the sequence and the hash of the last event, or 0 and `NO_HASH` in an empty log."""
    newest_first = select(Event.sequence, Event.hash).order_by(Event.sequence.desc())
    last = session.execute(newest_first.limit(1)).one_or_none()
    return (0, NO_HASH) if last is None else (last.sequence, last.hash)


def number_of_events(session: Session) -> int:
    """Return the number of events in the log, which is also the sequence of the last one."""
    return session.scalar(select(func.max(Event.sequence))) or 0


def events_after(
    session: Session, sequence: int = 0, kinds: Iterable[str] | None = None, most: int | None = None
) -> list[Event]:
    """Return the events after ``sequence`` in order, limited to ``kinds`` and to ``most`` if given."""
    wanted = _events_of(kinds).where(Event.sequence > sequence).order_by(Event.sequence)
    return list(session.scalars(wanted.limit(most)))


def events_before(
    session: Session, sequence: int | None = None, kinds: Iterable[str] | None = None, most: int = 50
) -> list[Event]:
    """Return up to ``most`` events before ``sequence``, newest first; None starts at the last event."""
    wanted = _events_of(kinds).order_by(Event.sequence.desc()).limit(most)
    return list(session.scalars(wanted if sequence is None else wanted.where(Event.sequence < sequence)))


def _events_of(kinds: Iterable[str] | None) -> Select[Event]:
    every = select(Event)
    return every if kinds is None else every.where(Event.kind.in_(sorted(kinds)))


def events_of_submission(session: Session, submission_id: str) -> list[Event]:
    """Return every event about a submission in order; the first one records the upload."""
    wanted = select(Event).where(Event.subject == submission_id).order_by(Event.sequence)
    return list(session.scalars(wanted))


def parse_event(line: bytes) -> Event:
    """Parse a line of a copied log. Raises EventLogBroken if the event is invalid or its hash is wrong."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.keys() != _FIELDS:
            raise ValueError("fields are missing or unknown")
        if fields["kind"] not in KINDS:
            raise ValueError(f"its kind {fields['kind']!r} is unknown; a newer version may know it")
        nonce = fields["nonce"]
        if not isinstance(fields["body"], dict) or not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
            raise ValueError("its body or nonce is invalid")
        event = Event(**{**fields, "at": datetime.fromisoformat(fields["at"])})
    except (ValueError, TypeError, RecursionError) as error:
        raise EventLogBroken(f"this is not a record ({error})") from None
    if hash_of(event) != event.hash:
        raise EventLogBroken(f"record {event.sequence}: its content was changed (the hash differs)")
    return event


def to_lines(events: Iterable[Event]) -> bytes:
    """Return events as lines of canonical JSON, for copies that are not public."""
    return b"".join(event.line() + b"\n" for event in events)


def check_event_log(events: Sequence[Event]) -> list[str]:
    """Return every problem of a complete log, which starts with event 1."""
    problems: list[str] = []
    previous = NO_HASH
    for place, event in enumerate(events, start=1):
        if event.sequence != place:
            return [*problems, f"record {place} is missing; the next one is {event.sequence}"]
        if event.previous != previous:
            problems.append(f"record {place} does not contain the hash of record {place - 1}")
        if hash_of(event) != event.hash:
            problems.append(f"record {place}: its content was changed (the hash differs)")
        if event.nonce is None:
            problems.append(f"record {place} has no nonce")
        previous = event.hash
    return problems


def hash_of(event: Event) -> str:
    """Return the hexadecimal SHA-256 of everything in an event except the hash itself."""
    return hashlib.sha256(canonical(event.hashed_fields())).hexdigest()


def find_judge(session: Session, account: str, judge: str) -> JudgeRow | None:
    """Return the judge that an account first submitted under this name, or None."""
    found = select(JudgeRow).join(Account).where(Account.name == account, JudgeRow.name == judge)
    return session.scalar(found)
