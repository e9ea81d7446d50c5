"""Chat completions: a request is read, counted, made to fail where the plan says so, else answered."""

import asyncio
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec

from tests.support.llm_server.counts import Counts
from tests.support.llm_server.errors import chance_error, error_answer, rule_error
from tests.support.llm_server.faults import PAID_IN_VAIN, FaultPlan
from tests.support.llm_server.http import Answer
from tests.support.llm_server.logprobs import logprobs_of
from tests.support.llm_server.rate_limits import RateLimitRule
from tests.support.llm_server.streams import StreamRule, as_events, stream_error
from tests.support.llm_server.tokens import InputCache, TokenRule


@dataclass(frozen=True)
class Request:
    """A call as a script sees it. ``attempt`` counts the tries of this prompt from 0, ``choice`` the answers
    to one request (``n``).
    """

    body: dict[str, Any]
    key: str
    attempt: int
    choice: int = 0

    @property
    def model(self) -> str:
        return self.body["model"]

    @cached_property
    def text(self) -> str:
        """All texts of all messages, a line break between them."""
        return "\n".join(part for message in self.body["messages"] for part in _texts(message["content"]))

    @property
    def looks(self) -> int:
        """How many messages of the conversation call tools."""
        return sum("tool_calls" in message for message in self.body["messages"])

    @cached_property
    def images(self) -> list[str]:
        """The data addresses of the pictures, in order."""
        return [
            part["image_url"]["url"]
            for message in self.body["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]


@dataclass(frozen=True)
class Scripted:
    """An answer of a script; a plain string stands for `Scripted(text)`.

    ``fault`` makes the call fail in that way; ``latency_s`` replaces the server's. ``model`` is what the
    answer says that it was made by, instead of the model that was asked.
    """

    text: str | None
    finish_reason: str = "stop"
    tools: tuple[tuple[str, dict], ...] = ()
    """The names and arguments of the tools that it calls."""
    refusal: str | None = None
    fault: str | None = None
    latency_s: float | None = None
    model: str | None = None


Script = Callable[[Request], str | Scripted]


DELIVERIES = {"slow_stream": "slow", "cut_body": "cut", "reset_body": "cut and reset"}


class _Head(msgspec.Struct):
    model: str
    messages: msgspec.Raw


@dataclass
class Chat:
    """The part of a server that answers chat completions, one at a time or as lines of a batch."""

    script: Script
    latency_s: float = 0.0
    faults: FaultPlan = field(default_factory=FaultPlan)
    tokens: TokenRule = field(default_factory=TokenRule)
    unsupported: Collection[str] = ()
    max_input_tokens: int | None = None
    rate_limits: RateLimitRule | None = None
    input_cache: InputCache | None = None
    reasoning_tokens: Callable[[Request], int] | None = None
    most_choices: int | None = None
    streams: StreamRule | None = None
    counts: Counts = field(default_factory=Counts)
    bodies: deque[dict] = field(default_factory=lambda: deque(maxlen=200))
    """The last requests' bodies."""
    held: Callable[[], bool] = lambda: False
    """Answers wait while it says so."""

    async def answer(self, raw: bytes) -> Answer:
        """The answer to a call over HTTP, after its latency."""
        counts = self.counts
        counts.in_flight += 1
        counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
        try:
            request = self.read(raw)
            answer, latency_s = self.at_once(request)
            if latency_s:
                await asyncio.sleep(latency_s)
            while self.held():
                await asyncio.sleep(0.005)
            return answer
        except asyncio.CancelledError:
            counts.left += 1
            raise
        finally:
            counts.in_flight -= 1

    def read(self, raw: bytes) -> Request:
        """The request in a body, counted as a try."""
        head = msgspec.json.decode(raw, type=_Head)
        key = hashlib.sha256(head.model.encode() + b"\0" + bytes(head.messages)).hexdigest()
        attempt = self.counts.tries[key]
        self.counts.tries[key] += 1
        body = msgspec.json.decode(raw)
        self.bodies.append(body)
        return Request(body, key, attempt)

    def at_once(self, request: Request) -> tuple[Answer, float]:
        """The answer and the latency that it should have."""
        input_tokens = self.tokens.of_messages(request.body["messages"], request.body.get("tools"))
        refused = rule_error(request.body, self.unsupported, input_tokens, self.max_input_tokens)
        refused = refused or stream_error(self.streams, request.body)
        if refused is not None:
            return self._note(refused), 0.0
        headers: dict[str, str] = {}
        if self.rate_limits is not None:
            message, headers = self.rate_limits.take(input_tokens)
            if message is not None:
                error = error_answer(
                    429, message, kind="requests", code="rate_limit_exceeded", headers=headers
                )
                return self._note(error), 0.0
        scripted = self._scripted(request)
        latency_s = self.latency_s if scripted.latency_s is None else scripted.latency_s
        fault = scripted.fault or self.faults.fault(request.key, request.attempt)
        error = chance_error(fault, request.body, input_tokens, self.faults.retry_after_s)
        if error is not None:
            self.counts.faults[fault] += 1
            return self._note(error), 0.0
        if fault == "unsupported_parameter":
            fault = None  # nothing was sent that could be refused
        return replace(self._paid(request, scripted, fault, input_tokens), headers=headers), latency_s

    def _paid(self, request: Request, scripted: Scripted, fault: str | None, input_tokens: int) -> Answer:
        completion = self._completion(request, scripted, fault, input_tokens)
        body = as_events(completion, request.body) if self.streams else msgspec.json.encode(completion)
        delivery = DELIVERIES.get(fault or "", "whole")
        if fault == "cut_json":
            body = body[: len(body) // 2]
        if fault:
            self.counts.faults[fault] += 1
        usage = completion["usage"]
        if fault in PAID_IN_VAIN:  # counted at once: the tokens were made, whatever becomes of them
            self._count(self.counts.unusable, request.key, usage)
            return self._note(Answer(200, body, delivery=delivery))
        return self._note(
            Answer(
                200,
                body,
                delivery=delivery,
                slow_s=self.faults.slow_s,
                content_type="text/event-stream" if self.streams else "application/json",
                on_sent=lambda: self._count(
                    self.counts.answers, request.key, usage, len(completion["choices"])
                ),
                on_last=lambda: self.counts.last.update({request.key: len(completion["choices"])}),
            )
        )

    def _scripted(self, request: Request) -> Scripted:
        scripted = self.script(request)
        return Scripted(scripted) if isinstance(scripted, str) else scripted

    def _completion(
        self, request: Request, scripted: Scripted, fault: str | None, input_tokens: int
    ) -> dict[str, Any]:
        number = min(request.body.get("n") or 1, self.most_choices or 1_000)
        more = [replace(request, choice=choice) for choice in range(1, number)]
        choices = [self._choice(0, request, scripted, fault)]
        choices += [self._choice(each.choice, each, self._scripted(each), fault) for each in more]
        made = sum(self.tokens.of_reply(each["message"]) for each in choices)
        details = {}
        if self.reasoning_tokens is not None:
            hidden = sum(self.reasoning_tokens(each) for each in (request, *more))
            made += hidden
            details["completion_tokens_details"] = {"reasoning_tokens": hidden}
        if self.input_cache is not None:
            cached = self.input_cache.read(request.text, input_tokens)
            details["prompt_tokens_details"] = {"cached_tokens": cached}
        return {
            "id": f"chatcmpl-{request.key[:12]}-{request.attempt}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": scripted.model or request.model,
            "choices": {"choices_null": None, "choices_empty": []}.get(fault or "", choices),
            "usage": {
                "prompt_tokens": input_tokens,
                "completion_tokens": made,
                "total_tokens": input_tokens + made,
                **details,
            },
        }

    def _choice(self, index: int, request: Request, scripted: Scripted, fault: str | None) -> dict[str, Any]:
        text, finish_reason = scripted.text, scripted.finish_reason
        if fault == "length":
            text, finish_reason = (text or "")[: len(text or "") // 2], "length"
        elif fault in ("content_null", "content_filter"):
            text, finish_reason = None, "stop" if fault == "content_null" else "content_filter"
        return {
            "index": index,
            "message": {"role": "assistant", "content": text, "refusal": scripted.refusal}
            | _calls(request, scripted),
            "logprobs": logprobs_of(request.body, text),
            "finish_reason": finish_reason,
        }

    def _count(self, counter, key: str, usage: dict[str, Any], choices: int = 1) -> None:
        counter[key] += choices
        counts = self.counts
        counts.input_tokens += usage["prompt_tokens"]
        counts.output_tokens += usage["completion_tokens"]
        counts.cached_tokens += usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
        counts.reasoning_tokens += usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)

    def _note(self, answer: Answer) -> Answer:
        self.counts.statuses[answer.status] += 1
        return answer


def _calls(request: Request, scripted: Scripted) -> dict[str, list[dict]]:
    """The field of a message that has the calls of tools, each with an id that no other call has."""
    unique = f"{request.key[:12]}-{request.attempt}-{request.choice}"
    calls = [
        {
            "id": f"call_{unique}-{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(scripted.tools)
    ]
    return {"tool_calls": calls} if calls else {}


def _texts(content: str | list[dict] | None) -> list[str]:
    if isinstance(content, str) or content is None:
        return [content or ""]
    return [part["text"] for part in content if part["type"] == "text"]
