"""Clocks for tests: one that is a day further on every time, and an event loop whose waits take no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar

Result = TypeVar("Result")


def one_a_day(first: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> Callable[[], datetime]:
    """A clock that is a day further on whenever it is asked: an account may send two scored files a day."""
    days = count()
    return lambda: first + timedelta(days=next(days))


class _NoWait(selectors.DefaultSelector):
    """Says how long the loop wanted to wait, and does not."""

    waited_s = 0.0

    def select(self, timeout: float | None = None):
        if timeout is not None and timeout > 0:
            self.waited_s += timeout
            timeout = 0
        return super().select(timeout)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock goes on by what its tasks sleep, at once."""

    def __init__(self) -> None:
        self._no_wait = _NoWait()
        super().__init__(self._no_wait)

    def time(self) -> float:
        return self._no_wait.waited_s


def run_in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    """As asyncio.run; ``asyncio.get_running_loop().time()`` is the clock."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
