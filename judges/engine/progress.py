"""How a run goes: on a terminal one line that changes, else a line now and then. All of it on stderr."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from judges.engine.spent import Spend

if TYPE_CHECKING:
    from rich.console import Console

REDRAW_INTERVAL_S: Final = 0.25
"""How often a terminal's line is drawn again."""

INTERVAL_WITHOUT_TERMINAL_S: Final = 15.0
"""How often a line is added where stderr is no terminal."""

WINDOW_S: Final = 30.0
"""Seconds over which the rate is measured."""


class Progress:
    """Counts what ends and shows it: done, states, rate, dollars spent, time left.

    ``spent`` counts the dollars.
    """

    def __init__(
        self,
        total: int,
        done: int,
        spend: Spend,
        console: Console | None = None,
        now: Callable[[], float] = time.monotonic,
    ):
        self.total, self.done = total, done
        self.states: Counter[str] = Counter()
        self.retried = 0
        self.spend, self._now = spend, now
        self._console = console or _stderr()
        self._ended: deque[float] = deque(maxlen=5_000)
        self._begun = self._drawn = now()
        self._live = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def judged(self, state: str) -> None:
        self.done += 1
        self.states[state] += 1
        self._ended.append(self._now())
        self.draw()

    def event(self, kind: str, **_facts: object) -> None:
        """Something the engine tells of a call; retries are counted."""
        if kind == "retried":
            self.retried += 1
        self.draw()

    def say(self, message: str) -> None:
        """A line that stays."""
        self._console.print(message)

    def draw(self, at_once: bool = False) -> None:
        """Show how it goes, unless that was just done."""
        every = INTERVAL_WITHOUT_TERMINAL_S if self._live is None else REDRAW_INTERVAL_S
        if not at_once and self._now() - self._drawn < every:
            return
        self._drawn = self._now()
        if self._live is not None:
            self._live.update(self.line(), refresh=True)
        else:
            self._console.print(self.line())

    def line(self) -> str:
        """How it goes, in words."""
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{number:,} {state}" for state, number in sorted(self.states.items())]
        if (rate := self.rate()) is not None:
            left = self.total - self.done
            parts += [f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"]
            parts += [f"{duration(left / rate)} left"] if left else []
        usd = self.spend.total_usd
        parts.append("spent unknown" if usd is None else f"${usd:.4f} spent")
        if self.retried:
            parts.append(f"{self.retried:,} retried")
        return ", ".join(parts)

    def rate(self) -> float | None:
        """Trajectories a second of late; None before the first."""
        now = self._now()
        while self._ended and self._ended[0] < now - WINDOW_S:
            self._ended.popleft()
        since = max(self._begun, now - WINDOW_S)
        if len(self._ended) == self._ended.maxlen:
            since = self._ended[0]
        return len(self._ended) / (now - since) if self._ended and now > since else None


def duration(seconds: float) -> str:
    """A time in words: ``42 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _stderr() -> Console:
    from rich.console import Console

    # Models' and strangers' words are printed as they are, never read as markup.
    return Console(stderr=True, highlight=False, markup=False, emoji=False)
