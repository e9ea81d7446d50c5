"""The published folder, read again: its manifest, its tables, and one trajectory's rows without the rest.

`PublishedSource` is such a folder as a source of runs, to build another from it: blind, of one's own suite.

In `steps` a row group holds the rows of one trajectory, and a file's footer names the trajectory of each, so
only its row groups are read. `by_id` does so without the manifest, on the Hub too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from arb.core.trajectory import Recording, Step
from arb.core.vocabulary import LABELS, SPLITS
from dataset_script.by_id import TrajectoryReader, id_statistics, reader_of_folder
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.base import (
    Judgment,
    Note,
    SourceError,
    SourceFile,
    SourceListing,
    UnusableFileError,
    find_links_out,
    link_names,
)

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
"""The form of the folder that this code writes and reads."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of rows, as the manifest describes it."""

    name: str
    configuration: str
    split: str
    sha256: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file of the dataset, the file by its name inside the folder."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Observed:
    """What at least one step of a run has: an address, a tree, a screenshot, an observation in words."""

    urls: bool
    axtrees: bool
    screenshots: bool
    texts: bool

    @property
    def is_web(self) -> bool:
        """Whether anything was recorded of a web page."""
        return self.urls or self.axtrees or self.screenshots


OBSERVED: Final = ("url", "axtree", "screenshot.bytes", "text")
"""The columns of `steps` that say so, as files name them, in the order of the fields above."""


