"""The records as maintainers read them: newest first, and nothing of what was made from labels."""

from typing import Any, Final

from submissions.chain import Record, records_before
from submissions.database import snapshot
from submissions.service import SubmissionService

MOST: Final = 200
TOLD_OF_A_SCORE: Final = ("submission_id", "label_version", "policy")
"""Of a record ``scored``: its counts by task tell labels one by one, so what is told is named here."""


def read_log(
    service: SubmissionService, before: int | None = None, kind: str | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """At most ``most`` records before a sequence, newest first; of one kind, where that is said."""
    kinds = None if kind is None else [kind]
    with snapshot(service.engine) as session:
        return [told_of(record) for record in records_before(session, before, kinds, min(most, MOST))]


def told_of(record: Record) -> dict[str, Any]:
    """A record as JSON, without anything that labels went into."""
    body = dict(record.body)
    if record.kind == "scored":
        body = {name: body[name] for name in TOLD_OF_A_SCORE}
    return {
        "sequence": record.sequence,
        "kind": record.kind,
        "at": record.at.isoformat(timespec="microseconds"),
        "actor": record.actor,
        "body": body,
        "hash": record.hash,
    }
