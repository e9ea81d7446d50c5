"""Intake of prediction files: check, dry run, submit and score."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from arb.core.judge_info import JudgeInfo
from leaderboard.report import score_report
from submissions.errors import DatabaseAway, PermissionDenied, SubmissionError, TemporarilyClosed, stores_in
from submissions.intake.accounts import Actor, age_problem
from submissions.intake.receipts import SubmissionView
from submissions.intake.upload import Upload, read_upload, reasons_to_hold
from submissions.moderation.actions import ModerationService
from submissions.records.queries import POLICY
from submissions.records.service import RecordsService
from submissions.resources import Resources
from submissions.scoring import scorer

logger = logging.getLogger(__name__)


FIX_FIRST = "fix the errors found by the check first"


class IntakeService:
    """The service that checks, records and scores the files of one suite. Thread-safe."""

    def __init__(self, app: Resources, records: RecordsService, moderation: ModerationService) -> None:
        self._app, self._records, self._moderation = app, records, moderation
        self._lock = threading.Lock()
        self._finishing: threading.Thread | None = None
        self.listeners: list[Callable[[Upload | SubmissionView | Exception], object]] = []
        """Functions called with every checked upload, every submission, and the exception of a failed one."""

    def check(self, content: bytes, file_name: str, split: str, apart: bool = False) -> Upload:
        """Check a prediction file against a split. See `read_upload` for ``apart``."""
        app = self._app
        upload = read_upload(
            content, file_name, app.settings, suite=app.suite, split=split, parsers=app.parsers, apart=apart
        )
        self._notify(upload)
        return upload

    def dry_run(self, upload: Upload) -> dict[str, Any]:
        """Return the full score report of an acceptable dev file without recording it.

        Raises SubmissionError if the file is not acceptable, or not for dev, or if there are no dev labels.
        """
        verdicts = upload.check.aligned
        if verdicts is None or upload.check.split != "dev":
            raise SubmissionError(f"only an acceptable dev file can be scored here; {FIX_FIRST}")
        labels = self._app.labels.dev
        if labels is None:
            raise SubmissionError(f"dev files cannot be scored: {self._app.labels.why_none('dev')}")
        return score_report(verdicts, labels, POLICY)

    def submit(self, upload: Upload, declaration: JudgeInfo, actor: Actor | None = None) -> SubmissionView:
        """Record and score an acceptable test file, and return the submission as its owner sees it.

        One transaction checks the limits and records the file; a second one records the score. The
        receipt says ``waiting`` until the record is stored durably; call `RecordsService.submission` to see
        when it is accepted. Sending the same file for the same judge again adds no second submission. If
        ``actor`` is None, which callers may allow only on loopback, the declared account becomes the actor.

        Raises SubmissionError, PermissionDenied, RateLimited.
        """
        try:
            view = self._submit(upload, declaration, actor or Actor(declaration.account))
        except Exception as error:
            self._notify(error)
            raise
        self._notify(view)
        return view

    def _notify(self, result: Upload | SubmissionView | Exception) -> None:
        for listener in self.listeners:
            listener(result)

    def _submit(self, upload: Upload, declaration: JudgeInfo, actor: Actor) -> SubmissionView:
        app = self._app
        actor = self._moderation.identify(actor, for_good=True)
        declaration = replace(declaration, account=actor.name)
        labels, verdicts = app.labels.test, upload.check.aligned
        if labels is None or self.read_only_reason:
            refusal = TemporarilyClosed if self.is_closed_for_now else SubmissionError
            raise refusal(f"submitting is off: {self.read_only_reason}")
        if verdicts is None or upload.check.split != "test":
            raise SubmissionError(f"the file is not acceptable for the test split; {FIX_FIRST}")
        if problem := age_problem(actor, app.suite.rules, app.clock().date()):
            raise PermissionDenied(problem)
        app.secret  # noqa: B018 - reading it stores its check value in the records
        with stores_in(app.files.folder):
            app.files.keep(upload.content)
        reasons: tuple[str, ...] = ()
        if not app.suite.labels_are_public:
            suite = app.suite
            reasons = reasons_to_hold(verdicts, suite.items("test"), suite.rules, suite.main_target)
        submission, is_new = scorer.record_submission(app, upload, declaration, labels.version, reasons)
        try:
            scorer.record_score(app, submission, verdicts, labels)
        except DatabaseAway:
            self._finish_later()
            raise
        except Exception:
            scorer.refund_submission(app, submission.id, "scoring failed on our side")
            raise
        return self._records.submission(submission.id, actor, is_new)

    def finish_scoring(self) -> int:
        return scorer.finish_scoring(self._app)

    def _finish_later(self) -> None:
        """Start a thread that scores the unscored submissions when the database is available again."""
        with self._lock:
            if self._finishing is None or not self._finishing.is_alive():
                self._finishing = threading.Thread(target=self._finish, name="late scoring", daemon=True)
                self._finishing.start()

    def _finish(self) -> None:
        while not self._app.closed.wait(DatabaseAway.RETRY_AFTER_SECONDS):
            try:
                self.finish_scoring()
                return
            except DatabaseAway:
                continue
            except Exception:
                logger.exception("scoring the unscored submissions failed; the next start tries again")
                return

    @property
    def read_only_reason(self) -> str | None:
        """The reason why nothing can be submitted, as a public message, or None if submitting is possible."""
        app = self._app
        reason = app.suite.why_closed or app.durability_problem or app.durability.closed
        return reason or app.labels.why_none("test")

    @property
    def is_off(self) -> bool:
        """Whether the settings rule out submitting; checked without reading the Hub or the labels."""
        app = self._app
        has_no_labels = app.settings.labels == "none" or app.suite.why_closed is not None
        return app.durability_problem is not None or has_no_labels

    @property
    def is_closed_for_now(self) -> bool:
        """Whether, for a temporary reason, nothing can be recorded."""
        is_waiting = self._app.durability.closed is not None and self._app.durability.ended is None
        return is_waiting and self._app.durability_problem is None
