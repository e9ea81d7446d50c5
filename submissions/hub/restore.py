"""Restoring events and files from the Hub: all of them, or those that an old disk lacks.

The table of commits says up to which record the Hub holds them all.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Engine, delete, func, select
from sqlalchemy.orm import Session

from arb.core.hub import HubError
from submissions.hub.repository import EventFilesDamaged, Head, RecordsRepository, file_path, read_lines
from submissions.privacy.server_secret import KnownSecret, ServerSecret
from submissions.records.database import Commit, Event, Submission, snapshot, transaction
from submissions.records.event_log import NO_HASH, events_after, insert, lock_event_log
from submissions.records.event_log import head as head_of_log
from submissions.records.files import FileStore
from submissions.records.secret_check import last_replacement, replace_secret


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
    return session.scalar(select(Event.hash).where(Event.sequence == sequence))


def stored_files(session: Session) -> set[str]:
    """The SHA-256 of every file that was submitted, and of every label set that was published."""
    published = events_after(session, kinds=["labels_published"])
    submitted = session.scalars(select(Submission.file_sha256).distinct())
    return {*submitted, *(event.file_sha256 for event in published)}


logger = logging.getLogger(__name__)
FILES_AT_ONCE: Final = 200
SECONDS_BETWEEN_LINES: Final = 5.0


class Forked(Exception):
    """The records here and those on the Hub differ at the same sequence."""


class Stopping(Exception):
    """The server is shutting down."""


@dataclass
class Restorer:
    """Updates a database and a file store to what the repository holds. What was fetched before a stop is not
    fetched again."""

    engine: Callable[[], Engine]
    files: FileStore
    repository: RecordsRepository
    clock: Callable[[], datetime]
    stop: threading.Event
    secret: Callable[[], ServerSecret | None] = lambda: None
    """The server's secret; None if it has none."""
    adopt: Callable[[KnownSecret], object] = lambda known: None
    """Called with what the Hub says of the secret, before the first record comes."""
    check_accepted: Callable[[ServerSecret], object] = lambda secret: None
    """Raises SecretChanged if nobody accepted this secret in place of another one."""
    _logged_at: float = field(default=0.0, init=False)

    def pull(self, head: Head) -> int:
        """Insert the newer records and fetch every file that is not here; how many records were new.

        Records that are only here are left for the next commit. Raises Forked, EventFilesDamaged, HubError,
        and SecretChanged if the Hub's records were made with another secret.
        """
        if head.last:  # 7d56a80 did not always write the check value
            self.adopt(head.secret or KnownSecret(None, 1))
        with snapshot(self.engine()) as session:
            ours, hash_here = head_of_log(session)
            common = min(ours, head.last)
            shared_hash = hash_of_event(session, common) if common else NO_HASH
            wanted = stored_files(session)
        newer = self._newer_records(head, common, shared_hash)
        newer = [event for event in newer if event.sequence > ours]
        wanted |= {event.file_sha256 for event in newer if event.file_sha256}
        self._pull_files(wanted, head.commit)
        with transaction(self.engine()) as session:
            lock_event_log(session)
            if head_of_log(session)[0] < ours or (newer and head_of_log(session) != (ours, hash_here)):
                raise HubError("records were added here while others were fetched; looking again")
            replaced_by = self._replaced_by(session, newer, head)
            for event in newer:
                insert(session, event)
            if replaced_by is not None:
                replace_secret(session, replaced_by, self.clock())
            note_commit(session, head.last, head.commit, self.clock())
        if newer:
            logger.info("restored from the Hub: the records %d to %d", newer[0].sequence, newer[-1].sequence)
        self.repository.clear()
        return len(newer)

    def _replaced_by(self, session: Session, newer: Sequence[Event], head: Head) -> ServerSecret | None:
        """Return our secret if it was accepted in place of the one that the Hub's records were made with."""
        if not head.last or (secret := self.secret()) is None:
            return None
        known = last_replacement(newer) or last_replacement(events_after(session, kinds=["secret_replaced"]))
        known = known or head.secret
        if known is None or secret.is_known_as(known):
            return None
        self.check_accepted(secret)
        return secret

    def _newer_records(self, head: Head, common: int, shared_hash: str | None) -> list[Event]:
        """The Hub's records from the last one that should be the same on both sides."""
        spans = [span for span in head.spans if span.last >= max(common, 1)]
        paths = self.repository.read({span.path: span.size for span in spans}, head.commit, self._progress)
        events = [event for span in spans for event in read_lines(paths[span.path].read_bytes(), span)]
        previous = events[0].previous if common and events else NO_HASH
        for event in events:
            if event.previous != previous:
                raise EventFilesDamaged(f"record {event.sequence} on the Hub does not follow the one before")
            previous = event.hash
            if event.sequence == common and event.hash != shared_hash:
                raise Forked(f"record {common} here and on the Hub ({self.repository.repo}) are different")
        return events

    def _pull_files(self, wanted: Iterable[str], commit: str) -> None:
        absent = self.files.absent(wanted)
        if not absent:
            return
        there = self.repository.sizes("files", commit)
        for sha256 in absent:
            if file_path(sha256) not in there:
                logger.error("the file %s is neither here nor on the Hub", sha256)
        found = [sha256 for sha256 in absent if file_path(sha256) in there]
        logger.info("restoring %d files from the Hub", len(found))
        for start in range(0, len(found), FILES_AT_ONCE):
            some = found[start : start + FILES_AT_ONCE]
            sizes = {file_path(sha256): there[file_path(sha256)] for sha256 in some}
            fetched = self.repository.read(sizes, commit, self._progress)
            for sha256 in some:
                content = fetched[file_path(sha256)]
                if self.files.keep(content.read_bytes()) != sha256:
                    logger.error("the file %s on the Hub does not have that SHA-256", sha256)
                content.unlink()

    def _progress(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopping
        if time.monotonic() - self._logged_at >= SECONDS_BETWEEN_LINES:
            self._logged_at = time.monotonic()
            logger.info("restoring from the Hub: %d of %d bytes", done, total)
