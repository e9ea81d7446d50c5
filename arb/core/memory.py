"""Find this process's memory limit and memory usage, and return freed memory to the system."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""The files with a container's memory limit in control groups version 2 and version 1."""
_UNLIMITED: Final = 1 << 60
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
_ARENAS: Final = 2
_LARGE_BYTES: Final = 131_072


def container_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory limit of the container in bytes, or None if it is unlimited or unknown."""
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            most = int((root / name).read_text())
            return most if most < _UNLIMITED else None
    return None


def keep_memory_small() -> None:
    """Make glibc return freed memory to the system sooner. Does nothing with another C library.

    By default, each thread that allocates memory gets its own arena, which keeps freed memory. After this
    call there are at most two arenas, and large blocks are returned as soon as they are freed.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_ARENA_MAX, _ARENAS)
        library.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def resident_bytes() -> int:
    """Return how many bytes of this process are in RAM, or 0 if that is not known."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def return_memory() -> None:
    """Collect garbage and give freed memory back to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
