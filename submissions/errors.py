"""Why something was not done, in words for whoever asked. Nothing was recorded then."""

from datetime import datetime


class SubmissionError(Exception):
    """A file or an act that was not taken; the message says why and what to do."""


class PermissionDenied(SubmissionError):
    """What this account may not do; the message says why."""


class RateLimited(SubmissionError):
    """No file is left to the account for now; ``next_at`` is when the next one may come."""

    def __init__(self, said: str, next_at: datetime) -> None:
        self.next_at = next_at
        super().__init__(said)
