"""Records submissions, and scores each of them once per label version."""

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from arb.core.suite import Suite
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
from submissions.records.database import Submission, snapshot
from submissions.records.event_log import DECLARED, add_event, events_of_submission, find_judge, recording
from submissions.records.statuses import SubmissionStatuses, fold_statuses
from submissions.resources import Resources
from submissions.scoring.verdicts import check_stored_file

logger = logging.getLogger(__name__)

ID_LENGTH: Final = 32
"""The number of hexadecimal digits in the id of a submission."""
THE_SERVER: Final = "the server"
"""The actor of events that no account causes."""


def record_submission(
    app: Resources, upload: Upload, declaration: JudgeInfo, label_version: str,
    reasons_to_hold: Sequence[str] = (),
) -> tuple[Submission, bool]:  # fmt: skip
    """Record a judge's test file unless it is recorded already; return (submission, whether it is new).

    Limits are checked in the same transaction. Raises RateLimited if the file is new and the account has used
    up its quota, or PermissionDenied if the account is banned.
    """
    suite, account = app.suite.name, declaration.account
    with recording(app.engine) as session:
        found = queries.current_statuses(session)
        judge = found.first_name_of(account, declaration.judge)
        existing = _existing(session, suite, account, judge, upload)
        if existing is not None:
            status = found.of(existing.id)
            if status.is_rejected or status.is_withdrawn or not status.is_refunded:
                return existing, False
        now = app.clock()
        _require_open_account(app, session, account, found, now)
        if existing is not None:
            _count(session, existing.id, now)
            return existing, False
        body = submission_body(app.suite, upload, declaration, judge, label_version)
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
    """Score a submission under a label set unless it has a score. Return whether it has one now.

    Held, rejected and refunded submissions get no score, since nobody may see figures that were not charged.
    This is checked again at the end, because a maintainer may have decided in the meantime.
    """
    with snapshot(app.engine) as session:
        is_scored = queries.find_score(session, submission.id, labels.version) is not None
        if is_scored or not _may_be_scored(session, submission.id):
            return is_scored
    body = {"submission_id": submission.id, **score_of(verdicts, labels, app.half_key)}
    with recording(app.engine) as session:
        # Another process may have scored it meanwhile.
        is_scored = queries.find_score(session, submission.id, labels.version) is not None
        if not is_scored and _may_be_scored(session, submission.id):
            add_event(session, "scored", submission.judge.account.name, app.clock(), body)
            is_scored = True
    return is_scored


def _may_be_scored(session: Session, submission_id: str) -> bool:
    status = fold_statuses(events_of_submission(session, submission_id)).of(submission_id)
    return not (status.is_held or status.is_rejected or status.is_refunded)


def refund_submission(app: Resources, submission_id: str, reason: str) -> None:
    """Stop counting a submission towards its account's limits, unless it has a score."""
    with recording(app.engine) as session:
        status = queries.current_statuses(session).of(submission_id)
        if not (status.is_refunded or queries.has_score(session, submission_id)):
            body = {"submission_id": submission_id, "reason": reason}
            add_event(session, "refunded", THE_SERVER, app.clock(), body)


def _count(session: Session, submission_id: str, at: datetime) -> None:
    body = {"submission_id": submission_id, "reason": "it is scored after all"}
    add_event(session, "counted", THE_SERVER, at, body)


def _existing(session: Session, suite: str, account: str, judge: str, upload: Upload) -> Submission | None:
    known = find_judge(session, account, judge)
    of_file = select(Submission).filter_by(suite=suite, split=upload.check.split, file_sha256=upload.sha256)
    return session.scalar(of_file.filter_by(judge_id=known.id)) if known else None


def submission_body(
    suite: Suite, upload: Upload, declaration: JudgeInfo, judge: str, label_version: str
) -> dict[str, Any]:
    """Return the body of a ``submitted`` event; ``judge`` is the judge's original name.

    The id has 128 bits and is a hash of account, judge, suite, split and file.
    """
    verdicts = upload.check.aligned
    if verdicts is None:
        raise ValueError("only an acceptable file is recorded")
    names = {"account": declaration.account, "judge": judge, "suite": suite.name, "split": upload.check.split}
    return {
        "submission_id": _id_of(*names.values(), upload.sha256),
        **names,
        "file_sha256": upload.sha256,
        "content_hash": verdicts.content_hash(suite.targets),
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
    """Return the id for a new submission. An id that is in use is hashed again until a free one is found."""
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
    problem, codes = "its stored file is missing or damaged", ""
    verdicts = None
    with suppress(OSError, ValueError):
        checked = check_stored_file(app, submission.file_sha256, submission.split)
        verdicts, problem = checked.aligned, "its file no longer fits the suite"
        codes = ", ".join(finding.code for finding in checked.findings if finding.level == "error")
    if verdicts is None:
        logger.error("submission %s cannot be scored: %s (%s)", submission.id, problem, codes)
        refund_submission(app, submission.id, problem)
        return False
    try:
        with recording(app.engine) as session:
            found, now = queries.current_statuses(session), app.clock()
            if found.of(submission.id).is_refunded:  # it counts towards its account's limits again
                _require_open_account(app, session, submission.judge.account.name, found, now)
                _count(session, submission.id, now)
    except SubmissionError:
        logger.warning(
            "submission %s is not scored yet: it was refunded, and its account has used up its quota",
            submission.id,
        )
        return False
    return record_score(app, submission, verdicts, labels)


def score_of(verdicts: Predictions, labels: LabelSet, half_key: bytes | None = None) -> dict[str, Any]:
    """Return the body of a ``scored`` event, without the id of the submission.

    ``halves`` has a report and digests of the half that is shown and of the half that ranks; it is empty if
    ``half_key`` is None.
    """
    halves = {}
    if half_key is not None:
        ranked = hidden_half(labels.trajectories, half_key)
        for name, rows in (("shown", ~ranked), ("ranked", ranked)):
            halves[name] = _figures(verdicts.take(rows.nonzero()[0]), labels.only(rows))
    return {
        "label_version": labels.version,
        "policy": queries.POLICY,
        "metric_version": METRIC_VERSION,
        **_figures(verdicts, labels),
        "counts_by_task": dict(counts_by_task(verdicts, labels)),
        "halves": halves,
    }


def _figures(aligned: Predictions, labels: LabelSet) -> dict[str, Any]:
    return {
        "report": with_cost(score_report(aligned, labels, queries.POLICY), aligned.cost_usd),
        "digests": digests_of(aligned, labels.trajectories, labels.targets),
    }
