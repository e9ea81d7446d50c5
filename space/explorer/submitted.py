"""The judges whose files were scored here, as far as a trajectory's page may show what they said.

Only where the suite's labels are public: a suite with hidden labels does not publish the verdict files that
were sent to it, because a judge's figures and its verdicts together would tell labels.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dataset_script.vocabulary import LABELS
from leaderboard.board import BoardRow
from submissions.service import SubmissionService
from submissions.verdicts import VerdictsUnavailable

logger = logging.getLogger(__name__)

MOST_JUDGES: Final = 20
"""So many judges, best first, are shown on a trajectory: their columns stay in memory."""

ANSWERS: Final = (*LABELS, "optimality")


@dataclass(frozen=True, eq=False)
class SubmittedJudge:
    """A judge's verdicts on the test split, a place for each of ``trajectory_ids``.

    ``answers`` holds int8 columns: 1 yes, 0 no, -1 no verdict; optimality 1 to 4. A column may be absent.
    """

    submission_id: str
    judge: str
    account: str
    model: str
    inputs: str
    trajectory_ids: tuple[str, ...]
    places: Mapping[str, int]
    answers: Mapping[str, np.ndarray]
    states: tuple[str | None, ...] | None
    has_reasoning: bool


class SubmittedJudges:
    """The best submission of each judge on the board, read once for each board. Safe for threads."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._known: tuple[str, tuple[SubmittedJudge, ...]] = ("", ())

    def of_suite(self, suite_name: str) -> tuple[SubmittedJudge, ...]:
        """The judges of the board, if this is the suite that is served and its labels are public."""
        suite = self._service.suite
        if suite.name != suite_name or not suite.labels_are_public:
            return ()
        board = self._service.board()
        with self._lock:
            if self._known[0] != board.digest:
                before = {judge.submission_id: judge for judge in self._known[1]}
                found = (before.get(row.id) or self._read(row) for row in _best(board.ranking("success")))
                self._known = (board.digest, tuple(judge for judge in found if judge is not None))
            return self._known[1]

    def reasoning(self, suite_name: str, submission_id: str, trajectory_id: str) -> str | None:
        """What a judge of ``of_suite`` wrote on a trajectory; None where it wrote nothing."""
        shown = {judge.submission_id: judge for judge in self.of_suite(suite_name)}
        judge = shown.get(submission_id)
        if judge is None or trajectory_id not in judge.places:
            return None
        try:
            texts = self._service.verdicts(submission_id).reasoning
        except (KeyError, VerdictsUnavailable):
            return None
        return texts[judge.places[trajectory_id]] if texts else None

    def _read(self, row: BoardRow) -> SubmittedJudge | None:
        try:
            verdicts = self._service.verdicts(row.id)
        except (KeyError, VerdictsUnavailable) as reason:
            logger.warning("the verdicts of %s are not shown with trajectories: %s", row.id, reason)
            return None
        return SubmittedJudge(
            submission_id=row.id,
            judge=row.judge,
            account=row.account,
            model=row.model,
            inputs=row.inputs,
            trajectory_ids=verdicts.trajectory_ids,
            places={name: place for place, name in enumerate(verdicts.trajectory_ids)},
            answers={name: found for name in ANSWERS if (found := getattr(verdicts, name)) is not None},
            states=verdicts.state,
            has_reasoning=verdicts.reasoning is not None and any(verdicts.reasoning),
        )


def _best(rows: tuple[BoardRow, ...]) -> list[BoardRow]:
    """The rows that stand for their judges, best first, as many as are shown."""
    best = [row for row in rows if row.provenance == "scored" and row.labels["success"]["best"]]
    return best[:MOST_JUDGES]
