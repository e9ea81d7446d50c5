"""Read one trajectory of a published dataset by its id, without reading the rest.

The build writes ``index.parquet`` with the first and last id of each shard. A reader fetches the index (25
bytes per shard), then the footer of a shard, and then the requested columns of a row group. A row group of
`steps` has the rows of one trajectory. In other tables it has many trajectories, so request few columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any, Final

from arb.core.hub import INDEX
from arb.core.lazy import lazy_imports
from dataset_script.schema import CONFIGURATIONS

with lazy_imports():  # judging recorded files does not need pyarrow, which would double its memory
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

_ID: Final = "trajectory_id"
_COLUMNS: Final = ("configuration", "split", "file", "first", "last")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A shard with its smallest and largest trajectory id, which are None if unknown."""

    configuration: str
    split: str
    file: str
    first: str | None
    last: str | None

    def may_have(self, trajectory_id: str) -> bool:
        return self.first is None or self.last is None or self.first <= trajectory_id <= self.last


def index_table(entries: Iterable[IndexEntry]) -> pa.Table:
    """Return the index as a table with one row per shard. Shards of `tasks` have no ids and are left out."""
    rows = [
        {name: getattr(entry, name) for name in _COLUMNS}
        for entry in sorted(entries, key=lambda entry: entry.file)
        if any(column.name == _ID for column in CONFIGURATIONS[entry.configuration].columns)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in _COLUMNS]))


def write_index(folder: Path, shards: Iterable[tuple[str, str, str]]) -> None:
    """Write the index of a folder's shards, (configuration, split, file), from the ids in their footers."""
    entries = []
    for shard in shards:
        first, last = first_and_last_id(folder / shard[2]) or (None, None)
        entries.append(IndexEntry(*shard, first, last))
    pq.write_table(
        index_table(entries),
        folder / INDEX,
        compression="zstd",
        use_dictionary=["configuration", "split"],
        # Consecutive names and ids begin alike; this encoding stores the common beginning only once.
        column_encoding=dict.fromkeys(("file", "first", "last"), "DELTA_BYTE_ARRAY"),
        write_statistics=False,
    )


class TrajectoryReader:
    """A reader of single trajectories that reads only the footers and row groups it needs.

    ``open_file`` opens a file of the dataset by its name, and raises FileNotFoundError if it does not exist.
    Footers are cached, and so are the last few row groups that have several trajectories.
    """

    def __init__(self, open_file: Callable[[str], IO[bytes]]):
        self._open = open_file
        self._footer = lru_cache(maxsize=8)(self._read_footer)
        self._shared_group = lru_cache(maxsize=4)(self._read_group)

    @cached_property
    def entries(self) -> tuple[IndexEntry, ...]:
        """The entries of the index."""
        with self._open(INDEX) as file, pq.ParquetFile(file) as opened:
            return tuple(IndexEntry(**row) for row in opened.read(columns=list(_COLUMNS)).to_pylist())

    def rows(
        self, configuration: str, trajectory_id: str, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows of a trajectory in a configuration, or an empty list if it has none.

        The id must be spelled as in the dataset. Without ``columns``, all columns are read. Raises KeyError
        if a file lacks one of the columns; pyarrow may raise other exceptions.
        """
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
                found += own.select(columns or own.column_names).to_pylist()
        return found

    def _read_footer(self, name: str) -> pq.FileMetaData:
        with self._open(name) as file:
            return pq.read_metadata(file)

    def _read_group(self, name: str, number: int, columns: tuple[str, ...]) -> pa.Table:
        with self._open(name) as file:
            opened = pq.ParquetFile(file, metadata=self._footer(name), pre_buffer=False)
            return opened.read_row_group(number, columns=list(columns) or None)


def reader_of_folder(folder: Path) -> TrajectoryReader:
    return TrajectoryReader(lambda name: (folder / name).open("rb"))


def row_groups_of(trajectory_id: str, metadata: pq.FileMetaData) -> list[int]:
    """Return the numbers of the row groups whose range of ids includes a trajectory, or is unknown.

    Raises KeyError if the file has no column trajectory_id.
    """
    return [
        group
        for group, ids in enumerate(id_statistics(metadata))
        if ids is None or not ids.has_min_max or ids.min <= trajectory_id <= ids.max
    ]


def id_statistics(metadata: pq.FileMetaData) -> list[pq.Statistics | None]:
    """Return each row group's statistics of trajectory_id. Raises KeyError if the column is missing."""
    for number in range(metadata.num_columns):
        if metadata.schema.column(number).path == _ID:
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            return [group.column(number).statistics for group in groups]
    raise KeyError(_ID)


def first_and_last_id(path: Path) -> tuple[str, str] | None:
    """Return the smallest and largest id in a file, or None if its footer does not show them."""
    try:
        statistics = id_statistics(pq.read_metadata(path))
    except (KeyError, OSError, pa.ArrowException):
        return None
    known = [ids for ids in statistics if ids is not None and ids.has_min_max]
    if not known or len(known) < len(statistics):
        return None
    return min(ids.min for ids in known), max(ids.max for ids in known)
