"""Committing events to the Hub in batches. One object a process; used by one thread."""

import logging
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Final

from sqlalchemy import Engine

from submissions.chain import events_after
from submissions.database import snapshot, transaction
from submissions.hub.batch import MOST_RECORDS, next_batch
from submissions.hub.layout import WRITER, Span, writer_file
from submissions.hub.notes import committed_through, note_commit
from submissions.hub.pace import HOUR, CommitRateLimiter
from submissions.hub.repository import Head, RecordsRepository
from submissions.hub.restoring import Restorer

logger = logging.getLogger(__name__)
STARTS: Final = "A server starts to write"
_NAME_BYTES: Final = 16


class ReplacedByAnotherServer(Exception):
    """Another server writes to the repository now."""


class Committer:
    """Writes the records that the Hub does not hold yet, in batches.

    Before the first batch it names itself in ``writer.json``, in a commit of its own: what a server before it
    has still on the way is refused by the Hub from then on, since the head has moved. Where several processes
    write the records of one database (``is_shared``) there is no need: all of them write the same. A commit
    whose answer got lost is looked up: the head tells whether it was made.
    """

    def __init__(
        self,
        engine: Callable[[], Engine],
        repository: RecordsRepository,
        restorer: Restorer,
        limiter: CommitRateLimiter,
        clock: Callable[[], datetime],
        pause: Callable[[float], object],
        is_shared: bool = False,
    ) -> None:
        self._engine, self._repository, self._restorer = engine, repository, restorer
        self._limiter, self._clock, self._pause, self._is_shared = limiter, clock, pause, is_shared
        self._name = secrets.token_hex(_NAME_BYTES)
        self._head: Head | None = None
        self._is_named = self._rate_is_known = False

    def pull(self) -> None:
        """Take over what the Hub holds, without writing there: for a process that does not commit."""
        self._restorer.pull(self._repository.head())

    def connect(self) -> None:
        """Take over what the Hub holds and become the one that writes there.

        Raises HubError, Forked, EventFilesDamaged, and ReplacedByAnotherServer where another writes by now.
        """
        if self._head is not None:
            return
        head = self._repository.head()
        if self._is_named and head.writer != self._name:
            raise ReplacedByAnotherServer
        if not self._rate_is_known:
            self._limiter.remember(self._repository.commits_since(self._clock().timestamp() - HOUR))
            self._rate_is_known = True
        self._restorer.pull(head)
        if not self._is_shared and head.writer != self._name:
            commit = self._commit(head, {WRITER: writer_file(self._name)}, STARTS)
            head = Head(commit, head.spans, self._name)
        self._head, self._is_named = head, not self._is_shared

    def disconnect(self) -> None:
        """Another process may write from now on."""
        self._head, self._is_named, self._rate_is_known = None, False, False

    def has_pending(self) -> bool:
        """Whether records wait that can go to the Hub from here, without asking the Hub."""
        with snapshot(self._engine()) as session:
            records = events_after(session, committed_through(session), most=1)
        return next_batch(records, self._restorer.files, self._clock())[0] > 0

    def commit_some(self) -> int:
        """One commit of records that wait; how many they were, 0 where none can go. Raises as `connect`."""
        self.connect()
        head = self._head
        with snapshot(self._engine()) as session:
            records = events_after(session, head.last, most=MOST_RECORDS)
        number, contents = next_batch(records, self._restorer.files, self._clock())
        if not number:
            return 0
        span = Span(records[0].sequence, records[number - 1].sequence)
        commit = self._commit(head, contents, f"Records {span.first} to {span.last}")
        self._head = Head(commit, (*head.spans, span), self._name)
        with transaction(self._engine()) as session:
            note_commit(session, span.last, commit, self._clock())
        return number

    def _commit(self, head: Head, contents: dict[str, bytes], message: str) -> str:
        while seconds := self._limiter.seconds_to_wait():
            logger.info("commits to the Hub go on in %.0f s: an hour has had its share", seconds)
            self._pause(seconds)
        self._head = None  # until an answer says otherwise
        self._limiter.note()
        return self._repository.commit(head.commit, contents, message)
