"""The copy of the records on the Hub: a server restores it at startup, then commits new records in batches.

The table ``commits`` stores the number of the last record on the Hub; all earlier ones are there too.
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
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
from submissions.privacy.server_secret import KnownSecret, SecretUnavailable
from submissions.records.database import Commit, Event, snapshot, transaction
from submissions.records.event_log import NO_HASH, events_after, insert, recording, to_lines
from submissions.records.event_log import head as head_of_log
from submissions.records.files import FileStore
from submissions.records.secret_check import check_accepted, known_secret, last_replacement, replace_secret
from submissions.resources import Resources

logger = logging.getLogger(__name__)
MOST_RECORDS: Final = 500
MOST_BYTES: Final = 50_000_000


def next_batch(events: Sequence[Event], files: FileStore) -> tuple[int, dict[str, bytes]]:
    """Return how many of the records fit into one commit, and that commit's file contents, keyed by path.

    A record and its uploaded file are always in the same commit.
    """
    number, size = 0, 0
    contents: dict[str, bytes] = {}
    for event in events[:MOST_RECORDS]:
        sha256, content = event.file_sha256, b""
        if sha256:
            try:
                content = files.read(sha256)
            except (OSError, ValueError):
                logger.error("record %d is committed to the Hub without its file %s", event.sequence, sha256)
        size += len(content) + len(event.line())
        if number and size > MOST_BYTES:
            break
        number += 1
        if sha256 and content:
            contents[file_path(sha256)] = content
    if number:
        file = EventFile(events[0].sequence, events[number - 1].sequence)
        contents[file.path] = to_lines(events[:number])
    return number, contents


def committed_through(session: Session) -> int:
    """Return the number of the last record on the Hub (0 for none); all earlier ones are there too."""
    return session.scalar(select(func.max(Commit.through_sequence))) or 0


def note_commit(session: Session, through: int, commit: str, at: datetime, is_last: bool = True) -> None:
    """Store that the Hub has the records up to number ``through``, as of ``commit``.

    If ``is_last``, the Hub has no later records, and stored commits of later records are removed.
    """
    if is_last:
        session.execute(delete(Commit).where(Commit.through_sequence > through))
    if through and session.get(Commit, through) is None:
        session.add(Commit(through_sequence=through, commit=commit, committed_at=at))


SECONDS_BETWEEN_LINES: Final = 5.0
STARTS: Final = "A server starts to write"


class Forked(Exception):
    """Raised when this server and the Hub have different records with the same number."""


class ReplacedByAnotherServer(Exception):
    """Raised when another server has become the writer of the repository."""


class Stopping(Exception):
    """Raised when the server is shutting down."""


class RecordsCopy:
    """A client that restores records from the Hub and commits new ones. Only one thread may use it.

    Before its first batch, a server writes its name into ``writer.json`` in a separate commit. This moves the
    head, so the Hub then refuses any commit that an older server is still sending. Processes that share a
    database (``is_shared``) skip this step, since they all write the same records. If the response to a
    commit is lost, the head shows whether it was made. Files that are on disk are not fetched again.
    """

    def __init__(
        self, app: Resources, repository: RecordsRepository, limiter: CommitRateLimiter, stop: threading.Event
    ) -> None:
        self._app, self._repository, self._limiter, self._stop = app, repository, limiter, stop
        self.is_shared = app.engine.dialect.name == "postgresql"
        self._name = secrets.token_hex(16)
        self._head: Head | None = None
        self._is_named = False
        self._logged_at = 0.0

    def connect(self) -> Head:
        """Restore the Hub's records, become the writer of the repository, and return the head.

        If this is already done, only return the head. Raises ReplacedByAnotherServer if another server has
        become the writer since, and HubError, Forked, EventFilesDamaged or SecretChanged.
        """
        if self._head is not None:
            return self._head
        head = self._repository.head()
        if self._is_named and head.writer != self._name:
            raise ReplacedByAnotherServer
        self._pull(head)
        is_unnamed = not self.is_shared and head.writer != self._name
        with snapshot(self._app.engine) as session:
            known = known_secret(session)
        if is_unnamed or (head.secret is None and known is not None and known.check_value):
            # The file keeps the check value of the first secret; the log has those of later ones.
            first = head.secret or known
            commit = self._commit(head, {WRITER: writer_file(self._name, first)}, STARTS)
            head = Head(commit, head.files, self._name, first)
        self._head, self._is_named = head, not self.is_shared
        return head

    def disconnect(self) -> None:
        """Stop being the writer, because another process commits now."""
        self._head, self._is_named = None, False

    def commit_some(self) -> int:
        """Commit the next batch of waiting records and return its size. Raises the errors of `connect`."""
        head = self.connect()
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
            logger.info("the hourly limit of commits to the Hub is reached; continuing in %.0f s", seconds)
            if self._stop.wait(seconds):
                raise Stopping
        self._head = None  # unknown until the Hub responds
        self._limiter.note()
        return self._repository.commit(head.commit, contents, message)

    def pull(self) -> None:
        """Restore the Hub's records without writing to the Hub, for a process without the lease."""
        # The process with the lease may commit meanwhile, so there may be later records than this head has.
        self._pull(self._repository.head(), is_last=False)

    def _pull(self, head: Head, is_last: bool = True) -> None:
        """Add the Hub's newer records to the local log and fetch every missing file.

        Records that only this server has are left for the next commit. ``is_last`` says that no other process
        commits, so the Hub has no later records. Raises Forked, EventFilesDamaged, HubError, and
        SecretChanged if the Hub's records were made with another secret.
        """
        if head.last:  # versions up to commit 7d56a80 did not always write the check value
            self._app.adopt_secret(head.secret or KnownSecret(None, 1))
        with snapshot(self._app.engine) as session:
            ours, own_hash = head_of_log(session)
            common = min(ours, head.last)
            shared_hash: str | None = NO_HASH
            if common:
                shared_hash = session.scalar(select(Event.hash).where(Event.sequence == common))
            with_files = events_after(session, kinds=("submitted", "labels_published"))
            wanted = {event.file_sha256 for event in with_files if event.file_sha256}
        newer = self._newer_records(head, common, shared_hash)
        newer = [event for event in newer if event.sequence > ours]
        wanted |= {event.file_sha256 for event in newer if event.file_sha256}
        self._pull_files(wanted, head.commit)
        # Before the transaction: to read the secret may write, which would wait for the transaction's end.
        secret = None
        if head.last:
            with suppress(SecretUnavailable):
                secret = self._app.secret
        with recording(self._app.engine) as session:
            if head_of_log(session)[0] < ours or (newer and head_of_log(session) != (ours, own_hash)):
                raise HubError("records were added on this server while others were fetched from the Hub")
            replacements = [*events_after(session, kinds=["secret_replaced"]), *newer]
            known = last_replacement(replacements) or head.secret
            for event in newer:
                insert(session, event)
            if secret and known and not secret.is_known_as(known):
                check_accepted(secret, self._app.settings)
                replace_secret(session, secret, self._app.clock())
            note_commit(session, head.last, head.commit, self._app.clock(), is_last)
        if newer:
            logger.info("restored records %d to %d from the Hub", newer[0].sequence, newer[-1].sequence)
        self._repository.clear()

    def _newer_records(self, head: Head, common: int, shared_hash: str | None) -> list[Event]:
        """Return the records in the Hub's files that contain record number ``common`` or later records.

        Raises EventFilesDamaged, or Forked if the hash of record ``common`` is not ``shared_hash``.
        """
        files = [file for file in head.files if file.last >= max(common, 1)]
        paths = self._repository.read({file.path: file.size for file in files}, head.commit, self._progress)
        events = [event for file in files for event in read_lines(paths[file.path].read_bytes(), file)]
        previous = events[0].previous if common and events else NO_HASH
        for event in events:
            if event.previous != previous:
                raise EventFilesDamaged(
                    f"record {event.sequence} on the Hub does not follow the previous one"
                )
            previous = event.hash
            if event.sequence == common and event.hash != shared_hash:
                raise Forked(f"record {common} on the Hub ({self._repository.repo}) differs from ours")
        return events

    def _pull_files(self, wanted: Iterable[str], commit: str) -> None:
        absent = self._app.files.absent(wanted)
        if not absent:
            return
        there = self._repository.sizes("files", commit)
        for sha256 in absent:
            if file_path(sha256) not in there:
                logger.error("the file %s is neither on this server nor on the Hub", sha256)
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
