"""Dummy replies for planning: of a typical length, or like the replies of a pilot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final, Literal, NamedTuple

from arb.judges.types import Call, Reply

REASONING_TOKENS: Final = {"low": 200, "expected": 600, "high": 4_000}
"""Assumed tokens of hidden reasoning in a reply of a reasoning model; they are paid as output."""

Scenario = Literal["low", "expected", "high"]
SCENARIOS: Final[tuple[Scenario, ...]] = ("low", "expected", "high")

TYPICAL_TOKENS: Final = {"caption": 500, "change": 110, "key points": 70, "rating": 110, "verdict": 220}
"""Tokens of a typical reply by the purpose of its call."""

TYPICAL_TOKENS_OF_OTHERS: Final = 250
SHARES: Final = {"low": 0.5, "expected": 1.0, "high": 3.0}
"""How long replies are in a scenario, of their typical length; never longer than they are allowed to be."""

PILOT_SHARES: Final = {"low": 0.85, "expected": 1.0, "high": 1.2}
"""As `SHARES`, of the mean length in a pilot."""

YES_SHARE: Final = 0.35
"""In the expected scenario this share of replies says yes; about as many runs are called successful in
the paper's Table 6. In the low scenario none do, in the high one all."""

_WORDS: Final = """
the agent opened the page and then looked for the item that was asked for in the list of results so it set the
filter and went on to the next step while the price and the name of the product were shown at the end
"""


class Range(NamedTuple):
    """Low, expected, high."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True)
class PilotReplies:
    """The replies to the calls of one role and purpose in a pilot.

    Attributes:
        texts: What they said.
        number: How many there were.
        output_tokens: Their mean length, with hidden reasoning.
        input_share: Input tokens as the endpoint counted them, divided by those of our own count.
        cached_share: How much of the input the provider had in its own cache.
    """

    texts: tuple[str, ...]
    number: int
    output_tokens: float
    input_share: float
    cached_share: float


def tokens_per_word(count: Callable[[str], int]) -> float:
    """Return the tokens per word of dummy replies, by a model's own count; about one for most models."""
    return count(_WORDS) / len(_WORDS.split())


def dummy_reply(
    call: Call,
    key: str,
    scenario: Scenario,
    max_output_tokens: int,
    per_word: float = 1.0,
    pilot: PilotReplies | None = None,
) -> Reply:
    """Return a reply that every judge can read, with its tokens.

    Without a pilot, hidden reasoning is not among the tokens.

    Args:
        call: The call that it answers.
        key: The key of the call, which makes the reply unique.
        scenario: How long it is, and whether it says yes.
        max_output_tokens: The longest reply.
        per_word: See `tokens_per_word`.
        pilot: Replies to calls of the same purpose. The expected reply has the words of one of them.
    """
    typical = TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS)
    tokens = round(typical * SHARES[scenario])
    if pilot is not None:
        tokens = round(pilot.output_tokens * PILOT_SHARES[scenario])
    tokens = min(tokens, max_output_tokens)
    drawn = int(key[8:16], 16)
    if pilot is not None and pilot.texts and scenario == "expected":
        text = f"({key[:8]})\n{pilot.texts[drawn % len(pilot.texts)]}"
        if call.purpose == "change":  # only the line at its end reaches the judge, whose calls would be equal
            text = f"{text} ({key[:8]})"
    else:
        says_yes = scenario == "high" or (scenario == "expected" and drawn / 0x1_0000_0000 < YES_SHARE)
        text = _text(call.purpose, round(min(tokens, 3 * typical) / per_word), key[:8], says_yes)
    return Reply(text=text, finish_reason="stop", output_tokens=tokens, key=key)


def _text(purpose: str, words: int, mark: str, says_yes: bool) -> str:
    if purpose in ("caption", "key points"):
        return _filler(words, mark)
    if purpose == "change":  # only the line at its end reaches the judge
        return f"{_filler(words // 2, mark)}\nState change: {_filler(words - words // 2, mark)}"
    if purpose == "rating":
        return f"Reasoning: {_filler(words - 6, mark)}\nScore: {5 if says_yes else 1}"
    return (
        f"<reasoning>{_filler(words - 60, mark)}</reasoning>\n"
        f"<success>{'Successful' if says_yes else 'Unsuccessful'}</success>\n<side>No</side>\n"
        f"<optimal>{'4. Completely Optimal' if says_yes else '1. Complete Failure'}</optimal>\n"
        "<loop>No</loop>\n"
        f"Status: {'success' if says_yes else 'failure'}\nReward: {5 if says_yes else 1}"
    )


def _filler(words: int, mark: str) -> str:
    """A mark, which takes about four tokens, and common words."""
    return " ".join([f"({mark})", *islice(cycle(_WORDS.split()), max(1, words - 4))])
