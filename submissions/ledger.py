"""Entries in the records and questions to them; what they mean is the service's business."""

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from leaderboard.board import ScoredRecord
from submissions.database import snapshot, transaction
from submissions.declaration import Declaration
from submissions.predictions import Upload
from submissions.records import Account, Judge, Score, Submission

ATTEMPTS = 5


def record_submission(
    engine: Engine, suite: str, upload: Upload, declaration: Declaration, clock: Callable[[], datetime]
) -> tuple[Submission, bool]:
    """The record of a judge's file, made unless it is there; and whether it is new."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction(engine) as session:
                return _find_or_add_submission(session, suite, upload, declaration, clock)
        except IntegrityError:
            # A twin was first with account, judge or submission; the next round finds what it wrote.
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def unscored_submissions(engine: Engine, suite: str, label_version: str, policy: str) -> Sequence[Submission]:
    """The submissions of a suite that have no score under a label version, in the order they came."""
    scored = select(Score.submission_id).where(Score.label_version == label_version, Score.policy == policy)
    waiting = (
        select(Submission)
        .where(Submission.suite == suite, Submission.id.not_in(scored))
        .order_by(Submission.submitted_at, Submission.id)
    )
    with snapshot(engine) as session:
        return session.scalars(waiting).all()


def find_submission(engine: Engine, suite: str, submission_id: str) -> Submission | None:
    """A submission of a suite by its id; None where there is no such one."""
    if not re.fullmatch("[0-9a-f]{12}", submission_id):  # PostgreSQL refuses some texts outright
        return None
    with snapshot(engine) as session:
        found = session.get(Submission, submission_id)
        return found if found is not None and found.suite == suite else None


def is_scored(engine: Engine, submission_id: str, label_version: str, policy: str) -> bool:
    """Whether a submission has its score under a label version."""
    found = select(Score.id).where(
        Score.submission_id == submission_id, Score.label_version == label_version, Score.policy == policy
    )
    with snapshot(engine) as session:
        return session.scalar(found) is not None


def add_score(engine: Engine, score: Score) -> bool:
    """Write a score; False when another process wrote that one first."""
    wanted = (score.submission_id, score.label_version, score.policy)
    try:
        with transaction(engine) as session:
            session.add(score)
    except IntegrityError:
        if not is_scored(engine, *wanted):
            raise
        return False
    return True


def state_of_scores(session: Session) -> tuple[int, int | None]:
    """What changes with every new score: they are only ever added."""
    return tuple(session.execute(select(func.count(Score.id), func.max(Score.id))).one())


def fullest_label_version(session: Session, suite: str, policy: str) -> str | None:
    """What a board stands on while the labels are away: the version with the most scores, then the newest.

    A re-scoring that was broken off has fewer than the version before it.
    """
    versions = (
        select(Score.label_version)
        .join(Submission)
        .where(Submission.suite == suite, Score.policy == policy)
        .group_by(Score.label_version)
        .order_by(func.count().desc(), func.max(Score.id).desc())
    )
    return session.scalar(versions.limit(1))


def scored_records(
    session: Session, suite: str, label_version: str | None, policy: str
) -> list[ScoredRecord]:
    """The submissions of a suite scored under a label version, in the order they came."""
    found = session.scalars(
        select(Score)
        .join(Submission)
        .where(
            Submission.suite == suite, Score.label_version == (label_version or ""), Score.policy == policy
        )
        .options(joinedload(Score.submission).joinedload(Submission.judge).joinedload(Judge.account))
        .order_by(Submission.submitted_at, Submission.id)
    )
    return [_scored_record(score) for score in found]


def _find_or_add_submission(
    session: Session, suite: str, upload: Upload, declaration: Declaration, clock: Callable[[], datetime]
) -> tuple[Submission, bool]:
    judge = _find_or_add_judge(session, declaration, clock())
    identity = f"{judge.id}/{suite}/{upload.check.split}/{upload.sha256}"
    submission_id = hashlib.sha256(identity.encode()).hexdigest()[:12]
    existing = session.get(Submission, submission_id)
    if existing is not None:
        return existing, False
    record = _submission(submission_id, judge, suite, upload, declaration, clock())
    session.add(record)
    session.flush()
    return record, True


def _find_or_add_judge(session: Session, declaration: Declaration, now: datetime) -> Judge:
    account = session.scalar(select(Account).where(Account.name == declaration.account))
    if account is None:
        account = Account(name=declaration.account, created_at=now)
        session.add(account)
        session.flush()
    judge = session.scalar(
        select(Judge).where(Judge.account_id == account.id, Judge.name == declaration.judge)
    )
    if judge is None:
        judge = Judge(account_id=account.id, name=declaration.judge, created_at=now)
        session.add(judge)
        session.flush()
    return judge


def _submission(
    submission_id: str, judge: Judge, suite: str, upload: Upload, declaration: Declaration, now: datetime
) -> Submission:
    return Submission(
        id=submission_id,
        judge_id=judge.id,
        suite=suite,
        split=upload.check.split,
        file_sha256=upload.sha256,
        content_hash=upload.check.aligned.content_hash(),
        file_name=upload.file_name,
        size_bytes=len(upload.content),
        rows=upload.check.rows,
        coverage=upload.check.coverage,
        submitted_at=now,
        **declaration.model_dump(exclude={"account", "judge"}),
    )


def _scored_record(score: Score) -> ScoredRecord:
    submission = score.submission
    return ScoredRecord(
        id=submission.id,
        judge=submission.judge.name,
        account=submission.judge.account.name,
        kind=submission.kind,
        inputs=submission.inputs,
        model=submission.model,
        authors=submission.authors,
        link=submission.link,
        test_labels_used=submission.test_labels_used,
        file_sha256=submission.file_sha256,
        # To the microsecond: the earlier of two equal submissions ranks first.
        submitted_at=submission.submitted_at.isoformat(timespec="microseconds"),
        report=score.report,
        counts_by_task=score.counts_by_task,
    )
