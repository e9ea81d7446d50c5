"""The verdicts of every judge that is known on a split, where its errors may be seen.

On dev these are the judges that the built dataset carries; on test, where a suite's labels are public, those
and the judges whose files were scored here.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.suite import Trajectory
from leaderboard.board.board import BoardRow
from leaderboard.errors import may_see_errors
from leaderboard.labels.labels import LabelSet
from space.pages.trajectories.dataset import Explorer, OpenedDataset, TrajectoriesUnavailable
from space.pages.trajectories.index import RULE_BASED
from space.pages.trajectories.verdicts import MOST_JUDGES, judge_names, reasoning_in
from space.web.cells import rows_by_id, short_name
from submissions.scoring.verdicts import VerdictsUnavailable
from submissions.service import SubmissionService

LABEL: Final = "success"
"""The label whose errors are read: the paper's categories are about it."""


@dataclass(frozen=True, eq=False, repr=False)
class JudgeColumn:
    """A judge's verdicts on success, int8 of shape (n,) in the order of ``suite.split(split)``: 1, 0, -1.

    ``judge`` is its row's id on the board where it has one, else the name that the dataset gives it;
    ``dataset_name`` is the latter, None for a judge whose file was scored here.
    """

    judge: str
    name: str
    verdicts: np.ndarray
    dataset_name: str | None


class JudgeColumns:
    """Reads them once for each dataset and board. Safe for threads."""

    def __init__(self, service: SubmissionService, explorer: Explorer) -> None:
        self._service, self._explorer = service, explorer
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple, Mapping[str, JudgeColumn]]] = {}
        self._carried: dict[str, tuple[tuple, Mapping[str, JudgeColumn]]] = {}

    def splits(self) -> tuple[str, ...]:
        """The splits whose errors may be seen here: allowed, and with labels."""
        return tuple(split for split in ("dev", "test") if self.labels(split) is not None)

    def labels(self, split: str) -> LabelSet | None:
        """The labels of a split; None where its errors may not be seen, or there are none here."""
        if not may_see_errors(self._service.suite, split):
            return None
        return self._service.labels.dev if split == "dev" else self._service.labels_for_public_figures()

    def on(self, split: str) -> Mapping[str, JudgeColumn]:
        """Every judge with verdicts on a split; of the scored files the best ones. Empty where hidden."""
        if self.labels(split) is None:
            return {}
        carried = self._in_dataset(split)
        if split == "dev":
            return carried
        board = self._service.board()
        key = (tuple(carried), board.digest)
        with self._lock:
            if split not in self._known or self._known[split][0] != key:
                best = (row.id for row in board.ranking(LABEL) if row.labels[LABEL]["best"])
                files = self._of_files([row_id for row_id in best if row_id not in carried])
                self._known[split] = (key, {**carried, **files})
            return self._known[split][1]

    def has_errors_of(self, row: BoardRow) -> bool:
        """Whether there is a queue for a row of the board; no kept file is read for it."""
        if row.provenance == "scored" and self.labels("test") is not None:
            return True
        return any(row.id in self._in_dataset(split) for split in self.splits())

    def one(self, judge: str, split: str) -> JudgeColumn | None:
        """A judge by its row or its name in the dataset; also one whose file is not among the best."""
        found = self.on(split).get(judge)
        if found is None and split == "test" and self.labels(split) is not None:
            found = self._of_file(judge)
        return found

    def reasoning(self, column: JudgeColumn, trajectory: Trajectory, place: int) -> str:
        """What a judge wrote on a trajectory; empty where it wrote nothing that can be read now."""
        try:
            if column.dataset_name is not None:
                text = self._explorer.reasoning(trajectory.trajectory_id, column.dataset_name)
            else:
                texts = self._service.verdicts(column.judge).reasoning
                text = texts[place] if texts else None
        except (KeyError, VerdictsUnavailable, TrajectoriesUnavailable):
            return ""
        return reasoning_in(text or "")

    def goal(self, trajectory: Trajectory) -> str | None:
        """What was asked of the agent; None where the run cannot be looked at here."""
        opened = self._dataset()
        entry = opened.index.by_id.get(trajectory.trajectory_id) if opened else None
        return entry.goal if entry else None

    def _dataset(self) -> OpenedDataset | None:
        """The dataset of the suite that is served, where it is shown."""
        try:
            datasets = self._explorer.datasets()
        except TrajectoriesUnavailable:
            return None
        return next((opened for opened in datasets if opened.suite == self._service.suite.name), None)

    def _in_dataset(self, split: str) -> Mapping[str, JudgeColumn]:
        """The judges that the dataset carries, read once for each dataset."""
        opened = self._dataset()
        if opened is None:
            return {}
        on_board = frozenset(row.id for row in self._service.board().rows if row.provenance != "scored")
        key = (opened.version, on_board)
        with self._lock:
            if split not in self._carried or self._carried[split][0] != key:
                self._carried[split] = (key, self._of_dataset(opened, split, on_board))
            return self._carried[split][1]

    def _of_dataset(
        self, opened: OpenedDataset, split: str, on_board: Collection[str]
    ) -> dict[str, JudgeColumn]:
        columns = ["trajectory_id", "judge", LABEL]
        rows: list[dict[str, Any]] = []
        if split in opened.dataset.splits("judgments"):
            rows += opened.dataset.table("judgments", split, columns).to_pylist()
        has_rules = any(row["judge"] == RULE_BASED for row in rows)
        if not has_rules and split in opened.dataset.splits("rewards"):
            rewards = opened.dataset.table("rewards", split, ["trajectory_id", "rule_based"]).to_pylist()
            rows += [{**row, "judge": RULE_BASED, LABEL: row["rule_based"]} for row in rewards]
        places = {t.trajectory_id: place for place, t in enumerate(self._service.suite.split(split))}
        verdicts: dict[str, np.ndarray] = {}
        for row in rows:
            place = places.get(row["trajectory_id"])
            if place is not None and row[LABEL] is not None:
                given = verdicts.setdefault(row["judge"], np.full(len(places), -1, dtype=np.int8))
                given[place] = int(row[LABEL])
        found = {}
        for dataset_name, column in sorted(verdicts.items()):
            name, row_id = judge_names().get(dataset_name, (dataset_name, None))
            judge = row_id if row_id in on_board else dataset_name
            found[judge] = JudgeColumn(judge, name, column, dataset_name)
        return found

    def _of_files(self, row_ids: list[str]) -> dict[str, JudgeColumn]:
        columns = (self._of_file(row_id) for row_id in row_ids)
        found = [column for column in columns if column is not None]
        return {column.judge: column for column in found[:MOST_JUDGES]}

    def _of_file(self, row_id: str) -> JudgeColumn | None:
        row = rows_by_id(self._service.board()).get(row_id)
        if row is None or row.provenance != "scored":
            return None
        try:
            verdicts = self._service.verdicts(row_id)
        except (KeyError, VerdictsUnavailable):
            return None
        return JudgeColumn(row_id, short_name(row), verdicts.success, None)
