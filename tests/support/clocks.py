"""Clocks for tests: one that is a day further on every time, and those of event loops that need no haste."""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar

import pytest

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


_SLICE_S = 0.02


class _Slices(selectors.DefaultSelector):
    """Waits in short slices, and counts none as longer than it was meant to be."""

    passed_s = 0.0

    def select(self, timeout: float | None = None):
        while True:
            slice_s = _SLICE_S if timeout is None else min(_SLICE_S, max(0.0, timeout))
            before = time.monotonic()
            ready = super().select(None if timeout is None else slice_s)
            self.passed_s += min(time.monotonic() - before, slice_s)
            if ready or timeout is None or timeout <= slice_s:
                return ready
            timeout -= slice_s


class PatientLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while this process gets no processor.

    So an answer of a server in the same process never comes too late for a time limit that it kept.
    """

    def __init__(self) -> None:
        self._slices = _Slices()
        super().__init__(self._slices)

    def time(self) -> float:
        return self._slices.passed_s


@contextmanager
def patient_time_limits() -> Iterator[None]:
    """``asyncio.run`` makes a `PatientLoop`, in the block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncio.events, "new_event_loop", PatientLoop)
        yield
