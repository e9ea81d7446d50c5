"""The memory that this process may use, and returning what it no longer needs."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""Of control groups of version 2 and 1, as a container sees its own."""
_UNLIMITED: Final = 1 << 60
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
_ARENAS: Final = 2
_LARGE_BYTES: Final = 131_072


def container_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory limit of the container in bytes; None without one."""
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            most = int((root / name).read_text())
            return most if most < _UNLIMITED else None
    return None


def keep_memory_small() -> None:
    """Have glibc keep less memory than it does by default, where the C library is glibc.

    By default each thread that allocates gets its own arena, and an arena keeps what was freed. Here there
    are two arenas, and a large piece of memory goes back to the system as soon as it is freed.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_ARENA_MAX, _ARENAS)
        library.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def return_memory() -> None:
    """Collect garbage and give freed memory back to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
