"""Builds the boards of a suite, and caches the current one until the records change.

Reference rows are computed from the labels: the second annotators and, except on the official suite, which
has published ones, trivial judges. They have exact counts, so a board has them only if the labels are public.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from math import inf
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.suite import OFFICIAL
from leaderboard.board.board import Board, BoardRow, ScoredRecord, make_board
from leaderboard.board.rows import VerdictScores
from leaderboard.labels.quality import ceiling_row
from leaderboard.labels.references import trivial_rows
from leaderboard.paper.published import SECOND_ANNOTATOR, load_published_rows
from leaderboard.report import counts_by_task, labels_by_task, score_report
from leaderboard.suites.published import published_metric_rows, verdict_row
from submissions.errors import DatabaseAway
from submissions.labels.versions import versions_at
from submissions.records import queries
from submissions.records.database import Changes, snapshot
from submissions.resources import Resources
from submissions.scoring.verdicts import PaperVerdicts

AWAY_SECONDS: Final = 2.0
"""If the database does not answer, the last board is served for this long before the next attempt."""


FromLabels = tuple[tuple[BoardRow, ...], Mapping[str, Any], Mapping[str, VerdictScores]]
"""The arguments of `make_board` that are computed from the labels: ``references``, ``labels_by_task`` and
``verdict_scores``. Private labels give only counts. Without labels, the references are published metrics."""


class BoardMaker:
    """A builder of a suite's boards, which caches the record of each score, since reading one is slow."""

    def __init__(self, app: Resources, known_verdicts: Callable[[], PaperVerdicts]) -> None:
        self._app, self._known_verdicts = app, known_verdicts
        self._published = load_published_rows() if app.suite.name == OFFICIAL else ()
        self._metric_rows = published_metric_rows(app.suite)
        self._made: dict[int, tuple[Hashable, ScoredRecord]] = {}
        """The record of each score, keyed by score id, with the status and names from which it was made."""
        self._from_labels: tuple[Hashable, FromLabels] = (None, ((), {}, {}))

    def moment(self) -> tuple[int, Hashable]:
        """Return the number of the current round (0 for public labels), and `PaperVerdicts.mark`."""
        app = self._app
        is_public = app.suite.labels_are_public
        current = 0 if is_public else app.disclosure_policy.round(app.clock())
        return current, self._known_verdicts().mark

    def state(self, session: Session) -> tuple[str | None, Hashable]:
        """Return the label version of the current board, and a value that changes whenever its rows do."""
        app = self._app
        if app.labels.is_older_than(versions_at(session, app.suite.name)):
            app.forget_labels()  # another replica, or a command, published a set
        version = app.label_version or queries.fullest_label_version(session, app.suite.name)
        return version, (queries.state_of_board(session), self._not_durable(session), self.moment())

    def _not_durable(self, session: Session) -> frozenset[str]:
        """Return the ids of submissions that have no row yet, because their records could still be lost."""
        through = self._app.durability.through(session)
        return frozenset() if through is None else queries.submissions_not_durable(session, through)

    def make(self, session: Session, version: str | None, is_current: bool = True) -> Board:
        """Return the board of a label version as of the session's snapshot.

        If labels are private, the current board has each submission's last score that was shown to its
        owner, under any label version.
        """
        suite = self._app.suite
        from_labels = self._of_labels(session, version)
        records = self._records(session, version, suite.labels_are_public or not is_current)
        return make_board(suite.name, records, self._published, version, *from_labels, targets=suite.targets)

    def _records(self, session: Session, version: str | None, by_version: bool) -> list[ScoredRecord]:
        """Return the records for the rows of a board, in order of submission.

        They are made from the scores under ``version`` if ``by_version`` is true, else from those that owners
        see.
        """
        statuses = queries.current_statuses(session)
        policy, now = self._app.disclosure_policy, self._app.clock()
        if by_version:
            lines = queries.score_lines(session, self._app.suite.name, version or "")
        else:
            histories = queries.disclosure_histories(session, self._app.suite.name, statuses)
            current = (queries.current_score(history, statuses) for history in histories)
            lines = [line for line in current if line is not None]
        waiting, keys = self._not_durable(session), {}
        for line in lines:
            status = statuses.of(line.submission_id)
            if line.submission_id not in waiting and policy.is_on_the_board(status, now):
                names = statuses.current_name(line.account), statuses.name_of(line.account, line.judge)
                keys[line.id] = (status, *names)
        known = {score_id: made for score_id, made in self._made.items() if keys.get(score_id) == made[0]}
        for score in queries.scores_by_id(session, [score_id for score_id in keys if score_id not in known]):
            known[score.id] = keys[score.id], policy.board_record(score, statuses)
        self._made = known
        return [known[score_id][1] for score_id in keys]

    def _of_labels(self, session: Session, version: str | None) -> FromLabels:
        """Return what a board needs from the labels, or published metrics if this version is not served."""
        suite, labels = self._app.suite, self._app.labels
        test = labels.test
        if test is None or test.version != version:
            return self._metric_rows, {}, {}
        known = [found for found in (labels.dev, test) if found is not None]
        source = self._source_of_reference(session, version)
        key = (*(found.version for found in known), *source, self._known_verdicts().mark)
        if self._from_labels[0] != key:
            rows: list[BoardRow] = []
            scores: dict[str, VerdictScores] = {}
            if suite.labels_are_public:
                for row_id, found in self._known_verdicts().of_papers().items():
                    figures = score_report(found, test)["labels"]
                    scores[row_id] = VerdictScores(figures, counts_by_task(found, test))
                rows += [row for row in [ceiling_row(known, *source)] if row is not None]
                if not self._published:
                    rows += [verdict_row(suite, *each) for each in scores.items()]
                    rows += trivial_rows(test, source[0]) if suite.profile.trivial_judges else ()
            self._from_labels = key, (tuple(rows), labels_by_task(test), scores)
        return self._from_labels[1]

    def _source_of_reference(self, session: Session, version: str) -> tuple[str, str, str]:
        """Return the date, the authors and the link of the reference row, or of the row that it replaces."""
        for row in self._published:
            if row.row_id == SECOND_ANNOTATOR:
                return row.date.isoformat(), row.authors or "", row.source_url
        versions = versions_at(session, self._app.suite.name)
        dates = (each.at.isoformat() for each in versions if each.version == version)
        return next(dates, ""), "", ""


