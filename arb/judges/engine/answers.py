"""Replies that machines share: Parquet files, partitioned by the first byte of the key.

    answers/3f/SHA-256.parquet      key (32 bytes) and line (`cache.answer_line`), named by a hash of its keys

The place is anything that `fsspec` opens: a folder, ``s3://…``, ``gs://…``. There are no locks: a file is
written whole under its name and never changed. A key may be in two files of a partition.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.files import PART_PREFIX, atomic_write
from arb.judges.engine.storage import storing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ANSWERS: Final = "answers"
"""The folder in a reply cache that holds shared answers, if no other place is named."""

ROW_GROUP: Final = 1_000
"""How many answers are read together to get one of them."""

ROW_GROUPS_IN_MEMORY: Final = 16


class AnswerStore:
    """The answers at a URL or in a folder, which need not exist yet. Methods raise StorageError.

    A store remembers which keys a partition has once it was asked for one of them (`line`).
    """

    def __init__(self, url: str):
        self.url = url
        self._indexed: dict[int, dict[bytes, tuple[str, int]]] = {}
        self._lines = lru_cache(ROW_GROUPS_IN_MEMORY)(self._row_group)

    @property
    def is_local(self) -> bool:
        return "://" not in self.url or self.url.startswith("file://")

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        from fsspec.core import url_to_fs

        # Others write meanwhile, and a remembered listing would hide their files.
        more: dict[str, Any] = {} if self.is_local else {"use_listings_cache": False}
        fs, root = url_to_fs(self.url, **more)
        return fs, root.rstrip("/")

    def open(self) -> None:
        """Raise ImportError, with what to install, if nothing here can open the URL."""
        self._opened  # noqa: B018

    def files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, in order."""
        fs, root = self._opened
        with storing(self.url):
            fs.invalidate_cache()
            return [path for path in sorted(fs.find(f"{root}/{folder}")) if PART_PREFIX not in path]

    def read(self, path: str) -> bytes:
        with storing(self.url):
            return self._opened[0].cat_file(path)

    def remove(self, folder: str) -> None:
        """Remove a folder with everything in it, if it exists."""
        fs, root = self._opened
        with storing(self.url):
            if fs.exists(f"{root}/{folder}"):
                fs.rm(f"{root}/{folder}", recursive=True)

    def keys(self, partition: int) -> set[bytes]:
        """Return the keys of a partition. Only the column of keys is read."""
        return {key for path in self._files(partition) for key in self._keys(path)}

    def add(self, lines: Iterable[tuple[bytes, bytes]]) -> int:
        """Add lines by key, except those that are here already; return how many were added.

        The same answers make the same file, whoever writes it.
        """
        known: dict[int, set[bytes]] = {}
        new: defaultdict[int, dict[bytes, bytes]] = defaultdict(dict)
        for key, line in lines:
            partition = key[0]
            if partition not in known:
                known[partition] = self.keys(partition)
            if key not in known[partition]:
                new[partition][key] = line
        for partition, answers in new.items():
            name = hashlib.sha256(b"".join(sorted(answers))).hexdigest()
            self._write_table(f"{_folder(partition)}/{name}.parquet", dict(sorted(answers.items())))
        return sum(map(len, new.values()))

    def line(self, key: bytes) -> bytes | None:
        """Return the line of one answer, or None. Answers that are added later are not seen."""
        partition = key[0]
        if partition not in self._indexed:
            self._indexed[partition] = self._index(partition)
        if key not in self._indexed[partition]:
            return None
        path, row = self._indexed[partition][key]
        return self._lines(path, row // ROW_GROUP)[row % ROW_GROUP]

    def _index(self, partition: int) -> dict[bytes, tuple[str, int]]:
        index = {}
        for path in self._files(partition):
            index |= {key: (path, row) for row, key in enumerate(self._keys(path))}
        return index

    def _files(self, partition: int) -> list[str]:
        return [path for path in self.files(_folder(partition)) if path.endswith(".parquet")]

    def _keys(self, path: str) -> list[bytes]:
        import pyarrow.parquet as pq

        with storing(self.url), self._opened[0].open(path, "rb", block_size=65_536) as file:
            return pq.ParquetFile(file, pre_buffer=False).read(columns=["key"])["key"].to_pylist()

    def _row_group(self, path: str, number: int) -> list[bytes]:
        import pyarrow.parquet as pq

        with storing(self.url), self._opened[0].open(path, "rb") as file:
            table = pq.ParquetFile(file, pre_buffer=False).read_row_group(number, columns=["line"])
        return table["line"].to_pylist()

    def _write_table(self, name: str, answers: dict[bytes, bytes]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        key, line = pa.array(answers, pa.binary(32)), pa.array(answers.values(), pa.large_binary())
        table, sink = pa.table({"key": key, "line": line}), pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False, row_group_size=ROW_GROUP)
        content, (fs, root) = sink.getvalue().to_pybytes(), self._opened
        with storing(self.url):
            if self.is_local:
                path = Path(f"{root}/{name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, content)
            else:  # an object appears when it is whole
                fs.pipe_file(f"{root}/{name}", content)


def _folder(partition: int) -> str:
    return f"{ANSWERS}/{partition:02x}"
