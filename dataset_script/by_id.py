"""One trajectory of a published dataset by its id, from a folder or from the Hub, without reading the rest.

The build writes ``index.parquet``: for each shard its first and last id. So a reader fetches the index (25
bytes a shard), the footer of a shard, and of its row groups the columns that are wanted. In
`steps` a row group holds the rows of one trajectory; elsewhere it holds many, so name the columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from arb.core.hub import INDEX
from dataset_script.schema import CONFIGURATIONS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from huggingface_hub import HfApi

BLOCK: Final = 65_536
"""Bytes to read at a time from a file on the Hub: reading ahead would fetch the neighbours' screenshots."""

_ID: Final = "trajectory_id"
_COLUMNS: Final = ("configuration", "split", "file", "first", "last")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A shard with the least and the greatest id in it; None where that is not known."""

    configuration: str
    split: str
    file: str
    first: str | None
    last: str | None

    def may_have(self, trajectory_id: str) -> bool:
        return self.first is None or self.last is None or self.first <= trajectory_id <= self.last


def index_table(entries: Iterable[IndexEntry]) -> pa.Table:
    """Return the index of these shards, without those whose rows have no trajectory id (tasks)."""
    import pyarrow as pa

    rows = [
        {name: getattr(entry, name) for name in _COLUMNS}
        for entry in sorted(entries, key=lambda entry: entry.file)
        if any(column.name == _ID for column in CONFIGURATIONS[entry.configuration].columns)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in _COLUMNS]))


def write_index(folder: Path, shards: Iterable[tuple[str, str, str]]) -> None:
    """Write the index of a folder: configuration, split and file of each shard, ids by its footer.

    Names and ids that follow each other share their beginnings, and are written once.
    """
    import pyarrow.parquet as pq

    found = ((*shard, *(first_and_last_id(folder / shard[2]) or (None, None))) for shard in shards)
    pq.write_table(
        index_table(IndexEntry(*each) for each in found),
        folder / INDEX,
        compression="zstd",
        use_dictionary=["configuration", "split"],
        column_encoding=dict.fromkeys(("file", "first", "last"), "DELTA_BYTE_ARRAY"),
        write_statistics=False,
    )


class TrajectoryReader:
    """Reads the rows of single trajectories, and of each file only the footer and the row groups it needs.

    ``open_file`` opens a file of the dataset by its name, and raises FileNotFoundError if it is not there.
    Footers and the last row groups that several trajectories share are kept: neighbours are often read next.
    """

    def __init__(self, open_file: Callable[[str], IO[bytes]]):
        self._open = open_file
        self._footer = lru_cache(maxsize=8)(self._read_footer)
        self._shared_group = lru_cache(maxsize=4)(self._read_group)

    @cached_property
    def entries(self) -> tuple[IndexEntry, ...]:
        """The index; of a dataset that was built before there was one, the manifest's files without ids."""
        import pyarrow.parquet as pq

        try:
            with self._open(INDEX) as file, pq.ParquetFile(file) as opened:
                return tuple(IndexEntry(**row) for row in opened.read(columns=list(_COLUMNS)).to_pylist())
        except FileNotFoundError:
            with self._open("manifest.json") as file:
                files = json.loads(file.read())["files"]
            return tuple(
                IndexEntry(entry["configuration"], entry["split"], name, None, None)
                for name, entry in sorted(files.items())
            )

    def rows(
        self, configuration: str, trajectory_id: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows of one trajectory in a configuration, or an empty list if it has none.

        Args:
            configuration: The configuration's name.
            trajectory_id: The id as the dataset spells it.
            columns: The columns to read, or none for all. Columns that an older dataset lacks are left out.

        Raises:
            KeyError: A file has no column trajectory_id. Other errors are those of pyarrow.
        """
        import pyarrow.compute as pc

        of_one = CONFIGURATIONS[configuration].groups_by_trajectory
        read = self._read_group if of_one else self._shared_group
        wanted = (_ID, *(name for name in columns if name != _ID)) if columns else ()
        found = []
        for entry in self.entries:
            if entry.configuration != configuration or not entry.may_have(trajectory_id):
                continue
            for number in row_groups_of(trajectory_id, self._footer(entry.file)):
                group = read(entry.file, number, wanted)
                own = group.filter(pc.equal(group[_ID], trajectory_id))
                rows = own.select([name for name in columns or own.column_names if name in own.column_names])
                found += rows.to_pylist()
        return found

    def _read_footer(self, name: str) -> pq.FileMetaData:
        import pyarrow.parquet as pq

        with self._open(name) as file:
            return pq.read_metadata(file)

    def _read_group(self, name: str, number: int, columns: tuple[str, ...]) -> pa.Table:
        import pyarrow.parquet as pq

        with self._open(name) as file:
            opened = pq.ParquetFile(file, metadata=self._footer(name), pre_buffer=False)
            return opened.read_row_group(number, columns=list(columns) or None)


def reader_of_folder(folder: Path) -> TrajectoryReader:
    """Reads a dataset that lies on this machine."""
    return TrajectoryReader(lambda name: (folder / name).open("rb"))


def reader_of_repository(hub: HfApi, repo: str, revision: str | None = None) -> TrajectoryReader:
    """Return a reader of a dataset repository at the revision's present commit. Raises HTTPError."""
    from huggingface_hub import HfFileSystem

    commit = hub.repo_info(repo, repo_type="dataset", revision=revision).sha
    files = HfFileSystem(endpoint=hub.endpoint, token=hub.token, skip_instance_cache=True)
    return TrajectoryReader(lambda name: files.open(f"datasets/{repo}@{commit}/{name}", block_size=BLOCK))


def row_groups_of(trajectory_id: str, metadata: pq.FileMetaData) -> list[int]:
    """The row groups that may hold the trajectory, by the least and the greatest id of each.

    A group whose footer does not have them may hold it. Raises KeyError without a column trajectory_id.
    """
    return [
        group
        for group, ids in enumerate(id_statistics(metadata))
        if ids is None or not ids.has_min_max or ids.min <= trajectory_id <= ids.max
    ]


def id_statistics(metadata: pq.FileMetaData) -> list[pq.Statistics | None]:
    """What the footer says of the ids in each row group. Raises KeyError without a column trajectory_id."""
    column = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == _ID), None)
    if column is None:
        raise KeyError(_ID)
    return [metadata.row_group(group).column(column).statistics for group in range(metadata.num_row_groups)]


def first_and_last_id(path: Path) -> tuple[str, str] | None:
    """The least and the greatest id in a file, by its footer; None where that does not say."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        statistics = id_statistics(pq.read_metadata(path))
    except (KeyError, OSError, pa.ArrowException):
        return None
    if not statistics or not all(ids is not None and ids.has_min_max for ids in statistics):
        return None
    return min(ids.min for ids in statistics), max(ids.max for ids in statistics)
