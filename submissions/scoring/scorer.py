"""Recording a submission, and scoring it once for every label version."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from arb.core.judge_info import JudgeInfo
from arb.core.predictions import ParserPool
from arb.core.predictions.table import Predictions
from arb.core.suite import Suite
from leaderboard.labels.labels import LabelSet
from leaderboard.report import counts_by_task, score_report, with_cost
from leaderboard.score import METRIC_VERSION
from submissions.errors import PermissionDenied, RateLimited
from submissions.intake.accounts import limit_message
from submissions.intake.upload import Upload
from submissions.privacy.disclosure import digests_of, hidden_half, labels_of, predictions_of
from submissions.privacy.leak_budget import quota_of
from submissions.records.database import Submission, snapshot, transaction
from submissions.records.event_log import (
    DECLARED,
    add_event,
    events_of_submission,
    find_judge,
    lock_event_log,
)
from submissions.records.files import FileStore
from submissions.records.queries import (
    POLICY,
    RecordedSubmission,
    current_statuses,
    find_score,
    has_score,
    recorded_submission,
    unscored_submissions,
)
from submissions.records.statuses import SubmissionStatuses, fold_statuses
from submissions.scoring.verdicts import check_stored_file

logger = logging.getLogger(__name__)

ID_LENGTH: Final = 32
"""Hexadecimal digits of the id of a submission."""
THE_SERVER = "the server"
"""The actor of events that no account causes."""


def record_submission(
    engine: Engine,
    suite: Suite,
    upload: Upload,
    declaration: JudgeInfo,
    label_version: str,
    clock: Callable[[], datetime],
    reasons_to_hold: Sequence[str] = (),
) -> RecordedSubmission:
    """The record of a judge's test file, made unless it is there; limits are counted in the same transaction.

    For a new file raises RateLimited at the limit of the account, PermissionDenied where the account is
    closed; one that is there already is returned as it is.
    """
    with transaction(engine) as session:
        lock_event_log(session)
        found = current_statuses(session)
        account = declaration.account
        judge = found.first_name_of(account, declaration.judge)
        existing = _existing(session, suite.name, account, judge, upload)
        if existing is not None and not _waits_for_quota(existing, found):
            return recorded_submission(session, existing, found, label_version)
        if found.is_banned(account):
            raise PermissionDenied(f"the account {account} is closed to submissions; ask a maintainer why")
        now = clock()
        left = quota_of(session, suite, account, found, now)
        if left.next_at is not None:
            raise RateLimited(limit_message(left, suite.rules), left.next_at)
        if existing is not None:
            _count(session, existing.id, now)
            return recorded_submission(session, existing, current_statuses(session), label_version)
        body = submission_body(suite.name, upload, declaration, judge, label_version)
        body["submission_id"] = _free_id(session, body)
        add_event(session, "submitted", account, now, body)
        if reasons_to_hold:
            held = {"submission_id": body["submission_id"], "reasons": list(reasons_to_hold)}
            add_event(session, "held", THE_SERVER, now, held)
        submission = session.get_one(Submission, body["submission_id"])
        found = current_statuses(session)
        return replace(recorded_submission(session, submission, found, label_version), is_new=True)


class NotCharged(Exception):
    """A submission that cannot be scored now: it is held, was rejected, or was given back to its account."""


def record_score(engine: Engine, account: str, score: dict[str, Any], at: datetime) -> None:
    """Write a score (the body of an event ``scored``), unless another process wrote it first.

    Raises NotCharged: nobody may see figures that were not charged for, and a maintainer may have decided
    since the file was read.
    """
    submission_id, label_version = score["submission_id"], score["label_version"]
    try:
        with transaction(engine) as session:
            lock_event_log(session)
            status = fold_statuses(events_of_submission(session, submission_id)).of(submission_id)
            if status.is_held or status.is_rejected or status.is_refunded:
                raise NotCharged(submission_id)
            add_event(session, "scored", account, at, score)
    except IntegrityError:
        with snapshot(engine) as session:
            if find_score(session, submission_id, label_version) is None:
                raise
        logger.info("submission %s was scored by another process at the same time", submission_id)


def refund_submission(engine: Engine, submission_id: str, reason: str, at: datetime) -> None:
    """Stop counting a submission towards the limits, unless its account may have seen figures of it."""
    with transaction(engine) as session:
        lock_event_log(session)
        if not (has_score(session, submission_id) or current_statuses(session).of(submission_id).is_refunded):
            body = {"submission_id": submission_id, "reason": reason}
            add_event(session, "refunded", THE_SERVER, at, body)


def _waits_for_quota(submission: Submission, found: SubmissionStatuses) -> bool:
    """Whether a file was given back and may be scored all the same: then it has to count again."""
    status = found.of(submission.id)
    return status.is_refunded and not (status.is_rejected or status.is_withdrawn)


def count_again(
    engine: Engine, suite: Suite, submission: Submission, label_version: str, at: datetime
) -> bool:
    """Let a file that was given back count towards its account's limits, before it is scored after all.

    Whether it counts: False where the account has used what it got back, or is closed.
    """
    with transaction(engine) as session:
        lock_event_log(session)
        found, account = current_statuses(session), submission.judge.account.name
        if not found.of(submission.id).is_refunded:
            return True
        if found.is_banned(account) or quota_of(session, suite, account, found, at).next_at is not None:
            return False
        _count(session, submission.id, at)
        return True


def _count(session: Session, submission_id: str, at: datetime) -> None:
    body = {"submission_id": submission_id, "reason": "it is scored after all"}
    add_event(session, "counted", THE_SERVER, at, body)


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


def submission_body(
    suite: str, upload: Upload, declaration: JudgeInfo, judge: str, label_version: str
) -> dict[str, Any]:
    """Return the body of the event by which a file comes; ``judge`` is its first name.

    The id has 128 bits and follows from account, judge, suite, split and file.
    """
    parts = (declaration.account, judge, suite, upload.check.split, upload.sha256)
    return {
        "submission_id": _id_of(*parts),
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


def _id_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:ID_LENGTH]


def _free_id(session: Session, body: dict[str, Any]) -> str:
    """Return the id of a new submission, or one that follows from it if another submission has that id."""
    found = body["submission_id"]
    while session.get(Submission, found) is not None:
        found = _id_of(found)
    return found


FILE_WAIT: Final = timedelta(minutes=10)
"""So young a submission may have its file at another replica, which scores it."""


@dataclass(frozen=True)
class Scorer:
    """Writes scores into the records of a suite. ``half_key`` draws the ranking half where there is one."""

    engine: Engine
    files: FileStore
    suite: Suite
    clock: Callable[[], datetime]
    half_key: bytes | None = None
    parsers: ParserPool | None = None

    def score(self, submission_id: str, account: str, verdicts: Predictions, labels: LabelSet) -> None:
        """Score the verdicts of a submission under ``labels``; see `record_score`."""
        body = {"submission_id": submission_id, **score_of(verdicts, labels, self.half_key)}
        record_score(self.engine, account, body, self.clock())

    def finish(self, labels: LabelSet) -> int:
        """Score every recorded submission that has no score under these labels; how many were scored.

        A process killed between recording and scoring leaves such ones. One that cannot be scored (its kept
        file is damaged) is named in the log, is given back to its account, and keeps nobody else from the
        board. One that was given back counts again, and waits where its account has no file left. Held,
        rejected and withdrawn ones are left alone.
        """
        found = unscored_submissions(self.engine, self.suite.name, labels.version)
        with snapshot(self.engine) as session:
            statuses = current_statuses(session)
        return sum(
            self._finish(submission, labels)
            for submission in found
            if not (
                (status := statuses.of(submission.id)).is_held or status.is_rejected or status.is_withdrawn
            )
        )

    def _finish(self, submission: Submission, labels: LabelSet) -> bool:
        """Score one recorded submission from its stored file; whether that was possible."""
        with snapshot(self.engine) as session:
            if find_score(session, submission.id, labels.version) is not None:
                return True  # another process was here first
        try:
            checked = check_stored_file(
                self.files, submission.file_sha256, self.suite, submission.split, self.parsers
            )
        except (OSError, ValueError):
            if self.clock() - submission.submitted_at < FILE_WAIT:
                logger.warning("submission %s waits: its file is not here (yet)", submission.id)
                return False
            problem = "its stored file is missing or damaged"
            logger.error("submission %s cannot be scored: %s", submission.id, problem)
            refund_submission(self.engine, submission.id, problem, self.clock())
            return False
        if checked.aligned is None:
            codes = ", ".join(finding.code for finding in checked.findings if finding.level == "error")
            logger.error(
                "submission %s cannot be scored: its file is not acceptable now (%s)", submission.id, codes
            )
            refund_submission(
                self.engine, submission.id, "its file does not fit the suite any more", self.clock()
            )
            return False
        if not count_again(self.engine, self.suite, submission, labels.version, self.clock()):
            logger.warning("submission %s waits: it was given back, and no file is left", submission.id)
            return False
        try:
            self.score(submission.id, submission.judge.account.name, checked.aligned, labels)
        except NotCharged:
            return False
        return True


def score_of(verdicts: Predictions, labels: LabelSet, half_key: bytes | None = None) -> dict:
    """Return the score of a file's verdicts, as its record holds it.

    ``halves`` holds report and digests of the half that is shown and the one that ranks; empty without a key.
    """
    return {
        "label_version": labels.version,
        "policy": POLICY,
        "metric_version": METRIC_VERSION,
        **_figures(verdicts, labels),
        "counts_by_task": dict(counts_by_task(verdicts, labels)),
        "halves": {} if half_key is None else _halves(verdicts, labels, half_key),
    }


def _figures(aligned: Predictions, labels: LabelSet) -> dict:
    return {
        "report": with_cost(score_report(aligned, labels, POLICY), aligned.cost_usd),
        "digests": digests_of(aligned, labels.trajectories),
    }


def _halves(aligned: Predictions, labels: LabelSet, key: bytes) -> dict:
    ranked = hidden_half(labels.trajectories, key)
    return {
        name: _figures(predictions_of(aligned, rows), labels_of(labels, rows))
        for name, rows in (("shown", ~ranked), ("ranked", ranked))
    }
