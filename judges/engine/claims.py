"""Calls under way, known to every process that shares a cache: none is made by two of them at once."""

import fcntl
import os
from pathlib import Path


class Claims:
    """A lock for each call, on one byte of a file: the system gives it back when a process ends or is killed.

    Locks keep processes apart, not the tasks of one; those share a call in flight in the executor.
    """

    def __init__(self, path: Path):
        self._path = path
        self._descriptor, self._owner = -1, -1

    def take(self, key: str) -> bool:
        """Take a call, named by its hash; False while another process has it."""
        if self._owner != os.getpid():  # opened late, and again after a fork
            self._descriptor, self._owner = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), os.getpid()
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a disk without locks: better paid twice than not at all
            return True
        return True

    def release(self, key: str) -> None:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _place(key))
        except OSError:
            return

    def close(self) -> None:
        if self._owner == os.getpid():
            os.close(self._descriptor)
            self._descriptor, self._owner = -1, -1


def _place(key: str) -> int:
    """One of 2^62 bytes: two calls meet in one so seldom that waiting for each other then does no harm."""
    return int(key[:16], 16) >> 2
