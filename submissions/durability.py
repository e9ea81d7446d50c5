"""Where records are durable, and why submissions are off if nothing keeps them."""

from sqlalchemy.orm import Session

from arb.core.settings import Settings


class Durability:
    """Where records last; this one is a database or disk that keeps what is committed there."""

    closed: str | None = None
    """Why no record may be added now, in words that anyone may read; None if one may."""
    ended: str | None = None
    """The same, if it stays so until somebody does something about it."""
    message: str | None = None
    """A sentence for pages while records do not last yet; None if all do."""

    def wait(self, sequence: int, timeout_s: float) -> bool:
        """Wait until every record up to ``sequence`` lasts, and return whether they do in time."""
        return True

    def through(self, session: Session) -> int | None:
        """Return the sequence of the last record that lasts; None if all of them do."""
        return None

    def waiting(self) -> int:
        """Return how many records do not last yet."""
        return 0


def durability_problem(settings: Settings) -> str | None:
    """Why submissions have to be off: there is no place where records last. None where there is one."""
    if settings.disk_is_lasting or settings.database_url or settings.records_repo:
        return None
    return (
        "this Space's disk does not last and no other place for records is set; whoever runs it sets "
        "ARB_RECORDS_REPO (a private dataset repository), DATABASE_URL, or ARB_STATE_LASTS=true for a "
        "storage that lasts"
    )
