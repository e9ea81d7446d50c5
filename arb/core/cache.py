"""A cache with a limit in bytes. If several threads ask for the same value, it is computed only once.

Unlike with the decorators of cachetools, each call passes its own function to compute the value.
"""

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")
_LOCKS: Final = 16


class ByteCache(Generic[T]):
    """A thread-safe cache. The sizes of its values, measured by ``size_of``, total at most ``max_bytes``.

    The least recently used values are removed first. A value over ``max_bytes`` is returned but not stored.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self._values: LRUCache[Hashable, T] = LRUCache(max_bytes, size_of)
        self._lock = threading.Lock()
        self._making = tuple(threading.Lock() for _ in range(_LOCKS))

    @property
    def bytes(self) -> int:
        return int(self._values.currsize)

    def find(self, key: Hashable) -> T | None:
        """Return the cached value, or None. Does not wait for a value that another thread is computing."""
        with self._lock:
            return self._values.get(key)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value, or call ``make`` and cache its result."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        with self._making[hash(key) % _LOCKS]:
            with self._lock:  # another thread may have computed it in the meantime
                if key in self._values:
                    return self._values[key]
            value = make()
            with self._lock, suppress(ValueError):  # too large for the cache
                self._values[key] = value
            return value
