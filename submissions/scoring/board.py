"""The current board, made anew only when the records have changed, and which figures each audience sees.

Where a suite's labels are public everybody sees the exact report. Where they are private a board holds only
the rows that owners made public, in rounds and with noise; an owner sees noisy figures, a maintainer exact
ones. The row of the second annotators is made from the labels, and stands only where these are public: it
carries exact counts over single trajectories.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from core.suite import OFFICIAL, Suite
from leaderboard.board.board import Board, BoardRow, ScoredRecord
from leaderboard.labels.quality import ceiling_row
from leaderboard.paper.published import SECOND_ANNOTATOR, PublishedRow
from submissions.labels.versions import LabelStore, versions_in
from submissions.privacy.disclosure import Audience, disclose
from submissions.records.database import Changes, snapshot
from submissions.records.event_log import events_after
from submissions.records.models import Score
from submissions.records.queries import scored_record
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses


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
        self._kept: tuple[Hashable, Board] | None = None

    def get(self) -> Board:
        """The board of the records as they are at the call; making one can take seconds."""
        with self._lock:
            seen = self._now()  # before the records are read: what comes later is seen next time
            if self._kept is None or seen is None or seen != self._seen:
                self._kept = self._read()
                self._seen = seen
            return self._kept[1]

    def cached(self) -> Board | None:
        """The same board where that takes microseconds and no waiting (an event loop may ask); else None."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            seen = self._now()
            return self._kept[1] if self._kept and seen is not None and seen == self._seen else None
        finally:
            self._lock.release()

    def _now(self) -> tuple[int, int] | None:
        """What is another one after every change; None where only the records say so."""
        changes = self._changes.seen()
        return None if changes is None else (changes, self._round_now())

    def _read(self) -> tuple[Hashable, Board]:
        with snapshot(self._engine) as session:
            state = self._state(session)
            if self._kept is not None and self._kept[0] == state:
                return self._kept
            return state, self._make(session, state)


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


EPOCH_YEAR = 2025


@dataclass(frozen=True)
class DisclosurePolicy:
    """What is shown of the scores of one suite; ``key`` draws the noise, None where the labels are public."""

    suite: Suite
    key: bytes | None

    def report(self, score: Score, audience: Audience) -> Mapping[str, Any]:
        """The score report that an audience may see."""
        if self.key is None or audience == "maintainer":
            return score.report
        shown = score.halves.get("shown") or {"report": score.report, "digests": score.digests}
        return disclose(shown["report"], shown["digests"], self.suite.rules, self.key, audience)

    def _public(self, half: Mapping[str, Any]) -> dict[str, Any]:
        """A half with noise too: the order of two rows that differ in one run would give its label away."""
        return disclose(half["report"], half["digests"], self.suite.rules, self.key, "public")

    def board_records(
        self, scores: Sequence[Score], found: SubmissionStatuses, now: datetime
    ) -> list[ScoredRecord]:
        """The submissions that stand on the board now, as everybody may see them."""
        return [
            self._board_record(score, found)
            for score in scores
            if self.is_on_the_board(found.of(score.submission_id), now)
        ]

    def is_on_the_board(self, status: SubmissionStatus, now: datetime) -> bool:
        """Whether a scored submission has a row: by its status and, in a private suite, its round."""
        if not status.is_on_the_board:
            return False
        if self.key is None:
            return True
        at = status.published_at
        return at is not None and self.round(at) < self.round(now)

    def round(self, moment: datetime) -> int:
        """The number of the round that a moment lies in; rows made public in it appear after its end."""
        return (moment - _start(moment)) // timedelta(days=max(1, self.suite.rules.round_days))

    def appears_at(self, published_at: datetime | None) -> datetime | None:
        """When a row appears that was made public at a moment; None where there are no rounds."""
        if self.key is None or published_at is None:
            return None
        days = max(1, self.suite.rules.round_days)
        return _start(published_at) + (self.round(published_at) + 1) * timedelta(days=days)

    def _board_record(self, score: Score, found: SubmissionStatuses) -> ScoredRecord:
        record = scored_record(score, found)
        if self.key is None:
            return record
        # Without counts by task: ties come from the intervals, which hold the noise.
        ranked = score.halves.get("ranked")
        return replace(
            record,
            report=self.report(score, "public"),
            counts_by_task={},
            ranking=ranked and _overall_cells(self._public(ranked)),
        )


def _overall_cells(report: Mapping[str, Any]) -> dict[str, Any]:
    return {label: found["overall"] for label, found in report["labels"].items() if found}


def _start(moment: datetime) -> datetime:
    return datetime(EPOCH_YEAR, 1, 1, tzinfo=moment.tzinfo)
