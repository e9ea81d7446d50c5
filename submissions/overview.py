"""Submissions in lists: an account's own, and all of them for maintainers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from submissions.accounts import is_same_name
from submissions.chain import STATUS_KINDS, events_after, events_of_submission
from submissions.database import snapshot
from submissions.flags import Flag, ListedSubmission, flags_of
from submissions.lookup import current_statuses
from submissions.records import Account, Judge, Score, Submission
from submissions.scorer import POLICY
from submissions.service import SubmissionService
from submissions.standing import SubmissionStatuses

DECIDED: Final = ("hidden", "shown", "verified", "rejected", "released", "label_exposed")
"""Kinds of records by which a maintainer has looked at a submission."""


@dataclass(frozen=True)
class Overview:
    """What maintainers look after: submissions as they came, what asks for a look, closed accounts."""

    submissions: tuple[ListedSubmission, ...]
    flags: tuple[Flag, ...]
    banned: frozenset[str]


@dataclass(frozen=True)
class ModerationAction:
    """What was decided of a submission, when, by whom, and why."""

    kind: str
    at: datetime
    actor: str
    reason: str


def own_submissions(service: SubmissionService, account: str) -> list[ListedSubmission]:
    """The submissions of an account, newest first."""
    with snapshot(service.engine) as session:
        names = [name for name in session.scalars(select(Account.name)) if is_same_name(name, account)]
        return _listed(service, session, current_statuses(session), names)[::-1]


def overview(service: SubmissionService) -> Overview:
    """All submissions, and which of them a maintainer should look at."""
    with snapshot(service.engine) as session:
        found = current_statuses(session)
        listed = _listed(service, session, found)
        looked_at = {
            record.body["submission_id"]: record.at for record in events_after(session, kinds=DECIDED)
        }
        named_at = {
            (record.body["account"], record.body["judge"]): record.at
            for record in events_after(session, kinds=["renamed"])
        }
    return Overview(tuple(listed), tuple(flags_of(listed, looked_at, named_at)), found.banned)


def actions_on(service: SubmissionService, submission_id: str) -> list[ModerationAction]:
    """Everything that was decided of a submission since it came, in order."""
    with snapshot(service.engine) as session:
        records = events_of_submission(session, submission_id)
    return [
        ModerationAction(record.kind, record.at, record.actor, _reason(record.body))
        for record in records
        if record.kind in STATUS_KINDS
    ]


def exact_figures(service: SubmissionService, ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The exact overall CELL of each label, by submission: for maintainers only where labels are private."""
    wanted = select(Score.submission_id, Score.report).where(
        Score.submission_id.in_(ids),
        Score.label_version == (service.label_version or ""),
        Score.policy == POLICY,
    )
    with snapshot(service.engine) as session:
        return {
            submission_id: {
                label: found and found["overall"] for label, found in report["labels"].items()
            }
            for submission_id, report in session.execute(wanted)
        }  # fmt: skip


def _listed(
    service: SubmissionService,
    session: Session,
    found: SubmissionStatuses,
    accounts: Sequence[str] | None = None,
) -> list[ListedSubmission]:
    """Submissions in the order they came; only those of some accounts where these are said."""
    version = service.label_version or ""
    scored = set(
        session.scalars(
            select(Score.submission_id).where(Score.label_version == version, Score.policy == POLICY)
        )
    )
    wanted = (
        select(Submission)
        .join(Judge)
        .join(Account)
        .where(Submission.suite == service.suite.name)
        .options(joinedload(Submission.judge).joinedload(Judge.account))
        .order_by(Submission.submitted_at, Submission.id)
    )
    if accounts is not None:
        wanted = wanted.where(Account.name.in_(accounts))
    return [_one(each, found, each.id in scored) for each in session.scalars(wanted)]


def _reason(body: Mapping[str, Any]) -> str:
    return "; ".join(reason.rstrip(".") for reason in body.get("reasons") or [body.get("reason") or ""])


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
