"""What the database knows of the Hub: up to which record a commit there holds them all."""

from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from submissions.chain import events_after
from submissions.records import Commit, EventRow, Submission


def committed_through(session: Session) -> int:
    """The sequence up to which every record is on the Hub; 0 for none."""
    return session.scalar(select(func.max(Commit.through_sequence))) or 0


def note_commit(session: Session, through: int, commit: str, at: datetime) -> None:
    """Note that the Hub holds the records up to ``through`` and none behind it."""
    session.execute(delete(Commit).where(Commit.through_sequence > through))
    if through and session.get(Commit, through) is None:
        session.add(Commit(through_sequence=through, commit=commit, committed_at=at))


def hash_of_event(session: Session, sequence: int) -> str | None:
    """The hash of a record here; None where there is no such record."""
    return session.scalar(select(EventRow.hash).where(EventRow.sequence == sequence))


def stored_files(session: Session) -> set[str]:
    """The SHA-256 of every file that was submitted, and of every label set that was published."""
    published = events_after(session, kinds=["labels_published"])
    submitted = session.scalars(select(Submission.file_sha256).distinct())
    return {*submitted, *(record.file_sha256 for record in published)}
