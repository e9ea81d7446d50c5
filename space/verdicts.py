"""Finds the verdicts of judges, for all pages.

On test, a submission has the verdicts of its file. A published row has those in the dataset if they cover
every trajectory, else those of its file (shipped, or in ARB_PAPER_VERDICTS). On dev, only the dataset has
verdicts. Single errors are shown only on dev and, if the labels are public, on test.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from arb.core.cache import ByteCache
from arb.core.ids import Trajectory
from arb.core.predictions.table import Codes, Predictions
from arb.core.suite import OFFICIAL
from leaderboard.board.board import BoardRow
from leaderboard.board.rows import with_verdict_scores
from leaderboard.hard import FAMILIES, FEWEST_FAMILIES, family_of
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_report
from leaderboard.score import Score
from space.pages.rows import is_best
from space.pages.trajectories.dataset import Explorer, OpenedDataset, TrajectoriesUnavailable
from space.pages.trajectories.index import TrajectoryEntry, judgments_in, labels_of
from space.pages.trajectories.verdicts import MOST_JUDGES, judge_names, reasoning_in
from space.web.cells import short_name
from submissions.app import SubmissionsApp
from submissions.scoring.verdicts import VerdictsUnavailable

MOST_SPLITS, MOST_FIGURES = 4, 64
"""The maximum number of splits whose verdicts are cached, and of paper rows whose metrics are cached."""


@dataclass(frozen=True, eq=False, repr=False)
class JudgeColumn:
    """A judge with its verdicts, in the order of ``suite.items(split)``.

    ``judge`` is the id of its row on the board, or its name in the dataset if it has no row. ``dataset_name``
    is None if the verdicts come from a file. ``is_complete`` says whether the judge has judged every
    trajectory of the split; metrics over the split are shown only in this case. ``target`` is the name of
    the suite's main target.
    """

    judge: str
    name: str
    verdicts: Predictions
    dataset_name: str | None
    target: str
    is_complete: bool = True

    @property
    def answers(self) -> Codes:
        """The answers to the main target, as the numbers of `Target.code`."""
        return self.verdicts.codes(self.target)


class JudgeVerdicts:
    """Finds the verdicts of judges, and reads them once per dataset and board. Thread-safe."""

    def __init__(self, service: SubmissionsApp, explorer: Explorer) -> None:
        self._service, self._explorer = service, explorer
        self.target = service.suite.main_target
        """The target whose errors are shown."""
        self._carried: ByteCache[Mapping[str, JudgeColumn]] = ByteCache(MOST_SPLITS, lambda _: 1)
        self._figures: ByteCache[Mapping[str, Score | None]] = ByteCache(MOST_FIGURES, lambda _: 1)

    @property
    def version(self) -> str:
        """A cache key that changes when the dataset's verdicts change."""
        opened = self._dataset()
        return opened.version if opened else ""

    @property
    def mark(self) -> Hashable:
        """Like `version`, but without opening the dataset."""
        return self._explorer.mark

    def for_row(self, row: BoardRow) -> JudgeColumn | None:
        """Return the verdicts of a row on the whole test split, or None if they are not known."""
        if row.provenance != "scored":
            carried = self._in_dataset("test").get(row.id)
            if carried is not None and carried.is_complete:
                return carried
        return self._from_file(row.id)

    def are_known(self, row: BoardRow) -> bool:
        """Return whether a row has verdicts on test, without reading a submitted file."""
        return row.provenance == "scored" or self.for_row(row) is not None

    def of_papers(self) -> Mapping[str, Predictions]:
        """Return the known verdicts on test of the rows from papers, keyed by row id.

        They are found without the board, which is built from them.
        """
        published = self._published
        carried = self._in_dataset("test").items() if published else ()
        complete = {
            judge: each.verdicts for judge, each in carried if each.is_complete and judge in published
        }
        return {**self._service.records.paper_verdicts, **complete}

    def families(self) -> Mapping[str, Sequence[BoardRow]]:
        """Return the judges that define the Hard subset, keyed by family; empty if labels are private.

        They are published rows with known verdicts, and submissions that a maintainer has verified. Nobody
        can change the subset by sending a file under the name of a known judge.
        """
        if self._service.labels_for_public_figures() is None or self._service.suite.name != OFFICIAL:
            return {}
        found: dict[str, list[BoardRow]] = {family: [] for family in FAMILIES}
        for row in self._service.records.board().rows:
            family = family_of(row.judge)
            if not family:
                continue
            if row.provenance == "scored":
                is_member = "verified" in row.marks and is_best(row, self.target.name)
            else:
                is_member = self.are_known(row)
            if is_member:
                found[family].append(row)
        return {family: rows for family, rows in found.items() if rows}

    def has_hard_subset(self) -> bool:
        """Return whether enough families of judges are known."""
        return len(self.families()) >= FEWEST_FAMILIES

    def with_figures(self, row: BoardRow) -> BoardRow:
        """Return the row. If only the dataset has its verdicts, add metrics computed from them.

        The board itself scores verdicts in files. The ranks do not change, and labels without verdicts keep
        the printed metrics.
        """
        labels = self._service.labels_for_public_figures()
        if labels is None or row.provenance == "scored":
            return row
        column = self.for_row(row)
        if column is None or column.dataset_name is None:  # the board has the scores of files
            return row
        return with_verdict_scores(row, self._figures_of(row, column, labels))

    def splits(self) -> tuple[str, ...]:
        """Return the splits whose errors may be seen and whose labels are available."""
        return tuple(split for split in ("dev", "test") if self.labels(split) is not None)

    def labels(self, split: str) -> LabelSet | None:
        """Return the labels of a split, or None if its errors may not be seen or its labels are missing."""
        if not self._service.suite.shows_labels(split):
            return None
        return self._service.labels.dev if split == "dev" else self._service.labels_for_public_figures()

    def by_judge(self, split: str) -> Mapping[str, JudgeColumn]:
        """Return the judges with visible errors on a split, keyed by id.

        On test, only the best of the judges whose verdicts come from files are included.
        """
        if self.labels(split) is None:
            return {}
        carried = self._in_dataset(split)
        if split == "dev":
            return carried
        name = self.target.name
        best = [row.id for row in self._service.records.board().ranking(name) if is_best(row, name)]
        complete = {judge for judge, column in carried.items() if column.is_complete}
        files = (self._from_file(row_id) for row_id in best if row_id not in complete)
        found = islice(filter(None, files), MOST_JUDGES)
        return {**carried, **{column.judge: column for column in found}}

    def find(self, judge: str, split: str) -> JudgeColumn | None:
        """Return a judge by row id or by its name in the dataset, even if it is not among the best."""
        found = self.by_judge(split).get(judge)
        if found is None and split == "test" and self.labels(split) is not None:
            found = self._from_file(judge)
        return found

    def splits_with_errors(self, row: BoardRow) -> tuple[str, ...]:
        """Return the splits whose errors a page can show for a row, without reading a submitted file."""
        if not self._service.suite.profile.serves("/errors"):
            return ()
        has_file = row.provenance == "scored" or row.id in self._service.records.paper_verdicts
        return tuple(
            split
            for split in self.splits()
            if (split == "test" and has_file) or row.id in self._in_dataset(split)
        )

    def reasoning(self, column: JudgeColumn, trajectory: Trajectory, place: int) -> str:
        """Return a judge's reasoning on a trajectory, or an empty string if it cannot be read now."""
        try:
            if column.dataset_name is not None:
                return self._explorer.reasoning(trajectory.trajectory_id, column.dataset_name)
            texts = self._service.records.verdicts(column.judge).reasoning
            return reasoning_in((texts and texts[place]) or "")
        except (KeyError, VerdictsUnavailable, TrajectoriesUnavailable):
            return ""

    def entry(self, trajectory: Trajectory) -> TrajectoryEntry | None:
        """Return a trajectory's entry in the suite's dataset, or None if it cannot be shown here."""
        opened = self._dataset()
        return opened.index.by_id.get(trajectory.trajectory_id) if opened else None

    @property
    def has_dataset(self) -> bool:
        return self._dataset() is not None

    def _dataset(self) -> OpenedDataset | None:
        try:
            datasets = self._explorer.datasets()
        except TrajectoriesUnavailable:
            return None
        return next((opened for opened in datasets if opened.suite == self._service.suite.name), None)

    def _from_file(self, row_id: str) -> JudgeColumn | None:
        """Return the verdicts of a submitted file, or of the maintainer's file of a paper's judge."""
        row = self._service.records.board().row(row_id)  # a judge that is not on the board is not shown
        if row is None or not (row.provenance == "scored" or row_id in self._service.records.paper_verdicts):
            return None
        try:
            found = self._service.records.verdicts(row_id)
        except (KeyError, VerdictsUnavailable):
            return None
        return JudgeColumn(row_id, short_name(row), found, None, self.target.name)

    def _figures_of(self, row: BoardRow, column: JudgeColumn, labels: LabelSet) -> Mapping[str, Score | None]:
        """Return the scores, keyed by label. They are cached because resampling takes a moment."""
        key = (row.id, labels.version, self.version)
        return self._figures.get(key, lambda: score_report(column.verdicts, labels)["labels"])

    def _in_dataset(self, split: str) -> Mapping[str, JudgeColumn]:
        opened = self._dataset()
        if opened is None:
            return {}
        key = (split, opened.version)
        return self._carried.get(key, lambda: self._read_dataset(opened, split, self._published))

    @cached_property
    def _published(self) -> frozenset[str]:
        """The ids of the board's rows from papers whose verdicts a dataset may have."""
        is_official = self._service.suite.name == OFFICIAL
        return frozenset(row_id for _, row_id in judge_names().values()) if is_official else frozenset()

    def _read_dataset(
        self, opened: OpenedDataset, split: str, on_board: Collection[str]
    ) -> dict[str, JudgeColumn]:
        items = self._service.suite.items(split)  # the order of labels; the dataset has no verdicts on steps
        ids = tuple(item.trajectory_id for item in items)
        places = {item.trajectory_id: place for place, item in enumerate(items) if item.level == "run"}
        columns: dict[str, dict[str, Codes]] = {}
        judged: dict[str, set[int]] = {}
        for row in judgments_in(opened.dataset, split):
            place = places.get(row["trajectory_id"])
            if place is None:
                continue
            judged.setdefault(row["judge"], set()).add(place)
            answers = columns.setdefault(row["judge"], {})
            for name, answer in labels_of(row).items():
                target = self._service.suite.target(name)
                if target is not None and answer is not None:
                    empty = np.full(len(items), -1, dtype=np.int8)
                    answers.setdefault(name, empty)[place] = target.code(answer)
        found = {}
        for dataset_name, answers in sorted(columns.items()):
            if self.target.name not in answers:
                continue
            name, row_id = judge_names().get(dataset_name, (dataset_name, ""))
            judge = row_id if row_id in on_board else dataset_name
            is_complete = len(judged[dataset_name]) == len(places)
            verdicts = Predictions(ids, answers)
            found[judge] = JudgeColumn(judge, name, verdicts, dataset_name, self.target.name, is_complete)
        return found
