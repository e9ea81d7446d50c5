"""The board as the records are now: made anew only when they have changed, and told so cheaply."""

import threading
from collections.abc import Callable, Hashable

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from leaderboard.board import Board
from submissions.database import Changes, snapshot


class CurrentBoard:
    """Keeps a board and what it was made from. Safe for threads and for other processes' submissions.

    ``state`` reads what a board stands on and changes with it; ``make`` gives the board of that state;
    ``round_now`` is the part of the state that changes with the clock alone.
    """

    def __init__(
        self,
        engine: Engine,
        state: Callable[[Session], Hashable],
        make: Callable[[Session, Hashable], Board],
        round_now: Callable[[], int] = lambda: 0,
    ) -> None:
        self._engine, self._state, self._make, self._round_now = engine, state, make, round_now
        self._changes = Changes(engine)
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._kept: tuple[Hashable, Board] | None = None

    def get(self) -> Board:
        """The board of the records as they are at the call; making one can take seconds."""
        with self._lock:
            seen = self._now()  # before the records are read: what comes later is seen next time
            if self._kept is None or seen is None or seen != self._seen:
                self._kept = self._read()
                self._seen = seen
            return self._kept[1]

    def at_hand(self) -> Board | None:
        """The same board where that takes microseconds and no waiting (an event loop may ask); else None."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            seen = self._now()
            return self._kept[1] if self._kept and seen is not None and seen == self._seen else None
        finally:
            self._lock.release()

    def _now(self) -> tuple[int, int] | None:
        """What is another one after every change; None where only reading the records tells."""
        changes = self._changes.seen()
        return None if changes is None else (changes, self._round_now())

    def _read(self) -> tuple[Hashable, Board]:
        with snapshot(self._engine) as session:
            state = self._state(session)
            if self._kept is not None and self._kept[0] == state:
                return self._kept
            return state, self._make(session, state)
