"""How long calls take: assumptions of a plan, and the limits that a run was given."""

import re
from dataclasses import dataclass
from typing import Final

FIRST_TOKEN_S: Final = 1.5
TOKENS_PER_S: Final = 60.0
"""Assumed of a call: the wait for its first token, and the rate of the others. Endpoints differ widely."""

REASONING_TOKENS: Final = {"low": 200, "expected": 600, "high": 4_000}
"""Assumed tokens of hidden reasoning in a reply of a reasoning model; they are paid as output."""

_REASONING_MODELS: Final = re.compile(r"(o[134](-|$)|gpt-5|deepseek-r1|qwq)|.*thinking", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Throughput:
    """The limits of a run, and the seconds a call takes where the user knows them."""

    max_in_flight: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    seconds_per_call: float | None = None

    def seconds_of_call(self, output_tokens: float) -> float:
        if self.seconds_per_call is not None:
            return self.seconds_per_call
        return FIRST_TOKEN_S + output_tokens / TOKENS_PER_S

    def seconds_of_run(
        self, calls: int, tokens: float, seconds_of_calls: float, longest_call: float
    ) -> float:
        """How long a run should take: the tightest of its limits decides."""
        return max(
            seconds_of_calls / self.max_in_flight,
            60 * calls / self.requests_per_minute if self.requests_per_minute else 0.0,
            60 * tokens / self.tokens_per_minute if self.tokens_per_minute else 0.0,
            longest_call,
        )


def is_reasoning(model: str) -> bool:
    """Whether a model thinks in tokens that are paid but not shown, by its name."""
    return _REASONING_MODELS.match(model.rpartition("/")[2]) is not None
