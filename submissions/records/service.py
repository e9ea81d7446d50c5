"""Reading the records of a suite: submissions, limits, boards and verdicts."""

from collections.abc import Mapping
from functools import cached_property

from sqlalchemy.orm import Session

from arb.core.cache import ByteCache
from arb.core.predictions.table import Predictions
from leaderboard.board.board import Board
from submissions.errors import PermissionDenied
from submissions.intake.accounts import AccountQuota, Actor, is_same_name
from submissions.intake.receipts import SubmissionView, receipt_of
from submissions.privacy.leak_budget import LeakBudget, quota_of
from submissions.records.database import snapshot
from submissions.records.event_log import events_after
from submissions.records.queries import (
    RecordedSubmission,
    current_statuses,
    find_submission,
    fullest_label_version,
    recorded_submission,
    state_of_board,
    submissions_not_durable,
)
from submissions.resources import Resources
from submissions.scoring.board import BoardMaker, CurrentBoard
from submissions.scoring.verdicts import read_paper_verdicts, read_stored_verdicts, verdict_cache


class RecordsService:
    """What may be read of the records of one suite. Safe for threads."""

    def __init__(self, resources: Resources) -> None:
        self._shared = resources

    def forget_secret(self) -> None:
        """Build the leak budget and the board again at their next use, with the secret of now."""
        for name in ("leak", "_current"):
            self.__dict__.pop(name, None)

    @cached_property
    def leak(self) -> LeakBudget:
        return LeakBudget(
            self._shared.engine, self._shared.suite, self._shared.disclosure_policy, self._shared.clock
        )

    def submission(self, submission_id: str, actor: Actor) -> SubmissionView:
        """What the owner of a submission, or a maintainer, may see of it.

        Raises KeyError where there is no such submission, PermissionDenied for anybody else.
        """
        version = self._shared.label_version
        with snapshot(self._shared.engine) as session:
            submission = find_submission(session, self._shared.suite.name, submission_id)
            if submission is None:
                raise KeyError(submission_id)
            if not (actor.is_maintainer or is_same_name(submission.judge.account.name, actor.name)):
                raise PermissionDenied("only its owner and maintainers may see this submission")
            found = recorded_submission(session, submission, current_statuses(session), version)
        return self.view(found, actor)

    def view(self, found: RecordedSubmission, actor: Actor) -> SubmissionView:
        """Return what an actor may see of a submission now, without waiting until its events are durable.

        Figures are not shown before: if the events were lost, nobody would have been charged for them.
        """
        audience = "maintainer" if actor.is_maintainer else "owner"
        is_exact = actor.is_maintainer or self._shared.suite.labels_are_public
        score = found.score if is_exact else found.public_score
        is_durable = self._shared.durability.wait(found.last, 0.0)
        may_be_seen = not found.status.is_held and self._shared.durability.wait(found.figures_through, 0.0)
        status = "waiting" if not is_durable else "held" if found.status.is_held else "accepted"
        return SubmissionView(
            receipt=receipt_of(found.submitted, found.is_new, status, self._shared.signer),
            judge=found.judge,
            status=found.status,
            report=self._shared.disclosure_policy.report(score, audience) if score and may_be_seen else None,
            appears_at=self._shared.disclosure_policy.appears_at(found.status.published_at),
            are_figures_withdrawn=found.score is not None and score is None,
        )

    def quota(self, account: str) -> AccountQuota | None:
        """What is left to an account; None where there are no test labels."""
        if self._shared.label_version is None:
            return None
        with snapshot(self._shared.engine) as session:
            return quota_of(
                session, self._shared.suite, account, current_statuses(session), self._shared.clock()
            )

    @cached_property
    def _verdict_cache(self) -> ByteCache[Predictions]:
        return verdict_cache()

    @cached_property
    def _current(self) -> CurrentBoard:
        return CurrentBoard(self._shared.engine, self._state_of_board, self._board_maker(), self._round)

    def _round(self) -> int:
        return (
            0
            if self._shared.suite.labels_are_public
            else self._shared.disclosure_policy.round(self._shared.clock())
        )

    def _state_of_board(self, session: Session) -> tuple:
        if self._shared.labels.is_older_than(events_after(session, kinds=["labels_published"])):
            self._shared.forget_labels()  # another replica, or a command, published a set
        version = self._shared.label_version or fullest_label_version(session, self._shared.suite.name)
        return version, state_of_board(session), self._round(), self._not_durable(session)

    def _not_durable(self, session: Session) -> frozenset[str]:
        """Return the submissions that have no row yet, since their records could still be lost."""
        through = self._shared.durability.through(session)
        return frozenset() if through is None else submissions_not_durable(session, through)

    def _board_maker(self) -> BoardMaker:
        return BoardMaker(
            self._shared.suite,
            self._shared.disclosure_policy,
            lambda: self._shared.labels,
            self._shared.clock,
            self._not_durable,
        )

    def board(self) -> Board:
        """The board of the records as they are now; made anew only when a record was added."""
        return self._current.get()

    def board_under(self, label_version: str | None) -> Board:
        """The board of the scores under a label version, as the records are now.

        Where labels are private it is for maintainers: rows have figures there that nobody was shown.
        """
        with snapshot(self._shared.engine) as session:
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
        return read_paper_verdicts(self._shared.settings, self._shared.suite)

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
        with snapshot(self._shared.engine) as session:
            submission = find_submission(session, self._shared.suite.name, submission_id)
        if submission is None:
            raise KeyError(submission_id)
        sha256, split = submission.file_sha256, submission.split
        return read_stored_verdicts(
            self._shared.files, sha256, self._shared.suite, split, self._shared.parsers
        )
