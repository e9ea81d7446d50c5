"""Errors raised when an action is refused or impossible and was not recorded. Users see the messages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from arb.core.files import DISK_FULL

logger = logging.getLogger(__name__)


class RecordsUnavailable(Exception):
    """Raised when records cannot be opened, copied or restored; the message says why and what to do."""


class SubmissionError(Exception):
    """Raised when a file or an action is refused; the message says why and what to do."""


class PermissionDenied(SubmissionError):
    """Raised when an account is not allowed to carry out an action; the message says why."""


class TemporarilyClosed(SubmissionError):
    """Raised while the server cannot record anything, until it recovers by itself."""

    STATUS = 503
    RETRY_AFTER_SECONDS = 30


class DatabaseAway(TemporarilyClosed):
    """Raised when the database does not answer. The server reconnects by itself."""

    RETRY_AFTER_SECONDS = 10

    def __init__(self) -> None:
        super().__init__(f"the database does not answer; try again in {self.RETRY_AFTER_SECONDS} seconds")


class DiskFull(TemporarilyClosed):
    """Raised when the disk has no room for a file or form that was sent. The operator has to free some."""

    STATUS = 507

    def __init__(self) -> None:
        super().__init__("the Space's disk is full, so nothing was stored; try again later")


def disk_full(folder: str | Path) -> DiskFull:
    """Return the error for the sender, after telling the operator in the log what to do."""
    logger.warning(
        "an upload was refused because the disk of %s is full; free some space on it, or set ARB_STATE_DIR "
        "and TMPDIR to folders on a larger disk",
        folder,
    )
    return DiskFull()


@contextmanager
def stores_in(folder: str | Path) -> Iterator[None]:
    """Raise DiskFull if the block fails because the disk of ``folder`` is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise disk_full(folder) from error


class RateLimited(SubmissionError):
    """Raised when an account has reached a limit; ``next_at`` is when it may act again."""

    def __init__(self, message: str, next_at: datetime) -> None:
        self.next_at = next_at
        super().__init__(message)
