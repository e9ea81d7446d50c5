"""A server on loopback that speaks the wire protocols of providers beside OpenAI's chat completions.

Anthropic Messages, Gemini generateContent, Bedrock Converse and OpenAI Responses, as their documents describe
them (read in November 2026); the bodies are written by hand after those, not recorded from the providers.
``answers`` are given in turn, the last for ever: a text, an `Answer` as it stands, or a function from the
request to one of them.
"""

import asyncio
import importlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tests.conftest import _absent
from tests.support.llm_server.http import Answer, Connection, HttpRequest

USAGE = {"input": 120, "cached": 100, "output": 9, "reasoning": 4}
"""Tokens of every answer: of 120 of the input 100 came from the cache, of 9 of the output 4 are thoughts."""


def require_clients(*modules: str) -> None:
    """Skip the test, or fail it in CI, if any-llm or a provider's client is not installed."""
    for module in ("any_llm", *modules):
        try:
            importlib.import_module(module)
        except ImportError:
            _absent(f"{module} is not installed (the extra `providers`); tests of its providers are left out")


class ProviderServer:
    """For one test, in a thread of its own. ``requests`` are what came in, their bodies in ``bodies``."""

    def __init__(self, *answers: "str | Answer | Callable[[HttpRequest], str | Answer]"):
        self.answers, self.requests = list(answers) or ["<success>Successful</success>"], []

    def __enter__(self) -> "ProviderServer":
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(120)
        return self

    def __exit__(self, *_) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.requests]

    async def _start(self):
        return await self._loop.create_server(lambda: Connection(self._answer), "127.0.0.1", 0)

    async def _answer(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(request) if callable(answer) else answer
        return answer if isinstance(answer, Answer) else written(request.path, answer)


def written(path: str, text: str) -> Answer:
    """A reply with this text, in the protocol that is spoken under the path."""
    protocol = next(make for part, make in PROTOCOLS.items() if part in path)
    return as_json(protocol(text), headers={"x-ratelimit-remaining-requests": "7"})


def as_json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, json.dumps(body).encode(), headers or {})


def anthropic_message(text: str | None, stop_reason: str = "end_turn") -> dict[str, Any]:
    """https://platform.claude.com/docs/en/api/messages; cache reads are counted beside the input tokens."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x-20260101",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": USAGE["input"] - USAGE["cached"],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": USAGE["cached"],
            "output_tokens": USAGE["output"],
        },
    }


def gemini_content(text: str | None, finish_reason: str = "STOP") -> dict[str, Any]:
    """https://ai.google.dev/api/generate-content; thoughts are counted beside the candidates' tokens."""
    parts = [{"text": text}] if text else []
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": finish_reason, "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": USAGE["input"],
            "cachedContentTokenCount": USAGE["cached"],
            "candidatesTokenCount": USAGE["output"] - USAGE["reasoning"],
            "thoughtsTokenCount": USAGE["reasoning"],
            "totalTokenCount": USAGE["input"] + USAGE["output"],
        },
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }


def converse_output(text: str | None, stop_reason: str = "end_turn") -> dict[str, Any]:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"""
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": text}] if text else []}},
        "stopReason": stop_reason,
        "usage": {
            "inputTokens": USAGE["input"] - USAGE["cached"],
            "cacheReadInputTokens": USAGE["cached"],
            "outputTokens": USAGE["output"],
            "totalTokens": USAGE["input"] + USAGE["output"],
        },
        "metrics": {"latencyMs": 12},
    }


def openai_response(
    text: str | None, incomplete: str | None = None, refusal: str | None = None
) -> dict[str, Any]:
    """https://platform.openai.com/docs/api-reference/responses/object"""
    parts = (
        [{"type": "output_text", "text": text, "annotations": [], "logprobs": _logprobs(text)}]
        if text
        else []
    )
    parts += [{"type": "refusal", "refusal": refusal}] if refusal else []
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "incomplete" if incomplete else "completed",
        "error": None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-x-2026-01-01",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": []},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts},
        ],
        "parallel_tool_calls": True,
        "temperature": 0.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": USAGE["input"],
            "input_tokens_details": {"cached_tokens": USAGE["cached"]},
            "output_tokens": USAGE["output"],
            "output_tokens_details": {"reasoning_tokens": USAGE["reasoning"]},
            "total_tokens": USAGE["input"] + USAGE["output"],
        },
    }


def _logprobs(text: str) -> list[dict[str, Any]]:
    return [{"token": text, "bytes": [], "logprob": -0.1, "top_logprobs": []}]


def chat_completion(text: str) -> dict[str, Any]:
    """https://learn.microsoft.com/azure/foundry/openai/latest: Azure's v1 API is that of OpenAI."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


PROTOCOLS = {
    "/chat/completions": chat_completion,
    "/v1/messages": anthropic_message,
    ":generateContent": gemini_content,
    "/converse": converse_output,
    "/responses": openai_response,
}
