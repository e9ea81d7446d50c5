"""What replies are like that are not there yet: of the length, and with the words, of those in the cache that
the same model gave to the same prompt of a judge; without such ones, of a typical length.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import sqrt
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from arb.judges.engine.cache import call_kind
from arb.judges.types import Call, Image, ModelSettings, Reply

if TYPE_CHECKING:
    from arb.judges.engine.cache import CallCache, KnownReply
    from arb.judges.engine.tokens import TokenCounters

REASONING_TOKENS: Final = {"low": 200, "expected": 600, "high": 4_000}
"""Assumed tokens of hidden reasoning in a reply of a reasoning model; they are paid as output."""

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

LEAST_SPREAD: Final = 0.05
"""A mean of known replies may be off by this share at least, however many there are."""

_WORDS: Final = """
the agent opened the page and then looked for the item that was asked for in the list of results so it set the
filter and went on to the next step while the price and the name of the product were shown at the end
"""


class Range(NamedTuple):
    """Low, expected, high."""

    low: float
    expected: float
    high: float

    def of(self, scenario: Scenario) -> float:
        return getattr(self, scenario)


@dataclass(frozen=True, slots=True)
class Learned:
    """What the replies of a kind (`cache.call_kind`) were like: ``number`` of them.

    ``output_tokens`` with and ``text_tokens`` without hidden reasoning; ``per_character``: input tokens of a
    character, None where pictures were among the input; ``cached_share``: of the input, what the provider
    had in its own cache, without the call that found least there: the first one had to fill it.
    """

    purpose: str
    texts: tuple[str, ...]
    number: int
    output_tokens: Range
    text_tokens: Range
    per_character: float | None
    cached_share: float


def learn(cache: CallCache) -> dict[str, Learned]:
    """What the replies in a cache teach, by kind."""
    return {kind: _learned(known) for kind, known in cache.replies_by_kind().items()}


def _learned(known: Sequence[KnownReply]) -> Learned:
    replies = [each.reply for each in known if each.reply.output_tokens is not None]
    # Of samples in one request the first one has the input.
    asked = [each for each in known if each.reply.input_tokens and not each.reply.used_shorter]
    made = [reply.output_tokens or 0 for reply in replies]
    shown = [(reply.output_tokens or 0) - (reply.reasoning_tokens or 0) for reply in replies]
    characters = sum(each.characters for each in asked)
    has_pictures = any(each.images for each in asked)
    cached = sorted(
        ((each.reply.cached_input_tokens or 0, each.reply.input_tokens) for each in asked),
        key=lambda tokens: tokens[0] / tokens[1],
    )[1:]
    return Learned(
        purpose=next((each.purpose for each in known), ""),
        texts=tuple(each.reply.text for each in known if each.reply.text),
        number=len(replies),
        output_tokens=_mean(made),
        text_tokens=_mean(shown),
        per_character=sum(each.reply.input_tokens for each in asked) / characters
        if characters and not has_pictures
        else None,
        cached_share=sum(each for each, _ in cached) / sum(of for _, of in cached) if cached else 0.0,
    )


class CallSize(NamedTuple):
    """Input tokens of a call by rule, its characters, and its pictures."""

    tokens: int
    characters: int
    images: int


class KnownCalls:
    """What the cache teaches of the calls of a plan; shared by its scenarios, as most calls are."""

    def __init__(self, models: Mapping[str, ModelSettings], cache: CallCache | None, counters: TokenCounters):
        self.cache, self.counters = cache, counters
        self.learned = {} if cache is None else learn(cache)
        self.used: dict[str, set[str]] = {role: set() for role in models}
        self.has_samples = False
        self._sizes: dict[str, CallSize] = {}
        self._counted: dict[str, list[int]] = {}  # by kind: tokens by rule, and as the endpoint counted them

    def size(self, key: str, model: ModelSettings, call: Call) -> CallSize:
        if key not in self._sizes:
            parts = [part for message in call.messages for part in message.parts]
            texts = [len(part) for part in parts if not isinstance(part, Image)]
            tokens = self.counters.expected(model, call.messages)
            self._sizes[key] = CallSize(tokens, sum(texts), len(parts) - len(texts))
        return self._sizes[key]

    def compare(self, key: str, model: ModelSettings, call: Call, reply: Reply) -> None:
        """Take note of how the endpoint counted a call, where that is known."""
        if key not in self._sizes and reply.input_tokens and not reply.used_shorter:
            counted = self._counted.setdefault(call_kind(model, call), [0, 0])
            counted[0] += self.size(key, model, call).tokens
            counted[1] += reply.input_tokens

    def input_tokens(self, kind: str, size: CallSize) -> float | None:
        """The input tokens of a call, by how the endpoint counted others of its kind; None without any."""
        learned, (by_rule, counted) = self.learned.get(kind), self._counted.get(kind, (0, 0))
        if by_rule:
            return size.tokens * counted / by_rule
        if learned is None or learned.per_character is None or size.images:
            return None
        return size.characters * learned.per_character


def _mean(numbers: list[int]) -> Range:
    """The mean, and two standard errors to either side."""
    if not numbers:
        return Range(0.0, 0.0, 0.0)
    mean = statistics.fmean(numbers)
    error = statistics.stdev(numbers) / sqrt(len(numbers)) if len(numbers) > 1 else mean / 4
    spread = max(2 * error, LEAST_SPREAD * mean)
    return Range(max(0.0, mean - spread), mean, mean + spread)


def tokens_per_word(count: Callable[[str], int]) -> float:
    """Tokens per word of dummy replies, by a model's own count; about one in most."""
    return count(_WORDS) / len(_WORDS.split())


def dummy_reply(
    call: Call,
    key: str,
    scenario: Scenario,
    max_output_tokens: int,
    per_word: float = 1.0,
    learned: Learned | None = None,
    number: int = 0,
) -> Reply:
    """Return a reply that every judge can read, with its tokens. ``key`` is the call's, and makes it unique.

    If replies of the kind are known, the expected one has the words of one of them, each in its turn:
    ``number`` counts the calls of the kind. So the same share says yes, and what follows from the replies is
    as long. ``per_word``: see `tokens_per_word`. Hidden reasoning that is not known from others is not among
    the tokens.
    """
    if learned is None:
        typical = TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS)
        text_tokens = output_tokens = round(typical * SHARES[scenario])
    else:
        text_tokens = round(learned.text_tokens.of(scenario))
        output_tokens = round(learned.output_tokens.of(scenario))
    output_tokens, text_tokens = min(output_tokens, max_output_tokens), min(text_tokens, max_output_tokens)
    if learned is not None and learned.texts and scenario == "expected":
        text = f"({key[:8]})\n{learned.texts[number % len(learned.texts)]}"
        if call.purpose == "change":  # only the line at its end reaches the judge, whose calls would be equal
            text = f"{text} ({key[:8]})"
    else:
        says_yes = {"low": False, "expected": _drawn(key) < YES_SHARE, "high": True}[scenario]
        text = _text(call.purpose, round(text_tokens / per_word), key[:8], says_yes)
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
