"""Statuses of submissions, names of judges and banned accounts: a pure fold over events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from submissions.chain import Event

_CHANGES: Final = MappingProxyType(
    {
        "refunded": {"is_refunded": True},
        "held": {"is_held": True},
        "released": {"is_held": False},
        "withdrawn": {"is_withdrawn": True},
        "hidden": {"is_hidden": True},
        "shown": {"is_hidden": False},
        "verified": {"is_verified": True},
        "rejected": {"is_rejected": True, "is_held": False},
        "label_exposed": {"is_label_exposed": True},
    }
)


@dataclass(frozen=True)
class SubmissionStatus:
    """The status of one submission; ``reasons`` are those of its events, newest last."""

    is_refunded: bool = False
    is_held: bool = False
    is_withdrawn: bool = False
    is_hidden: bool = False
    is_verified: bool = False
    is_rejected: bool = False
    is_label_exposed: bool = False
    published_at: datetime | None = None
    reasons: tuple[str, ...] = ()

    @property
    def is_on_the_board(self) -> bool:
        """Whether its row may be shown."""
        return not (self.is_held or self.is_withdrawn or self.is_hidden or self.is_rejected)


_INITIAL: Final = SubmissionStatus()


@dataclass(frozen=True)
class SubmissionStatuses:
    """All statuses at one moment."""

    submissions: Mapping[str, SubmissionStatus] = field(default_factory=dict)
    banned: frozenset[str] = frozenset()
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(account, the name a judge was first submitted under) to the name that it has now."""

    def of(self, submission_id: str) -> SubmissionStatus:
        """The status of a submission; the initial one where no event changed it."""
        return self.submissions.get(submission_id, _INITIAL)

    def name_of(self, account: str, judge: str) -> str:
        """The name that a judge has now."""
        return self.names.get((account, judge), judge)

    def first_name_of(self, account: str, shown: str) -> str:
        """The name that a judge was first submitted under, from the one that it has now."""
        for (owner, first), now in self.names.items():
            if owner == account and now == shown:
                return first
        return shown


def fold_statuses(records: Iterable[Event]) -> SubmissionStatuses:
    """Statuses from events in their order; events of other kinds are ignored."""
    submissions: dict[str, SubmissionStatus] = {}
    banned: set[str] = set()
    names: dict[tuple[str, str], str] = {}
    for record in records:
        body = record.body
        match record.kind:
            case "banned":
                banned.add(body["account"])
            case "unbanned":
                banned.discard(body["account"])
            case "renamed":
                names[body["account"], body["judge"]] = body["to"]
            case "published":
                before = submissions.get(body["submission_id"], _INITIAL)
                at = before.published_at or record.at
                submissions[body["submission_id"]] = replace(before, published_at=at)
            case kind if kind in _CHANGES:
                before = submissions.get(body["submission_id"], _INITIAL)
                reasons = (*before.reasons, *_said(body))
                submissions[body["submission_id"]] = replace(before, **_CHANGES[kind], reasons=reasons)
    return SubmissionStatuses(submissions, frozenset(banned), names)


def _said(body: Mapping) -> tuple[str, ...]:
    said = body.get("reasons") or [body.get("reason")]
    return tuple(reason for reason in said if reason)
