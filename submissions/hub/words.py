"""What is said of records that are on their way to the Hub, in words that anyone may read."""

from typing import Final

RESTORING: Final = "the records are being restored from the Hub; come back in a few minutes"
SILENT: Final = (
    "the records cannot be restored yet, since the Hub does not answer as it should; this is tried again by "
    "itself"
)
TAKEN_OVER: Final = (
    "another server writes to the same repository of records; several at a time need one database "
    "(DATABASE_URL)"
)
DIFFERENT: Final = (
    "the records on the Hub are not those of this server; several servers with one repository need one "
    "database (DATABASE_URL), and whoever runs this Space finds more in its log"
)


def waiting(number: int, is_failing: bool) -> str:
    """That records wait, and what for."""
    some, them = ("1 record waits", "it") if number == 1 else (f"{number} records wait", "they")
    if is_failing:
        return f"The Hub does not answer as it should: {some}, and {them} will be kept when it does."
    return f"{some} to be kept on the Hub."
