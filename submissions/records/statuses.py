"""The status of submissions, and error tags: pure folds over events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Final

from sqlalchemy import Engine

from leaderboard.errors import ErrorTag, make_tag
from submissions.intake.accounts import is_same_name
from submissions.records.database import snapshot
from submissions.records.event_log import ERROR_TAG_KINDS, Event, events_after

_CHANGES: Final = MappingProxyType(
    {
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
        return not (self.is_held or self.is_withdrawn or self.is_hidden or self.is_rejected)


_INITIAL: Final = SubmissionStatus()


@dataclass(frozen=True)
class SubmissionStatuses:
    """All statuses at one moment."""

    submissions: Mapping[str, SubmissionStatus] = field(default_factory=dict)
    banned: frozenset[str] = frozenset()
    confirmed: frozenset[str] = frozenset()
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(account, the name a judge was first submitted under) to the name that it has now."""
    counted_at: Mapping[str, datetime] = field(default_factory=dict)
    """When a file counted again that had been given back, by submission."""
    released_at: Mapping[str, datetime] = field(default_factory=dict)
    """When a file that had been held was released, by submission."""
    refreshed: Mapping[str, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)
    """When which newer label versions were asked for, by submission, oldest first."""
    salted_at: datetime | None = None
    """When a log from before nonces went on with them; until then every new score was shown."""
    accounts: Mapping[str, str] = field(default_factory=dict)
    """The account of each of the Hub's ids that was seen: its name in the records."""
    hub_names: Mapping[str, str] = field(default_factory=dict)
    """The name that an account has at the Hub, as far as that was seen."""
    retired_versions: frozenset[str] = frozenset()
    """Label versions whose hidden labels were scored with a secret that was replaced since."""
    are_figures_withdrawn: bool = False
    """Whether figures of hidden labels wait until an operator accepts the charge of drawing them again."""

    def of(self, submission_id: str) -> SubmissionStatus:
        """The status of a submission; the initial one where no event changed it."""
        return self.submissions.get(submission_id, _INITIAL)

    def current_name(self, account: str) -> str:
        """The name to show of an account: its name at the Hub, unless another was known by that before."""
        name = self.hub_names.get(account, account)
        is_of_another = bool(self._accounts_by_name.get(name.casefold(), set()) - {account})
        return account if is_of_another else name

    @cached_property
    def _accounts_by_name(self) -> Mapping[str, set[str]]:
        """The accounts under each name, as `is_same_name` compares them: a board asks for thousands."""
        found: dict[str, set[str]] = {}
        for account in self.accounts.values():
            found.setdefault(account.casefold(), set()).add(account)
        return found

    def is_banned(self, account: str) -> bool:
        return any(is_same_name(account, name) for name in self.banned)

    def is_confirmed(self, account: str) -> bool:
        return any(is_same_name(account, name) for name in self.confirmed)

    def charged_at(self, submission_id: str, submitted_at: datetime) -> datetime | None:
        """Return when the figures of a test file were charged for; None if they are not.

        A file is charged when it is submitted. One that is held is charged when it is released, and one that
        was given back when it counts again.
        """
        status = self.of(submission_id)
        if status.is_held or status.is_refunded:
            return None
        later = (found.get(submission_id, submitted_at) for found in (self.released_at, self.counted_at))
        return max(submitted_at, *later)

    def name_of(self, account: str, judge: str) -> str:
        return self.names.get((account, judge), judge)

    def first_name_of(self, account: str, name: str) -> str:
        """The name that a judge was first submitted under, from the one that it has now."""
        for (owner, first), now in self.names.items():
            if owner == account and now == name:
                return first
        return name


def fold_statuses(
    events: Iterable[Event], onto: SubmissionStatuses = SubmissionStatuses()
) -> SubmissionStatuses:
    """Statuses from events in their order, onto those before them; events of other kinds are ignored."""
    submissions, names, counted_at = dict(onto.submissions), dict(onto.names), dict(onto.counted_at)
    refreshed, salted_at, banned = dict(onto.refreshed), onto.salted_at, set(onto.banned)
    confirmed, released_at = set(onto.confirmed), dict(onto.released_at)
    accounts, hub_names = dict(onto.accounts), dict(onto.hub_names)
    retired, are_withdrawn = onto.retired_versions, onto.are_figures_withdrawn
    for event in events:
        body = event.body
        match event.kind:
            case "banned":
                banned.add(body["account"])
            case "unbanned":
                banned = {name for name in banned if not is_same_name(name, body["account"])}
            case "confirmed":
                confirmed.add(body["account"])
            case "unconfirmed":
                confirmed = {name for name in confirmed if not is_same_name(name, body["account"])}
            case "renamed":
                names[body["account"], body["judge"]] = body["to"]
            case "identified":
                accounts[body["subject"]] = body["account"]
                hub_names[body["account"]] = body["name"]
            case "secret_replaced":
                retired, are_withdrawn = retired.union(body["label_versions"]), True
            case "charge_accepted":
                are_withdrawn = False
            case "salted":
                salted_at = event.at
            case "refreshed":
                asked = (event.at, body["label_version"])
                refreshed[body["submission_id"]] = (*refreshed.get(body["submission_id"], ()), asked)
            case "published":
                before = submissions.get(body["submission_id"], _INITIAL)
                at = before.published_at or event.at
                submissions[body["submission_id"]] = replace(before, published_at=at)
            case "unpublished":
                before = submissions[body["submission_id"]]
                submissions[body["submission_id"]] = replace(before, published_at=None)
            case kind if kind in _CHANGES:
                before = submissions.get(body["submission_id"], _INITIAL)
                reasons = (*before.reasons, *event.reasons)
                submissions[body["submission_id"]] = replace(before, **_CHANGES[kind], reasons=reasons)
                if kind == "counted":
                    counted_at[body["submission_id"]] = event.at
                elif kind == "released":
                    released_at[body["submission_id"]] = event.at
    return SubmissionStatuses(
        submissions=submissions,
        banned=frozenset(banned),
        confirmed=frozenset(confirmed),
        names=names,
        counted_at=counted_at,
        released_at=released_at,
        refreshed=refreshed,
        salted_at=salted_at,
        accounts=accounts,
        hub_names=hub_names,
        retired_versions=retired,
        are_figures_withdrawn=are_withdrawn,
    )


def tags_in(events: Iterable[Event], suite: str) -> list[ErrorTag]:
    """Every tag of a suite in the order in which it was given; the later one of a person counts."""
    return [
        make_tag(
            trajectory_id=event.body["trajectory_id"],
            judge=event.body["judge"],
            tagger=event.actor,
            category=event.body["category"],
            note=event.body["note"],
            at=event.at,
        )
        for event in events
        if event.kind == "error_tagged" and event.body["suite"] == suite
    ]


def error_tags(engine: Engine, suite: str) -> list[ErrorTag]:
    """The same as the records are now."""
    with snapshot(engine) as session:
        return tags_in(events_after(session, kinds=ERROR_TAG_KINDS), suite)
