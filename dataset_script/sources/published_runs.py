"""The published folder as a source of runs, to build another from it: blind, of one's own suite, mended."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from dataset_script.recording import RecordedStep, Recording
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.base import (
    Judgment,
    Note,
    SourceError,
    SourceFile,
    SourceListing,
    UnusableFileError,
)
from dataset_script.sources.published import MANIFEST, PublishedDataset, RowGroup, read_row_group
from dataset_script.trajectory_ids import TrajectoryId

_OF_A_RUN: Final = ("trajectories", "trajectories_with_screenshot", "rewards")
"""The configurations with a row a trajectory that a run is put together from, next to its steps."""


@dataclass(frozen=True, slots=True)
class Row:
    """Where a row is: its row group, and its place in it."""

    group: RowGroup
    place: int


@dataclass(frozen=True, slots=True)
class PublishedRun(SourceFile):
    """A trajectory of a published folder, with the places of its rows."""

    rows: tuple[tuple[str, Row], ...] = ()
    steps: tuple[RowGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """A published folder as a source of runs."""

    folder: Path
    kind: ClassVar[str] = "published"

    @staticmethod
    def recognises(folder: Path) -> bool:
        """Whether the folder has a manifest."""
        return (folder / MANIFEST).is_file()

    def list(self) -> SourceListing:
        """List the trajectories, in the order of the tables. Raises SourceError for another folder."""
        dataset = PublishedDataset(self.folder)
        at = {name: dict(_places(dataset, name)) for name in _OF_A_RUN}
        if not at["trajectories"]:
            raise SourceError(f"{self.folder}: has no trajectories")
        steps_at = dataset.steps_at
        files = tuple(
            PublishedRun(
                path=self.folder / row.group.file,
                name=f"{row.group.file}#{trajectory_id}",
                trajectory_id=trajectory_id,
                rows=tuple(
                    (name, at[name][trajectory_id]) for name in _OF_A_RUN if trajectory_id in at[name]
                ),
                steps=steps_at.get(trajectory_id, ()),
            )
            for trajectory_id, row in at["trajectories"].items()
        )
        notes = () if steps_at else (Note("no_screenshots", "the source has no configuration steps"),)
        return SourceListing(files, (), notes)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one trajectory. Raises UnusableFileError when the folder has changed meanwhile."""
        if not isinstance(file, PublishedRun):
            raise UnusableFileError("not_a_trajectory", "it was not listed from a published folder")
        rows = {name: _row(self.folder, row, _columns(name)) for name, row in file.rows}
        text = rows["trajectories"]
        goal_images = rows.get("trajectories_with_screenshot", {}).get("goal_images") or ()
        place = TrajectoryId.parse(file.trajectory_id)
        return Recording(
            trajectory_id=file.trajectory_id,
            benchmark_folder=place.folder,
            agent=place.agent,
            task_id=place.task_id,
            model=text["model"],
            goal=text["goal"] or "",
            goal_images=tuple(image["bytes"] for image in goal_images),
            valid=True,
            cum_reward=rows.get("rewards", {}).get("cum_reward"),
            steps=tuple(self._steps(file, text)),
        ), ()

    def identity(self, file: SourceFile) -> str:
        """The hash of the manifest, which has the hashes of all tables."""
        from hashlib import sha256

        return sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    def list_judgments(self) -> SourceListing:
        """List the judgments, one for each row of the table."""
        dataset = PublishedDataset(self.folder)
        found = (
            PublishedRun(
                path=self.folder / row.group.file,
                name=f"{row.group.file}#{row.group.number}.{row.place}",
                trajectory_id=trajectory_id,
                rows=(("judgments", row),),
            )
            for trajectory_id, row in _places(dataset, "judgments")
        )
        return SourceListing(tuple(found), ())

    def read_judgment(self, file: SourceFile) -> Judgment:
        """Read one judgment. Raises UnusableFileError when it was listed from elsewhere."""
        if not isinstance(file, PublishedRun):
            raise UnusableFileError("not_a_judgment", "it was not listed from a published folder")
        row = _row(self.folder, file.rows[0][1])
        answers = {name: _answer(row[name]) for name in ("success", "side_effect", "repetition")}
        same = {name: row[name] for name in ("judge", "has_screenshot", "has_axtree", "state", "optimality")}
        return Judgment(**same, **answers, model=row["judge_model"], reply=row["reply"])

    def _steps(self, run: PublishedRun, text: Mapping[str, Any]) -> Iterator[RecordedStep]:
        if not run.steps:  # a folder without `steps` still has the texts, and the tree of the last page
            for number, row in enumerate(text["steps"], start=1):
                is_last = number == len(text["steps"])
                trees = (text["final_axtree"], text["final_axtree_pruned"]) if is_last else (None, None)
                yield RecordedStep(**row, axtree=trees[0], axtree_pruned=trees[1], box=None, screenshot=None)
            return
        for group in run.steps:
            for row in read_row_group(self.folder, group).to_pylist():
                picture, box = row["screenshot"], row["box"]
                del row["trajectory_id"]
                yield RecordedStep(
                    **row
                    | {
                        "box": None if box is None else tuple(box),
                        "screenshot": None if picture is None else picture["bytes"],
                    }
                )


def _answer(index: int | None) -> bool | None:
    return None if index is None else bool(index)


def _columns(configuration: str) -> tuple[str, ...]:
    """What a run needs of a configuration: all of it, but of the one with screenshots only the goal's."""
    if configuration == "trajectories_with_screenshot":
        return ("goal_images",)
    return tuple(column.name for column in CONFIGURATIONS[configuration].columns)


def _places(dataset: PublishedDataset, configuration: str) -> Iterator[tuple[str, Row]]:
    """The trajectory and the place of every row of a configuration, reading only its ids."""
    import pyarrow.parquet as pq

    for path in dataset.files(configuration):
        name = path.relative_to(dataset.folder).as_posix()
        with pq.ParquetFile(path) as file:
            for number in range(file.metadata.num_row_groups):
                ids = file.read_row_group(number, columns=["trajectory_id"])["trajectory_id"].to_pylist()
                for place, trajectory_id in enumerate(ids):
                    yield trajectory_id, Row(RowGroup(name, number), place)


def _row(folder: Path, row: Row, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    return _row_group(folder, row.group, columns).slice(row.place, 1).to_pylist()[0]


@lru_cache(maxsize=4)
def _row_group(folder: Path, group: RowGroup, columns: tuple[str, ...]):
    """Neighbouring rows are asked for one after another, so the last few row groups are kept."""
    return read_row_group(folder, group, columns)
