"""Read a published folder: its manifest, its tables, and the rows of one trajectory.

`PublishedSource` makes the folder a source of runs for building another dataset, such as a blind one or one
of your own suite. `by_id` reads the rows of one trajectory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import structs

from arb.core.formats import format_problem
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import RELEASED_YES_NO
from arb.core.trajectory import Recording, RunUsage, Step
from arb.core.vocabulary import SPLITS
from dataset_script.by_id import TrajectoryReader, id_statistics, reader_of_folder
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.base import (
    Amount,
    Observed,
    RecordedJudgment,
    SourceFile,
    SourceListing,
    TrajectorySource,
)
from dataset_script.sources.files import file_stamp, find_links_out, link_names
from dataset_script.sources.problems import Note, SourceError, UnusableFileError

with lazy_imports():  # without it, judging recorded files takes half the memory
    import pyarrow as pa
    import pyarrow.parquet as pq

MANIFEST: Final = "manifest.json"


class Shard(msgspec.Struct, frozen=True):
    """A Parquet file of the dataset, as described in the manifest under the key ``name``."""

    configuration: str
    split: str
    sha256: str
    bytes: int
    rows: int
    name: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """The content of manifest.json; ``source`` says where the runs came from."""

    format: int
    suite: str
    files: dict[str, Shard]
    source: dict[str, Any] = {}

    def __post_init__(self) -> None:
        self.files.update({key: structs.replace(shard, name=key) for key, shard in self.files.items()})

    @property
    def is_blind(self) -> bool:
        return self.source.get("blind") is True


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder. Raises SourceError if it is absent or has another format."""
    try:
        content = msgspec.json.decode((folder / MANIFEST).read_bytes())
        problem = format_problem("dataset", content)
        if problem is None:
            return msgspec.convert(content, Manifest)
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(
            f"{folder} has no readable {MANIFEST} ({why}); make the folder with `build`"
        ) from error
    raise SourceError(f"{folder / MANIFEST}: {problem}")


OBSERVED: Final = ("url", "axtree", "screenshot.bytes", "text")
"""The columns of `steps` for the fields of `Observed`, in the same order, as Parquet names them."""


