"""What the Space and the commands do with a prediction file: check, submit, score, show the board."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from dataset_script.prediction_file.aligned import AlignedPredictions
from dataset_script.settings import Settings
from dataset_script.suite import OFFICIAL, Suite, load_suite
from leaderboard.board import Board, make_board
from leaderboard.costs import with_cost
from leaderboard.label_source import LabelsUnavailable
from leaderboard.labels import LabelSet, LabelsInvalid, load_labels
from leaderboard.published_rows import load_published_rows
from leaderboard.report import counts_by_task, score_report
from submissions.current_board import CurrentBoard
from submissions.database import open_database
from submissions.declaration import Declaration
from submissions.ledger import (
    add_score,
    find_submission,
    fullest_label_version,
    is_scored,
    record_submission,
    scored_records,
    state_of_scores,
    unscored_submissions,
)
from submissions.predictions import Upload, read_upload
from submissions.records import Score, Submission
from submissions.store import FileStore
from submissions.verdicts import VerdictShelf, read_kept_verdicts

logger = logging.getLogger(__name__)
POLICY = "strict"
PUBLIC_SOURCES = ("wheel", "none")
"""Label sources whose troubles anyone may read of; those of a private one are for the log."""


class SubmissionRefused(Exception):
    """A submission that was not taken; the message says why and what to do. Nothing was recorded."""


@dataclass(frozen=True)
class Receipt:
    """What a submitter gets: enough to find the submission and to prove what was sent, and when."""

    submission_id: str
    judge: str
    account: str
    file_sha256: str
    submitted_at: datetime
    label_version: str
    is_new: bool


class SubmissionService:
    """The records, the labels and the board of one suite. One instance a process; safe for threads."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.settings = settings
        self._clock = clock
        self._opening = threading.RLock()
        self._shelf = VerdictShelf()

    @cached_property
    def suite(self) -> Suite:
        """The suite that is served."""
        return load_suite(self.settings.suite)

    @cached_property
    def _engine(self) -> Engine:
        with self._opening:  # migrations run one at a time in a process
            return open_database(self.settings.records_url())

    @cached_property
    def _files(self) -> FileStore:
        return FileStore(self.settings.state_dir / "files")

    @cached_property
    def _test_labels(self) -> LabelSet | LabelsUnavailable | LabelsInvalid:
        with self._opening:
            return self._load("test")

    @cached_property
    def _dev_labels(self) -> LabelSet | LabelsUnavailable | LabelsInvalid:
        with self._opening:
            return self._load("dev")

    def _load(self, split: str) -> LabelSet | LabelsUnavailable | LabelsInvalid:
        try:
            return load_labels(self.suite, split, self.settings)
        except (LabelsUnavailable, LabelsInvalid) as reason:
            logger.warning("%s labels of %s cannot be used: %s", split, self.suite.name, reason)
            return reason

    @property
    def read_only_reason(self) -> str | None:
        """Why nothing can be submitted, in words that anyone may read; None when it can."""
        return None if isinstance(self._test_labels, LabelSet) else self._public(self._test_labels)

    def _public(self, reason: LabelsUnavailable | LabelsInvalid) -> str:
        """The reason itself, but nothing of a private source: neither its place nor what its rows hold."""
        if isinstance(reason, LabelsUnavailable) and self.settings.labels in PUBLIC_SOURCES:
            return str(reason)
        return (
            f"the labels of {self.suite.name} cannot be read; whoever runs this Space finds the reason "
            "in its log"
        )

    @property
    def label_version(self) -> str | None:
        """The version of the test labels; None where there are none."""
        return self._test_labels.version if isinstance(self._test_labels, LabelSet) else None

    def check(self, content: bytes, file_name: str, split: str) -> Upload:
        """Read and check a prediction file against a split; reads no label, records nothing."""
        return read_upload(content, file_name, self.settings, suite=self.suite, split=split)

    def rehearse(self, upload: Upload) -> dict:
        """The full score report of an acceptable dev file; not recorded. Raises SubmissionRefused."""
        if not upload.check.acceptable or upload.check.split != "dev":
            raise SubmissionRefused("only an acceptable dev file can be rehearsed; mend the findings first")
        if not isinstance(self._dev_labels, LabelSet):
            raise SubmissionRefused(f"rehearsing is off: {self._public(self._dev_labels)}")
        return score_report(upload.check.aligned, self._dev_labels, POLICY)

    def submit(self, upload: Upload, declaration: Declaration) -> Receipt:
        """Record an acceptable test file and score it at once.

        The same file of the same judge is one submission, however often it is sent. Raises SubmissionRefused.
        """
        labels = self._test_labels
        if not isinstance(labels, LabelSet):
            raise SubmissionRefused(f"submitting is off: {self.read_only_reason}")
        if not upload.check.acceptable or upload.check.split != "test":
            raise SubmissionRefused("the file is not acceptable for the test split; mend the findings first")
        self._files.keep(upload.content)
        record, is_new = record_submission(self._engine, self.suite.name, upload, declaration, self._clock)
        self._score(record.id, upload, labels)
        return Receipt(
            record.id,
            declaration.judge,
            declaration.account,
            upload.sha256,
            record.submitted_at,
            labels.version,
            is_new,
        )

    def finish_scoring(self) -> int:
        """Score every recorded submission that has no score under these labels; how many were scored.

        Called at the start: a process killed between recording and scoring leaves such ones. One that cannot
        be scored (its kept file is damaged) is named in the log and keeps nobody else from the board.
        """
        self._files.remove_leftovers()
        labels = self._test_labels
        if not isinstance(labels, LabelSet):
            return 0
        found = unscored_submissions(self._engine, self.suite.name, labels.version, POLICY)
        return sum(self._finish(record, labels) for record in found)

    def _finish(self, record: Submission, labels: LabelSet) -> bool:
        """Score one recorded submission from its kept file; whether that was possible."""
        try:
            content = self._files.read(record.file_sha256)
        except (OSError, ValueError):
            logger.error("submission %s cannot be scored: its kept file is missing or damaged", record.id)
            return False
        # It was within the limit of its day.
        settings = self.settings.model_copy(
            update={"max_upload_bytes": max(len(content), self.settings.max_upload_bytes)}
        )
        upload = read_upload(content, record.file_name, settings, suite=self.suite, split=record.split)
        if not upload.check.acceptable:
            codes = ", ".join(finding.code for finding in upload.check.findings if finding.level == "error")
            logger.error(
                "submission %s cannot be scored: its file is not acceptable now (%s)", record.id, codes
            )
            return False
        self._score(record.id, upload, labels)
        return True

    @cached_property
    def _current(self) -> CurrentBoard:
        with self._opening:
            return CurrentBoard(self._engine, self._state_of_board, self._make_board)

    def _state_of_board(self, session: Session) -> tuple:
        version = self.label_version or fullest_label_version(session, self.suite.name, POLICY)
        return version, *state_of_scores(session)

    def _make_board(self, session: Session, state: tuple) -> Board:
        records = scored_records(session, self.suite.name, state[0], POLICY)
        published = load_published_rows() if self.suite.name == OFFICIAL else ()
        return make_board(self.suite.name, records, published, state[0])

    def board(self) -> Board:
        """The board of the records as they are now; made anew only when a record was added."""
        return self._current.get()

    def board_at_hand(self) -> Board | None:
        """The same where it takes microseconds, so that an event loop may ask; else None: call `board`."""
        return self._current.at_hand()

    def verdicts(self, submission_id: str) -> AlignedPredictions:
        """What a submission said of each test trajectory: columns in the order of ``suite.split("test")``.

        Where the suite's labels are private no page shows them. Raises KeyError for a submission that is not
        in the records of this suite, VerdictsUnavailable where its kept file cannot be read.
        """
        return self._shelf.get(submission_id, lambda: self._read_verdicts(submission_id))

    def _read_verdicts(self, submission_id: str) -> AlignedPredictions:
        record = find_submission(self._engine, self.suite.name, submission_id)
        if record is None:
            raise KeyError(submission_id)
        return read_kept_verdicts(self._files, record.file_sha256, self.suite, record.split)

    def labels_for_public_figures(self) -> LabelSet | None:
        """The test labels, for figures over many trajectories, where the suite's labels are public.

        None where they are hidden, or cannot be read. They go into functions of `leaderboard` that give
        counts and figures; no page shows one.
        """
        is_open = self.suite.labels_are_public and isinstance(self._test_labels, LabelSet)
        return self._test_labels if is_open else None

    def _score(self, submission_id: str, upload: Upload, labels: LabelSet) -> None:
        """Score a submission under ``labels`` unless that score is there already."""
        if is_scored(self._engine, submission_id, labels.version, POLICY):
            return
        aligned = upload.check.aligned
        score = Score(
            submission_id=submission_id,
            label_version=labels.version,
            policy=POLICY,
            report=with_cost(score_report(aligned, labels, POLICY), aligned.cost_usd),
            counts_by_task=dict(counts_by_task(aligned, labels)),
            scored_at=self._clock(),
        )
        if not add_score(self._engine, score):
            logger.info("submission %s was scored by another process at the same time", submission_id)
