"""A rate limiter for commits: the Hub allows about 128 an hour for a repository."""

import time
from collections.abc import Callable, Iterable
from typing import Final

MAX_PER_HOUR: Final = 100
BURST: Final = 40
"""So many go at once after a quiet time; with the pace that follows an hour never has more than 100."""
HOUR: Final = 3600.0


class CommitRateLimiter:
    """At most ``most_an_hour`` commits in any 3600 seconds, the first ``burst`` of them without a pause.

    A bucket of ``burst`` that fills by one every 3600 / (most_an_hour - burst) seconds: an hour, wherever it
    begins, has at most burst + 3600 / that = most_an_hour. ``clock`` gives seconds. Not safe for threads.
    """

    def __init__(
        self,
        most_an_hour: int = MAX_PER_HOUR,
        burst: int = BURST,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < burst < most_an_hour:
            raise ValueError("a burst is a part of what an hour may have")
        self._seconds_each = HOUR / (most_an_hour - burst)
        self._slack = (burst - 1) * self._seconds_each
        self._clock = clock
        self._full_again_at = float("-inf")

    def seconds_to_wait(self) -> float:
        """How long until the next commit may be made; 0 for at once."""
        return max(0.0, self._full_again_at - self._slack - self._clock())

    def note(self) -> None:
        """Count a commit made now."""
        self._count(self._clock())

    def remember(self, moments: Iterable[float]) -> None:
        """Forget what was counted; count the commits of the last hour, made at these moments by whomever."""
        self._full_again_at = float("-inf")
        for moment in sorted(moments):
            self._count(moment)

    def _count(self, moment: float) -> None:
        self._full_again_at = max(moment, self._full_again_at) + self._seconds_each
