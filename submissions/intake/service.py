"""Taking prediction files in: check, dry run, submit, score."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from arb.core.judge_info import JudgeInfo
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_report
from submissions.durability import durability_problem
from submissions.errors import DatabaseAway, PermissionDenied, SubmissionError, TemporarilyClosed
from submissions.intake.accounts import Actor, age_problem
from submissions.intake.receipts import SubmissionView
from submissions.intake.upload import Upload, read_upload
from submissions.moderation.actions import ModerationService
from submissions.moderation.overview import reasons_to_hold
from submissions.records.database import Submission
from submissions.records.queries import POLICY
from submissions.records.service import RecordsService
from submissions.resources import Resources
from submissions.scoring import scorer

logger = logging.getLogger(__name__)


class IntakeService:
    """Checks, records and scores the files of one suite. Safe for threads."""

    def __init__(
        self, app: Resources, records: RecordsService, moderation: Callable[[], ModerationService]
    ) -> None:
        self._app, self._records, self._moderation = app, records, moderation
        self._lock = threading.Lock()
        self._finishing: threading.Thread | None = None
        self.listeners: list[Callable[[Upload | SubmissionView | Exception], object]] = []
        """Called with every upload that was checked, every submission, and what ended one that failed."""

    def check(self, content: bytes, file_name: str, split: str, apart: bool = False) -> Upload:
        """Check a prediction file against a split; with ``apart`` another process reads it, however small."""
        app = self._app
        upload = read_upload(
            content, file_name, app.settings, suite=app.suite, split=split, parsers=app.parsers, apart=apart
        )
        self._notify(upload)
        return upload

    def dry_run(self, upload: Upload) -> dict:
        """The full score report of an acceptable dev file; not recorded. Raises SubmissionError."""
        if not upload.check.acceptable or upload.check.split != "dev":
            raise SubmissionError("only an acceptable dev file can be scored here; fix the findings first")
        if self._app.labels.dev is None:
            raise SubmissionError(f"scoring dev files is off: {self._app.labels.why_none('dev')}")
        return score_report(upload.check.aligned, self._app.labels.dev, POLICY)

    def submit(self, upload: Upload, declaration: JudgeInfo, actor: Actor | None = None) -> SubmissionView:
        """Record an acceptable test file, score it at once, and show it to its owner.

        One transaction records it with its limits, one its score. Where its record is not durable yet the
        receipt says ``waiting``, and `submission` says later when it is accepted. The same file of the same
        judge is one submission, however often it is sent. ``actor`` None: the declared name acts, as it may
        on loopback.
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
        actor = self._moderation().identify(actor, for_good=True)
        declaration = replace(declaration, account=actor.name)
        labels = app.labels.test
        if labels is None or self.read_only_reason:
            refusal = TemporarilyClosed if self.is_closed_for_now else SubmissionError
            raise refusal(f"submitting is off: {self.read_only_reason}")
        if not upload.check.acceptable or upload.check.split != "test":
            raise SubmissionError("the file is not acceptable for the test split; fix the findings first")
        if problem := age_problem(actor, app.suite.rules, app.clock().date()):
            raise PermissionDenied(problem)
        app.secret  # noqa: B018 - noted with the records before the first submission
        app.files.keep(upload.content)
        reasons = ()
        if not app.suite.labels_are_public:
            reasons = reasons_to_hold(upload.check.aligned, app.suite.split("test"), app.suite.rules)
        submission, is_new = scorer.record_submission(app, upload, declaration, labels.version, reasons)
        self._score_now(submission, upload, labels)
        return self._records.submission(submission.id, actor, is_new)

    def _score_now(self, submission: Submission, upload: Upload, labels: LabelSet) -> None:
        """Score unless it is held or has its score; a fault of ours gives the file back to its account."""
        try:
            scorer.record_score(self._app, submission, upload.check.aligned, labels)
        except DatabaseAway:
            self._finish_later()
            raise
        except Exception:
            scorer.refund_submission(self._app, submission.id, "scoring failed on our side")
            raise

    def finish_scoring(self) -> int:
        """Score every recorded submission that has no score under these labels; return how many were scored.

        Called at the start: a process killed between recording and scoring leaves such ones.
        """
        self._app.files.remove_leftovers()
        return scorer.score_unscored(self._app, self._app.labels.test) if self._app.labels.test else 0

    def _finish_later(self) -> None:
        """Score what was recorded without a score, once the database answers again."""
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
                logger.exception("scoring what had no score yet has failed; the next start does it")
                return

    @property
    def read_only_reason(self) -> str | None:
        """Why nothing can be submitted, as a message for anyone; None when it can."""
        app = self._app
        return self._durability_problem or app.durability.closed or app.labels.why_none("test")

    @property
    def is_off(self) -> bool:
        """Whether the settings leave nothing to submit to; asks neither the Hub nor for labels."""
        return self._durability_problem is not None or self._app.settings.labels == "none"

    @property
    def is_closed_for_now(self) -> bool:
        """Whether nothing can be recorded now for a reason that passes by itself."""
        is_waiting = self._app.durability.closed is not None and self._app.durability.ended is None
        return is_waiting and self._durability_problem is None

    @cached_property
    def _durability_problem(self) -> str | None:
        return durability_problem(self._app.settings)
