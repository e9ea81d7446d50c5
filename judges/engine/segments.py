"""The files of the cache: lines that are only ever added, by one process at a time, under a lock."""

import contextlib
import fcntl
import hashlib
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

_BLOCK: Final = 65_536


def is_segment(name: str) -> bool:
    return name.startswith("segment-") and name.endswith(".jsonl")


def complete_lines(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines from an offset on that have their end, each with where it begins."""
    file.seek(start)
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield start, line
        start += len(line)


class Segment:
    """The segment that this process writes, under a lock that ends with the process."""

    def __init__(self, path: Path, descriptor: int):
        self.path, self._descriptor, self.owner = path, descriptor, os.getpid()
        self._end = truncate_partial_line(descriptor)

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        """Continue a segment of this machine that no process writes, or begin another."""
        machine = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
        for path in sorted(folder.glob(f"segment-{machine}-*.jsonl")):
            if (descriptor := _open_locked(path, os.O_RDWR)) is not None:
                return cls(path, descriptor)
        path = folder / f"segment-{machine}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        descriptor = _open_locked(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if descriptor is None:
            raise OSError(f"{path}: cannot be locked")
        return cls(path, descriptor)

    def append(self, line: bytes) -> int:
        """Write a line at the end, in one piece; returns where it begins."""
        start, rest = self._end, memoryview(line)
        while rest:
            rest = rest[os.pwrite(self._descriptor, rest, self._end + len(line) - len(rest)) :]
        self._end += len(line)
        return start

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Leave the segment to whoever locks it next."""
        os.close(self._descriptor)


def truncate_partial_line(descriptor: int) -> int:
    """Cut off the line that a killed process left without its end; returns the new end of the file."""
    end = size = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        place = os.pread(descriptor, end - start, start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _open_locked(path: Path, flags: int) -> int | None:
    """A descriptor that holds the file's lock until it is closed; None when another holds it."""
    descriptor = os.open(path, flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        # Where the disk knows no locks, a segment of one's own is safe without.
        if not isinstance(problem, BlockingIOError) and flags & os.O_EXCL:
            return descriptor
        with contextlib.suppress(OSError):
            os.close(descriptor)
        return None
    return descriptor