class PublishedDataset:
    """A folder that `build` wrote. The constructor reads its manifest (see `read_manifest` for errors)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest = read_manifest(folder)

    @property
    def suite(self) -> str:
        return self.manifest.suite

    @property
    def configurations(self) -> tuple[str, ...]:
        """The configurations that have files, in the order of the schema."""
        there = {entry.configuration for entry in self.manifest.files.values()}
        return tuple(name for name in CONFIGURATIONS if name in there)

    def splits(self, configuration: str) -> tuple[str, ...]:
        """Return the splits of a configuration that have files, dev first."""
        return tuple(split for split in SPLITS if self.files(configuration, split))

    def files(self, configuration: str, split: str | None = None) -> tuple[Path, ...]:
        """Return the Parquet files of a configuration, of one split or of all, in the order of their rows."""
        return tuple(self.folder / name for name in self._names(configuration, split))

    def rows(self, configuration: str, split: str | None = None) -> int:
        return sum(self.manifest.files[name].rows for name in self._names(configuration, split))

    def table(self, configuration: str, split: str | None = None, columns: Sequence[str] = ()) -> pa.Table:
        """Return a configuration's table, or only its ``columns``. Raises SourceError if it has no files."""
        files = self.files(configuration, split)
        if not files:
            raise SourceError(
                f"{self.folder} has no configuration {configuration} for {split or 'any split'}"
            )
        return pa.concat_tables(pq.read_table(file, columns=list(columns) or None) for file in files)

    @cached_property
    def _reader(self) -> TrajectoryReader:
        return reader_of_folder(self.folder)

    @cached_property
    def observed(self) -> Mapping[str, Observed]:
        """The kinds of observations of each trajectory, according to the Parquet footers of `steps`.

        Raises SourceError if a row group has several ids or no statistics.
        """
        found: dict[str, list[bool]] = {}
        for name in self._names("steps", None):
            metadata = pq.read_metadata(self.folder / name)
            for number, ids in enumerate(id_statistics(metadata)):
                group = metadata.row_group(number)
                columns = map(group.column, range(metadata.num_columns))
                counted = {column.path_in_schema: column.statistics for column in columns}
                if ids is None or ids.min != ids.max or any(counted.get(each) is None for each in OBSERVED):
                    raise SourceError(
                        f"{name}: row group {number} does not say in the footer that it contains exactly one "
                        "trajectory, and what was observed; build again"
                    )
                before = found.get(ids.min, [False] * len(OBSERVED))
                now = (counted[column].num_values > 0 for column in OBSERVED)
                found[ids.min] = [any(pair) for pair in zip(before, now, strict=True)]
        return {trajectory_id: Observed(*has) for trajectory_id, has in found.items()}

    def rows_of(
        self, configuration: str, trajectory_id: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows of one trajectory in a configuration, or an empty list if it has none.

        Only row groups that may contain it are read. A row group of text contains many trajectories, so name
        the columns that you need. An image is ``{"bytes": …, "path": None}`` or None.
        """
        if configuration not in self.configurations:
            return []
        return self._reader.rows(configuration, trajectory_id, columns)

    def _names(self, configuration: str, split: str | None) -> list[str]:
        return sorted(
            name
            for name, entry in self.manifest.files.items()
            if entry.configuration == configuration and split in (None, entry.split)
        )


_WITH_SCREENSHOT: Final = "trajectories_with_screenshot"
_TREES: Final = ("axtree", "axtree_pruned")
_FINAL_TREES: Final = ("final_axtree", "final_axtree_pruned")


@dataclass(frozen=True, slots=True)
class PublishedRun(SourceFile):
    """A trajectory in a published folder, or a judgment of one.

    For a judgment, ``details`` is the judge's name.
    """

    @property
    def size(self) -> int:
        return 0  # only a few small row groups are read


@dataclass(frozen=True, slots=True)
class PublishedSource(TrajectorySource):
    """A published folder as a source of runs."""

    kind: ClassVar[str] = "published"

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return (folder / MANIFEST).is_file()

    def list_runs(self) -> SourceListing:
        """List the trajectories in table order. Raises SourceError if there are none or a link leads out."""
        if links := link_names(find_links_out(self.folder), self.folder):
            raise SourceError(
                f"{self.folder}: {', '.join(links)}: links out of the folder are not followed; "
                "replace them with what they point to"
            )
        files = self._list("trajectories", "trajectory_id")
        if not files:
            raise SourceError(f"{self.folder} has no trajectories")
        has_steps = "steps" in PublishedDataset(self.folder).configurations
        notes = () if has_steps else (Note("no_screenshots", "the source has no configuration steps"),)
        return SourceListing(files, (), notes)

    def list_all(self) -> SourceListing:
        """List the trajectories. `verify` checks that the folder has no other files."""
        self.check_agent_from(())
        return self.list_runs()

    def count_files(self, listing: SourceListing, left_out: Collection[str]) -> None:
        """Return None, because a file contains many trajectories."""

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one trajectory. Raises UnusableFileError if the folder has changed in the meantime."""
        recording = self.read_parts(file)
        row = self._row(file, "trajectories", ("model",)) or {}
        used = self._row(file, "usage", ()) or {}
        usage = RunUsage(*(used.get(each.name) for each in fields(RunUsage)))
        return replace(
            recording,
            model=row.get("model"),
            cum_reward=self.reward(file),
            state=used.get("state"),
            usage=None if usage == RunUsage() else usage,
        ), ()

    def reward(self, file: SourceFile) -> float | None:
        """Return the run's reward, or None if the dataset has none. Raises UnusableFileError."""
        row = self._row(file, "rewards", ("cum_reward",))
        return row["cum_reward"] if row else None

    def read_parts(
        self, file: SourceFile, axtrees: Amount = "all", screenshots: Amount = "all", goal_images: bool = True
    ) -> Recording:
        """Read one trajectory, without reward and model, and only the requested trees and screenshots.

        If the folder lacks the configuration `steps`, only the last step has a tree and a screenshot. Raises
        UnusableFileError if the folder has changed in the meantime.
        """
        with _unreadable_when_changed():
            there = _opened(self.folder).configurations
        reads_every_tree = "steps" in there and axtrees == "all"
        reads_every_screenshot = "steps" in there and (
            screenshots == "all" or (screenshots == "last" and _WITH_SCREENSHOT not in there)
        )
        final_trees = _FINAL_TREES if axtrees != "none" and not reads_every_tree else ()
        of_steps = [*_TREES] if reads_every_tree else []
        of_run = ["goal_images"] if goal_images else []
        if reads_every_screenshot:
            of_steps += ["screenshot", "box"]
        elif screenshots != "none":
            of_run.append("final_screenshot")
        text = self._row(file, "trajectories", ("goal", "answer", "steps", *final_trees))
        if text is None:
            raise UnusableFileError("not_a_trajectory", "the configuration trajectories has no row for it")
        pictures = (self._row(file, _WITH_SCREENSHOT, of_run) if of_run else None) or {}
        rows = self._rows(file, "steps", of_steps) if of_steps else []
        rows = rows or [{} for _ in text["steps"]]
        if rows:
            of_last = dict(zip(_TREES, map(text.get, _FINAL_TREES), strict=True))
            rows[-1] = of_last | {"screenshot": pictures.get("final_screenshot")} | rows[-1]
        return Recording(
            trajectory_id=file.trajectory_id,
            goal=text["goal"] or "",
            goal_images=tuple(image["bytes"] for image in pictures.get("goal_images") or ()),
            steps=tuple(_step(*pair) for pair in zip(text["steps"], rows, strict=True)),
            answer=text["answer"],
        )

    def observed(self) -> Mapping[str, Observed]:
        return PublishedDataset(self.folder).observed

    def data_hash(self, files: Iterable[SourceFile]) -> str:
        """Return the hash of the manifest, which contains the hashes of all tables."""
        return self.identity(next(iter(files)))

    def identity(self, file: SourceFile) -> str:
        return sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    def list_judgments(self) -> SourceListing:
        return SourceListing(self._list("judgments", "trajectory_id", "judge"), ())

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        """Read one judgment. Raises UnusableFileError if it is not in the dataset."""
        rows = self._rows(file, "judgments")
        row = next((row for row in rows if row["judge"] == file.details), None)
        if row is None:
            raise UnusableFileError("not_a_judgment", "the dataset has no such judgment")
        same = ("judge", "has_screenshot", "has_axtree", "state", "optimality", "reply")
        values: dict[str, Any] = {name: row[name] for name in same}
        values |= {name: None if row[name] is None else bool(row[name]) for name in RELEASED_YES_NO}
        return RecordedJudgment(**values, model=row["judge_model"])

    def _list(self, configuration: str, *columns: str) -> tuple[PublishedRun, ...]:
        """Return one PublishedRun per row of a configuration, made from the columns that identify the row."""
        found = []
        for path in PublishedDataset(self.folder).files(configuration):
            shard = path.relative_to(self.folder).as_posix()
            names = (pq.read_table(path, columns=[name])[name].to_pylist() for name in columns)
            for trajectory_id, *judge in zip(*names, strict=True):
                name = "#".join((shard, trajectory_id, *judge))
                found.append(PublishedRun(path, name, trajectory_id, details=judge[0] if judge else None))
        return tuple(found)

    def _row(self, file: SourceFile, configuration: str, columns: Sequence[str]) -> dict[str, Any] | None:
        return next(iter(self._rows(file, configuration, columns)), None)

    def _rows(
        self, file: SourceFile, configuration: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        with _unreadable_when_changed():
            return _opened(self.folder).rows_of(configuration, file.trajectory_id, columns)


def _opened(folder: Path) -> PublishedDataset:
    """Return a folder's dataset, read again if the manifest has changed. The last few are cached."""
    return _opened_at(folder, file_stamp(folder / MANIFEST))


@lru_cache(maxsize=4)
def _opened_at(folder: Path, _stamp: str) -> PublishedDataset:
    return PublishedDataset(folder)


def _step(text: Mapping[str, Any], heavy: Mapping[str, Any]) -> Step:
    """Return a step from its row in ``trajectories`` and the columns read from its row in ``steps``."""
    picture, box = heavy.get("screenshot"), heavy.get("box")
    return Step(
        **text,
        axtree=heavy.get("axtree"),
        axtree_pruned=heavy.get("axtree_pruned"),
        box=None if box is None else tuple(box),
        screenshot=None if picture is None else picture["bytes"],
    )


@contextmanager
def _unreadable_when_changed() -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, IndexError, SourceError, pa.ArrowException) as error:
        raise UnusableFileError("unreadable", f"the dataset changed or is damaged ({error})") from error
