"""The current board, made anew only when the records have changed, and its reference rows.

The row of the second annotators is made from the labels, and stands only where these are public: it carries
exact counts over single trajectories.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.suite import OFFICIAL, Suite
from leaderboard.board.board import Board, BoardCache, BoardRow, ScoredRecord, make_board
from leaderboard.labels.labels import LabelSet
from leaderboard.labels.quality import ceiling_row
from leaderboard.paper.published import SECOND_ANNOTATOR, PublishedRow, load_published_rows
from leaderboard.report import labels_by_task
from submissions.errors import DatabaseAway
from submissions.labels.versions import LabelStore, versions_in
from submissions.privacy.disclosure import POLICY, DisclosurePolicy
from submissions.records.database import Changes, snapshot
from submissions.records.event_log import STATUS_KINDS, events_after, number_of_events
from submissions.records.queries import (
    ScoreLine,
    current_score,
    disclosure_histories,
    score_lines,
    scores_by_id,
)
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses, fold_statuses

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


class BoardRecords:
    """The records of a board, each score read once; a new one costs what it is itself. Not safe for threads.

    ``policy`` says which submissions have a row, and gives the record of a score as everybody may see it.
    """

    def __init__(self, suite: str, policy: DisclosurePolicy) -> None:
        self._suite, self._policy = suite, policy
        self._version: str | None = None
        self._statuses, self._through = SubmissionStatuses(), 0
        self._last_score = 0
        self._scores: list[ScoreLine] = []
        self._made: dict[int, tuple[SubmissionStatus, tuple[str, str], ScoredRecord]] = {}
        self._shown: dict[int, ScoredRecord] = {}
        self._shown_at: tuple[SubmissionStatuses, int] = (self._statuses, 0)
        """The statuses and the round of the policy that ``_shown`` follows from."""

    def read(self, session: Session, version: str | None, now: datetime) -> list[ScoredRecord]:
        """The records of the label version that are shown now, in the order their submissions came."""
        if version != self._version:
            self._version, self._last_score, self._scores, self._made = version, 0, [], {}
            self._shown = {}
        statuses, policy_round = self.statuses(session), self._policy.round(now)
        lines = newer = score_lines(session, self._suite, version, POLICY, self._last_score)
        if newer:
            self._last_score = max(line.score_id for line in newer)
            self._scores = sorted([*self._scores, *newer])
        if self._shown_at[0] is not statuses or self._shown_at[1] != policy_round:
            lines, self._shown, self._shown_at = self._scores, {}, (statuses, policy_round)
        shown = []
        for line in lines:
            status = statuses.of(line.submission_id)
            if self._policy.is_on_the_board(status, now):
                shown.append((line.score_id, status, _names(statuses, line.account, line.judge)))
        records = self._records_of(session, shown, statuses)
        self._shown.update(zip((score_id for score_id, *_ in shown), records, strict=True))
        return [self._shown[line.score_id] for line in self._scores if line.score_id in self._shown]

    def read_private(self, session: Session, now: datetime) -> list[ScoredRecord]:
        """Where labels are private: of each submission the score that is shown, of whatever label version."""
        statuses, shown = self.statuses(session), []
        for history in disclosure_histories(session, self._suite, POLICY, statuses):
            if (score := current_score(history, statuses)) is None:
                continue
            status = statuses.of(score.submission_id)
            if self._policy.is_on_the_board(status, now):
                shown.append((score.id, status, _names(statuses, score.account, score.judge)))
        return self._records_of(session, shown, statuses)

    def _records_of(
        self,
        session: Session,
        shown: Sequence[tuple[int, SubmissionStatus, tuple[str, str]]],
        statuses: SubmissionStatuses,
    ) -> list[ScoredRecord]:
        """The record of each score, by status and names; scores are read for those that are not made yet."""
        keys = {score_id: (status, names) for score_id, status, names in shown}
        unmade = [each[0] for each in shown if self._known(*each) is None]
        for score in scores_by_id(session, unmade):
            self._made[score.id] = (*keys[score.id], self._policy.board_record(score, statuses))
        return [self._made[score_id][2] for score_id, _, _ in shown]

    def statuses(self, session: Session) -> SubmissionStatuses:
        """All statuses at the session's moment; only newer events are read."""
        through = number_of_events(session)
        if through > self._through:
            if newer := events_after(session, self._through, STATUS_KINDS):
                self._statuses = fold_statuses(newer, self._statuses)
            self._through = through
        return self._statuses

    def _known(self, score_id: int, status: SubmissionStatus, names: tuple[str, str]) -> ScoredRecord | None:
        known = self._made.get(score_id)
        return known[2] if known is not None and known[:2] == (status, names) else None


