"""The status of a submission, in words for its owner and for maintainers. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from submissions.receipts import Status
from submissions.standing import SubmissionStatus

WAITING: Final = "It is recorded here and waits to be stored permanently; its page says when it is accepted."
UNSCORED: Final = "It is recorded and has no score yet; the maintainers of this Space take care of it."


class StatusText(NamedTuple):
    """A word for a status, and what it means."""

    word: str
    sentence: str


def status_sentence(status: Status, reasons: Sequence[str] = ()) -> str:
    """What the status of a receipt means; ``reasons`` are those for holding it."""
    match status:
        case "accepted":
            return "It is accepted and stored permanently."
        case "waiting":
            return WAITING
        case "held":
            why = "; ".join(reason.rstrip(".") for reason in reasons if reason) or "no reason was recorded"
            return f"It is held until a maintainer has reviewed it, and is scored after that: {why}."


def describe_status(
    standing: SubmissionStatus,
    *,
    is_scored: bool,
    lasts: bool = True,
    is_private: bool = False,
    appears_at: datetime | None = None,
    now: datetime | None = None,
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> StatusText:
    """The status of a submission; the first that applies, from the most to the least final.

    ``appears_at`` is when a row of a private suite appears that was made public; ``reasons`` are those of the
    last act of each kind.
    """
    if standing.is_withdrawn:
        why = _why(reasons, "withdrawn")
        return StatusText("withdrawn", f"It was withdrawn from the board for good{why}; its record stays.")
    if standing.is_rejected:
        return StatusText("rejected", f"A maintainer rejected it{_why(reasons, 'rejected')}.")
    if standing.is_held:
        return StatusText("held", status_sentence("held", [reasons.get("held", "")]))
    if not lasts:
        return StatusText("waiting", WAITING)
    if standing.is_hidden:
        return StatusText("hidden", f"A maintainer took it off the board{_why(reasons, 'hidden')}.")
    if not is_scored:
        return StatusText("not scored", UNSCORED)
    if not is_private:
        return StatusText("on the board", "It is accepted, scored, and on the board.")
    if appears_at is None:
        return StatusText("scored", "It is accepted and scored; only its owner and maintainers see it.")
    if now is not None and appears_at <= now:
        return StatusText("on the board", f"It is on the board since {appears_at:%Y-%m-%d}.")
    return StatusText(
        "public soon", f"Its row appears on the board with the next round, on {appears_at:%Y-%m-%d}."
    )


def _why(reasons: Mapping[str, str], kind: str) -> str:
    return f": {reasons[kind].rstrip('.')}" if reasons.get(kind) else ""
