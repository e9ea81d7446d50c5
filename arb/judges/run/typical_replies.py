"""The replies that a plan assumes for calls that were not made yet.

A reply has the typical length for the purpose of its call or, after a pilot, the mean length and the words of
the pilot's replies for that role and purpose.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Final

from arb.judges.types import Call, Reply

REASONING_TOKENS: Final = 600
"""Assumed tokens of hidden reasoning in a reply of a reasoning model. They are paid as output."""

TYPICAL_TOKENS: Final = {"caption": 500, "change": 110, "key points": 70, "rating": 110, "verdict": 220}
"""Tokens of a typical reply by the purpose of its call."""

TYPICAL_TOKENS_OF_OTHERS: Final = 250

YES_SHARE: Final = 0.35
"""The assumed share of replies that say yes: about as many runs are called successful in Table 6 of the
paper.
"""

_WORDS: Final = """
the agent opened the page and then looked for the item that was asked for in the list of results so it set the
filter and went on to the next step while the price and the name of the product were shown at the end
"""


@dataclass(slots=True)
class PilotReplies:
    """What a pilot got for the calls of one role and purpose."""

    by_key: dict[str, str] = field(default_factory=dict)
    """The texts by the keys of their calls."""
    output_tokens: list[int] = field(default_factory=list)
    input_by_rule: int = 0
    """Input tokens by our own rule."""
    input_by_endpoint: int = 0
    """Input tokens of the same calls as the endpoint counted them."""
    cached_input: list[tuple[int, int]] = field(default_factory=list)
    """Of each call the input tokens that the provider had in its own cache, and all of them."""

    def add(self, reply: Reply, tokens_by_rule: int) -> None:
        """Add a reply to a call that has ``tokens_by_rule`` input tokens by our own rule."""
        if reply.text:
            self.by_key[reply.key] = reply.text
        if reply.output_tokens is not None:
            self.output_tokens.append(reply.output_tokens)
        # A further sample of a request has no input, and a shortened prompt is not the one that was counted.
        if reply.input_tokens and not reply.used_shorter:
            self.input_by_rule += tokens_by_rule
            self.input_by_endpoint += reply.input_tokens
            self.cached_input.append((reply.cached_input_tokens or 0, reply.input_tokens))

    @property
    def texts(self) -> list[str]:
        """Return the texts in an order that does not depend on which call was answered first."""
        return [self.by_key[key] for key in sorted(self.by_key)]

    @property
    def mean_output(self) -> float:
        """Return the mean output tokens of a reply, hidden reasoning included."""
        return statistics.fmean(self.output_tokens) if self.output_tokens else 0.0

    @property
    def input_ratio(self) -> float:
        """Return the endpoint's count of input tokens, divided by that of our rule."""
        return self.input_by_endpoint / self.input_by_rule if self.input_by_rule else 1.0

    @property
    def cached_share(self) -> float:
        """Return the share of the input that the provider had in its cache.

        The call with the least share is left out, since the first call has to fill the cache.
        """
        rest = sorted(self.cached_input, key=lambda tokens: tokens[0] / tokens[1])[1:]
        return sum(cached for cached, _ in rest) / sum(total for _, total in rest) if rest else 0.0


def tokens_per_word(count: Callable[[str], int]) -> float:
    """Return the tokens per word of dummy replies by a model's own count: about one in most models."""
    return count(_WORDS) / len(_WORDS.split())


def dummy_reply(
    call: Call,
    key: str,
    max_output_tokens: int,
    per_word: float = 1.0,
    pilot: PilotReplies | None = None,
    number: int = 0,
) -> Reply:
    """Return a reply that every judge can read, with its output tokens.

    Args:
        call: The call to reply to.
        key: The call's key. It makes the text unique, so that calls that quote it differ.
        max_output_tokens: The limit of the reply.
        per_word: Tokens per word (see `tokens_per_word`).
        pilot: What a pilot got for such calls. The reply then has the words of one of them, each in its turn.
        number: How many calls of this role and purpose came before.
    """
    if pilot is not None and pilot.by_key:
        texts = pilot.texts
        text = f"({key[:8]})\n{texts[number % len(texts)]}"
        if call.purpose == "change":  # only the line at its end reaches the judge, whose calls would be equal
            text = f"{text} ({key[:8]})"
        output_tokens = min(round(pilot.mean_output), max_output_tokens)
    else:
        output_tokens = min(TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS), max_output_tokens)
        text = _text(call.purpose, round(output_tokens / per_word), key[:8], _drawn(key) < YES_SHARE)
    return Reply(text=text, finish_reason="stop", output_tokens=output_tokens, key=key)


def _drawn(key: str) -> float:
    """A number in [0, 1) that follows from a key."""
    return int(key[8:16], 16) / 0x1_0000_0000


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
