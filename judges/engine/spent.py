"""What a run has paid so far."""

from collections.abc import Callable

from judges.base import Reply


def was_generated(reply: Reply) -> bool:
    """Whether a model made a reply at all, be it a refusal: then it has tokens, and costs something."""
    return reply.state == "ok" or reply.input_tokens is not None


class Spend:
    """Dollars for replies, of this session and, ``before_usd``, of those before it in the same run folder.

    ``usd`` is None once the price of a reply was not known. ``presumed`` gives the dollars of attempts that
    may have been paid although no reply came (`Budget.presumed_usd`).
    """

    def __init__(self, before_usd: float | None = 0.0) -> None:
        self.before_usd = before_usd
        self.usd: float | None = 0.0
        self.calls = 0
        self.presumed: Callable[[], float] = float

    def count(self, reply: Reply) -> None:
        """Add a reply, unless it came out of the cache, or none was made."""
        if reply.is_from_cache or not (was_generated(reply) or reply.cost_usd):
            return
        self.calls += 1
        self.usd = None if self.usd is None or reply.cost_usd is None else self.usd + reply.cost_usd

    def add(self, usd: float | None, calls: int) -> None:
        """Add what another process paid; None where it does not know a price."""
        self.calls += calls
        self.usd = None if self.usd is None or usd is None else self.usd + usd

    @property
    def total_usd(self) -> float | None:
        """All of it; None where a price is not known."""
        if self.usd is None or self.before_usd is None:
            return None
        return self.before_usd + self.usd + self.presumed()
