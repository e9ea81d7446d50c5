"""Durability through the Hub: a thread restores the events from the Hub, then commits new ones in batches.

The messages in this module are public.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy.orm import Session

from arb.core.hub import HubError
from submissions.hub.lease import open_lease
from submissions.hub.records_copy import (
    Forked,
    RecordsCopy,
    ReplacedByAnotherServer,
    Stopping,
    committed_through,
)
from submissions.hub.repository import EventFilesDamaged, HeadMoved, seconds_until_retry
from submissions.privacy.server_secret import SecretChanged
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events
from submissions.resources import Durability, Resources

logger = logging.getLogger(__name__)
RESTORING: Final = "the records are being restored from the Hub; come back in a few minutes"
HUB_SILENT: Final = "the Hub does not answer, so the records are not restored yet; the server keeps trying"
REPLACED: Final = (
    "another server writes to the same repository of records; servers that share a repository need a shared "
    "database (DATABASE_URL)"
)
OTHER_SECRET: Final = "the records were made with another server secret; the Space's log has the details"
DIVERGED: Final = (
    "the records on the Hub differ from those of this server; servers that share a repository need a shared "
    "database (DATABASE_URL), and the Space's log has the details"
)
ENDS: Final[Mapping[type[Exception], str]] = {
    Forked: DIVERGED,
    EventFilesDamaged: DIVERGED,
    ReplacedByAnotherServer: REPLACED,
    SecretChanged: OTHER_SECRET,
}
"""Errors after which the server adds no more records, with the public reason. Other errors are retried."""

SECONDS_BETWEEN_CHECKS: Final = 1.0
"""The longest time until a record written by another process is noticed."""
WAIT_WHILE_FAILING_SECONDS: Final = 2.0
"""How long a response waits if the Hub does not answer."""
FAILURES_THAT_COUNT: Final = 3
"""After this many failures in a row, pages say that the Hub does not answer."""


class HubSync(Durability):
    """The durability of records that are committed to the Hub by a thread. Thread-safe.

    `close` or setting ``stop`` ends the thread.
    """

    def __init__(self, app: Resources, records_copy: RecordsCopy, stop: threading.Event) -> None:
        self._engine, self._copy, self._stop = app.engine, records_copy, stop
        self._lease = open_lease(app.engine, app.settings.state_dir, "records")
        # If the disk keeps records and files, no response has to wait for the Hub.
        self._disk_is_durable = app.settings.disk_is_lasting
        with app.snapshot() as session:
            is_empty = number_of_events(session) == 0
        is_local = self._disk_is_durable or bool(app.settings.database_url)
        # Local records that survive a restart are complete, so new ones may be added while the Hub is down.
        self._is_authority = is_local and not is_empty
        self._changed = threading.Condition()
        self._wake = threading.Event()
        self._is_restored = self._is_failing = self._holds_lease = False
        self._through = 0
        self._when_open: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name="records to the Hub", daemon=True)

    def start(self, timeout_s: float = 30.0) -> None:
        """Start the thread; return once the records are restored, restoring fails, or the time is up."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_restored or self._is_failing or self.ended is not None, timeout=timeout_s
            )

    def when_open(self, call: Callable[[], object]) -> None:
        """Run ``call`` now if records may be added, otherwise in the thread as soon as they may be."""
        with self._changed:
            if self.closed is not None:
                self._when_open = call
                return
        call()

    @property
    def closed(self) -> str | None:
        if self.ended or self._is_restored or self._is_authority:
            return self.ended
        return HUB_SILENT if self._is_failing else RESTORING

    @property
    def message(self) -> str | None:
        if self.closed is not None or self._disk_is_durable or not (number := self.waiting()):
            return None
        some = "1 record waits" if number == 1 else f"{number} records wait"
        problem = " The Hub does not answer at the moment." if self._is_failing else ""
        return f"{some} to be saved on the Hub.{problem}"

    def waiting(self) -> int:
        with snapshot(self._engine) as session:
            return max(0, number_of_events(session) - committed_through(session))

    def through(self, session: Session) -> int | None:
        return None if self._disk_is_durable else committed_through(session)

    def wait(self, sequence: int, timeout_s: float) -> bool:
        if self._disk_is_durable:
            return True
        start = time.monotonic()
        while self._through < sequence and self._read_committed() < sequence:
            limit = min(timeout_s, WAIT_WHILE_FAILING_SECONDS) if self._is_failing else timeout_s
            left = start + limit - time.monotonic()
            self._wake.set()
            if left <= 0 or self.ended or self._stop.is_set():
                return False
            with self._changed:
                if self._through < sequence:
                    self._changed.wait(min(left, SECONDS_BETWEEN_CHECKS / 2))
        return True

    def _read_committed(self) -> int:
        with snapshot(self._engine) as session:
            through = committed_through(session)
        with self._changed:
            self._through = through
            self._changed.notify_all()
        return through

    def close(self, timeout_s: float = 20.0) -> None:
        """Commit as many waiting records as the time allows, and end the thread."""
        deadline = time.monotonic() + timeout_s
        self._wake.set()
        with self._changed:
            while self._thread.is_alive() and self._holds_lease and not (self.ended or self._is_failing):
                if time.monotonic() >= deadline or not self.waiting():
                    break
                self._changed.wait(0.1)
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(max(1.0, deadline - time.monotonic()))
        if number := self.waiting():
            logger.warning("%d records are not on the Hub yet; the next start commits them", number)

    def _run(self) -> None:
        failures = 0
        try:
            while not self._stop.is_set():
                try:
                    self._work()
                except Stopping:
                    break
                except Exception as problem:
                    if (reason := ENDS.get(type(problem))) is not None:
                        logger.error("no more records are written: %s (%s)", reason, problem)
                        with self._changed:
                            self.ended = reason
                            self._changed.notify_all()
                        break
                    failures += 1
                    pause = seconds_until_retry(problem, failures)
                    self._note_failure(problem, failures, pause)
                    self._stop.wait(pause)
                    continue
                failures = 0
                self._is_failing = False
                self._wake.wait(SECONDS_BETWEEN_CHECKS)
                self._wake.clear()
        finally:
            self._lease.release()

    def _work(self) -> None:
        """Restore the records if necessary. If this process holds the lease, also commit waiting records."""
        if self._stop.is_set():
            raise Stopping
        self._holds_lease = self._lease.acquire()
        if not self._holds_lease:
            self._copy.disconnect()
            if not self._is_restored:
                self._copy.pull()
                self._restored()
            return
        self._copy.connect()
        self._restored()
        while self._copy.commit_some():
            self._is_failing = False
            self._read_committed()

    def _restored(self) -> None:
        if self._is_restored:
            return
        self._read_committed()
        with self._changed:
            self._is_restored, self._is_failing = True, False
            call, self._when_open = self._when_open, None
            self._changed.notify_all()
        if call is not None:
            try:
                call()
            except Exception:
                logger.exception("the work after restoring the records failed")

    def _note_failure(self, problem: Exception, failures: int, pause: float) -> None:
        if isinstance(problem, HeadMoved):
            return
        is_known = isinstance(problem, HubError)
        message = problem if is_known else "committing records to the Hub failed"
        details = None if is_known else problem
        logger.warning("%s; trying again in %.1f s", message, pause, exc_info=details)
        with self._changed:
            self._is_failing = failures >= FAILURES_THAT_COUNT
            self._changed.notify_all()
