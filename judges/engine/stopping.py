"""Ending a run well: Ctrl-C, a polite kill, a spent budget, or nothing but failures."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

GRACE_S: Final = 8.0
"""After a polite kill, calls under way have so long to end; after Ctrl-C as long as they take."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, and what to tell the user about it.

    ``waiting`` is for an engine whose answers come another day.
    """

    how: Literal["finished", "interrupted", "budget", "failing", "waiting"]
    message: str | None = None


class StopControl:
    """Whether, and why, a run makes no further call. ``say`` shows a line to the user."""

    def __init__(self, say: Callable[[str], None]):
        self.ended: RunEnd | None = None
        self._say = say

    def stop(self, how: Literal["interrupted", "budget", "failing"], message: str) -> None:
        """Let the run end; the first reason counts."""
        self.ended = self.ended or RunEnd(how, message)

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Ctrl-C and a polite kill stop the run; the second one also drops the calls under way.

        Then asyncio.CancelledError is raised in the task that is inside of this block.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        handled = []

        def caught(number: signal.Signals) -> None:
            if self.ended is not None:
                task.cancel()
                return
            self.stop("interrupted", "stopped; finished trajectories are saved")
            self._say(
                "finishing the calls in progress, which are already paid for; press Ctrl-C again to drop them"
            )
            if number == signal.SIGTERM:
                loop.call_later(GRACE_S, task.cancel)

        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread
                loop.add_signal_handler(number, caught, number)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
