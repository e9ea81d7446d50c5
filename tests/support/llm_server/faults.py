"""Faults on plan: which call goes wrong, and how, follows from a seed, the prompt and the try alone.

So a storm is the same storm whatever the order of the calls, and a second try may fare better.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

FAULTS = {
    "rate_limit": "429 without Retry-After",
    "rate_limit_retry_after": "429 with Retry-After",
    "server_error": "500",
    "overload": "503",
    "timeout": "no answer ever",
    "reset": "the connection breaks before a byte of the answer",
    "cut_body": "200, then the connection closes half way through the body",
    "too_long": "400 context_length_exceeded",
    "unsupported_parameter": "400 that names temperature, seed or logprobs, the first that was sent",
    "choices_null": "200 with choices null",
    "content_null": "200 with content null and finish_reason stop",
    "length": "200 with half of the text and finish_reason length",
    "content_filter": "200 with content null and finish_reason content_filter",
    "cut_json": "200 whose JSON ends half way",
    "slow_stream": "a good answer, piece after piece",
    "reset_body": "200, then the connection is reset half way through the body",
    "choices_empty": "200 with an empty list of choices",
    "wrong_type": "200 with a page of HTML, as proxies send it",
}
"""Every fault and what the client sees."""

PAID_IN_VAIN = ("choices_null", "choices_empty", "content_null", "cut_json", "cut_body", "reset_body")
"""Faults after which tokens were counted but there is no text to use."""


@dataclass(frozen=True)
class FaultPlan:
    """``rates``: fault -> share of calls; together at most 1. At most one fault a call.

    A prompt has at most ``at_most`` faulty tries (None: no bound), so that a bounded retry can be sure to
    succeed. ``retry_after_s`` is what a 429 asks for, ``slow_s`` how long a slow answer takes.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    at_most: int | None = None
    retry_after_s: float = 0.05
    slow_s: float = 0.2

    @classmethod
    def each(cls, rate: float, *, without: tuple[str, ...] = (), **rest) -> "FaultPlan":
        """Every fault at the same rate."""
        return cls({fault: rate for fault in FAULTS if fault not in without}, **rest)

    def fault(self, key: str, attempt: int) -> str | None:
        """The fault of this try (from 0) of the prompt with this key; None when all goes well."""
        if not self.rates or (self.at_most is not None and attempt >= self.at_most):
            return None
        digest = hashlib.sha256(f"{self.seed}/{key}/{attempt}".encode()).digest()
        draw = int.from_bytes(digest[:8], "big") / 2**64
        for fault, rate in self.rates.items():
            if draw < rate:
                return fault
            draw -= rate
        return None
