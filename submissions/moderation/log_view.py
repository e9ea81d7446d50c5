"""The event log as shown to owners and maintainers: newest first, without anything that reveals labels."""

from types import MappingProxyType
from typing import Any, Final

from sqlalchemy.orm import Session

from submissions.records.database import Event
from submissions.records.event_log import events_before

MOST: Final = 200
PUBLIC_FIELDS: Final = MappingProxyType(
    {
        "identified": ("account", "name"),
        "scored": ("submission_id", "label_version", "policy"),
        "annotated": ("trajectory_id", "annotator", "is_done"),
        "gold_marked": ("trajectory_id",),
        "resolved": ("trajectory_id", "question"),
        "disputed": ("dispute_id", "trajectory_id", "question", "split"),
        "dispute_decided": ("dispute_id",),
        "labels_published":
            ("suite", "version", "file_sha256", "why", "labelled", "changes", "guidelines_sha256"),
        "error_tagged": ("judge", "trajectory_id"),
        "rescored": ("from", "to", "submissions", "ranks"),
    }
)  # fmt: skip
"""The fields that may be shown, for event kinds that also have fields that reveal labels."""


def read_log(
    session: Session, before: int | None = None, kind: str | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """Return up to ``most`` events of a kind with numbers below ``before`` as JSON, newest first."""
    kinds = None if kind is None else [kind]
    return [event_to_response(event) for event in events_before(session, before, kinds, min(most, MOST))]


def event_to_response(event: Event) -> dict[str, Any]:
    """Return an event as JSON, without its nonce and without fields that reveal labels."""
    body = {name: event.body[name] for name in PUBLIC_FIELDS.get(event.kind, tuple(event.body))}
    at = event.at.isoformat(timespec="microseconds")
    return {"sequence": event.sequence, "kind": event.kind, "at": at, "actor": event.actor, "body": body,
            "hash": event.hash}  # fmt: skip
