"""Writes to the run's own files, which are the reply cache and the run folder.

A failed write says nothing about a trajectory, so it is an error of its own that ends the run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class StorageError(OSError):
    """A file of the run cannot be written; the message names the place and says what to do."""


@contextmanager
def storing(place: Path | str) -> Iterator[None]:
    """Raise a StorageError that names ``place`` for every OSError inside the block."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"stopped: {place}: {error.strerror or error}. Everything written before is intact; fix the "
            "cause and run the same command again to continue"
        ) from error


def write_at(descriptor: int, content: bytes, start: int) -> None:
    """Write ``content`` at ``start``, the end of the file, or leave the file as it was. Raises OSError."""
    rest = memoryview(content)
    try:
        while rest:
            rest = rest[os.pwrite(descriptor, rest, start + len(content) - len(rest)) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, start)
        raise
