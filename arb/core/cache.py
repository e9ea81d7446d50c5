"""A cache bounded by size with a single flight: what several threads ask for at once is made once.

cachetools keeps the values and forgets the least recently used; its decorators want one function that makes
them all, and ours differs by call.
"""

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")
_LOCKS: Final = 16


class ByteCache(Generic[T]):
    """Values by key, at most ``max_bytes`` of them as ``size_of`` counts; the least recently used go first.

    A value larger than that is made and returned, and not stored. Safe for threads.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self._values: LRUCache[Hashable, T] = LRUCache(max_bytes, size_of)
        self._lock = threading.Lock()
        self._making = tuple(threading.Lock() for _ in range(_LOCKS))

    @property
    def bytes(self) -> int:
        return int(self._values.currsize)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under a key, from ``make`` where it is not stored; what it raises passes through."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        with self._making[hash(key) % _LOCKS]:
            with self._lock:  # another thread may have made it meanwhile
                if key in self._values:
                    return self._values[key]
            value = make()
            with self._lock, suppress(ValueError):  # too large for the cache
                self._values[key] = value
            return value
