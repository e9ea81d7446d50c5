"""Dummy replies for planning a run, of the same length as typical replies or as the replies of a pilot."""

from __future__ import annotations

import json
import statistics
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from arb.judges.types import Call, Reply, ToolCall

REASONING_TOKENS: Final = 600
"""How many hidden reasoning tokens are assumed for each reply of a reasoning model. They are paid as
output."""

_TYPICAL: Final = tomllib.loads(Path(__file__).with_name("typical_replies.toml").read_text(encoding="utf-8"))
TYPICAL_TOKENS: Final = {purpose: reply["tokens"] for purpose, reply in _TYPICAL["replies"].items()}
"""The number of tokens in a typical reply, keyed by the purpose of its call."""

TYPICAL_TOKENS_OF_OTHERS: Final = 250

TYPICAL_TOOL_CALLS: Final = 3
TOKENS_OF_A_TOOL_CALL: Final = 40
"""How many tool calls a plan assumes for a judge that offers tools, and the number of tokens for each."""

YES_SHARE: Final = 0.35
"""The assumed share of verdicts that say yes. The success rate in Table 6 of the paper is similar."""


@dataclass
class PilotReplies:
    """A pilot's replies for one role and purpose. Add all replies before you read a property."""

    replies: list[Reply] = field(default_factory=list)
    tokens_by_rule: list[int] = field(default_factory=list)
    """The input tokens of each call as estimated by `TokenCounters`."""

    def add(self, reply: Reply, tokens_by_rule: int) -> None:
        self.replies.append(reply)
        self.tokens_by_rule.append(tokens_by_rule)

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the replies, in an order that does not depend on timing."""
        by_key = {reply.key: reply.text for reply in self.replies if reply.key and reply.text}
        return [by_key[key] for key in sorted(by_key)]

    @cached_property
    def mean_output(self) -> float:
        """The mean number of output tokens of a reply, including hidden reasoning."""
        known = [reply.output_tokens for reply in self.replies if reply.output_tokens is not None]
        return statistics.fmean(known) if known else 0.0

    @cached_property
    def tool_calls(self) -> int:
        """The typical number of replies that call tools before a reply without tool calls."""
        calls = sum(bool(reply.tool_calls) for reply in self.replies)
        return round(calls / max(1, len(self.replies) - calls))

    @cached_property
    def input_ratio(self) -> float:
        """The ratio of the input tokens that the endpoint counted to those that were estimated."""
        by_rule = sum(tokens for _, _, tokens in self._inputs)
        return sum(total for total, _, _ in self._inputs) / by_rule if by_rule else 1.0

    @cached_property
    def cached_share(self) -> float:
        """The share of the input tokens that the provider had in its own cache."""
        # Without the call that had the smallest share: the first call has to fill the cache.
        rest = sorted(self._inputs, key=lambda each: each[1] / each[0])[1:]
        return sum(cached for _, cached, _ in rest) / sum(total for total, _, _ in rest) if rest else 0.0

    @cached_property
    def _inputs(self) -> list[tuple[int, int, int]]:
        """The (counted, cached, estimated) input tokens of replies, without further samples of a request."""
        return [
            (reply.input_tokens, reply.cached_input_tokens or 0, by_rule)
            for reply, by_rule in zip(self.replies, self.tokens_by_rule, strict=True)
            if reply.input_tokens and not reply.used_shorter
        ]


def dummy_reply(
    call: Call, key: str, max_output_tokens: int, pilot: PilotReplies | None = None, number: int = 0
) -> Reply:
    """Return a dummy reply that every judge can parse, with its number of output tokens.

    The text contains a part of ``key``, so that later calls that quote it differ from each other. If there
    was a ``pilot``, it is the text of one of the pilot's replies, chosen by ``number``. Otherwise it is made
    up. If the call offers tools, the first replies call one of them.
    """
    looks = sum(bool(message.tool_calls) for message in call.messages)
    if call.tools and looks < (TYPICAL_TOOL_CALLS if pilot is None else pilot.tool_calls):
        tool = call.tools[looks % len(call.tools)]
        arguments = dict.fromkeys(tool.parameters.get("required", ()), 1)
        asked = ToolCall(f"call_{looks}", tool.name, json.dumps(arguments))
        tokens = TOKENS_OF_A_TOOL_CALL if pilot is None else round(pilot.mean_output)
        output_tokens = min(tokens, max_output_tokens)
        return Reply(finish_reason="stop", output_tokens=output_tokens, key=key, tool_calls=(asked,))
    if pilot is not None and pilot.texts:
        text = f"({key[:8]})\n{pilot.texts[number % len(pilot.texts)]}"
        if call.purpose == "change":  # only the last line reaches the judge, so it has to be unique
            text = f"{text} ({key[:8]})"
        output_tokens = min(round(pilot.mean_output), max_output_tokens)
    else:
        output_tokens = min(TYPICAL_TOKENS.get(call.purpose, TYPICAL_TOKENS_OF_OTHERS), max_output_tokens)
        says_yes = int(key[8:16], 16) / 0x1_0000_0000 < YES_SHARE  # random, but always the same for a key
        text = _text(call.purpose, output_tokens, key[:8], says_yes)
    return Reply(text=text, finish_reason="stop", output_tokens=output_tokens, key=key)


def _text(purpose: str, words: int, mark: str, says_yes: bool) -> str:
    """Return about ``words`` words of text that judges can parse as a reply to a call with this purpose."""
    replies = _TYPICAL["replies"]
    reply = replies.get(purpose, replies["verdict"])
    number = (words - reply.get("words_of_form", 0)) // reply["text"].count("{filler}")
    # The mark counts as four words, the others as about one token each.
    filler = " ".join([f"({mark})", *islice(cycle(_TYPICAL["filler"].split()), max(1, number - 4))])
    return reply["text"].format(filler=filler, **_TYPICAL["yes" if says_yes else "no"])