class PublishedDataset:
    """A folder that `build` wrote. Reads the manifest at once, footers and tables when they are asked for.

    Raises SourceError when the manifest is absent or of another form.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest: Mapping[str, Any] = _read_manifest(folder / MANIFEST)

    @property
    def suite(self) -> str:
        return self.manifest["suite"]

    @property
    def configurations(self) -> tuple[str, ...]:
        """The configurations that have files, in the order of the schema."""
        there = {entry["configuration"] for entry in self.manifest["files"].values()}
        return tuple(name for name in CONFIGURATIONS if name in there)

    def splits(self, configuration: str) -> tuple[str, ...]:
        """The splits of a configuration that have files, dev first."""
        return tuple(split for split in SPLITS if self.files(configuration, split))

    def files(self, configuration: str, split: str | None = None) -> tuple[Path, ...]:
        """The Parquet files of a configuration in the order of their rows, of one split or of all."""
        return tuple(self.folder / name for name in self._names(configuration, split))

    def rows(self, configuration: str, split: str | None = None) -> int:
        """How many rows the manifest promises."""
        return sum(self.manifest["files"][name]["rows"] for name in self._names(configuration, split))

    def table(self, configuration: str, split: str | None = None, columns: Sequence[str] = ()) -> pa.Table:
        """The rows of a configuration, whole or some columns, images included when named: mind the size.

        Raises SourceError when the configuration has no such rows.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = self.files(configuration, split)
        if not files:
            raise SourceError(f"{self.folder}: has no {configuration} for {split or 'any split'}")
        return pa.concat_tables(pq.read_table(file, columns=list(columns) or None) for file in files)

    @cached_property
    def _reader(self) -> TrajectoryReader:
        return reader_of_folder(self.folder)

    @cached_property
    def steps_at(self) -> Mapping[str, tuple[RowGroup, ...]]:
        """Where each trajectory's steps are, from the footers of `steps` alone."""
        found: dict[str, list[RowGroup]] = {}
        for name in self._names("steps", None):
            for number, trajectory_id in enumerate(_ids_of_row_groups(self.folder / name)):
                found.setdefault(trajectory_id, []).append(RowGroup(name, number))
        return {trajectory_id: tuple(groups) for trajectory_id, groups in found.items()}

    @cached_property
    def observed(self) -> Mapping[str, Observed]:
        """What was recorded of each trajectory, from the footers of `steps` alone.

        Empty for a dataset that was built before the footers said so.
        """
        import pyarrow.parquet as pq

        found: dict[str, list[bool]] = {}
        for name in self._names("steps", None):
            metadata = pq.read_metadata(self.folder / name)
            for number, trajectory_id in enumerate(_ids_of_row_groups(self.folder / name)):
                group = metadata.row_group(number)
                columns = map(group.column, range(metadata.num_columns))
                counted = {column.path_in_schema: column.statistics for column in columns}
                if any(counted.get(column) is None for column in OBSERVED):
                    return {}
                before = found.get(trajectory_id, [False] * len(OBSERVED))
                now = (counted[column].num_values > 0 for column in OBSERVED)
                found[trajectory_id] = [any(pair) for pair in zip(before, now, strict=True)]
        return {trajectory_id: Observed(*has) for trajectory_id, has in found.items()}

    def steps_of(self, trajectory_id: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The steps of one trajectory, in order, reading only its row groups; columns are those of `steps`.

        An image is ``{"bytes": …, "path": None}`` or None. Raises KeyError for an id that has no steps.
        """
        if self._reader.is_indexed:
            if rows := self._reader.rows("steps", trajectory_id, columns):
                return rows
            raise KeyError(trajectory_id)
        groups = self.steps_at[trajectory_id]
        return [row for group in groups for row in read_row_group(self.folder, group, columns).to_pylist()]

    def rows_of(
        self, configuration: str, trajectory_id: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """The rows of one trajectory in any configuration, reading only the row groups that may hold it.

        Empty where it has none; a row group of text holds many trajectories, so name the columns.
        """
        return self._reader.rows(configuration, trajectory_id, columns)

    def _names(self, configuration: str, split: str | None) -> list[str]:
        return sorted(
            name
            for name, entry in self.manifest["files"].items()
            if entry["configuration"] == configuration and split in (None, entry["split"])
        )


def read_row_group(folder: Path, group: RowGroup, columns: Sequence[str] = ()) -> pa.Table:
    """One row group, and nothing else of its file but the footer."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / group.file, pre_buffer=False) as file:
        return file.read_row_group(group.number, columns=list(columns) or None)


def _read_manifest(path: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{path.parent}: has no {MANIFEST} that can be read; make the folder by `build`"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SourceError(f"{path}: is not of format {FORMAT}; build the folder again with this version")
    files = manifest.get("files")
    wanted = ("configuration", "split", "sha256", "bytes", "rows")
    if not isinstance(files, dict) or not all(
        isinstance(entry, dict) and all(key in entry for key in wanted) for entry in files.values()
    ):
        raise SourceError(f"{path}: each of its files needs {', '.join(wanted)}; build the folder again")
    return manifest


def _ids_of_row_groups(path: Path) -> Iterator[str]:
    """The trajectory of each row group: its least and greatest id, which are one."""
    import pyarrow.parquet as pq

    for number, statistics in enumerate(id_statistics(pq.read_metadata(path))):
        if statistics is None or statistics.min != statistics.max:
            raise SourceError(f"{path.name}: row group {number} is not one trajectory's; build again")
        yield statistics.min


_OF_A_RUN: Final = ("trajectories", "trajectories_with_screenshot", "rewards")
"""The configurations with a row a trajectory that a run is put together from, next to its steps."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a row is: its row group, and its place in it."""

    group: RowGroup
    place: int


@dataclass(frozen=True, slots=True)
class PublishedRun(SourceFile):
    """A trajectory of a published folder, with the places of its rows."""

    rows: tuple[tuple[str, RowPlace], ...] = ()
    steps: tuple[RowGroup, ...] = ()

    @property
    def size(self) -> int:
        return 0  # some row groups, which are small


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """A published folder as a source of runs."""

    folder: Path
    kind: ClassVar[str] = "published"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return (folder / MANIFEST).is_file()

    def list_runs(self) -> SourceListing:
        """List the trajectories, in the order of the tables. Raises SourceError for another folder."""
        if links := link_names(find_links_out(self.folder), self.folder):
            raise SourceError(
                f"{self.folder}: {', '.join(links)}: links that lead out of the folder are not followed; "
                "put there what they point to"
            )
        dataset = PublishedDataset(self.folder)
        at = {name: dict(_places(dataset, name)) for name in _OF_A_RUN}
        if not at["trajectories"]:
            raise SourceError(f"{self.folder}: has no trajectories")
        steps_at = dataset.steps_at
        paths = {path.relative_to(self.folder).as_posix(): path for path in dataset.files("trajectories")}
        files = tuple(
            PublishedRun(
                path=paths[row.group.file],
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
        return Recording(
            trajectory_id=file.trajectory_id,
            model=text["model"],
            goal=text["goal"] or "",
            goal_images=tuple(image["bytes"] for image in goal_images),
            cum_reward=rows.get("rewards", {}).get("cum_reward"),
            steps=tuple(self._steps(file, text)),
            answer=text.get("answer"),  # absent from a dataset that was built before there was one
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
        answers = {name: None if row[name] is None else bool(row[name]) for name in LABELS}
        same = {name: row[name] for name in ("judge", "has_screenshot", "has_axtree", "state", "optimality")}
        return Judgment(**same, **answers, model=row["judge_model"], reply=row["reply"])

    def _steps(self, run: PublishedRun, text: Mapping[str, Any]) -> Iterator[Step]:
        if not run.steps:  # a folder without `steps` still has the texts, and the tree of the last page
            for number, row in enumerate(text["steps"], start=1):
                is_last = number == len(text["steps"])
                trees = (text["final_axtree"], text["final_axtree_pruned"]) if is_last else (None, None)
                yield Step(**row, axtree=trees[0], axtree_pruned=trees[1], box=None, screenshot=None)
            return
        for group in run.steps:
            for row in read_row_group(self.folder, group).to_pylist():
                picture, box = row["screenshot"], row["box"]
                del row["trajectory_id"]
                row["box"] = None if box is None else tuple(box)
                row["screenshot"] = None if picture is None else picture["bytes"]
                yield Step(**row)


def _columns(configuration: str) -> tuple[str, ...]:
    """What a run needs of a configuration: all of it, but of the one with screenshots only the goal's."""
    if configuration == "trajectories_with_screenshot":
        return ("goal_images",)
    return tuple(column.name for column in CONFIGURATIONS[configuration].columns)


def _places(dataset: PublishedDataset, configuration: str) -> Iterator[tuple[str, RowPlace]]:
    """The trajectory and the place of every row of a configuration, reading only its ids."""
    import pyarrow.parquet as pq

    for path in dataset.files(configuration):
        name = path.relative_to(dataset.folder).as_posix()
        with pq.ParquetFile(path) as file:
            for number in range(file.metadata.num_row_groups):
                ids = file.read_row_group(number, columns=["trajectory_id"])["trajectory_id"].to_pylist()
                group = RowGroup(name, number)  # one for all of its rows: there may be millions
                for place, trajectory_id in enumerate(ids):
                    yield trajectory_id, RowPlace(group, place)


def _row(folder: Path, row: RowPlace, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    return _row_group(folder, row.group, columns).slice(row.place, 1).to_pylist()[0]


@lru_cache(maxsize=4)
def _row_group(folder: Path, group: RowGroup, columns: tuple[str, ...]):
    """Neighbouring rows are asked for one after another, so the last few row groups are kept."""
    return read_row_group(folder, group, columns)
