"""Faults on demand: the next requests of a kind are answered late, wrongly or not at all."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Fault:
    """What happens to the next ``times`` requests whose method and path match.

    ``status`` answers with that error: at once, or ``after`` the request was carried out. ``cut`` closes the
    connection after so many bytes of the body were sent, with ``reset`` without the courtesy of saying so.
    ``first`` runs before the request is looked at. ``chance`` says for each request whether it happens.
    """

    method: str
    path: str
    times: int = 1
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    cut: int | None = None
    reset: bool = False
    first: Callable[[], object] | None = None
    chance: Callable[[], bool] | None = None
    happened: int = 0


class Faults:
    """The faults that are waiting for their request."""

    def __init__(self):
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        self._waiting.append(fault)
        return fault

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, used up by it."""
        with self._lock:
            for fault in self._waiting:
                if not (fault.happened < fault.times and fault.method == method):
                    continue
                if re.search(fault.path, path) and (fault.chance is None or fault.chance()):
                    fault.happened += 1
                    return fault
        return None

    def clear(self) -> None:
        """No more faults."""
        with self._lock:
            self._waiting.clear()
