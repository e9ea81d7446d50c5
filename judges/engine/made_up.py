"""Dummy replies of typical length, so that a judge can be driven to its end without a model.

What follows a reply is then known before it is paid: which calls, how many, how long.
"""

import itertools
from collections.abc import Callable
from typing import Final, Literal

from judges.base import Call, Reply

Scenario = Literal["low", "expected", "high"]
SCENARIOS: Final[tuple[Scenario, ...]] = ("low", "expected", "high")

TYPICAL_TOKENS: Final = {"caption": 500, "change": 110, "key points": 70, "rating": 110, "verdict": 220}
"""Tokens of a typical reply by the purpose of its call."""

TYPICAL_TOKENS_OF_OTHERS: Final = 250
SHARES: Final = {"low": 0.5, "expected": 1.0, "high": 3.0}
"""How long replies are in a scenario, of their typical length; never longer than they are allowed to be."""

YES_SHARE: Final = 0.35
"""In the expected scenario this share of replies says yes; about as many runs are called successful in
the paper's Table 6. In the low scenario none do, in the high one all."""

_WORDS: Final = """
the agent opened the page and then looked for the item that was asked for in the list of results so it set the
filter and went on to the next step while the price and the name of the product were shown at the end
"""


def tokens_per_word(count: Callable[[str], int]) -> float:
    """Tokens per word of dummy replies, by a model's own count; about one in most."""
    return count(_WORDS) / len(_WORDS.split())


def dummy_reply(
    call: Call, key: str, scenario: Scenario, max_output_tokens: int, per_word: float = 1.0
) -> Reply:
    """A reply that every judge can read, with its tokens. ``key`` is the call's; no other gets an equal one.

    ``per_word``: see `tokens_per_word`.
    """
    typical = TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS)
    tokens = min(round(typical * SHARES[scenario]), max_output_tokens)
    says_yes = {"low": False, "expected": _drawn(key) < YES_SHARE, "high": True}[scenario]
    text = _text(call.purpose, round(tokens / per_word), key[:8], says_yes)
    return Reply(text=text, finish_reason="stop", output_tokens=tokens, key=key)


def _drawn(key: str) -> float:
    """A number in [0, 1) that follows from a key."""
    return int(key[8:16], 16) / 0x1_0000_0000


def _text(purpose: str, words: int, mark: str, says_yes: bool) -> str:
    if purpose in ("caption", "key points"):
        return _filler(words, mark)
    if purpose == "change":  # only the line at its end goes on to the judge
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
    return " ".join([f"({mark})", *itertools.islice(itertools.cycle(_WORDS.split()), max(1, words - 4))])
