"""Completions sent as server-sent events, as gateways do that answer only in streams."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.http import Answer

StreamRule = Literal["only", "only, without stream_options", "always"]
"""Requests without ``stream`` are refused, or those with ``stream_options`` too, or all get a stream."""


def stream_error(rule: StreamRule | None, body: dict[str, Any]) -> Answer | None:
    if rule in (None, "always"):
        return None
    if not body.get("stream"):
        return error_answer(400, "stream must be true")
    if rule != "only" and "stream_options" in body:
        return error_answer(400, "Unrecognized request argument supplied: stream_options")
    return None


def as_events(completion: dict[str, Any], body: dict[str, Any]) -> bytes:
    """The completion in chunks; its usage comes last, and only to a request that asks for it."""
    return b"".join(b"data: " + each + b"\n\n" for each in _events(completion, body))


def _events(completion: dict[str, Any], body: dict[str, Any]) -> Iterator[bytes]:
    head = {"id": completion["id"], "object": "chat.completion.chunk", "model": completion["model"]}
    for choice in completion["choices"] or ():
        text = choice["message"]["content"] or ""
        pieces = [text[start : start + 5] for start in range(0, len(text), 5)]
        tokens = (choice["logprobs"] or {}).get("content")
        for number, piece in enumerate(pieces):
            of_piece = tokens if number == 0 else []
            logprobs = None if tokens is None else {"content": of_piece}
            part = {"index": choice["index"], "delta": {"content": piece}, "logprobs": logprobs}
            yield msgspec.json.encode({**head, "choices": [{**part, "finish_reason": None}]})
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield msgspec.json.encode({**head, "choices": [end]})
    if (body.get("stream_options") or {}).get("include_usage"):
        yield msgspec.json.encode({**head, "choices": [], "usage": completion["usage"]})
    yield b"[DONE]"
