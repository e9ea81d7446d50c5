"""Things that are costly to make, kept as long as there is room: those asked for last stay."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Thing = TypeVar("Thing")
_MAKERS: Final = 16


class ByteCache(Generic[Thing]):
    """At most ``max_bytes`` of things by key. Safe for threads: what two ask for at once is made once.

    ``size_of`` gives the bytes of a thing. One larger than the shelf is made, handed out and not kept.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Thing], int]) -> None:
        self._max_bytes, self._size_of = max_bytes, size_of
        self._lock = threading.Lock()
        self._making = tuple(threading.Lock() for _ in range(_MAKERS))
        self._kept: OrderedDict[Hashable, tuple[Thing, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing under a key; ``make`` gives it when it is not here. What ``make`` raises is raised."""
        kept = self._find(key)
        if kept is not None:
            return kept[0]
        with self._making[hash(key) % _MAKERS]:
            kept = self._find(key)
            if kept is not None:
                return kept[0]
            thing = make()
            self._keep(key, thing)
            return thing

    def _find(self, key: Hashable) -> tuple[Thing, int] | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def _keep(self, key: Hashable, thing: Thing) -> None:
        size = self._size_of(thing)
        if size > self._max_bytes:
            return
        with self._lock:
            self._kept[key] = (thing, size)
            self.bytes += size
            while self.bytes > self._max_bytes:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed
