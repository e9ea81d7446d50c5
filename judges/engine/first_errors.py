"""Whether a run goes well at all: with a wrong key or model name every trajectory ends in an error."""

from __future__ import annotations

from typing import Final

from judges.engine.records import Record, error_of

HOPELESS: Final = 20
"""When the first so many trajectories all end in the state ``error``, there is no sense in going on."""


class FirstErrors:
    """Holds results back while all of them are errors: they are to be judged once the cause is mended."""

    def __init__(self) -> None:
        self._held: list[Record] | None = []

    def take(self, record: Record) -> list[Record]:
        """What may be written now that this result came: nothing, all that was held back, or itself."""
        if self._held is None:
            return [record]
        self._held.append(record)
        return [] if record["state"] == "error" else self.release()

    @property
    def is_hopeless(self) -> bool:
        """Whether so many ended in errors, and nothing else, that the run should stop."""
        return self._held is not None and len(self._held) >= HOPELESS

    def release(self) -> list[Record]:
        """The errors so far, to be written after all; from now on nothing is held back."""
        held, self._held = self._held or [], None
        return held

    def give_up(self) -> str:
        """Forget the errors, and say what the first one was."""
        first = self._held[0] if self._held else None
        self._held = []
        return error_of(first) if first is not None else "no reply"


def hopeless(error: str) -> str:
    """What the user is told when a run was given up."""
    return (
        f"stopped: every trajectory so far ended in an error, the first one with: {error}\n"
        "None of them was written down. Mend it, and give the same command again."
    )
