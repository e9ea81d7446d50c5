"""One trajectory out of a large Parquet file, near or far: only its row groups are read.

In `steps` a row group holds the rows of one trajectory, and a file's footer names the trajectory of each. On
the Hub, open the file with small blocks (`HfFileSystem().open(path, block_size=BLOCK)`): reading ahead would
fetch the neighbours' screenshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK: Final = 65_536
"""Bytes to read at a time from a file on the Hub."""

_ID: Final = "trajectory_id"


def rows_of(trajectory_id: str, file: IO[bytes], columns: Sequence[str] | None = None) -> pa.Table | None:
    """The trajectory's rows in an open Parquet file; None when the file has none of them.

    Raises KeyError for a file without the column trajectory_id, and what pyarrow raises for one that is no
    Parquet file.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(file, pre_buffer=False)
    groups = row_groups_of(trajectory_id, opened.metadata)
    if not groups:
        return None
    wanted = None if columns is None else [_ID, *(name for name in columns if name != _ID)]
    tables = [opened.read_row_group(group, columns=wanted) for group in groups]
    found = pa.concat_tables(tables)
    found = found.filter(pc.equal(found[_ID], trajectory_id))
    return found.select(columns) if columns is not None else found


def row_groups_of(trajectory_id: str, metadata: pq.FileMetaData) -> list[int]:
    """The row groups that may hold the trajectory, by the least and the greatest id of each.

    A group whose footer does not tell them may hold it. Raises KeyError without a column trajectory_id.
    """
    column = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == _ID), None)
    if column is None:
        raise KeyError(_ID)
    return [
        group
        for group in range(metadata.num_row_groups)
        if _may_hold(metadata.row_group(group).column(column).statistics, trajectory_id)
    ]


def _may_hold(statistics: pq.Statistics | None, trajectory_id: str) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return statistics.min <= trajectory_id <= statistics.max
