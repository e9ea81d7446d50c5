"""What owners and maintainers read: lists of submissions, what needs a look, decisions, the event log.

The log is newest first and holds nothing that was made from labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from submissions.intake.accounts import is_same_name
from submissions.intake.review import Flag, ListedSubmission, flags_of
from submissions.records.event_log import (
    STATUS_KINDS,
    Event,
    events_after,
    events_before,
    events_of_submission,
)
from submissions.records.models import Account, Judge, Score, Submission
from submissions.records.queries import current_statuses
from submissions.records.statuses import SubmissionStatuses
from submissions.scoring.scorer import POLICY

DECIDED: Final = ("hidden", "shown", "verified", "rejected", "released", "label_exposed")
"""Kinds of events by which a maintainer has looked at a submission."""


@dataclass(frozen=True)
class Overview:
    """What maintainers look after: submissions as they came, what asks for a look, closed accounts."""

    submissions: tuple[ListedSubmission, ...]
    flags: tuple[Flag, ...]
    banned: frozenset[str]


def own_submissions(
    session: Session, suite: str, label_version: str | None, account: str
) -> list[ListedSubmission]:
    """The submissions of an account, newest first."""
    names = [name for name in session.scalars(select(Account.name)) if is_same_name(name, account)]
    return _listed(session, suite, label_version, current_statuses(session), names)[::-1]


def overview(session: Session, suite: str, label_version: str | None) -> Overview:
    """All submissions, and which of them a maintainer should look at."""
    found = current_statuses(session)
    listed = _listed(session, suite, label_version, found)
    looked_at = {event.body["submission_id"]: event.at for event in events_after(session, kinds=DECIDED)}
    named_at = {
        (event.body["account"], event.body["judge"]): event.at
        for event in events_after(session, kinds=["renamed"])
    }
    return Overview(tuple(listed), tuple(flags_of(listed, looked_at, named_at)), found.banned)


def decisions_on(session: Session, submission_id: str) -> list[Event]:
    """Everything that was decided of a submission since it came, in order."""
    return [event for event in events_of_submission(session, submission_id) if event.kind in STATUS_KINDS]


def exact_figures(
    session: Session, label_version: str | None, ids: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """The exact overall CELL of each label, by submission: for maintainers only where labels are private."""
    wanted = select(Score.submission_id, Score.report).where(
        Score.submission_id.in_(ids), Score.label_version == (label_version or ""), Score.policy == POLICY
    )
    return {
        submission_id: {label: found and found["overall"] for label, found in report["labels"].items()}
        for submission_id, report in session.execute(wanted)
    }


def judge_names(session: Session, suite: str) -> dict[str, tuple[str, str]]:
    """Judge and account of every submission as they are called now, by its id."""
    found = current_statuses(session)
    wanted = select(Submission.id, Account.name, Judge.name).select_from(Submission).join(Judge).join(Account)
    return {
        name: (found.name_of(account, judge), found.current_name(account))
        for name, account, judge in session.execute(wanted.where(Submission.suite == suite))
    }


def _listed(
    session: Session,
    suite: str,
    label_version: str | None,
    found: SubmissionStatuses,
    accounts: Sequence[str] | None = None,
) -> list[ListedSubmission]:
    """Submissions in the order they came; only those of some accounts where these are said."""
    scores = select(Score.submission_id).where(
        Score.label_version == (label_version or ""), Score.policy == POLICY
    )
    wanted = (
        select(Submission)
        .join(Judge)
        .join(Account)
        .where(Submission.suite == suite)
        .options(joinedload(Submission.judge).joinedload(Judge.account))
        .order_by(Submission.submitted_at, Submission.id)
    )
    if accounts is not None:
        wanted = wanted.where(Account.name.in_(accounts))
        scores = scores.join(Submission).join(Judge).join(Account).where(Account.name.in_(accounts))
    scored = set(session.scalars(scores))
    return [_one(each, found, each.id in scored) for each in session.scalars(wanted)]


def _one(submission: Submission, found: SubmissionStatuses, is_scored: bool) -> ListedSubmission:
    account, first_name = submission.judge.account.name, submission.judge.name
    return ListedSubmission(
        id=submission.id,
        account=account,
        judge=found.name_of(account, first_name),
        first_name=first_name,
        submitted_at=submission.submitted_at,
        content_hash=submission.content_hash,
        status=found.of(submission.id),
        is_scored=is_scored,
    )


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
        "labels_published": (
            "suite",
            "version",
            "file_sha256",
            "why",
            "labelled",
            "changes",
            "guidelines_sha256",
        ),
        "error_tagged": ("judge", "trajectory_id"),
        "rescored": ("from", "to", "submissions", "ranks"),
    }
)
"""Kinds that hold labels, or figures that give them away (counts by task): the fields that are shown."""


def read_log(
    session: Session, before: int | None = None, kind: str | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """At most ``most`` events before a sequence, newest first; of one kind, where that is said."""
    kinds = None if kind is None else [kind]
    return [event_to_response(event) for event in events_before(session, before, kinds, min(most, MOST))]


def event_to_response(event: Event) -> dict[str, Any]:
    """An event as JSON, without its nonce and anything that labels went into."""
    body = {name: event.body[name] for name in PUBLIC_FIELDS.get(event.kind, tuple(event.body))}
    return {
        "sequence": event.sequence,
        "kind": event.kind,
        "at": event.at.isoformat(timespec="microseconds"),
        "actor": event.actor,
        "body": body,
        "hash": event.hash,
    }
