"""What the Space and the commands do with a prediction file: check, submit, score, show the board."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.cache import ByteCache
from arb.core.judge_info import JudgeInfo
from arb.core.predictions import ParserPool
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import Suite, load_suite
from leaderboard.board.board import Board
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_report
from submissions.errors import DatabaseAway, PermissionDenied, SubmissionError, TemporarilyClosed
from submissions.intake.accounts import Actor, Quota, age_problem, is_same_name
from submissions.intake.receipts import Signer, SubmissionView, receipt_of
from submissions.intake.upload import Upload, read_upload
from submissions.labels.versions import LabelStore, label_origin
from submissions.moderation.actions import Decision, SubmissionActions
from submissions.moderation.overview import reasons_to_hold
from submissions.privacy.disclosure import DisclosurePolicy
from submissions.privacy.leak_budget import LeakBudget, quota_of
from submissions.privacy.server_secret import KnownSecret, SecretUnavailable, ServerSecret
from submissions.records.database import open_database, snapshot, transaction
from submissions.records.event_log import events_after, number_of_events, salt_event_log
from submissions.records.files import FileStore, open_files
from submissions.records.queries import (
    RecordedSubmission,
    current_statuses,
    find_submission,
    fullest_label_version,
    recorded_submission,
    state_of_board,
    submissions_not_durable,
)
from submissions.records.secret_check import claim_secret, note_secret
from submissions.scoring.board import BoardMaker, CurrentBoard
from submissions.scoring.scorer import (
    POLICY,
    THE_SERVER,
    NotCharged,
    Scorer,
    record_submission,
    refund_submission,
)
from submissions.scoring.verdicts import read_paper_verdicts, read_stored_verdicts, verdict_cache

logger = logging.getLogger(__name__)


class Durability(Protocol):
    """Where records last."""

    def wait(self, sequence: int, timeout_s: float) -> bool:
        """Whether every record up to ``sequence`` lasts, at the latest after ``timeout_s`` seconds."""

    def through(self, session: Session) -> int | None:
        """Return the sequence of the last record that lasts; None if all of them do."""

    def waiting(self) -> int:
        """How many records do not last yet."""

    @property
    def closed(self) -> str | None:
        """Why no record may be added now, in words that anyone may read; None where one may."""

    @property
    def ended(self) -> str | None:
        """The same where it stays so until somebody does something about it."""

    @property
    def message(self) -> str | None:
        """A sentence for pages while records do not last yet; None where all do."""


class ImmediateDurability:
    """A database, or a disk that outlives a restart: what is committed there lasts."""

    def wait(self, sequence: int, timeout_s: float) -> bool:
        return True

    def through(self, session: Session) -> int | None:
        return None

    def waiting(self) -> int:
        return 0

    closed = None
    ended = None
    message = None


def durability_problem(settings: Settings) -> str | None:
    """Why submissions have to be off: there is no place where records last. None where there is one."""
    if settings.disk_is_lasting or settings.database_url or settings.records_repo:
        return None
    return (
        "this Space's disk does not last and no other place for records is set; whoever runs it sets "
        "ARB_RECORDS_REPO (a private dataset repository), DATABASE_URL, or ARB_STATE_LASTS=true for a "
        "storage that lasts"
    )


class SubmissionService:
    """What is done with the records, the labels and the board of one suite.

    Database, files, labels and keys are opened at their first use. ``durability`` is where records are
    durable; by default the database itself. One instance a process; safe for threads.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        durability: Durability | None = None,
        make_nonce: Callable[[], bytes] | None = None,
    ) -> None:
        self.settings = settings
        self._make_nonce = make_nonce
        self.clock = clock
        self.durability = durability or ImmediateDurability()
        self._setup_lock = threading.RLock()
        self._finishing: threading.Thread | None = None
        self._closed = threading.Event()
        self._closing: list[Callable[[], object]] = []
        self.listeners: list[Callable[[Upload | SubmissionView | Exception], object]] = []
        """Called with every upload that was checked, every submission, and what ended one that failed."""

    def on_close(self, call: Callable[[], object]) -> None:
        """Have ``call`` called at the end, in the order in which calls were named."""
        self._closing.append(call)

    def close(self) -> None:
        """End what runs beside the service; see `submissions.startup`."""
        self._closed.set()
        while self._closing:
            self._closing.pop(0)()

    @cached_property
    def suite(self) -> Suite:
        return load_suite(self.settings.suite)

    @cached_property
    def engine(self) -> Engine:
        """The database of the records, brought up to date at first use."""
        with self._setup_lock:  # migrations run one at a time in a process
            return open_database(self.settings.records_url(), self._make_nonce)

    @cached_property
    def parsers(self) -> ParserPool:
        """The processes that read files; started when a file needs one."""
        with self._setup_lock:
            pool = ParserPool.small() if self.settings.has_little_memory else ParserPool()
            self.on_close(pool.close)
            return pool

    @cached_property
    def files(self) -> FileStore:
        return open_files(self.settings, lambda: self.engine)

    @cached_property
    def labels(self) -> LabelStore:
        return LabelStore(
            self.suite,
            self.settings,
            lambda: label_origin(self.suite, self.settings, self.engine, self.files),
            lambda: self.secret,
        )

    def snapshot(self) -> AbstractContextManager[Session]:
        """A session of one moment of the records, for the lists of `submissions.moderation.overview`."""
        return snapshot(self.engine)

    def forget_labels(self) -> None:
        """Read the labels anew at their next use: others were published."""
        self.__dict__.pop("labels", None)

    @cached_property
    def secret(self) -> ServerSecret:
        """What keys are made of. Raises SecretUnavailable, SecretTooWeak, SecretChanged."""
        with self._setup_lock:
            return claim_secret(self.engine, self.settings, self.clock)

    def adopt_secret(self, known: KnownSecret) -> None:
        """Take over what the Hub's records say of their secret, before the first of them is here."""
        try:
            secret = self.secret
        except SecretUnavailable:
            return
        if known.derivation == secret.derivation or not secret.is_known_as(known):
            return
        with transaction(self.engine) as session:
            if number_of_events(session):
                return
            note_secret(session, secret.under(known.derivation))
        for name in ("secret", "labels", "signer", "scorer", "disclosure_policy", "leak", "_current"):
            self.__dict__.pop(name, None)

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.secret)

    @cached_property
    def scorer(self) -> Scorer:
        half = self.suite.rules.ranking_half and not self.suite.labels_are_public
        key = self.secret.key("ranking-half") if half else None
        return Scorer(self.engine, self.files, self.suite, self.settings, self.clock, key, self.parsers)

    @cached_property
    def disclosure_policy(self) -> DisclosurePolicy:
        key = None if self.suite.labels_are_public else self.secret.key("noise")
        return DisclosurePolicy(self.suite, key)

    @cached_property
    def leak(self) -> LeakBudget:
        return LeakBudget(self.engine, self.suite, self.disclosure_policy, self.clock)

    @cached_property
    def actions(self) -> SubmissionActions:
        return SubmissionActions(self.engine, self.suite, self.clock)

    @property
    def read_only_reason(self) -> str | None:
        """Why nothing can be submitted, as a message for anyone; None when it can."""
        return self._durability_problem or self.durability.closed or self.labels.why_none("test")

    @property
    def is_off(self) -> bool:
        """Whether the settings leave nothing to submit to; asks neither the Hub nor for labels."""
        return self._durability_problem is not None or self.settings.labels == "none"

    @property
    def is_closed_for_now(self) -> bool:
        """Whether nothing can be recorded now for a reason that passes by itself."""
        is_waiting = self.durability.closed is not None and self.durability.ended is None
        return is_waiting and self._durability_problem is None

    @cached_property
    def _durability_problem(self) -> str | None:
        return durability_problem(self.settings)

    @property
    def label_version(self) -> str | None:
        """The version of the test labels; None where there are none."""
        return self.labels.test.version if self.labels.test else None

    def check(self, content: bytes, file_name: str, split: str, apart: bool = False) -> Upload:
        """Check a prediction file against a split; with ``apart`` another process reads it, however small."""
        options = {"suite": self.suite, "split": split, "parsers": self.parsers, "apart": apart}
        upload = read_upload(content, file_name, self.settings, **options)
        self._notify(upload)
        return upload

    def dry_run(self, upload: Upload) -> dict:
        """The full score report of an acceptable dev file; not recorded. Raises SubmissionError."""
        if not upload.check.acceptable or upload.check.split != "dev":
            raise SubmissionError("only an acceptable dev file can be scored here; fix the findings first")
        if self.labels.dev is None:
            raise SubmissionError(f"scoring dev files is off: {self.labels.why_none('dev')}")
        return score_report(upload.check.aligned, self.labels.dev, POLICY)

    def identify(self, actor: Actor, for_good: bool = False) -> Actor:
        """The actor under the name that its account has in the records; ``for_good`` also records it."""
        return self.actions.identify(actor, for_good and self.durability.closed is None)

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
        actor = self.identify(actor, for_good=True)
        declaration = replace(declaration, account=actor.name)
        labels = self.labels.test
        if labels is None or self.read_only_reason:
            refusal = TemporarilyClosed if self.is_closed_for_now else SubmissionError
            raise refusal(f"submitting is off: {self.read_only_reason}")
        if not upload.check.acceptable or upload.check.split != "test":
            raise SubmissionError("the file is not acceptable for the test split; fix the findings first")
        if problem := age_problem(actor, self.suite.rules, self.clock().date()):
            raise PermissionDenied(problem)
        self.secret  # noqa: B018 - noted with the records before the first submission
        self.files.keep(upload.content)
        recorded = record_submission(
            self.engine,
            self.suite,
            upload,
            declaration,
            labels.version,
            self.clock,
            self._reasons_to_hold(upload),
        )
        return self._view(self._score_now(recorded, upload, labels), actor)

    def _reasons_to_hold(self, upload: Upload) -> Sequence[str]:
        """Why a file for hidden labels has to wait for a maintainer; empty where it does not."""
        if self.suite.labels_are_public:
            return ()
        return reasons_to_hold(upload.check.aligned, self.suite.split("test"), self.suite.rules)

    def _score_now(
        self, recorded: RecordedSubmission, upload: Upload, labels: LabelSet
    ) -> RecordedSubmission:
        """Score unless it is held or has its score; a fault of ours gives the file back to its account."""
        is_scored = recorded.score is not None and recorded.score.label_version == labels.version
        if is_scored or recorded.status.is_held or recorded.status.is_rejected:
            return recorded
        try:
            score, last = self.scorer.score(recorded.submission.id, recorded.submitted.actor, upload, labels)
        except NotCharged:  # a maintainer decided on it in the meantime
            with snapshot(self.engine) as session:
                found = recorded_submission(
                    session, recorded.submission, current_statuses(session), labels.version
                )
            return replace(found, is_new=recorded.is_new)
        except DatabaseAway:
            self._finish_later()
            raise
        except Exception:
            refund_submission(self.engine, recorded.submission.id, "scoring failed on our side", self.clock())
            raise
        shown = recorded.shown or score
        return replace(recorded, score=score, shown=shown, last=last, figures_through=last)

    def submission(self, submission_id: str, actor: Actor) -> SubmissionView:
        """What the owner of a submission, or a maintainer, may see of it.

        Raises KeyError where there is no such submission, PermissionDenied for anybody else.
        """
        version = self.label_version
        with snapshot(self.engine) as session:
            submission = find_submission(session, self.suite.name, submission_id)
            if submission is None:
                raise KeyError(submission_id)
            if not (actor.is_maintainer or is_same_name(submission.judge.account.name, actor.name)):
                raise PermissionDenied("only its owner and maintainers may see this submission")
            found = recorded_submission(session, submission, current_statuses(session), version)
        return self._view(found, actor)

    def _view(self, found: RecordedSubmission, actor: Actor) -> SubmissionView:
        """Return what an actor may see of a submission now, without waiting until its events are durable.

        Figures are not shown before: if the events were lost, nobody would have been charged for them.
        """
        audience = "maintainer" if actor.is_maintainer else "owner"
        is_exact = actor.is_maintainer or self.suite.labels_are_public
        score = found.score if is_exact else found.shown
        is_durable = self.durability.wait(found.last, 0.0)
        may_be_seen = not found.status.is_held and self.durability.wait(found.figures_through, 0.0)
        status = "waiting" if not is_durable else "held" if found.status.is_held else "accepted"
        return SubmissionView(
            receipt=receipt_of(found.submitted, found.is_new, status, self.signer),
            judge=found.judge,
            status=found.status,
            report=self.disclosure_policy.report(score, audience) if score and may_be_seen else None,
            appears_at=self.disclosure_policy.appears_at(found.status.published_at),
            are_figures_withdrawn=found.score is not None and score is None,
        )

    def decide(self, decision: Decision, submission_id: str, actor: Actor, reason: str) -> None:
        """A maintainer's decision, as `SubmissionActions.decide`; a released submission is scored at once."""
        self.actions.decide(decision, submission_id, actor, reason)
        if decision == "released":
            self.finish_scoring()

    def quota(self, account: str) -> Quota | None:
        """What is left to an account; None where there are no test labels."""
        if self.label_version is None:
            return None
        with snapshot(self.engine) as session:
            return quota_of(session, self.suite, account, current_statuses(session), self.clock())

    def finish_scoring(self) -> int:
        """Score every recorded submission that has no score under these labels; how many were scored.

        Called at the start: a process killed between recording and scoring leaves such ones. A log from
        before nonces gets its first one then (`event_log`), so that no page shows a hash without.
        """
        with transaction(self.engine) as session:
            salt_event_log(session, THE_SERVER, self.clock())
        self.files.prepare()
        return self.scorer.finish(self.labels.test) if self.labels.test else 0

    def _finish_later(self) -> None:
        """Score what was recorded without a score, once the database answers again."""
        with self._setup_lock:
            if self._finishing is None or not self._finishing.is_alive():
                self._finishing = threading.Thread(target=self._finish, name="late scoring", daemon=True)
                self._finishing.start()

    def _finish(self) -> None:
        while not self._closed.wait(DatabaseAway.RETRY_AFTER_SECONDS):
            try:
                self.finish_scoring()
                return
            except DatabaseAway:
                continue
            except Exception:
                logger.exception("scoring what had no score yet has failed; the next start does it")
                return

    @cached_property
    def _verdict_cache(self) -> ByteCache[Predictions]:
        with self._setup_lock:
            return verdict_cache()

    @cached_property
    def _current(self) -> CurrentBoard:
        with self._setup_lock:
            return CurrentBoard(self.engine, self._state_of_board, self._board_maker(), self._round)

    def _round(self) -> int:
        return 0 if self.suite.labels_are_public else self.disclosure_policy.round(self.clock())

    def _state_of_board(self, session: Session) -> tuple:
        if self.labels.is_older_than(events_after(session, kinds=["labels_published"])):
            self.forget_labels()  # another replica, or a command, published a set
        version = self.label_version or fullest_label_version(session, self.suite.name, POLICY)
        return version, state_of_board(session), self._round(), self._not_durable(session)

    def _not_durable(self, session: Session) -> frozenset[str]:
        """Return the submissions that have no row yet, since their records could still be lost."""
        through = self.durability.through(session)
        return frozenset() if through is None else submissions_not_durable(session, through)

    def _board_maker(self) -> BoardMaker:
        return BoardMaker(
            self.suite, self.disclosure_policy, lambda: self.labels, self.clock, self._not_durable
        )

    def board(self) -> Board:
        """The board of the records as they are now; made anew only when a record was added."""
        return self._current.get()

    def board_under(self, label_version: str | None) -> Board:
        """The board of the scores under a label version, as the records are now.

        Where labels are private it is for maintainers: rows have figures there that nobody was shown.
        """
        with snapshot(self.engine) as session:
            return self._board_maker()(session, (label_version,), is_current=False)

    @property
    def latest_board(self) -> Board | None:
        """The last board that was made, at once: records may have come since. None before the first."""
        return self._current.latest

    def cached_board(self) -> Board | None:
        """The same where it takes microseconds, so that an event loop may ask; else None: call `board`."""
        return self._current.cached()

    @cached_property
    def paper_verdicts(self) -> Mapping[str, Predictions]:
        """The verdicts in ARB_PAPER_VERDICTS by the id of the judge's row; read once."""
        with self._setup_lock:
            return read_paper_verdicts(self.settings, self.suite)

    def verdicts(self, row_id: str) -> Predictions:
        """The verdicts of a submission, or of a paper's judge whose file is in ARB_PAPER_VERDICTS: columns in
        the order of ``suite.split("test")``.

        Where the suite's labels are private no page shows them. Raises KeyError for a row without a file
        here, VerdictsUnavailable where the stored file cannot be read.
        """
        if (of_paper := self.paper_verdicts.get(row_id)) is not None:
            return of_paper
        return self._verdict_cache.get(row_id, lambda: self._read_verdicts(row_id))

    def _read_verdicts(self, submission_id: str) -> Predictions:
        with snapshot(self.engine) as session:
            submission = find_submission(session, self.suite.name, submission_id)
        if submission is None:
            raise KeyError(submission_id)
        sha256, split = submission.file_sha256, submission.split
        return read_stored_verdicts(self.files, sha256, self.suite, split, self.parsers)

    def labels_for_public_figures(self) -> LabelSet | None:
        """The test labels, for figures over many trajectories, where the suite's labels are public.

        None where they are hidden, or cannot be read. They go into functions of `leaderboard` that give
        counts and figures; no page shows one.
        """
        return self.labels.test if self.suite.labels_are_public else None
