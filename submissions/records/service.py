"""Reads the records of a suite: submissions, limits, boards and verdicts."""

from collections.abc import Mapping
from functools import cached_property

from arb.core.predictions.table import Predictions
from leaderboard.board.board import Board
from submissions.errors import PermissionDenied
from submissions.intake.accounts import AccountQuota, Actor, is_same_name
from submissions.intake.receipts import Status, SubmissionView
from submissions.privacy.leak_budget import LeakBudget, quota_of
from submissions.records import queries
from submissions.records.database import snapshot
from submissions.records.event_log import FIGURE_KINDS, events_of_submission
from submissions.resources import Resources
from submissions.scoring.board import BoardMaker, CurrentBoard
from submissions.scoring.verdicts import (
    PaperVerdicts,
    read_paper_verdicts,
    read_stored_verdicts,
    verdict_cache,
)


class RecordsService:
    """The service that reads the records of one suite. Thread-safe."""

    mark = None  # the files with verdicts of papers are read once

    def __init__(self, app: Resources) -> None:
        self._app = app
        self._verdict_cache = verdict_cache()
        self.known_verdicts: PaperVerdicts = self
        """The verdicts that rank judges from papers; the Space adds those in its dataset."""

    @cached_property
    def leak(self) -> LeakBudget:
        return LeakBudget(self._app)

    def submission(self, submission_id: str, actor: Actor, is_new: bool = False) -> SubmissionView:
        """Return what an actor (its owner or a maintainer) may see of a submission now.

        Figures are left out until the events are durable: if the events were lost, so would be the charge for
        showing the figures. ``is_new`` goes into the receipt.

        Raises KeyError if the submission does not exist, and PermissionDenied for any other actor.
        """
        app, policy, version = self._app, self._app.disclosure_policy, self._app.label_version
        with snapshot(app.engine) as session:
            submission = queries.find_submission(session, app.suite.name, submission_id)
            if submission is None:
                raise KeyError(submission_id)
            account = submission.judge.account.name
            if not (actor.is_maintainer or is_same_name(account, actor.name)):
                raise PermissionDenied("only its owner and maintainers may see this submission")
            statuses = queries.current_statuses(session)
            events = events_of_submission(session, submission_id)
            newest_first = queries.scores_of(session, submission_id)[::-1]
            public = queries.public_score(session, submission_id, statuses)
        status = statuses.of(submission_id)
        of_version = (score for score in newest_first if score.label_version == version)
        exact = next(of_version, newest_first[0] if newest_first else None)
        is_exact = actor.is_maintainer or app.suite.labels_are_public
        score = exact if is_exact else public
        state: Status = "held" if status.is_held else "accepted"
        if not app.durability.wait(events[-1].sequence, 0.0):
            state = "waiting"
        first_score = next((event.sequence for event in events if event.kind == "scored"), 0)
        through = max(first_score, *(event.sequence for event in events if event.kind in FIGURE_KINDS))
        report = None
        if score is not None and not status.is_held and app.durability.wait(through, 0.0):
            report = policy.report(score, "maintainer" if actor.is_maintainer else "owner")
        return SubmissionView(
            receipt=app.signer.receipt_of(events[0], is_new, state),
            judge=statuses.name_of(account, submission.judge.name),
            status=status,
            report=report,
            appears_at=policy.appears_at(status.published_at),
            are_figures_withdrawn=exact is not None and score is None,
        )

    def quota(self, account: str) -> AccountQuota | None:
        if self._app.label_version is None:
            return None
        with snapshot(self._app.engine) as session:
            statuses = queries.current_statuses(session)
            return quota_of(session, self._app.suite, account, statuses, self._app.clock())

    @cached_property
    def _current(self) -> CurrentBoard:
        return CurrentBoard(self._app.engine, BoardMaker(self._app, lambda: self.known_verdicts))

    def board(self) -> Board:
        return self._current.get()

    def board_under(self, label_version: str | None) -> Board:
        """Return the board under any label version with which submissions were scored.

        If labels are private, only maintainers may see it, since it has figures that were not made public.
        """
        with snapshot(self._app.engine) as session:
            maker = BoardMaker(self._app, lambda: self.known_verdicts)
            return maker.make(session, label_version, is_current=False)

    @property
    def latest_board(self) -> Board | None:
        return self._current.latest

    def cached_board(self) -> Board | None:
        return self._current.cached()

    @cached_property
    def paper_verdicts(self) -> Mapping[str, Predictions]:
        """The verdicts of published judges, shipped or in ARB_PAPER_VERDICTS, keyed by row id."""
        return read_paper_verdicts(self._app.settings, self._app.suite)

    def of_papers(self) -> Mapping[str, Predictions]:
        return self.paper_verdicts

    def verdicts(self, row_id: str) -> Predictions:
        """Return the verdicts of a row of the board, in the order of ``suite.split("test")``.

        They are read from the submitted file or, for a published judge, from `paper_verdicts`. Do not
        show them if the suite's labels are private.

        Raises KeyError if this server has no file for the row, and VerdictsUnavailable if it is unreadable.
        """
        if (of_paper := self.paper_verdicts.get(row_id)) is not None:
            return of_paper

        def read() -> Predictions:
            with snapshot(self._app.engine) as session:
                submission = queries.find_submission(session, self._app.suite.name, row_id)
            if submission is None:
                raise KeyError(row_id)
            return read_stored_verdicts(self._app, submission.file_sha256, submission.split)

        return self._verdict_cache.get(row_id, read)
