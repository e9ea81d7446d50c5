"""Read and write the files of the reply cache and of run folders. StorageError ends the run."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ANSWERS: Final = "answers"
"""The name of the folder with the replies that machines share. By default it is in the reply cache."""


class StorageError(OSError):
    """Raised if a file of the run cannot be read or written. The message says what to do."""


@contextmanager
def storing(place: Path | str) -> Iterator[None]:
    """Turn every OSError in the block into a StorageError that names ``place``."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"stopped: {place}: {error.strerror or error}. Everything written before is intact; fix the "
            "cause and run the same command again to continue"
        ) from error


class LineFile:
    """An append-only file of lines, written by one process at a time. Methods raise OSError.

    Opening the file removes an incomplete last line, so the file is valid even after a process was killed
    while writing.
    """

    def __init__(self, path: Path, descriptor: int | None = None):
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666) if descriptor is None else descriptor
        self._end = _truncate_partial_line(self._descriptor)

    def append(self, lines: bytes) -> int:
        """Write lines at the end of the file, either all of them or none, and return their offset."""
        start = end = self._end
        rest = memoryview(lines)
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, end)
                end, rest = end + written, rest[written:]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, start)
            raise
        self._end = end
        return start

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, start)

    def sync(self) -> None:
        """Wait until everything that was appended is on disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file, which also releases the process's lock on it."""
        os.close(self._descriptor)


def _truncate_partial_line(descriptor: int) -> int:
    """Cut off an incomplete last line and return the new end of the file."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as content:
        end = content.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def complete_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) for each complete line of a file from ``start`` on. Raises OSError."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield start, line
            start += len(line)
