"""The replies that a plan assumes for calls that were not made yet.

A reply has the typical length for the purpose of its call. After a pilot it has the mean length and the words
of the pilot's replies for that role and purpose.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from typing import Final

from arb.judges.types import Call, Reply

REASONING_TOKENS: Final = 600
"""Assumed tokens of hidden reasoning in a reply of a reasoning model. They are paid as output."""

TYPICAL_TOKENS: Final = {"caption": 500, "change": 110, "key points": 70, "rating": 110, "verdict": 220}
"""Tokens of a typical reply by the purpose of its call."""

TYPICAL_TOKENS_OF_OTHERS: Final = 250

YES_SHARE: Final = 0.35
"""The assumed share of replies that say yes, about the share of successes in Table 6 of the paper."""

_WORDS: Final = """
the agent opened the page and then looked for the item that was asked for in the list of results so it set the
filter and went on to the next step while the price and the name of the product were shown at the end
"""


@dataclass
class PilotReplies:
    """A pilot's replies to the calls of one role and purpose. Read the properties after the pilot."""

    replies: list[Reply] = field(default_factory=list)
    tokens_by_rule: list[int] = field(default_factory=list)
    """The input tokens of each reply's call by our own rule."""

    def add(self, reply: Reply, tokens_by_rule: int) -> None:
        """Add a reply to a call that has ``tokens_by_rule`` input tokens by our own rule."""
        self.replies.append(reply)
        self.tokens_by_rule.append(tokens_by_rule)

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the replies, sorted by key so that the order does not depend on timing."""
        by_key = {reply.key: reply.text for reply in self.replies if reply.key and reply.text}
        return [by_key[key] for key in sorted(by_key)]

    @cached_property
    def mean_output(self) -> float:
        """The mean output tokens of a reply, hidden reasoning included."""
        known = [reply.output_tokens for reply in self.replies if reply.output_tokens is not None]
        return statistics.fmean(known) if known else 0.0

    @cached_property
    def input_ratio(self) -> float:
        """The input tokens that the endpoint counted, divided by the number by our own rule."""
        by_rule = sum(tokens for _, _, tokens in self._inputs)
        return sum(total for total, _, _ in self._inputs) / by_rule if by_rule else 1.0

    @cached_property
    def cached_share(self) -> float:
        """The share of the input that the provider had in its cache.

        The call with the least share is left out, since the first call has to fill the cache.
        """
        rest = sorted(self._inputs, key=lambda each: each[1] / each[0])[1:]
        return sum(cached for _, cached, _ in rest) / sum(total for total, _, _ in rest) if rest else 0.0

    @cached_property
    def _inputs(self) -> list[tuple[int, int, int]]:
        """(Input tokens, cached input tokens, input tokens by our rule) of each reply that reports them.

        Further samples of a request have no input of their own, and our rule counts only full prompts.
        """
        return [
            (reply.input_tokens, reply.cached_input_tokens or 0, by_rule)
            for reply, by_rule in zip(self.replies, self.tokens_by_rule, strict=True)
            if reply.input_tokens and not reply.used_shorter
        ]


def dummy_reply(
    call: Call, key: str, max_output_tokens: int, pilot: PilotReplies | None = None, number: int = 0
) -> Reply:
    """Return a made-up reply that every judge can parse, with its number of output tokens.

    Args:
        call: The call to reply to.
        key: The call's key. It makes the text unique, so that calls that quote it differ.
        max_output_tokens: The limit of the reply.
        pilot: A pilot's replies to calls of this role and purpose, whose texts are used in turn.
        number: How many calls of this role and purpose came before.
    """
    if pilot is not None and pilot.texts:
        text = f"({key[:8]})\n{pilot.texts[number % len(pilot.texts)]}"
        if call.purpose == "change":  # only the last line reaches the judge, so it has to be unique
            text = f"{text} ({key[:8]})"
        output_tokens = min(round(pilot.mean_output), max_output_tokens)
    else:
        output_tokens = min(TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS), max_output_tokens)
        says_yes = int(key[8:16], 16) / 0x1_0000_0000 < YES_SHARE  # drawn by the key: always the same
        text = _text(call.purpose, output_tokens, key[:8], says_yes)
    return Reply(text=text, finish_reason="stop", output_tokens=output_tokens, key=key)


def _text(purpose: str, words: int, mark: str, says_yes: bool) -> str:
    """Return about ``words`` words, with the tags and scores that judges parse for this purpose."""
    if purpose in ("caption", "key points"):
        return _filler(words, mark)
    if purpose == "change":  # only the last line reaches the judge
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
    """Return the mark, which counts as four words, and common words of about one token each."""
    return " ".join([f"({mark})", *islice(cycle(_WORDS.split()), max(1, words - 4))])
