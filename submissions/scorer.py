"""Scoring recorded submissions, each once for every label version."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Engine

from dataset_script.prediction_file.aligned import Predictions
from dataset_script.settings import Settings
from dataset_script.suite import Suite
from leaderboard.costs import with_cost
from leaderboard.labels import LabelSet
from leaderboard.report import counts_by_task, score_report
from submissions.database import snapshot
from submissions.ledger import record_score, refund_submission
from submissions.lookup import current_statuses, find_score, unscored_submissions
from submissions.predictions import Upload, read_upload
from submissions.probing.digests import digests_of
from submissions.probing.ranking_half import halves, labels_of, predictions_of
from submissions.records import Score, Submission
from submissions.store import FileStore

logger = logging.getLogger(__name__)
POLICY = "strict"
FILE_WAIT: Final = timedelta(minutes=10)
"""So young a submission may have its file at another replica, which scores it."""


@dataclass(frozen=True)
class Scorer:
    """Writes scores into the records of a suite. ``half_key`` draws the ranking half where there is one."""

    engine: Engine
    files: FileStore
    suite: Suite
    settings: Settings
    clock: Callable[[], datetime]
    half_key: bytes | None = None

    def score(self, submission_id: str, account: str, upload: Upload, labels: LabelSet) -> tuple[Score, int]:
        """Score a submission under ``labels``; see `record_score`."""
        body = {"submission_id": submission_id, **score_of(upload, labels, self.half_key)}
        return record_score(self.engine, account, body, self.clock())

    def finish(self, labels: LabelSet) -> int:
        """Score every recorded submission that has no score under these labels; how many were scored.

        A process killed between recording and scoring leaves such ones. One that cannot be scored (its kept
        file is damaged) is named in the log, is given back to its account, and keeps nobody else from the
        board. Held, rejected and withdrawn ones are left alone.
        """
        found = unscored_submissions(self.engine, self.suite.name, labels.version, POLICY)
        with snapshot(self.engine) as session:
            standing = current_statuses(session)
        wanted = [
            record
            for record in found
            if not (
                standing.of(record.id).is_held
                or standing.of(record.id).is_rejected
                or standing.of(record.id).is_withdrawn
            )
        ]
        return sum(self._finish(record, labels) for record in wanted)

    def _finish(self, record: Submission, labels: LabelSet) -> bool:
        """Score one recorded submission from its kept file; whether that was possible."""
        with snapshot(self.engine) as session:
            if find_score(session, record.id, labels.version, POLICY) is not None:
                return True  # another process was here first
        try:
            upload = self.stored_upload(record)
        except (OSError, ValueError):
            if self.clock() - record.submitted_at < FILE_WAIT:
                logger.warning("submission %s waits: its file is not here (yet)", record.id)
                return False
            logger.error("submission %s cannot be scored: its kept file is missing or damaged", record.id)
            refund_submission(self.engine, record.id, "its kept file is missing or damaged", self.clock())
            return False
        if not upload.check.acceptable:
            codes = ", ".join(finding.code for finding in upload.check.findings if finding.level == "error")
            logger.error(
                "submission %s cannot be scored: its file is not acceptable now (%s)", record.id, codes
            )
            refund_submission(
                self.engine, record.id, "its file does not fit the suite any more", self.clock()
            )
            return False
        self.score(record.id, record.judge.account.name, upload, labels)
        return True

    def stored_upload(self, record: Submission) -> Upload:
        """A submission's file, read again. Raises OSError or ValueError where it is missing or damaged."""
        content = self.files.read(record.file_sha256)
        # It was within the limit of its day.
        most = max(len(content), self.settings.max_upload_bytes)
        settings = self.settings.model_copy(update={"max_upload_bytes": most})
        return read_upload(content, record.file_name, settings, suite=self.suite, split=record.split)


def score_of(upload: Upload, labels: LabelSet, half_key: bytes | None = None) -> dict:
    """The score of an acceptable upload: what its record says of it beside the submission.

    ``halves`` holds report and digests of the half that is shown and the one that ranks; empty without a key.
    """
    aligned = upload.check.aligned
    return {
        "label_version": labels.version,
        "policy": POLICY,
        **_figures(aligned, labels),
        "counts_by_task": dict(counts_by_task(aligned, labels)),
        "halves": {} if half_key is None else _halves(aligned, labels, half_key),
    }


def _figures(aligned: Predictions, labels: LabelSet) -> dict:
    return {
        "report": with_cost(score_report(aligned, labels, POLICY), aligned.cost_usd),
        "digests": digests_of(aligned, labels.trajectories),
    }


def _halves(aligned: Predictions, labels: LabelSet, key: bytes) -> dict:
    drawn = halves(labels.trajectories, key)
    return {
        name: _figures(predictions_of(aligned, rows), labels_of(labels, rows))
        for name, rows in (("shown", drawn.shown), ("ranked", drawn.ranked))
    }
