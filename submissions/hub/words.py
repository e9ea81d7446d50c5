"""Messages, safe for anyone to read, about events that the Hub does not hold yet."""

from typing import Final

RESTORING: Final = "the records are being restored from the Hub; come back in a few minutes"
HUB_SILENT: Final = (
    "the records cannot be restored yet because the Hub does not answer; the server keeps trying"
)
REPLACED: Final = (
    "another server writes to the same repository of records; several at a time need one database "
    "(DATABASE_URL)"
)
DIVERGED: Final = (
    "the records on the Hub differ from those of this server; several servers with one repository need one "
    "database (DATABASE_URL), and the Space's log has the details"
)


def waiting_message(number: int, is_failing: bool) -> str:
    """That records wait, and what for."""
    some, them = ("1 record waits", "it") if number == 1 else (f"{number} records wait", "they")
    if is_failing:
        return f"The Hub does not answer as it should: {some}, and {them} will be saved when it does."
    return f"{some} to be saved on the Hub."
