"""Answers that the workers of a cluster share: Parquet files, partitioned by the beginning of the key.

    answers/3f/SHA-256.parquet      key (32 bytes) and line (`cache.answer_line`), named by the keys in it
    journal/SESSION/CHUNK/….jsonl   lines of answers as they come in, until they are in the partitions

A place is anything that `fsspec` opens: a folder, ``s3://…``, ``gs://…``. There are no locks: a file is
written whole under its name or not at all, and never changed; a partition has one writer at a time, which a
run sees to (`arb.judges.ray.run`). A key may be in two files of a partition.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.files import PART_PREFIX, atomic_write
from arb.judges.engine.storage import write_at

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from fsspec import AbstractFileSystem

ANSWERS: Final = "answers"
"""The folder of a reply cache that holds the answers of a cluster, where no other place is named."""

PARTITIONS: Final = 256
"""One for each first byte of a key: 90,000 answers in each of them when there are 23 million."""

ROW_GROUP: Final = 1_000
"""Answers that are read together for the sake of one."""

_TABLES: Final = 16
"""Row groups that a reader of single answers keeps."""


class Place:
    """A folder on any file system, with whole-file reads and writes. Raises OSError.

    ``bytes_read`` counts what was read through it, for benches.
    """

    def __init__(self, url: str):
        self.url = url
        self.bytes_read = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "bytes_read": 0}

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        from fsspec.core import url_to_fs

        # others write meanwhile: a listing that is remembered would hide their files
        return url_to_fs(self.url, **({} if self.is_local else {"use_listings_cache": False}))

    @property
    def is_local(self) -> bool:
        return "://" not in self.url or self.url.startswith("file://")

    def path(self, name: str) -> str:
        """The path that the file system has for a name."""
        return f"{self._opened[1].rstrip('/')}/{name}"

    def below(self, name: str) -> Place:
        return Place(f"{self.url.rstrip('/')}/{name}")

    def files(self, name: str = "") -> list[str]:
        """The names of all files below a folder, in order; none where there is no such folder."""
        fs, root = self._opened
        if self.is_local and not Path(self.path(name)).is_dir():
            return []
        with suppress(FileNotFoundError):
            fs.invalidate_cache()
            start = len(root.rstrip("/")) + 1
            return sorted(each[start:] for each in fs.find(self.path(name)) if PART_PREFIX not in each)
        return []

    def read(self, name: str) -> bytes:
        content = self._opened[0].cat_file(self.path(name))
        self.bytes_read += len(content)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, over one of the same name."""
        fs, path = self._opened[0], self.path(name)
        if not self.is_local:  # an object is there once it is whole
            fs.pipe_file(path, content)
            return
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        atomic_write(Path(path), content)

    def modified_at(self, name: str) -> float:
        """Seconds since 1970."""
        modified = self._opened[0].modified(self.path(name))
        return modified.timestamp()

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""
        with suppress(FileNotFoundError):
            self._opened[0].rm(self.path(name), recursive=True)

    def write_table(self, name: str, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False, row_group_size=ROW_GROUP)
        self.write(name, sink.getvalue().to_pybytes())

    def read_table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """The named columns of a Parquet file; of a file far away nothing else is fetched, but its footer."""
        import pyarrow.parquet as pq

        with self._opened[0].open(self.path(name), "rb", block_size=65_536) as file:
            counted = _CountedFile(file)
            table = pq.ParquetFile(counted, pre_buffer=False).read(columns=columns)
        self.bytes_read += counted.bytes_read
        return table


