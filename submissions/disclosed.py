"""Which figures of a score each audience sees: everybody on the board, its owner, maintainers.

Where a suite's labels are public all three see the exact report. Where they are private a board holds only
the rows that owners made public, in rounds and with noise; an owner sees noisy figures, a maintainer exact
ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from dataset_script.suite import Suite
from leaderboard.board import ScoredRecord
from submissions.lookup import scored_record
from submissions.probing.disclosure import Audience, disclose
from submissions.records import Score
from submissions.standing import SubmissionStatus, SubmissionStatuses

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
        """A half with noise too: the order of two rows that differ in one run would tell its label."""
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

    def is_on_the_board(self, standing: SubmissionStatus, now: datetime) -> bool:
        """Whether a scored submission has a row: by its standing and, in a private suite, its round."""
        if not standing.is_on_the_board:
            return False
        if self.key is None:
            return True
        at = standing.published_at
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
