"""The published folder, read again: its manifest, its tables, and one trajectory's steps without the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataset_script.one_trajectory import rows_of
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.base import SourceError
from dataset_script.vocabulary import SPLITS

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
"""The form of the folder that this code writes and reads."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file of the dataset, the file by its name inside the folder."""

    file: str
    number: int


class PublishedDataset:
    """A folder that `build` wrote. Reads the manifest at once, footers and tables when they are asked for.

    Raises SourceError when the manifest is absent or of another form.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest: Mapping[str, Any] = _read_manifest(folder / MANIFEST)

    @property
    def suite(self) -> str:
        """The name of the suite it was built for."""
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
    def steps_at(self) -> Mapping[str, tuple[RowGroup, ...]]:
        """Where each trajectory's steps are, from the footers of `steps` alone."""
        found: dict[str, list[RowGroup]] = {}
        for name in self._names("steps", None):
            for number, trajectory_id in enumerate(_ids_of_row_groups(self.folder / name)):
                found.setdefault(trajectory_id, []).append(RowGroup(name, number))
        return {trajectory_id: tuple(groups) for trajectory_id, groups in found.items()}

    def steps_of(self, trajectory_id: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The steps of one trajectory, in order, reading only its row groups; columns are those of `steps`.

        An image is ``{"bytes": …, "path": None}`` or None. Raises KeyError for an id that has no steps.
        """
        groups = self.steps_at[trajectory_id]
        return [row for group in groups for row in read_row_group(self.folder, group, columns).to_pylist()]

    def rows_of(
        self, configuration: str, trajectory_id: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """The rows of one trajectory in any configuration, reading only the row groups that may hold it.

        Empty where it has none; a row group of text holds many trajectories, so name the columns.
        """
        rows: list[dict[str, Any]] = []
        for path in self.files(configuration):
            with path.open("rb") as file:
                found = rows_of(trajectory_id, file, list(columns) or None)
            rows += [] if found is None else found.to_pylist()
        return rows

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

    metadata = pq.read_metadata(path)
    names = [metadata.row_group(0).column(i).path_in_schema for i in range(metadata.num_columns)]
    place = names.index("trajectory_id")
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(place).statistics
        if statistics is None or statistics.min != statistics.max:
            raise SourceError(f"{path.name}: row group {number} is not one trajectory's; build again")
        yield statistics.min