class _CountedFile:
    """A file as pyarrow reads it, with the bytes that it asked for."""

    closed = False

    def __init__(self, file: Any):
        self._file, self.bytes_read = file, 0

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self.bytes_read += len(content)
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class AnswerStore:
    """The answers at a place, which need not exist yet."""

    def __init__(self, url: str):
        self.place = Place(url)
        self._indexed: dict[int, tuple[np.ndarray, np.ndarray, list[str]]] = {}
        self._tables: OrderedDict[tuple[str, int], list[bytes]] = OrderedDict()

    def keys(self, partition: int) -> pa.ChunkedArray:
        """The keys of a partition; nothing else is read."""
        import pyarrow as pa

        tables = [self.place.read_table(name, ["key"]) for name in self._files(partition)]
        empty = pa.chunked_array([], pa.binary(32))
        return pa.concat_tables(tables)["key"] if tables else empty

    def table(self, partition: int) -> pa.Table:
        """All answers of a partition: key and line; a key may be there twice."""
        import pyarrow as pa

        tables = [self.place.read_table(name) for name in self._files(partition)]
        return pa.concat_tables(tables) if tables else answer_table({})

    def add(self, partition: int, answers: dict[bytes, bytes]) -> int:
        """Put lines by key into a partition, but for those that it has; returns how many.

        For one writer of a partition at a time. The same answers make the same file.
        """
        known = set(self.keys(partition).to_pylist())
        new = {key: line for key, line in sorted(answers.items()) if key not in known}
        if new:
            name = hashlib.sha256(b"".join(new)).hexdigest()
            self.place.write_table(f"{_folder(partition)}/{name}.parquet", answer_table(new))
        return len(new)

    def line(self, key: bytes) -> bytes | None:
        """The line of one answer; None where there is none.

        For a process that wants some of many answers: it remembers the keys of each partition that it read
        (40 bytes each), and does not see what is added to it later.
        """
        import numpy as np

        partition = key[0]
        if partition not in self._indexed:
            self._indexed[partition] = self._index(partition)
        keys, places, files = self._indexed[partition]
        at = int(np.searchsorted(keys, np.bytes_(key)))
        if at == len(keys) or keys[at] != key.rstrip(b"\0"):
            return None
        file, row = divmod(int(places[at]), 1 << 32)
        group, row = divmod(row, ROW_GROUP)
        lines = self._row_group(files[file], group)
        return lines[row]

    def _index(self, partition: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """The sorted keys of a partition, and of each the number of its file and its row there."""
        import numpy as np

        files, keys, places = self._files(partition), [], []
        for number, name in enumerate(files):
            found = self.place.read_table(name, ["key"])["key"].to_pylist()
            keys.append(np.array(found, "S32"))
            places.append(np.arange(len(found), dtype=np.int64) + (number << 32))
        if not keys:
            return np.array([], "S32"), np.array([], np.int64), files
        every = np.concatenate(keys)
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate(places)[order], files

    def _row_group(self, name: str, group: int) -> list[bytes]:
        import pyarrow.parquet as pq

        if (name, group) not in self._tables:
            fs, path = self.place._opened[0], self.place.path(name)
            with fs.open(path, "rb") as file:
                table = pq.ParquetFile(file, pre_buffer=False).read_row_group(group, columns=["line"])
            self._tables[name, group] = table["line"].to_pylist()
            if len(self._tables) > _TABLES:
                self._tables.popitem(last=False)
        return self._tables[name, group]

    def _files(self, partition: int) -> list[str]:
        return [name for name in self.place.files(_folder(partition)) if name.endswith(".parquet")]


def _folder(partition: int) -> str:
    return f"{ANSWERS}/{partition:02x}"


def answer_table(answers: dict[bytes, bytes]) -> pa.Table:
    import pyarrow as pa

    key, line = pa.array(answers, pa.binary(32)), pa.array(answers.values(), pa.large_binary())
    return pa.table({"key": key, "line": line})


JOURNAL: Final = "journal"
STALE_S: Final = 3600.0
"""Journals of other sessions are removed when nothing was added for so long: their workers are gone."""


class Journal:
    """Lines as they come in, which outlive the process that wrote them.

    In a folder they are appended to one file, each before `append` returns; elsewhere, where nothing can be
    appended, a thread writes what came in meanwhile as one more object, and `flush` waits for it: until then
    the calls count as under way. For one thread; raises what writing raised.
    """

    def __init__(self, place: Place, folder: str):
        self._place, self._folder = place, folder
        self._writer = secrets.token_hex(6)
        self._file, self._end = -1, 0
        self._waiting: queue.Queue[bytes | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None

    def append(self, line: bytes) -> None:
        if not self._place.is_local:
            self._waiting.put(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, daemon=True, name="journal")
                self._thread.start()
            return
        if self._file < 0:
            path = Path(self._place.path(f"{self._folder}/{self._writer}.jsonl"))
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        write_at(self._file, line, self._end)
        self._end += len(line)

    def flush(self) -> None:
        """Return when everything is written: in a folder, on the disk."""
        if self._file >= 0:
            os.fsync(self._file)
        self._waiting.join()
        if self._problem is not None:
            raise self._problem

    def close(self) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self) -> None:
        """The thread: one object of all lines that came in while the one before was written."""
        for number in itertools.count():
            lines = [self._waiting.get()]
            while not self._waiting.empty():
                lines.append(self._waiting.get())
            try:
                if content := b"".join(filter(None, lines)):
                    self._place.write(f"{self._folder}/{self._writer}-{number}.jsonl", content)
            except Exception as problem:  # `flush` raises it
                self._problem = problem
            for _ in lines:
                self._waiting.task_done()
            if lines[-1] is None:
                return


def journal_lines(place: Place, name: str, start: int = 0) -> Iterator[bytes]:
    """The whole lines of a journal, or of a segment of the reply cache; one that was cut off is left out."""
    for line in place.read(name)[start:].splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield line


def remove_stale_journals(place: Place, session: str, now: float | None = None) -> None:
    """Remove the journals of this session, and of those that ended without doing so.

    Call it when their answers are in the partitions. A worker may outlive its session for some seconds, so
    the journals of another one stay for an hour, and are read again meanwhile.
    """
    now = time.time() if now is None else now
    sessions: dict[str, list[str]] = {}
    for name in place.files(JOURNAL):
        sessions.setdefault(name.split("/")[1], []).append(name)
    for each, names in sessions.items():
        if each == session or not _is_recent(place, names, now):
            place.remove(f"{JOURNAL}/{each}")


def _is_recent(place: Place, names: Iterable[str], now: float) -> bool:
    return any(now - place.modified_at(name) < STALE_S for name in names)