class CurrentBoard:
    """A cache of the current board, which also notices changes by other processes. Thread-safe."""

    def __init__(self, engine: Engine, maker: BoardMaker) -> None:
        self._engine, self._maker = engine, maker
        self._changes = Changes(engine)
        self._lock = threading.Lock()
        self._seen: Hashable = None
        self._cached: tuple[tuple[str | None, Hashable], Board] | None = None
        self._away_until = -inf

    def get(self) -> Board:
        """Return the board of the current records; building it can take seconds.

        While the database does not answer, return the last board, or raise DatabaseAway if there is none.
        """
        with self._lock:
            if self._cached is not None and time.monotonic() < self._away_until:
                return self._cached[1]
            seen = self._now()  # before the records are read, so that later changes are seen next time
            if self._cached is None or seen is None or seen != self._seen:
                try:
                    self._cached = self._read()
                except DatabaseAway:
                    if self._cached is None:
                        raise
                    # Each attempt can take seconds, so the next calls return the last board without trying.
                    self._away_until = time.monotonic() + AWAY_SECONDS
                    return self._cached[1]
                self._seen = seen
            return self._cached[1]

    def cached(self) -> Board | None:
        """Return the current board if it is cached, else None. Fast enough for an event loop."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            seen = self._now()
            return self._cached[1] if self._cached and seen is not None and seen == self._seen else None
        finally:
            self._lock.release()

    @property
    def latest(self) -> Board | None:
        """The last board, which may be outdated, or None before the first one is built."""
        cached = self._cached
        return cached and cached[1]

    def _now(self) -> Hashable:
        """Return a value that changes whenever the board may have changed, or None on PostgreSQL."""
        changes = self._changes.seen()
        return None if changes is None else (changes, self._maker.moment())

    def _read(self) -> tuple[tuple[str | None, Hashable], Board]:
        with snapshot(self._engine) as session:
            state = self._maker.state(session)
            if self._cached is not None and self._cached[0] == state:
                return self._cached
            return state, self._maker.make(session, state[0])
