"""Errors raised when an action is refused or impossible and was not recorded. Users see the messages."""

from datetime import datetime


class RecordsUnavailable(Exception):
    """Raised when records cannot be opened, copied or restored; the message says why and what to do."""


class SubmissionError(Exception):
    """Raised when a file or an action is refused; the message says why and what to do."""


class PermissionDenied(SubmissionError):
    """Raised when an account is not allowed to carry out an action; the message says why."""


class TemporarilyClosed(SubmissionError):
    """Raised while the server cannot record anything, until it recovers by itself."""

    RETRY_AFTER_SECONDS = 30


class DatabaseAway(TemporarilyClosed):
    """Raised when the database does not answer. The server reconnects by itself."""

    RETRY_AFTER_SECONDS = 10

    def __init__(self) -> None:
        super().__init__(f"the database does not answer; try again in {self.RETRY_AFTER_SECONDS} seconds")


class RateLimited(SubmissionError):
    """Raised when an account has reached a limit; ``next_at`` is when it may act again."""

    def __init__(self, message: str, next_at: datetime) -> None:
        self.next_at = next_at
        super().__init__(message)
