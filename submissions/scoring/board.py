"""The current board, made anew only when the records have changed, and its reference rows.

The row of the second annotators is made from the labels, and stands only where these are public: it carries
exact counts over single trajectories.
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
from leaderboard.labels.quality import ceiling_row
from leaderboard.paper.published import SECOND_ANNOTATOR, load_published_rows
from leaderboard.report import labels_by_task
from submissions.errors import DatabaseAway
from submissions.labels.versions import LabelStore, versions_in
from submissions.records import queries
from submissions.records.database import Changes, snapshot
from submissions.records.event_log import events_after
from submissions.resources import Resources

AWAY_SECONDS: Final = 2.0
"""How long the last board is served before the database is asked again, once it did not answer."""


class CurrentBoard:
    """Keeps a board and what it was made from. Safe for threads and for other processes' submissions.

    ``state`` reads what a board stands on and changes with it; ``make`` gives the board of that state;
    ``round_now`` is the part of the state that changes with the clock alone.
    """

    def __init__(
        self,
        engine: Engine,
        state: Callable[[Session], Hashable],
        make: Callable[[Session, Hashable], Board],
        round_now: Callable[[], int] = lambda: 0,
    ) -> None:
        self._engine, self._state, self._make, self._round_now = engine, state, make, round_now
        self._changes = Changes(engine)
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._cached: tuple[Hashable, Board] | None = None
        self._away_until = -inf

    def get(self) -> Board:
        """Return the board of the records as they are at the call; making one can take seconds.

        While the database is away it is the last one that was made. Raises DatabaseAway if there is none.
        """
        with self._lock:
            if self._cached is not None and time.monotonic() < self._away_until:
                return self._cached[1]
            seen = self._now()  # before the records are read: what comes later is seen next time
            if self._cached is None or seen is None or seen != self._seen:
                try:
                    self._cached = self._read()
                except DatabaseAway:
                    if self._cached is None:
                        raise
                    # Nobody else waits for the database: each try can take seconds.
                    self._away_until = time.monotonic() + AWAY_SECONDS
                    return self._cached[1]
                self._seen = seen
            return self._cached[1]

    def cached(self) -> Board | None:
        """The same board where that takes microseconds and no waiting (an event loop may ask); else None."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            seen = self._now()
            return self._cached[1] if self._cached and seen is not None and seen == self._seen else None
        finally:
            self._lock.release()

    @property
    def latest(self) -> Board | None:
        """The last board that was made, without asking whether records came since; None before the first."""
        cached = self._cached
        return cached and cached[1]

    def _now(self) -> tuple[int, int] | None:
        """What is another one after every change; None where only the records say so."""
        changes = self._changes.seen()
        return None if changes is None else (changes, self._round_now())

    def _read(self) -> tuple[Hashable, Board]:
        with snapshot(self._engine) as session:
            state = self._state(session)
            if self._cached is not None and self._cached[0] == state:
                return self._cached
            return state, self._make(session, state)


class BoardMaker:
    """Makes the boards of a suite; keeps the record of each score, which is large to read."""

    def __init__(self, app: Resources) -> None:
        self._app = app
        self._published = load_published_rows() if app.suite.name == OFFICIAL else ()
        self._made: dict[int, tuple[Hashable, ScoredRecord]] = {}
        """By score id: its status and names, which the record depends on, and the record."""
        self._from_labels: tuple[Hashable, tuple[BoardRow, ...], Mapping[str, Any]] = (None, (), {})

    def round(self) -> int:
        """Return the number of the round now, in which rows of a suite with private labels appear."""
        app = self._app
        return 0 if app.suite.labels_are_public else app.disclosure_policy.round(app.clock())

    def state(self, session: Session) -> tuple:
        """Return the label version of the current board, and everything else that it depends on."""
        app = self._app
        if app.labels.is_older_than(events_after(session, kinds=["labels_published"])):
            app.forget_labels()  # another replica, or a command, published a set
        version = app.label_version or queries.fullest_label_version(session, app.suite.name)
        return version, queries.state_of_board(session), self.round(), self._not_durable(session)

    def _not_durable(self, session: Session) -> frozenset[str]:
        """Return the submissions that have no row yet, since their records could still be lost."""
        through = self._app.durability.through(session)
        return frozenset() if through is None else queries.submissions_not_durable(session, through)

    def __call__(self, session: Session, state: tuple, is_current: bool = True) -> Board:
        """Return the board of a label version, the first of ``state``, at the session's moment.

        Where labels are private the current one has of each submission what was shown, by whatever version.
        """
        version, labels = state[0], self._app.labels
        references, by_task = self._of_labels(session, labels, version)
        by_version = self._app.suite.labels_are_public or not is_current
        return make_board(
            self._app.suite.name,
            self._records(session, version if by_version else None, by_version),
            self._published,
            version,
            references,
            by_task,
        )

    def _records(self, session: Session, version: str | None, by_version: bool) -> list[ScoredRecord]:
        """Return the records that are shown now, in the order their submissions came.

        They are those of a label version, or of each submission the score that was shown to its owner.
        """
        statuses = queries.current_statuses(session)
        policy, now = self._app.disclosure_policy, self._app.clock()
        if by_version:
            scores = queries.score_lines(session, self._app.suite.name, version or "")
        else:
            histories = queries.disclosure_histories(session, self._app.suite.name, statuses)
            scores = list(filter(None, (queries.current_score(history, statuses) for history in histories)))
        waiting, keys = self._not_durable(session), {}
        for score in scores:
            status = statuses.of(score.submission_id)
            if score.submission_id not in waiting and policy.is_on_the_board(status, now):
                names = statuses.current_name(score.account), statuses.name_of(score.account, score.judge)
                keys[score.id] = (status, *names)
        known = {score_id: made for score_id, made in self._made.items() if keys.get(score_id) == made[0]}
        for score in queries.scores_by_id(session, [score_id for score_id in keys if score_id not in known]):
            known[score.id] = keys[score.id], policy.board_record(score, statuses)
        self._made = known
        return [known[score_id][1] for score_id in keys]

    def _of_labels(
        self, session: Session, labels: LabelStore, version: str | None
    ) -> tuple[tuple[BoardRow, ...], Mapping[str, Any]]:
        """Return the reference rows and the labels by task; none unless this label version is served.

        On the official suite the reference row has the date, the authors and the link of the published one,
        which it replaces; elsewhere the day on which the label set was published.
        """
        if labels.test is None or labels.test.version != version:
            return (), {}
        known = [found for found in (labels.dev, labels.test) if found is not None]
        source = self._source_of_reference(session, version)
        key = (*(found.version for found in known), *source)
        if self._from_labels[0] != key:
            row = ceiling_row(known, *source) if self._app.suite.labels_are_public else None
            self._from_labels = key, () if row is None else (row,), labels_by_task(labels.test)
        return self._from_labels[1:]

    def _source_of_reference(self, session: Session, version: str) -> tuple[str, str, str]:
        """Return the date, the authors and the link of the reference row."""
        for row in self._published:
            if row.row_id == SECOND_ANNOTATOR:
                return row.date.isoformat(), row.authors or "", row.source_url
        versions = versions_in(events_after(session, kinds=["labels_published"]), self._app.suite.name)
        dates = (each.at.isoformat() for each in versions if each.version == version)
        return next(dates, ""), "", ""
