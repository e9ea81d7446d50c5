"""The verdicts of every judge, for every page from one place: `JudgeVerdicts`.

On test a submission has the verdicts of its file. A row from a paper has those that the dataset carries, if
they are of all trajectories, else those of its file in ARB_PAPER_VERDICTS. On dev there are the dataset's
alone. Single errors are given where they may be seen: on dev, and on test where a suite's labels are public.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np

from arb.core.cache import ByteCache
from arb.core.suite import Trajectory
from arb.core.vocabulary import LABELS
from leaderboard.board.board import STRICT, BoardRow
from leaderboard.errors import may_see_errors
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_report
from space.pages.trajectories.dataset import Explorer, OpenedDataset, TrajectoriesUnavailable
from space.pages.trajectories.index import RULE_BASED, TrajectoryEntry
from space.pages.trajectories.verdicts import MOST_JUDGES, judge_names, reasoning_in
from space.web.cells import short_name
from submissions.app import SubmissionsApp
from submissions.scoring.verdicts import VerdictsUnavailable

MOST_SPLITS, MOST_FIGURES = 4, 64
"""Splits of a dataset, and rows of papers, whose verdicts and figures are kept."""
LABEL: Final = "success"
"""The label whose errors are read: the paper's categories are about it."""


@dataclass(frozen=True, eq=False, repr=False)
class JudgeColumn:
    """A judge's verdicts by label, int8 of shape (n,) in the order of ``suite.split(split)``: 1, 0, -1.

    ``judge`` is its row's id on the board where it has one, else the name that the dataset gives it;
    ``dataset_name`` is the latter, None for a judge whose file is here. ``is_complete``: it judged every
    trajectory of the split, so that figures over the split may be made of it.
    """

    judge: str
    name: str
    success: np.ndarray
    side_effect: np.ndarray | None
    repetition: np.ndarray | None
    dataset_name: str | None
    is_complete: bool = True


