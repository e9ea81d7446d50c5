"""Records submissions, and scores each of them once per label version."""

import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from leaderboard.costs import with_cost
from leaderboard.labels.labels import LabelSet
from leaderboard.report import counts_by_task, score_report
from leaderboard.score import METRIC_VERSION
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import require_quota
from submissions.intake.upload import Upload
from submissions.privacy.disclosure import digests_of, hidden_half
from submissions.privacy.leak_budget import quota_of
from submissions.records import queries
from submissions.records.database import Account, JudgeRow, Submission, snapshot, transaction
from submissions.records.event_log import DECLARED, add_event, events_of_submission, lock_event_log
from submissions.records.statuses import SubmissionStatuses, fold_statuses
from submissions.resources import Resources
from submissions.scoring.verdicts import check_stored_file

logger = logging.getLogger(__name__)

ID_LENGTH: Final = 32
"""Hexadecimal digits in the id of a submission."""
THE_SERVER: Final = "the server"
"""The actor of events that no account causes."""


def record_submission(
    app: Resources,
    upload: Upload,
    declaration: JudgeInfo,
    label_version: str,
    reasons_to_hold: Sequence[str] = (),
) -> tuple[Submission, bool]:
    """Record a judge's test file unless it is recorded already; return (submission, whether it is new).

    Limits are checked in the same transaction. Raises RateLimited if the file is new and the account has used
    up its quota, or PermissionDenied if the account is banned.
    """
    suite, account = app.suite.name, declaration.account
    with transaction(app.engine) as session:
        lock_event_log(session)
        found = queries.current_statuses(session)
        judge = found.first_name_of(account, declaration.judge)
        existing = _existing(session, suite, account, judge, upload)
        if existing is not None:
            status = found.of(existing.id)
            has_to_count = status.is_refunded and not (status.is_rejected or status.is_withdrawn)
            if not has_to_count:
                return existing, False
        now = app.clock()
        _require_open_account(app, session, account, found, now)
        if existing is not None:
            _count(session, existing.id, now)
            return existing, False
        body = submission_body(suite, upload, declaration, judge, label_version)
        body["submission_id"] = _free_id(session, body)
        add_event(session, "submitted", account, now, body)
        if reasons_to_hold:
            held = {"submission_id": body["submission_id"], "reasons": list(reasons_to_hold)}
            add_event(session, "held", THE_SERVER, now, held)
        return session.get_one(Submission, body["submission_id"]), True


def _require_open_account(
    app: Resources, session: Session, account: str, found: SubmissionStatuses, now: datetime
) -> None:
    """Raise PermissionDenied if the account is banned, and RateLimited if it has used up its quota."""
    if found.is_banned(account):
        raise PermissionDenied(f"the account {account} may no longer submit; ask a maintainer why")
    require_quota(quota_of(session, app.suite, account, found, now), app.suite.rules)


def record_score(app: Resources, submission: Submission, verdicts: Predictions, labels: LabelSet) -> bool:
    """Score a submission under labels unless it has a score; return whether it has one now.

    Held, rejected and refunded submissions get no score, since nobody may see figures that were not charged.
    This is checked again at the end, because a maintainer may have decided meanwhile.
    """
    with snapshot(app.engine) as session:
        if queries.find_score(session, submission.id, labels.version) is not None:
            return True
        if not _may_be_scored(session, submission.id):
            return False
    body = {"submission_id": submission.id, **score_of(verdicts, labels, app.half_key)}
    try:
        with transaction(app.engine) as session:
            lock_event_log(session)
            if not _may_be_scored(session, submission.id):
                return False
            add_event(session, "scored", submission.judge.account.name, app.clock(), body)
    except IntegrityError:
        with snapshot(app.engine) as session:
            if queries.find_score(session, submission.id, labels.version) is None:
                raise
        logger.info("submission %s was scored by another process at the same time", submission.id)
    return True


def _may_be_scored(session: Session, submission_id: str) -> bool:
    status = fold_statuses(events_of_submission(session, submission_id)).of(submission_id)
    return not (status.is_held or status.is_rejected or status.is_refunded)


def refund_submission(app: Resources, submission_id: str, reason: str) -> None:
    """Stop counting a submission towards its account's limits, unless it has a score."""
    with transaction(app.engine) as session:
        lock_event_log(session)
        status = queries.current_statuses(session).of(submission_id)
        if not (status.is_refunded or queries.has_score(session, submission_id)):
            body = {"submission_id": submission_id, "reason": reason}
            add_event(session, "refunded", THE_SERVER, app.clock(), body)


def _count(session: Session, submission_id: str, at: datetime) -> None:
    body = {"submission_id": submission_id, "reason": "it is scored after all"}
    add_event(session, "counted", THE_SERVER, at, body)


def _existing(session: Session, suite: str, account: str, judge: str, upload: Upload) -> Submission | None:
    of_judge = select(Submission).join(JudgeRow).join(Account)
    return session.scalar(
        of_judge.where(
            Account.name == account,
            JudgeRow.name == judge,
            Submission.suite == suite,
            Submission.split == upload.check.split,
            Submission.file_sha256 == upload.sha256,
        )
    )


