"""Whether a run goes well at all: with a wrong key or model name every trajectory ends in an error."""

from __future__ import annotations

from typing import Final

from judges.engine.records import Record, error_of

MAX_LEADING_ERRORS: Final = 20
"""A run stops when its first results, this many, are all in the state ``error``."""


class LeadingErrors:
    """Holds results back while all of them are errors: they are judged again once the cause is fixed."""

    def __init__(self) -> None:
        self._held: list[Record] | None = []

    def take(self, record: Record) -> list[Record]:
        """What may be written now that this result came: nothing, all that was held back, or itself."""
        if self._held is None:
            return [record]
        self._held.append(record)
        return [] if record["state"] == "error" else self.release()

    @property
    def all_failed(self) -> bool:
        """Whether so many ended in errors, and nothing else, that the run should stop."""
        return self._held is not None and len(self._held) >= MAX_LEADING_ERRORS

    def release(self) -> list[Record]:
        """The errors so far, to be written after all; from now on nothing is held back."""
        held, self._held = self._held or [], None
        return held

    def discard(self) -> str:
        """Forget the errors, and say what the first one was."""
        first = self._held[0] if self._held else None
        self._held = []
        return error_of(first) if first is not None else "no reply"


def leading_errors_message(error: str) -> str:
    """The message of a run that stopped because everything failed."""
    return (
        f"stopped: every trajectory so far ended in an error, the first with: {error}\n"
        "Nothing was written. Fix the cause and run the same command again."
    )