class JudgeVerdicts:
    """Answers which verdicts a judge gave; reads them once for each dataset and board. Safe for threads."""

    def __init__(self, service: SubmissionsApp, explorer: Explorer) -> None:
        self._service, self._explorer = service, explorer
        self._carried: ByteCache[Mapping[str, JudgeColumn]] = ByteCache(MOST_SPLITS, lambda _: 1)
        self._figures: ByteCache[Mapping[str, Any]] = ByteCache(MOST_FIGURES, lambda _: 1)

    @property
    def version(self) -> str:
        """What changes when other verdicts are known than the board's own; for the caches of pages."""
        opened = self._dataset()
        return opened.version if opened else ""

    def of(self, row: BoardRow) -> JudgeColumn | None:
        """The verdicts of a row on test, a verdict or its absence for every trajectory; None: not known."""
        if row.provenance != "scored":
            carried = self._in_dataset("test").get(row.id)
            if carried is not None and carried.is_complete:
                return carried
        return self._of_file(row.id)

    def are_known(self, row: BoardRow) -> bool:
        """Whether a row has verdicts on test; no submitted file is read for it."""
        return row.provenance == "scored" or self.of(row) is not None

    def of_papers(self) -> Mapping[str, JudgeColumn]:
        """The verdicts on test of the rows from papers, where they are known."""
        rows = (row for row in self._service.records.board().rows if row.provenance != "scored")
        return {row.id: column for row in rows if (column := self.of(row)) is not None}

    def with_figures(self, row: BoardRow) -> BoardRow:
        """The row with figures from its verdicts, as a submission's are made, where these are known.

        Its ranks stay those of the board, and labels that its file does not answer stay as printed.
        """
        labels = self._service.labels_for_public_figures()
        column = None if row.provenance == "scored" or labels is None else self.of(row)
        if column is None:
            return row
        made = self._figures_of(row, column, labels)
        return replace(
            row,
            protocol=STRICT,
            evidence="verdicts",
            labels={
                label: {**printed, **found, "intervals": "tasks", "note": ""}
                if printed and (found := made.get(label))
                else printed
                for label, printed in row.labels.items()
            },
        )

    def splits(self) -> tuple[str, ...]:
        """The splits whose errors may be seen here: allowed, and with labels."""
        return tuple(split for split in ("dev", "test") if self.labels(split) is not None)

    def labels(self, split: str) -> LabelSet | None:
        """The labels of a split; None where its errors may not be seen, or there are none here."""
        if not may_see_errors(self._service.suite, split):
            return None
        return self._service.labels.dev if split == "dev" else self._service.labels_for_public_figures()

    def on(self, split: str) -> Mapping[str, JudgeColumn]:
        """Every judge whose errors on a split may be seen; of the scored files the best ones."""
        if self.labels(split) is None:
            return {}
        carried = self._in_dataset(split)
        if split == "dev":
            return carried
        best = [row.id for row in self._service.records.board().ranking(LABEL) if row.labels[LABEL]["best"]]
        is_whole = {judge for judge, column in carried.items() if column.is_complete}
        files = (self._of_file(row_id) for row_id in best if row_id not in is_whole)
        found = islice(filter(None, files), MOST_JUDGES)
        return {**carried, **{column.judge: column for column in found}}

    def one(self, judge: str, split: str) -> JudgeColumn | None:
        """A judge by its row or its name in the dataset; also one whose file is not among the best."""
        found = self.on(split).get(judge)
        if found is None and split == "test" and self.labels(split) is not None:
            found = self._of_file(judge)
        return found

    def splits_with_errors(self, row: BoardRow) -> tuple[str, ...]:
        """The splits on which a row's errors can be read; no submitted file is read for it. None where the
        suite has no page of errors."""
        if not self._service.suite.profile.serves("/errors"):
            return ()
        has_file = row.provenance == "scored" or row.id in self._service.records.paper_verdicts
        return tuple(
            split
            for split in self.splits()
            if (split == "test" and has_file) or row.id in self._in_dataset(split)
        )

    def reasoning(self, column: JudgeColumn, trajectory: Trajectory, place: int) -> str:
        """What a judge wrote on a trajectory; empty where it wrote nothing that can be read now."""
        try:
            if column.dataset_name is not None:
                text = self._explorer.reasoning(trajectory.trajectory_id, column.dataset_name)
            else:
                texts = self._service.records.verdicts(column.judge).reasoning
                text = texts[place] if texts else None
        except (KeyError, VerdictsUnavailable, TrajectoriesUnavailable):
            return ""
        return reasoning_in(text or "")

    def entry(self, trajectory: Trajectory) -> TrajectoryEntry | None:
        """A trajectory in the dataset of the suite; None where it cannot be looked at here."""
        opened = self._dataset()
        return opened.index.by_id.get(trajectory.trajectory_id) if opened else None

    @property
    def has_dataset(self) -> bool:
        """Whether trajectories of the suite that is served can be looked at here."""
        return self._dataset() is not None

    def _dataset(self) -> OpenedDataset | None:
        """The dataset of the suite that is served, where it is shown."""
        try:
            datasets = self._explorer.datasets()
        except TrajectoriesUnavailable:
            return None
        return next((opened for opened in datasets if opened.suite == self._service.suite.name), None)

    def _of_file(self, row_id: str) -> JudgeColumn | None:
        """From the file that was submitted, or that the maintainer has of a paper's judge."""
        row = self._service.records.board().row(row_id)  # what is not on the board is not shown
        if row is None or not (row.provenance == "scored" or row_id in self._service.records.paper_verdicts):
            return None
        try:
            found = self._service.records.verdicts(row_id)
        except (KeyError, VerdictsUnavailable):
            return None
        return JudgeColumn(
            row_id, short_name(row), found.success, found.side_effect, found.repetition, dataset_name=None
        )

    def _figures_of(self, row: BoardRow, column: JudgeColumn, labels: LabelSet) -> Mapping[str, Any]:
        """The labels of the score report; kept, since resampling takes a moment."""
        key = (row.id, labels.version, column.dataset_name and self.version)
        return self._figures.get(key, lambda: score_report(column, labels)["labels"])

    def _in_dataset(self, split: str) -> Mapping[str, JudgeColumn]:
        """The judges that the dataset carries, read once for each dataset."""
        opened = self._dataset()
        if opened is None:
            return {}
        on_board = frozenset(
            row.id for row in self._service.records.board().rows if row.provenance != "scored"
        )
        key = (split, opened.version, on_board)
        return self._carried.get(key, lambda: self._of_dataset(opened, split, on_board))

    def _of_dataset(
        self, opened: OpenedDataset, split: str, on_board: Collection[str]
    ) -> dict[str, JudgeColumn]:
        places = {t.trajectory_id: place for place, t in enumerate(self._service.suite.split(split))}
        columns: dict[str, dict[str, np.ndarray]] = {}
        judged: dict[str, set[int]] = {}
        for row in _judgments(opened, split):
            place = places.get(row["trajectory_id"])
            if place is None:
                continue
            judged.setdefault(row["judge"], set()).add(place)
            answers = columns.setdefault(row["judge"], {})
            for label in LABELS:
                if row.get(label) is not None:
                    empty = np.full(len(places), -1, dtype=np.int8)
                    answers.setdefault(label, empty)[place] = int(row[label])
        found = {}
        for dataset_name, answers in sorted(columns.items()):
            if LABEL not in answers:
                continue
            name, row_id = judge_names().get(dataset_name, (dataset_name, None))
            judge = row_id if row_id in on_board else dataset_name
            found[judge] = JudgeColumn(
                judge,
                name,
                **{label: answers.get(label) for label in LABELS},
                dataset_name=dataset_name,
                is_complete=len(judged[dataset_name]) == len(places),
            )
        return found


def _judgments(opened: OpenedDataset, split: str) -> list[dict[str, Any]]:
    """The judgments of a split; the rule-based verdict from `rewards` where no judgment gives it."""
    dataset = opened.dataset
    rows: list[dict[str, Any]] = []
    if split in dataset.splits("judgments"):
        rows += dataset.table("judgments", split, ["trajectory_id", "judge", *LABELS]).to_pylist()
    has_rules = any(row["judge"] == RULE_BASED for row in rows)
    if not has_rules and split in dataset.splits("rewards"):
        rewards = dataset.table("rewards", split, ["trajectory_id", "rule_based"]).to_pylist()
        rows += [{**row, "judge": RULE_BASED, LABEL: row["rule_based"]} for row in rewards]
    return rows
