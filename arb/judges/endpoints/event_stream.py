"""Merge a response of server-sent events into one chat completion."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from arb.judges.engine.errors import CallFailed, read_json

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
"""Matches line breaks. (`str.splitlines` also splits at other characters, which JSON texts may contain.)"""

_TEXTS: Final = ("content", "reasoning_content", "refusal")


def is_event_stream(content_type: str, text: str) -> bool:
    return content_type == "text/event-stream" or text.startswith("data:")


def completion_of_stream(text: str) -> str:
    """Merge the chunks of a stream, and return one completion as JSON.

    Raises CallFailed if the stream ends early or if an event is not a JSON object.
    """
    answer: dict[str, Any] = {}
    choices: dict[int, _StreamedChoice] = {}
    is_done = False
    for data in _events(text):
        if is_done := data == "[DONE]":
            break
        try:
            chunk = read_json(data)
        except ValueError as problem:
            raise _unusable(f"the stream contains an event that is not JSON ({problem})", text) from problem
        if not isinstance(chunk, dict):
            raise _unusable("the stream contains an event that is not a JSON object", text)
        answer |= {name: chunk[name] for name in ("model", "usage", "error") if chunk.get(name)}
        for choice in chunk.get("choices") or ():
            if isinstance(choice, dict):
                index = choice.get("index")
                choices.setdefault(index if type(index) is int else 0, _StreamedChoice()).add(choice)
    ended = choices and all(choice.finish_reason is not None for choice in choices.values())
    if not (is_done or ended or "error" in answer):
        raise _unusable("the stream ended before the reply did", text)
    return json.dumps({**answer, "choices": [choice.as_json() for _, choice in sorted(choices.items())]})


def _events(text: str) -> Iterator[str]:
    """Yield the data of each event, without comments and other fields."""
    for line in _LINE_END.split(text):
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()


@dataclass
class _StreamedChoice:
    """The parts of one choice of a completion that have arrived so far."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    tool_calls: dict[Any, dict[str, Any]] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish_reason: Any = None

    def add(self, part: Mapping[str, Any]) -> None:
        delta = part.get("delta") or part.get("message")
        delta = delta if isinstance(delta, dict) else {}
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                self.texts.setdefault(name, []).append(delta[name])
        if isinstance(calls := delta.get("tool_calls"), list):
            for call in (each for each in calls if isinstance(each, dict)):
                self._add_tool_call(call)
        logprobs = part.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            self.logprobs += logprobs["content"]
        self.finish_reason = part.get("finish_reason") or self.finish_reason

    def _add_tool_call(self, part: Mapping[str, Any]) -> None:
        """Add a piece of a tool call. The first piece has the id and name; the arguments arrive in pieces."""
        place = part.get("index", len(self.tool_calls))
        call = self.tool_calls.setdefault(place, {"function": {"name": "", "arguments": ""}})
        function = part.get("function")
        for name, text in function.items() if isinstance(function, dict) else ():
            if isinstance(text, str):
                call["function"][name] = call["function"].get(name, "") + text
        call |= {name: value for name, value in part.items() if name != "function" and value is not None}

    def as_json(self) -> dict[str, Any]:
        message = {name: "".join(parts) for name, parts in self.texts.items()}
        calls = {"tool_calls": list(self.tool_calls.values())} if self.tool_calls else {}
        return {
            "message": {"role": "assistant", **message, **calls},
            "finish_reason": self.finish_reason,
            "logprobs": {"content": self.logprobs} if self.logprobs else None,
        }


def _unusable(message: str, raw: str) -> CallFailed:
    return CallFailed("transient", message, maybe_paid=True, raw=raw)