def submission_body(
    suite: str, upload: Upload, declaration: JudgeInfo, judge: str, label_version: str
) -> dict[str, Any]:
    """Return the body of a ``submitted`` event; ``judge`` is the judge's original name.

    The id has 128 bits and is a hash of account, judge, suite, split and file.
    """
    verdicts = upload.check.aligned
    if verdicts is None:
        raise ValueError("only an acceptable file is recorded")
    return {
        "submission_id": _id_of(declaration.account, judge, suite, upload.check.split, upload.sha256),
        "account": declaration.account,
        "judge": judge,
        "suite": suite,
        "split": upload.check.split,
        "file_sha256": upload.sha256,
        "content_hash": verdicts.content_hash(),
        "file_name": upload.file_name,
        "size_bytes": len(upload.content),
        "rows": upload.check.rows,
        "coverage": upload.check.coverage,
        "label_version": label_version,
        **{name: getattr(declaration, name) for name in DECLARED},
    }


def _id_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:ID_LENGTH]


def _free_id(session: Session, body: dict[str, Any]) -> str:
    """Return the id for a new submission. An id that is in use is hashed until one is free."""
    found = body["submission_id"]
    while session.get(Submission, found) is not None:
        found = _id_of(found)
    return found


def finish_scoring(app: Resources) -> int:
    """Score every submission that has no score under the current labels; return how many were scored.

    Such submissions are left by a process that was killed before it scored them. If the stored file is
    missing or damaged, the submission is logged and refunded. A refunded submission counts towards the limits
    again before it is scored, and is not scored while its account has used up its quota. Held, rejected and
    withdrawn submissions are not scored.
    """
    app.files.remove_leftovers()
    labels = app.labels.test
    if labels is None:
        return 0
    with snapshot(app.engine) as session:
        waiting = queries.unscored_submissions(session, app.suite.name, labels.version)
        statuses = queries.current_statuses(session)
    scored = 0
    for submission in waiting:
        status = statuses.of(submission.id)
        if not (status.is_held or status.is_rejected or status.is_withdrawn):
            scored += _score_stored_file(app, submission, labels)
    return scored


def _score_stored_file(app: Resources, submission: Submission, labels: LabelSet) -> bool:
    """Score a recorded submission from its stored file; return whether that was possible."""
    try:
        checked = check_stored_file(app, submission.file_sha256, submission.split)
    except (OSError, ValueError):
        problem = "its stored file is missing or damaged"
        logger.error("submission %s cannot be scored: %s", submission.id, problem)
        refund_submission(app, submission.id, problem)
        return False
    if checked.aligned is None:
        codes = ", ".join(finding.code for finding in checked.findings if finding.level == "error")
        logger.error("submission %s cannot be scored: its file is not valid now (%s)", submission.id, codes)
        refund_submission(app, submission.id, "its file no longer fits the suite")
        return False
    try:
        _count_again(app, submission)
    except SubmissionError:
        logger.warning(
            "submission %s is not scored yet: it was refunded, and its account has used up its quota",
            submission.id,
        )
        return False
    return record_score(app, submission, checked.aligned, labels)


def _count_again(app: Resources, submission: Submission) -> None:
    """Count a refunded file towards its account's limits again.

    Raises SubmissionError if the account has used up its quota or is banned.
    """
    with transaction(app.engine) as session:
        lock_event_log(session)
        found = queries.current_statuses(session)
        if found.of(submission.id).is_refunded:
            now = app.clock()
            _require_open_account(app, session, submission.judge.account.name, found, now)
            _count(session, submission.id, now)


def score_of(verdicts: Predictions, labels: LabelSet, half_key: bytes | None = None) -> dict[str, Any]:
    """Return the body of a ``scored`` event, without the id of the submission.

    ``halves`` has a report and digests of the half that is shown and of the half that ranks; it is empty if
    ``half_key`` is None.
    """
    return {
        "label_version": labels.version,
        "policy": queries.POLICY,
        "metric_version": METRIC_VERSION,
        **_figures(verdicts, labels),
        "counts_by_task": dict(counts_by_task(verdicts, labels)),
        "halves": {} if half_key is None else _halves(verdicts, labels, half_key),
    }


def _figures(aligned: Predictions, labels: LabelSet) -> dict[str, Any]:
    return {
        "report": with_cost(score_report(aligned, labels, queries.POLICY), aligned.cost_usd),
        "digests": digests_of(aligned, labels.trajectories, labels.targets),
    }


def _halves(aligned: Predictions, labels: LabelSet, key: bytes) -> dict[str, Any]:
    ranked = hidden_half(labels.trajectories, key)
    return {
        name: _figures(aligned.take(rows.nonzero()[0]), labels.only(rows))
        for name, rows in (("shown", ~ranked), ("ranked", ranked))
    }
