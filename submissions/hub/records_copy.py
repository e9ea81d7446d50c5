"""The copy of the records on the Hub: restored from when a server starts, then committed to in batches.

The table of commits says up to which record the Hub holds them all.
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from arb.core.hub import CommitRateLimiter, HubError
from submissions.hub.repository import (
    WRITER,
    EventFile,
    EventFilesDamaged,
    Head,
    RecordsRepository,
    file_path,
    read_lines,
    writer_file,
)
from submissions.privacy.server_secret import KnownSecret, SecretUnavailable, ServerSecret
from submissions.records.database import Commit, Event, snapshot, transaction
from submissions.records.event_log import NO_HASH, events_after, insert, lock_event_log, to_lines
from submissions.records.event_log import head as head_of_log
from submissions.records.files import FileStore
from submissions.records.secret_check import (
    check_accepted,
    known_secret,
    last_replacement,
    replace_secret,
)
from submissions.resources import Resources

logger = logging.getLogger(__name__)
MOST_RECORDS: Final = 500
MOST_BYTES: Final = 50_000_000


def next_batch(events: Sequence[Event], files: FileStore) -> tuple[int, dict[str, bytes]]:
    """Return how many of the records go into one commit, and the content of the commit by path.

    A record and its file are never in two commits.
    """
    taken: list[Event] = []
    contents: dict[str, bytes] = {}
    size = 0
    for event in events[:MOST_RECORDS]:
        content = b""
        if sha256 := event.file_sha256:
            try:
                content = files.read(sha256)
            except (OSError, ValueError):
                logger.error("record %d goes to the Hub without its file %s", event.sequence, sha256)
        size += len(content) + len(event.line())
        if taken and size > MOST_BYTES:
            break
        taken.append(event)
        if content:
            contents[file_path(sha256)] = content
    if taken:
        contents[EventFile(taken[0].sequence, taken[-1].sequence).path] = to_lines(taken)
    return len(taken), contents


def committed_through(session: Session) -> int:
    """The sequence up to which every record is on the Hub; 0 for none."""
    return session.scalar(select(func.max(Commit.through_sequence))) or 0


def note_commit(session: Session, through: int, commit: str, at: datetime) -> None:
    """Note that the Hub holds the records up to ``through`` and none behind it."""
    session.execute(delete(Commit).where(Commit.through_sequence > through))
    if through and session.get(Commit, through) is None:
        session.add(Commit(through_sequence=through, commit=commit, committed_at=at))


SECONDS_BETWEEN_LINES: Final = 5.0
STARTS: Final = "A server starts to write"


class Forked(Exception):
    """The records here and those on the Hub differ at the same sequence."""


class ReplacedByAnotherServer(Exception):
    """Another server writes to the repository now."""


class Stopping(Exception):
    """The server is shutting down."""


class RecordsCopy:
    """Restores records from the Hub and commits to it those that it does not hold yet. Used by one thread.

    Before the first batch it names itself in ``writer.json``, in a commit of its own: what a server before it
    has still on the way is refused by the Hub from then on, since the head has moved. Where several processes
    write the records of one database (``is_shared``) there is no need: all of them write the same. A commit
    whose answer got lost is looked up: the head tells whether it was made. What was fetched before a stop is
    not fetched again.
    """

    def __init__(
        self,
        app: Resources,
        repository: RecordsRepository,
        limiter: CommitRateLimiter,
        stop: threading.Event,
    ) -> None:
        self._app, self._repository, self._limiter, self._stop = app, repository, limiter, stop
        self.is_shared = app.engine.dialect.name == "postgresql"
        self._name = secrets.token_hex(16)
        self._head: Head | None = None
        self._is_named = False
        self._logged_at = 0.0

    def connect(self) -> None:
        """Restore what the Hub holds and become the one that writes there.

        Raises HubError, Forked, EventFilesDamaged, SecretChanged, and ReplacedByAnotherServer where another
        writes by now.
        """
        if self._head is not None:
            return
        head = self._repository.head()
        if self._is_named and head.writer != self._name:
            raise ReplacedByAnotherServer
        self._pull(head)
        is_unnamed = not self.is_shared and head.writer != self._name
        with snapshot(self._app.engine) as session:
            known = known_secret(session)
        if is_unnamed or (head.secret is None and known is not None and known.check_value):
            # The first secret of the records stays in the file; the log holds every later one.
            first = head.secret or known
            commit = self._commit(head, {WRITER: writer_file(self._name, first)}, STARTS)
            head = Head(commit, head.files, self._name, first)
        self._head, self._is_named = head, not self.is_shared

    def disconnect(self) -> None:
        """Another process may write from now on."""
        self._head, self._is_named = None, False

    def commit_some(self) -> int:
        """Commit records that wait, in one commit; return how many. Raises as `connect`."""
        self.connect()
        head = self._head
        with snapshot(self._app.engine) as session:
            events = events_after(session, head.last, most=MOST_RECORDS)
        number, contents = next_batch(events, self._app.files)
        if not number:
            return 0
        file = EventFile(events[0].sequence, events[number - 1].sequence)
        commit = self._commit(head, contents, f"Records {file.first} to {file.last}")
        self._head = Head(commit, (*head.files, file), self._name)
        with transaction(self._app.engine) as session:
            note_commit(session, file.last, commit, self._app.clock())
        return number

    def _commit(self, head: Head, contents: dict[str, bytes], message: str) -> str:
        while seconds := self._limiter.seconds_to_wait():
            logger.info("commits to the Hub go on in %.0f s: the limit of an hour is reached", seconds)
            if self._stop.wait(seconds):
                raise Stopping
        self._head = None  # until an answer says otherwise
        self._limiter.note()
        return self._repository.commit(head.commit, contents, message)

    def pull(self) -> None:
        """Restore what the Hub holds, without writing there: for a process that does not commit."""
        self._pull(self._repository.head())

    def _pull(self, head: Head) -> None:
        """Insert the newer records and fetch every file that is not here.

        Records that are only here are left for the next commit. Raises Forked, EventFilesDamaged, HubError,
        and SecretChanged if the Hub's records were made with another secret.
        """
        if head.last:  # 7d56a80 did not always write the check value
            self._app.adopt_secret(head.secret or KnownSecret(None, 1))
        with snapshot(self._app.engine) as session:
            ours, own_hash = head_of_log(session)
            common = min(ours, head.last)
            shared_hash = NO_HASH
            if common:
                shared_hash = session.scalar(select(Event.hash).where(Event.sequence == common))
            with_files = events_after(session, kinds=("submitted", "labels_published"))
            wanted = {event.file_sha256 for event in with_files}
        newer = self._newer_records(head, common, shared_hash)
        newer = [event for event in newer if event.sequence > ours]
        wanted |= {event.file_sha256 for event in newer if event.file_sha256}
        self._pull_files(wanted, head.commit)
        with transaction(self._app.engine) as session:
            lock_event_log(session)
            if head_of_log(session)[0] < ours or (newer and head_of_log(session) != (ours, own_hash)):
                raise HubError("records were added here while others were fetched; looking again")
            replaced_by = self._replaced_by(session, newer, head)
            for event in newer:
                insert(session, event)
            if replaced_by is not None:
                replace_secret(session, replaced_by, self._app.clock())
            note_commit(session, head.last, head.commit, self._app.clock())
        if newer:
            logger.info("restored from the Hub: the records %d to %d", newer[0].sequence, newer[-1].sequence)
        self._repository.clear()

    def _replaced_by(self, session: Session, newer: Sequence[Event], head: Head) -> ServerSecret | None:
        """Return our secret if it was accepted in place of the one that the Hub's records were made with."""
        if not head.last:
            return None
        try:
            secret = self._app.secret
        except SecretUnavailable:
            return None
        known = last_replacement(newer) or last_replacement(events_after(session, kinds=["secret_replaced"]))
        known = known or head.secret
        if known is None or secret.is_known_as(known):
            return None
        check_accepted(secret, self._app.settings)
        return secret

    def _newer_records(self, head: Head, common: int, shared_hash: str | None) -> list[Event]:
        """The Hub's records from the last one that should be the same on both sides."""
        files = [file for file in head.files if file.last >= max(common, 1)]
        paths = self._repository.read({file.path: file.size for file in files}, head.commit, self._progress)
        events = [event for file in files for event in read_lines(paths[file.path].read_bytes(), file)]
        previous = events[0].previous if common and events else NO_HASH
        for event in events:
            if event.previous != previous:
                raise EventFilesDamaged(f"record {event.sequence} on the Hub does not follow the one before")
            previous = event.hash
            if event.sequence == common and event.hash != shared_hash:
                raise Forked(f"record {common} here and on the Hub ({self._repository.repo}) are different")
        return events

    def _pull_files(self, wanted: Iterable[str], commit: str) -> None:
        absent = self._app.files.absent(wanted)
        if not absent:
            return
        there = self._repository.sizes("files", commit)
        for sha256 in absent:
            if file_path(sha256) not in there:
                logger.error("the file %s is neither here nor on the Hub", sha256)
        found = [sha256 for sha256 in absent if file_path(sha256) in there]
        logger.info("restoring %d files from the Hub", len(found))
        sizes = {file_path(sha256): there[file_path(sha256)] for sha256 in found}
        fetched = self._repository.read(sizes, commit, self._progress)
        for sha256 in found:
            if self._app.files.keep(fetched[file_path(sha256)].read_bytes()) != sha256:
                logger.error("the file %s on the Hub does not have that SHA-256", sha256)

    def _progress(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopping
        if time.monotonic() - self._logged_at >= SECONDS_BETWEEN_LINES:
            self._logged_at = time.monotonic()
            logger.info("restoring from the Hub: %d of %d bytes", done, total)
