"""Errors of actions that were not carried out and recorded nothing, with messages for the requester."""

from datetime import datetime


class RecordsUnavailable(Exception):
    """The records cannot be opened, copied or restored; the message says why and what to do."""


class SubmissionError(Exception):
    """A file or an action that was refused; the message says why and what to do."""


class PermissionDenied(SubmissionError):
    """This account may not do that; the message says why."""


class TemporarilyClosed(SubmissionError):
    """Nothing can be recorded now, and it will be possible again without anybody doing anything."""

    RETRY_AFTER_SECONDS = 30


class DatabaseAway(TemporarilyClosed):
    """The database of the records does not answer; connections are made again as soon as it does."""

    RETRY_AFTER_SECONDS = 10

    def __init__(self) -> None:
        super().__init__(
            f"the database does not answer at the moment; try again in {self.RETRY_AFTER_SECONDS} seconds"
        )


class RateLimited(SubmissionError):
    """No file is left to the account for now; ``next_at`` is when the next one may come."""

    def __init__(self, message: str, next_at: datetime) -> None:
        self.next_at = next_at
        super().__init__(message)
