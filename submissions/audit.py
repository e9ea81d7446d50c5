"""The records as maintainers read them: newest first, and nothing of what was made from labels."""

from types import MappingProxyType
from typing import Any, Final

from submissions.chain import Event, events_before
from submissions.database import snapshot
from submissions.service import SubmissionService

MOST: Final = 200
PUBLIC_FIELDS: Final = MappingProxyType(
    {
        "scored": ("submission_id", "label_version", "policy"),
        "annotated": ("trajectory_id", "annotator", "is_done"),
        "resolved": ("trajectory_id", "question"),
        "disputed": ("dispute_id", "trajectory_id", "question", "split"),
        "dispute_decided": ("dispute_id",),
        "error_tagged": ("judge", "trajectory_id"),
    }
)
"""Kinds of records that hold labels, or what tells them (counts by task): what is told of them is named."""


def read_log(
    service: SubmissionService, before: int | None = None, kind: str | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """At most ``most`` records before a sequence, newest first; of one kind, where that is said."""
    kinds = None if kind is None else [kind]
    with snapshot(service.engine) as session:
        return [
            event_to_response(record) for record in events_before(session, before, kinds, min(most, MOST))
        ]


def event_to_response(record: Event) -> dict[str, Any]:
    """A record as JSON, without anything that labels went into."""
    told = PUBLIC_FIELDS.get(record.kind, tuple(record.body))
    body = {name: record.body[name] for name in told}
    return {
        "sequence": record.sequence,
        "kind": record.kind,
        "at": record.at.isoformat(timespec="microseconds"),
        "actor": record.actor,
        "body": body,
        "hash": record.hash,
    }
