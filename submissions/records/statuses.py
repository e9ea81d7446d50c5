"""The statuses of submissions and accounts, and error tags, computed from the events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Engine

from leaderboard.errors import ErrorTag, make_tag
from submissions.intake.accounts import is_same_name
from submissions.records.database import Event, snapshot
from submissions.records.event_log import ERROR_TAG_KINDS, events_after

_CHANGES: Final[Mapping[str, Mapping[str, bool]]] = {
    "refunded": {"is_refunded": True},
    "counted": {"is_refunded": False},
    "held": {"is_held": True},
    "released": {"is_held": False},
    "withdrawn": {"is_withdrawn": True},
    "hidden": {"is_hidden": True},
    "shown": {"is_hidden": False},
    "verified": {"is_verified": True},
    "rejected": {"is_rejected": True, "is_held": False},
    "label_exposed": {"is_label_exposed": True},
}


@dataclass(frozen=True)
class SubmissionStatus:
    """The status of one submission, with the reasons given in its events, newest last."""

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
        return not (self.is_held or self.is_withdrawn or self.is_hidden or self.is_rejected)


_INITIAL: Final = SubmissionStatus()


@dataclass
class SubmissionStatuses:
    """The statuses of all submissions and accounts at one moment."""

    submissions: dict[str, SubmissionStatus] = field(default_factory=dict)
    banned: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """The current names of judges, keyed by (account, original name)."""
    counted_at: dict[str, datetime] = field(default_factory=dict)
    """When refunded files started to count again, keyed by submission id."""
    released_at: dict[str, datetime] = field(default_factory=dict)
    """When held files were released, keyed by submission id."""
    refreshed: dict[str, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)
    """Owners' requests for newer labels as (time, label version), oldest first, keyed by submission id."""
    accounts: dict[str, str] = field(default_factory=dict)
    """Names of accounts in the records, keyed by their ids on the Hub."""
    hub_names: dict[str, str] = field(default_factory=dict)
    """Names of accounts on the Hub, as last seen, keyed by their names in the records."""
    retired_versions: set[str] = field(default_factory=set)
    """Versions of hidden labels whose scores were computed with a secret that has since been replaced."""
    are_figures_withdrawn: bool = False
    """Whether figures of hidden labels are withdrawn until an operator accepts the charge for them."""

    def of(self, submission_id: str) -> SubmissionStatus:
        return self.submissions.get(submission_id, _INITIAL)

    def current_name(self, account: str) -> str:
        """Return the account's name on the Hub, unless another account in the records has that name."""
        name = self.hub_names.get(account, account)
        others = (other for other in self.accounts.values() if other != account)
        return account if any(is_same_name(name, other) for other in others) else name

    def is_banned(self, account: str) -> bool:
        return any(is_same_name(account, name) for name in self.banned)

    def is_confirmed(self, account: str) -> bool:
        return any(is_same_name(account, name) for name in self.confirmed)

    def charged_at(self, submission_id: str, submitted_at: datetime) -> datetime | None:
        """Return when the figures of a test file were charged for, or None if they were not.

        This is when the file was submitted, released (if it was held), or counted again after a refund.
        """
        status = self.of(submission_id)
        if status.is_held or status.is_refunded:
            return None
        later = (found.get(submission_id, submitted_at) for found in (self.released_at, self.counted_at))
        return max(submitted_at, *later)

    def name_of(self, account: str, judge: str) -> str:
        return self.names.get((account, judge), judge)

    def first_name_of(self, account: str, name: str) -> str:
        """Return the name under which the judge now called ``name`` was first submitted."""
        for (owner, first), now in self.names.items():
            if owner == account and now == name:
                return first
        return name

    def add(self, event: Event) -> None:
        """Apply the next event. Events that change no status are ignored."""
        body = event.body
        match event.kind:
            case "banned":
                self.banned.add(body["account"])
            case "unbanned":
                self.banned -= {name for name in self.banned if is_same_name(name, body["account"])}
            case "confirmed":
                self.confirmed.add(body["account"])
            case "unconfirmed":
                self.confirmed -= {name for name in self.confirmed if is_same_name(name, body["account"])}
            case "renamed":
                self.names[body["account"], body["judge"]] = body["to"]
            case "identified":
                self.accounts[body["subject"]] = body["account"]
                self.hub_names[body["account"]] = body["name"]
            case "secret_replaced":
                self.retired_versions.update(body["label_versions"])
                self.are_figures_withdrawn = True
            case "charge_accepted":
                self.are_figures_withdrawn = False
            case "refreshed":
                before = self.refreshed.get(body["submission_id"], ())
                self.refreshed[body["submission_id"]] = (*before, (event.at, body["label_version"]))
            case "published":
                at = self.of(body["submission_id"]).published_at or event.at
                self._change(event, published_at=at)
            case "unpublished":
                self._change(event, published_at=None)
            case kind if kind in _CHANGES:
                reasons = (*self.of(body["submission_id"]).reasons, *event.reasons)
                self._change(event, **_CHANGES[kind], reasons=reasons)
                if kind == "counted":
                    self.counted_at[body["submission_id"]] = event.at
                elif kind == "released":
                    self.released_at[body["submission_id"]] = event.at

    def _change(self, event: Event, **changes: Any) -> None:
        submission_id = event.body["submission_id"]
        self.submissions[submission_id] = replace(self.of(submission_id), **changes)


def fold_statuses(events: Iterable[Event]) -> SubmissionStatuses:
    found = SubmissionStatuses()
    for event in events:
        found.add(event)
    return found


def error_tags(engine: Engine, suite: str) -> list[ErrorTag]:
    """Return every error tag of a suite, oldest first. A person's last tag on an error is the valid one."""
    with snapshot(engine) as session:
        events = events_after(session, kinds=ERROR_TAG_KINDS)
    tags = []
    for event in events:
        if event.body["suite"] == suite:
            recorded = {name: event.body[name] for name in ("trajectory_id", "judge", "category", "note")}
            more = tuple(event.body.get("more", ()))
            tags.append(make_tag(**recorded, more=more, tagger=event.actor, at=event.at))
    return tags
