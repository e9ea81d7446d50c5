"""The maintainers' overview: submissions, decisions, and flags on submissions that need a review.

Flags mark held files, look-alike names, equal verdicts, missing scores and refunds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from submissions.intake.accounts import is_same_name
from submissions.moderation.confusable_names import skeletons_of
from submissions.records.database import Event, ScoreRow, Submission
from submissions.records.event_log import STATUS_KINDS, events_after, events_of_submission
from submissions.records.queries import current_statuses, owned_submissions, score_lines
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses

FlagKind = Literal["held", "alike", "same verdicts", "unscored", "given back"]
TITLES: Final = MappingProxyType({
    "held": "Held", "alike": "Look-alike name", "same verdicts": "Same verdicts", "unscored": "Not scored",
    "given back": "Refunded",
})  # fmt: skip


@dataclass(frozen=True)
class ListedSubmission:
    """A submission in a list. ``judge`` is the judge's current name, ``first_name`` its original one."""

    id: str
    account: str
    judge: str
    first_name: str
    submitted_at: datetime
    content_hash: str
    status: SubmissionStatus
    is_scored: bool


@dataclass(frozen=True)
class Flag:
    """A flag on a submission for maintainers, with the reason in one or two sentences."""

    submission: ListedSubmission
    kind: FlagKind
    reason: str


def flags_of(
    submissions: Sequence[ListedSubmission],
    looked_at: Mapping[str, datetime],
    named_at: Mapping[tuple[str, str], datetime],
) -> list[Flag]:
    """Return the flags on submissions that need a review, held files first.

    ``looked_at`` has the time of a maintainer's last decision on each submission. ``named_at`` has the time
    at which each renamed judge (account, original name) got its current name. Look-alike names and equal
    verdicts are not flagged again after a decision. Withdrawn submissions are never flagged.
    """
    alive = [each for each in submissions if not each.status.is_withdrawn]
    flags = [Flag(each, "held", _reasons(each)) for each in alive if each.status.is_held]
    flags += _alike(alive, looked_at, named_at)
    first: dict[str, ListedSubmission] = {}
    for each in alive:  # files with the same verdicts, even if the bytes differ
        before = first.setdefault(each.content_hash, each)
        if before.account != each.account and each.id not in looked_at:
            reason = f"it has the same verdicts as {before.id}, which {before.account} sent earlier"
            flags.append(Flag(each, "same verdicts", reason))
    for each in alive:
        status = each.status
        if status.is_refunded and not status.is_rejected:
            reason = f"it does not count towards the limits: {_reasons(each)}"
            flags.append(Flag(each, "given back", reason))
        elif not (each.is_scored or status.is_held or status.is_rejected):
            reason = "it has no score under the current labels; run `rescore`"
            flags.append(Flag(each, "unscored", reason))
    return flags


def _alike(
    submissions: Sequence[ListedSubmission],
    looked_at: Mapping[str, datetime],
    named_at: Mapping[tuple[str, str], datetime],
) -> Iterable[Flag]:
    """Flag each judge's newest submission if its name looks like that of another account's older judge."""
    newest = {(each.account, each.first_name): each for each in submissions}
    since: dict[tuple[str, str], datetime] = {}
    for each in submissions:
        key = (each.account, each.first_name)
        since.setdefault(key, named_at.get(key, each.submitted_at))
    seen: dict[str, list[ListedSubmission]] = {}
    for key in sorted(newest, key=lambda key: (since[key], key)):
        each, shapes = newest[key], skeletons_of(newest[key].judge)
        before = [other for shape in shapes for other in seen.get(shape, ()) if other.account != each.account]
        for shape in shapes:
            seen.setdefault(shape, []).append(each)
        was_seen = each.id in looked_at and looked_at[each.id] >= since[key]
        if before and not was_seen and not each.status.is_rejected:
            reason = f"its name looks like that of the older judge {before[0].judge!r} by {before[0].account}"
            yield Flag(each, "alike", reason)


def _reasons(each: ListedSubmission) -> str:
    return "; ".join(reason.rstrip(".") for reason in each.status.reasons) or "no reason was given"


DECIDED: Final = ("hidden", "shown", "verified", "rejected", "released", "label_exposed")
"""The kinds of events that show that a maintainer has reviewed a submission."""
_WAITING: Final = ("held", "unscored", "given back")
"""Flags that are not shown for banned accounts, since their files need no decision."""


@dataclass(frozen=True)
class Overview:
    """All submissions in order of arrival, the flags on them, and the banned and confirmed accounts."""

    submissions: tuple[ListedSubmission, ...]
    flags: tuple[Flag, ...]
    banned: frozenset[str]
    confirmed: frozenset[str]


def own_submissions(
    session: Session, suite: str, label_version: str | None, account: str
) -> list[ListedSubmission]:
    """Return the submissions of an account, newest first."""
    listed = _listed(session, suite, label_version, current_statuses(session))
    return [each for each in reversed(listed) if is_same_name(each.account, account)]


def overview(session: Session, suite: str, label_version: str | None) -> Overview:
    """Return all submissions, with flags on those that a maintainer should review."""
    found = current_statuses(session)
    listed = _listed(session, suite, label_version, found)
    looked_at = {event.body["submission_id"]: event.at for event in events_after(session, kinds=DECIDED)}
    renamed = events_after(session, kinds=["renamed"])
    named_at = {(event.body["account"], event.body["judge"]): event.at for event in renamed}
    flags = [
        flag
        for flag in flags_of(listed, looked_at, named_at)
        if flag.kind not in _WAITING or not found.is_banned(flag.submission.account)
    ]
    return Overview(tuple(listed), tuple(flags), frozenset(found.banned), frozenset(found.confirmed))


def decisions_on(session: Session, submission_id: str) -> list[Event]:
    """Return the events that affect the status of a submission, oldest first."""
    return [event for event in events_of_submission(session, submission_id) if event.kind in STATUS_KINDS]


def exact_figures(
    session: Session, label_version: str | None, ids: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the exact overall cells (without noise), keyed by submission id and label.

    If labels are private, only maintainers may see them.
    """
    wanted = select(ScoreRow.submission_id, ScoreRow.report).where(ScoreRow.submission_id.in_(ids))
    wanted = wanted.where(ScoreRow.label_version == (label_version or ""))
    return {
        submission_id: {label: found and found["overall"] for label, found in report["labels"].items()}
        for submission_id, report in session.execute(wanted)
    }


def judge_names(session: Session, suite: str) -> dict[str, tuple[str, str]]:
    """Return the current names of each submission's judge and account, keyed by submission id."""
    found = current_statuses(session)
    return {
        each.id: (found.name_of(each.account, each.judge), found.current_name(each.account))
        for each in owned_submissions(session, suite)
    }


def _listed(
    session: Session, suite: str, label_version: str | None, found: SubmissionStatuses
) -> list[ListedSubmission]:
    """Return the submissions of a suite in order of arrival."""
    scored = {line.submission_id for line in score_lines(session, suite, label_version or "")}
    wanted = select(Submission).where(Submission.suite == suite)
    wanted = wanted.order_by(Submission.submitted_at, Submission.id)
    return [
        ListedSubmission(
            id=each.id, account=each.judge.account.name,
            judge=found.name_of(each.judge.account.name, each.judge.name), first_name=each.judge.name,
            submitted_at=each.submitted_at, content_hash=each.content_hash,
            status=found.of(each.id), is_scored=each.id in scored,
        )
        for each in session.scalars(wanted)
    ]  # fmt: skip
