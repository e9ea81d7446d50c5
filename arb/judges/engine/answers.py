"""Store the replies that machines share. The files are Parquet, partitioned by the cache key's first byte.

    answers/3f/SHA-256.parquet      key (32 bytes) and line (`cache.answer_line`), named by a hash of its keys

The store can be at any URL that `fsspec` opens: a folder, ``s3://…``, ``gs://…``. It needs no locks, since
files never change and become visible only when they are complete. Several files may have the same key.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from arb.core.files import PART_PREFIX, atomic_write
from arb.judges.engine.storage import ANSWERS, storing

FILES_IN_MEMORY: Final = 16
"""How many of the most recently read files are kept in memory."""


class AnswerStore:
    """The replies in a folder or at a URL, which need not exist yet. Methods raise StorageError."""

    def __init__(self, url: str):
        self.url = url
        self._paths: dict[int, dict[bytes, str]] = {}
        self._answers = lru_cache(FILES_IN_MEMORY)(self._read_table)

    @property
    def is_local(self) -> bool:
        return "://" not in self.url or self.url.startswith("file://")

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        # A cached listing would hide files that other machines are writing.
        more: dict[str, Any] = {} if self.is_local else {"use_listings_cache": False}
        fs, root = url_to_fs(self.url, **more)
        return fs, root.rstrip("/")

    def open(self) -> None:
        """Open the URL. Raises ImportError, which names the package to install, if one is missing."""
        self._opened  # noqa: B018  the property opens it

    def files(self, folder: str) -> list[str]:
        """Return the sorted paths of all files below a folder."""
        fs, root = self._opened
        with storing(self.url):
            fs.invalidate_cache()
            return [path for path in sorted(fs.find(f"{root}/{folder}")) if PART_PREFIX not in path]

    def keys(self, partition: int) -> set[bytes]:
        """Return the keys of all replies in a partition (the first byte of the keys)."""
        return {key for path in self._files(partition) for key in self._keys(path)}

    def add(self, lines: Iterable[tuple[bytes, bytes]]) -> int:
        """Add the (key, line) pairs whose keys are new, and return their number."""
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
        """Return the line with the reply to a call, or None if it is not in the store.

        The keys of a partition are listed only once, so replies added to it later are not found.
        """
        partition = key[0]
        if partition not in self._paths:
            self._paths[partition] = {
                each: path for path in self._files(partition) for each in self._keys(path)
            }
        path = self._paths[partition].get(key)
        return None if path is None else self._answers(path)[key]

    def _files(self, partition: int) -> list[str]:
        return [path for path in self.files(_folder(partition)) if path.endswith(".parquet")]

    def _keys(self, path: str) -> list[bytes]:
        with storing(self.url), self._opened[0].open(path, "rb", block_size=65_536) as file:
            return pq.ParquetFile(file, pre_buffer=False).read(columns=["key"])["key"].to_pylist()

    def _read_table(self, path: str) -> dict[bytes, bytes]:
        with storing(self.url), self._opened[0].open(path, "rb") as file:
            table = pq.ParquetFile(file, pre_buffer=False).read()
        return dict(zip(table["key"].to_pylist(), table["line"].to_pylist(), strict=True))

    def _write_table(self, name: str, answers: dict[bytes, bytes]) -> None:
        key, line = pa.array(answers, pa.binary(32)), pa.array(answers.values(), pa.large_binary())
        table, sink = pa.table({"key": key, "line": line}), pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        content, (fs, root) = sink.getvalue().to_pybytes(), self._opened
        with storing(self.url):
            if self.is_local:
                path = Path(f"{root}/{name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, content)
            else:  # an object store shows only complete objects
                fs.pipe_file(f"{root}/{name}", content)


def _folder(partition: int) -> str:
    return f"{ANSWERS}/{partition:02x}"
