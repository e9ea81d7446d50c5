"""Show the progress of a run on stderr, add up its costs, and stop it on a signal or another reason."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from rich.live import Live

from arb.core.console import new_console, printable
from arb.judges.registry import is_same_model
from arb.judges.types import ModelSettings, Reply

if TYPE_CHECKING:
    from rich.console import Console

GRACE_S: Final = 8.0
"""How many more seconds calls in flight may take after SIGTERM. After Ctrl-C, there is no limit."""


How = Literal["finished", "interrupted", "budget", "limited", "account", "failing", "waiting"]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, with a message for the user.

    ``limited`` means that the endpoint refused all calls with rate limits for a long time, ``account`` that
    it refused the account (for example, because no credit is left), and ``waiting`` that it is still
    processing batches.
    """

    how: How
    message: str | None = None


class StopControl:
    """Stops a run and keeps the reason in ``ended``, which is None as long as the run may make calls.

    ``say`` prints a line for the user. ``stop_waiting`` cancels calls that have not been sent yet. If the
    budget is used up, these calls are not cancelled, since some of them may be cheap enough.
    """

    def __init__(self, say: Callable[[str], None], stop_waiting: Callable[[], None]):
        self.ended: RunEnd | None = None
        self._say, self._stop_waiting = say, stop_waiting

    def stop(self, how: How, message: str) -> None:
        """Stop the run. Only the first reason is kept."""
        self.ended = self.ended or RunEnd(how, message)
        if how != "budget":
            self._stop_waiting()

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Stop the run on Ctrl-C or SIGTERM, and let calls in flight finish.

        A second signal cancels them with an asyncio.CancelledError in the block. SIGTERM does so after
        `GRACE_S` seconds.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a run can only be stopped from inside a task")

        def caught(number: signal.Signals) -> None:
            if self.ended is not None:
                task.cancel()
                return
            self.stop("interrupted", "stopped; finished trajectories are saved")
            self._say(
                "finishing the calls in progress, which are already paid; press Ctrl-C again to cancel them"
            )
            if number == signal.SIGTERM:
                loop.call_later(GRACE_S, task.cancel)

        with on_stop_signals(caught):
            yield


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextlib.contextmanager
def on_stop_signals(caught: Callable[[signal.Signals], None]) -> Iterator[None]:
    """In this block, call ``caught`` with the signal on Ctrl-C or SIGTERM, if this is the main thread."""
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread
            loop.add_signal_handler(number, caught, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def was_generated(reply: Reply) -> bool:
    """Return whether a model generated this reply. Refusals with tokens count too."""
    return reply.state == "ok" or reply.input_tokens is not None


class Spend:
    """The dollars and calls that a run has paid for, in this session and in earlier ones (``before_…``).

    ``usd`` becomes None if the price of a reply is unknown. ``presumed`` returns the dollars that may have
    been charged for attempts without a reply (`Budget.presumed_usd`), and ``reserved`` those that calls in
    flight may cost (`Budget.reserved_usd`).
    """

    def __init__(self, before_usd: float | None = 0.0, before_calls: int = 0) -> None:
        self.before_usd, self.before_calls = before_usd, before_calls
        self.usd: float | None = 0.0
        self.calls = 0
        self.presumed: Callable[[], float] = float
        self.reserved: Callable[[], float] = float

    def count(self, reply: Reply) -> None:
        """Add a reply, unless it came from the cache or no model generated it."""
        if reply.is_from_cache or not (was_generated(reply) or reply.cost_usd):
            return
        self.calls += reply.input_tokens != 0  # 0: a further sample of a request that is already counted
        self.usd = None if self.usd is None or reply.cost_usd is None else self.usd + reply.cost_usd

    @property
    def total_usd(self) -> float | None:
        """The dollars of all sessions, or None if a price is unknown."""
        if self.usd is None or self.before_usd is None:
            return None
        return self.before_usd + self.usd + self.presumed()

    @classmethod
    def of_run(cls, run: Mapping[str, Any]) -> Spend:
        """Return the spend of a new session of a run. ``run`` is the content of run.json."""
        return cls(run.get("spent_usd", 0.0), run.get("calls_paid", 0))

    @property
    def facts(self) -> dict[str, Any]:
        """The totals of all sessions as written into run.json; dollars are None if a price is unknown.

        Reserved dollars are included, since a killed run cannot know whether its calls were charged.
        """
        spent_usd = None if self.total_usd is None else self.total_usd + self.reserved()
        return {"spent_usd": spent_usd, "calls_paid": self.before_calls + self.calls}

    @property
    def bill(self) -> dict[str, Any]:
        """The totals of all sessions and of this session; dollars are None if a price is unknown."""
        return {
            "usd": self.total_usd,
            "calls": self.before_calls + self.calls,
            "session_usd": None if self.usd is None else self.usd + self.presumed(),
            "session_calls": self.calls,
        }


class CallWarnings:
    """Warns once about each parameter that was not sent, and each model that answered in place of another."""

    def __init__(self, models: Mapping[str, ModelSettings], say: Callable[[str], None]):
        self._models, self._say = models, say
        self._dropped: set[tuple[str, str]] = set()
        self._served: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, role: str, reply: Reply) -> None:
        """Warn about one reply, if necessary."""
        self.note_sums({role: reply.dropped}, {role: () if reply.model is None else (reply.model,)})

    def note_sums(self, dropped: Mapping[str, Iterable[str]], served: Mapping[str, Iterable[str]]) -> None:
        """Warn, by role, about parameters that were not sent and models that were not requested."""
        for role, model in self._models.items():
            for name in dropped.get(role, ()):
                if (role, name) not in self._dropped:
                    self._dropped.add((role, name))
                    self._say(f"{role}: {name} was not sent: {model.model} ({model.provider}) rejects it")
            names = self._served[role]
            for name in served.get(role, ()):
                if name not in names:
                    names.append(name)
                    if len(names) > 1 or not is_same_model(model.model, name):
                        answered = " and ".join(sorted(names))
                        self._say(f"{role}: {model.model} was requested, but {answered} answered")


