"""Whether a record lasts: on a disk that does, in a database, or on the Hub. Only then is it accepted."""

from typing import Protocol

from core.settings import Settings


class Durability(Protocol):
    """Where records last."""

    def wait(self, sequence: int, timeout_s: float) -> bool:
        """Whether every record up to ``sequence`` lasts, at the latest after ``timeout_s`` seconds."""

    def waiting(self) -> int:
        """How many records do not last yet."""

    @property
    def closed(self) -> str | None:
        """Why no record may be added now, in words that anyone may read; None where one may."""

    @property
    def message(self) -> str | None:
        """A sentence for pages while records do not last yet; None where all do."""


class ImmediateDurability:
    """A database, or a disk that outlives a restart: what is committed there lasts."""

    def wait(self, sequence: int, timeout_s: float) -> bool:
        return True

    def waiting(self) -> int:
        return 0

    closed = None
    message = None


def durability_problem(settings: Settings) -> str | None:
    """Why submissions have to be off: there is no place where records last. None where there is one."""
    if settings.disk_is_lasting or settings.database_url or settings.records_repo:
        return None
    return (
        "this Space's disk does not last and no other place for records is set; whoever runs it sets "
        "ARB_RECORDS_REPO (a private dataset repository), DATABASE_URL, or ARB_STATE_LASTS=true for a "
        "storage that lasts"
    )