def _names(statuses: SubmissionStatuses, account: str, judge: str) -> tuple[str, str]:
    """The names of account and judge that are shown now."""
    return statuses.current_name(account) if statuses.accounts else account, statuses.name_of(account, judge)


class References:
    """Makes the reference rows of a suite, once for each label set. Safe for threads."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._lock = threading.Lock()
        self._made: tuple[tuple | None, tuple[BoardRow, ...]] = (None, ())

    def of(
        self,
        session: Session,
        labels: LabelStore,
        label_version: str | None,
        published: Sequence[PublishedRow] = (),
    ) -> tuple[BoardRow, ...]:
        """The rows that stand on a board of this label version; none unless these labels are served.

        On the official suite the row has the date, the authors and the link of the shipped one, which it
        replaces; elsewhere the day on which the label set was published, where it was.
        """
        if not self._suite.labels_are_public or labels.test is None or labels.test.version != label_version:
            return ()
        known = [found for found in (labels.dev, labels.test) if found is not None]
        source = self._shipped(published) or (self._published_at(session, label_version), "", "")
        key = (*(found.version for found in known), *source)
        with self._lock:
            if self._made[0] != key:
                row = ceiling_row(known, *source)
                self._made = (key, () if row is None else (row,))
            return self._made[1]

    def _shipped(self, published: Sequence[PublishedRow]) -> tuple[str, str, str] | None:
        if self._suite.name != OFFICIAL:
            return None
        found = next((row for row in published if row.row_id == SECOND_ANNOTATOR), None)
        return found and (found.date.isoformat(), found.authors or "", found.source_url)

    def _published_at(self, session: Session, label_version: str) -> str:
        versions = versions_in(events_after(session, kinds=["labels_published"]), self._suite.name)
        return next((each.at.isoformat() for each in versions if each.version == label_version), "")


class BoardMaker:
    """Makes the boards of a suite one after another, each from what the one before left. One at a time."""

    def __init__(
        self,
        suite: Suite,
        policy: DisclosurePolicy,
        labels: Callable[[], LabelStore],
        clock: Callable[[], datetime],
        not_durable: Callable[[Session], frozenset[str]],
    ) -> None:
        self._suite, self._labels, self._clock, self._not_durable = suite, labels, clock, not_durable
        self._records = BoardRecords(suite.name, policy)
        self._references, self._cache = References(suite), BoardCache()
        self._published = load_published_rows() if suite.name == OFFICIAL else ()
        self._by_task: tuple[LabelSet, Mapping[str, Sequence[Sequence[int]]]] | None = None

    def __call__(self, session: Session, state: tuple, is_current: bool = True) -> Board:
        """The board of a label version, the first of ``state``, at the session's moment.

        Where labels are private the current one has of each submission what was shown, by whatever version.
        """
        version, labels, now = state[0], self._labels(), self._clock()
        if self._suite.labels_are_public or not is_current:
            records = self._records.read(session, version, now)
        else:
            records = self._records.read_private(session, now)
        if waiting := self._not_durable(session):
            records = [record for record in records if record.id not in waiting]
        references = self._references.of(session, labels, version, self._published)
        by_task = self._labels_by_task(labels.test, version)
        return make_board(
            self._suite.name, records, self._published, version, references, by_task, self._cache
        )

    def _labels_by_task(
        self, test: LabelSet | None, version: str | None
    ) -> Mapping[str, Sequence[Sequence[int]]] | None:
        if test is None or test.version != version:
            return None
        if self._by_task is None or self._by_task[0] is not test:
            self._by_task = (test, labels_by_task(test))
        return self._by_task[1]