REDRAW_INTERVAL_S: Final = 0.25
"""The number of seconds between two updates of the progress line on a terminal."""

INTERVAL_WITHOUT_TERMINAL_S: Final = 15.0
"""The number of seconds between two progress lines if stderr is not a terminal."""

WINDOW_S: Final = 30.0
"""The progress line shows the rate in the last ``WINDOW_S`` seconds."""


class Progress:
    """Shows how many trajectories were judged and with which states, the rate, the cost and the time left."""

    def __init__(
        self,
        total: int,
        done: int,
        spend: Spend,
        console: Console | None = None,
        now: Callable[[], float] = time.monotonic,
        models: Mapping[str, ModelSettings] = MappingProxyType({}),
    ):
        self.total, self.done = total, done
        self.warnings = CallWarnings(models, self.say)
        self.states: Counter[str] = Counter()
        self.retried = self.rate_limited = 0
        self.spend, self._now = spend, now
        # Text from models and endpoints is printed unchanged, never interpreted as markup.
        self._console = console or new_console(stderr=True)
        self._ended: deque[float] = deque()
        self._begun = self._drawn = now()
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
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

    def event(self, kind: str, **facts: object) -> None:
        """Count a retry, and print the reason for the first one. Other events of the engine are ignored."""
        if kind == "retried":
            if not self.retried:
                self.say(f"a call failed and is retried: {facts.get('message')}")
            self.retried += 1
            self.rate_limited += facts.get("failure") == "rate_limit"
        self.draw()

    def say(self, message: str) -> None:
        """Print a message that stays on the screen, with control characters replaced."""
        self._console.print("\n".join(map(printable, message.splitlines())))

    def draw(self) -> None:
        """Show the progress, unless it was shown very recently."""
        every = INTERVAL_WITHOUT_TERMINAL_S if self._live is None else REDRAW_INTERVAL_S
        if self._now() - self._drawn < every:
            return
        self._drawn = self._now()
        if self._live is not None:
            self._live.update(self.line(), refresh=True)
        else:
            self._console.print(self.line())

    def line(self) -> str:
        """Return the progress as text, such as ``5 of 20, 5 ok, 1.2/s, 13 s left, $0.0400 spent``."""
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{number:,} {state}" for state, number in sorted(self.states.items())]
        if (rate := self.rate()) is not None:
            left = self.total - self.done
            parts += [f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"]
            parts += [f"{duration(left / rate)} left"] if left else []
        usd = self.spend.total_usd
        parts.append("unknown amount spent" if usd is None else f"${usd:.4f} spent")
        if self.retried:
            limited = f" ({self.rate_limited:,} for rate limits)" if self.rate_limited else ""
            parts.append(f"{self.retried:,} retried{limited}")
        return ", ".join(parts)

    def rate(self) -> float | None:
        """Return how many trajectories are judged per second, or None if none was judged recently."""
        now = self._now()
        while self._ended and self._ended[0] < now - WINDOW_S:
            self._ended.popleft()
        since = max(self._begun, now - WINDOW_S)
        return len(self._ended) / (now - since) if self._ended and now > since else None


def duration(seconds: float) -> str:
    """Return a duration as text, such as ``42 s``, ``3 min 20 s`` or ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
