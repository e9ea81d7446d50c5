"""Events that an uploaded file causes: submitted, held, scored, refunded."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from dataset_script.suite import Suite
from submissions.chain import lock_event_log, number_of_events
from submissions.database import snapshot, transaction
from submissions.declaration import Declaration
from submissions.limits import limit_message, remaining_quota
from submissions.lookup import (
    RecordedSubmission,
    counted_submissions,
    current_statuses,
    find_score,
    recorded_submission,
)
from submissions.predictions import Upload
from submissions.projection import DECLARED, add_event, find_judge
from submissions.records import Score, Submission
from submissions.refusals import PermissionDenied, RateLimited

logger = logging.getLogger(__name__)

THE_SERVER = "the server"
"""The actor of events that no account causes."""


def record_submission(
    engine: Engine,
    suite: Suite,
    upload: Upload,
    declaration: Declaration,
    label_version: str,
    clock: Callable[[], datetime],
    reasons_to_hold: Sequence[str] = (),
) -> RecordedSubmission:
    """The record of a judge's test file, made unless it is there; limits are counted in the same transaction.

    For a new file raises RateLimited at the limit of the account, PermissionDenied where the account is closed; one
    that is there already is returned as it is.
    """
    with transaction(engine) as session:
        lock_event_log(session)
        found = current_statuses(session)
        account = declaration.account
        judge = found.first_name_of(account, declaration.judge)
        existing = _existing(session, suite.name, account, judge, upload)
        if existing is not None:
            return recorded_submission(session, existing, found, label_version)
        if account in found.banned:
            raise PermissionDenied(f"the account {account} is closed to submissions; ask a maintainer why")
        now = clock()
        came = counted_submissions(session, suite.name, account, label_version, found)
        left = remaining_quota(came, suite.rules, now)
        if left.next_at is not None:
            raise RateLimited(limit_message(left, suite.rules), left.next_at)
        body = _body(suite.name, upload, declaration, judge, label_version)
        submitted = last = add_event(session, "submitted", account, now, body)
        status = found.of(body["submission_id"])
        if reasons_to_hold:
            held = {"submission_id": body["submission_id"], "reasons": list(reasons_to_hold)}
            last = add_event(session, "held", THE_SERVER, now, held)
            status = replace(status, is_held=True, reasons=tuple(reasons_to_hold))
        submission = session.get_one(Submission, body["submission_id"])
        name = found.name_of(account, judge)
        return RecordedSubmission(submission, submitted, last.sequence, name, status, None, is_new=True)


def record_score(engine: Engine, account: str, score: dict[str, Any], at: datetime) -> tuple[Score, int]:
    """Write a score (the body of a record ``scored``), unless another process wrote it first.

    Gives the score, and a sequence up to which the records hold it.
    """
    wanted = (score["submission_id"], score["label_version"], score["policy"])
    try:
        with transaction(engine) as session:
            written = add_event(session, "scored", account, at, score)
            return find_score(session, *wanted), written.sequence
    except IntegrityError:
        with snapshot(engine) as session:
            found = find_score(session, *wanted)
            if found is None:
                raise
            logger.info("submission %s was scored by another process at the same time", wanted[0])
            return found, number_of_events(session)


def refund_submission(engine: Engine, submission_id: str, reason: str, at: datetime) -> None:
    """Stop counting a submission towards the limits: it has no score through no fault of its account."""
    with transaction(engine) as session:
        lock_event_log(session)
        if not current_statuses(session).of(submission_id).is_refunded:
            body = {"submission_id": submission_id, "reason": reason}
            add_event(session, "refunded", THE_SERVER, at, body)


def _existing(session: Session, suite: str, account: str, judge: str, upload: Upload) -> Submission | None:
    owner = find_judge(session, account, judge)
    if owner is None:
        return None
    return session.scalar(
        select(Submission).where(
            Submission.judge_id == owner.id,
            Submission.suite == suite,
            Submission.split == upload.check.split,
            Submission.file_sha256 == upload.sha256,
        )
    )


def _body(
    suite: str, upload: Upload, declaration: Declaration, judge: str, label_version: str
) -> dict[str, Any]:
    parts = (declaration.account, judge, suite, upload.check.split, upload.sha256)
    return {
        "submission_id": hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12],
        "account": declaration.account,
        "judge": judge,
        "suite": suite,
        "split": upload.check.split,
        "file_sha256": upload.sha256,
        "content_hash": upload.check.aligned.content_hash(),
        "file_name": upload.file_name,
        "size_bytes": len(upload.content),
        "rows": upload.check.rows,
        "coverage": upload.check.coverage,
        "label_version": label_version,
        **{name: getattr(declaration, name) for name in DECLARED},
    }
