"""Make requests to OpenAI-compatible endpoints, and parse their responses.

We do not use the openai package, since it takes a second to import and several times the CPU time per call,
and since this parser accepts more forms of responses than a typed client.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arb.judges.endpoints.connection import (
    TIMEOUT_S,
    classify,
    may_redirect,
    open_session,
    read_text,
    without_key,
)
from arb.judges.endpoints.event_stream import completion_of_stream, is_event_stream
from arb.judges.endpoints.providers import PROVIDERS, EndpointAccess, endpoint_url
from arb.judges.engine.errors import OUTPUT_LIMITS, CallFailed, classify_status, read_json
from arb.judges.engine.rate_limits import read_rate_limits
from arb.judges.types import Image, Message, Reply, Request, TokenProbability, ToolCall, Usage

if TYPE_CHECKING:
    from aiohttp import ClientResponse

TOP_LOGPROBS: Final = 5
"""How many alternatives to request for each token if log-probabilities are requested."""

_WITHOUT_TEXT: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "tool_calls",
    "function_call",
)
"""Fields of a message that may contain the model's output if it wrote no text."""


def request_body(request: Request, output_limit: str = "max_tokens") -> dict[str, Any]:
    """Return the JSON body of a request. ``output_limit`` is the preferred name of the output limit."""
    model, unsupported = request.model, request.unsupported_params
    messages = [message_to_json(each) for each in request.messages]
    body: dict[str, Any] = {"model": model.model, "messages": messages}
    optional: dict[str, Any] = {
        "temperature": model.temperature,
        "seed": model.seed,
        "reasoning_effort": model.reasoning_effort,
    }
    if model.prompt_cache and PROVIDERS[model.provider].prompt_cache == "cache_control":
        _mark_for_cache(body["messages"], model.prompt_cache)
    elif model.prompt_cache:
        optional["prompt_cache_key"] = _prompt_cache_key(request.messages, model.prompt_cache)
    limits = [name for name in sorted(OUTPUT_LIMITS, key=output_limit.__ne__) if name not in unsupported]
    if limits and not any(name in model.extra for name in OUTPUT_LIMITS):
        body[limits[0]] = request.max_output_tokens
    if model.logprobs and "logprobs" not in unsupported:
        optional |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    for name, value in optional.items():
        if value is not None and name not in unsupported:
            body[name] = value
    if request.tools:
        body["tools"] = [tool.declaration for tool in request.tools]
    return body | dict(model.extra)


def encoded(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON. If it has pictures, msgspec is many times faster than the standard library."""
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError):  # lone surrogates, as in some pages
        return json.dumps(body).encode("ascii")


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message as a JSON object. Its content is a string, or a list of texts and pictures."""
    content = message.content
    body: dict[str, Any] = {"role": message.role}
    body["content"] = content if isinstance(content, str) else [_part(part) for part in content]
    if message.tool_calls:
        body["content"] = content or None  # an empty text is refused by some endpoints
        body["tool_calls"] = [_tool_call_to_json(each) for each in message.tool_calls]
        for each in message.tool_calls:
            body |= (each.extra or {}).get("message", {})
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _tool_call_to_json(call: ToolCall) -> dict[str, Any]:
    try:
        is_object = isinstance(read_json(call.arguments), dict)
    except ValueError:  # endpoints refuse a conversation with broken JSON
        is_object = False
    function = {"name": call.name, "arguments": call.arguments if is_object else "{}"}
    return {"id": call.id, "type": "function", "function": function, **(call.extra or {}).get("call", {})}


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the readable tool calls in a message.

    Gemini signs tool calls, and Anthropic signs the thoughts before them. Both providers require that later
    requests repeat the signatures, so the signatures of thoughts are kept with the first call.
    """
    found: list[ToolCall] = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = _object(call, "function") if isinstance(call, dict) else {}
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name:
            continue
        kept = {"call": {"extra_content": call["extra_content"]}} if call.get("extra_content") else {}
        if not found and message.get("extra_content"):
            kept["message"] = {
                key: message[key] for key in ("extra_content", "reasoning") if message.get(key)
            }
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        found.append(ToolCall(str(call.get("id") or f"call_{len(found)}"), name, written, kept or None))
    return tuple(found)


def _mark_for_cache(messages: list[dict[str, Any]], what: str) -> None:
    """Mark the parts of the messages up to which Anthropic should cache the prompt.

    These are the system message, which all trajectories share, and, if ``what`` is ``prompt``, also the last
    message, which all samples of one trajectory share.
    """
    ends = [each for each in messages if each["role"] == "system"]
    for message in [*ends, *(messages[-1:] if what == "prompt" else ())]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        if texts := [part for part in message["content"] if part.get("text")]:
            texts[-1]["cache_control"] = {"type": "ephemeral"}


def _prompt_cache_key(messages: tuple[Message, ...], what: str) -> str:
    """Return a hash of the prompt's prefix. OpenAI sends requests with the same hash to the same cache."""
    parts = messages[0].parts if what == "system" else (part for each in messages for part in each.parts)
    texts = (part if isinstance(part, str) else part.sha256 for part in parts)
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def _part(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    detail = {} if part.detail == "auto" else {"detail": part.detail}  # some endpoints reject the field
    return {"type": "image_url", "image_url": {"url": part.data_url, **detail}}


def parse_reply(raw: str, latency_s: float | None = None) -> Reply:
    """Return the reply that a response contains as JSON, with its text unchanged.

    A refusal by the model or by a filter has the state ``refused``. If the model wrote only reasoning or tool
    calls, the reply has no text; this is not a failure, since another attempt would give the same result.
    Further usable choices are in ``others``.

    Raises CallFailed if the JSON is cut off, has no choices or contains an error, or if the model wrote
    nothing.
    """
    try:
        answer = read_json(raw)
    except ValueError as problem:
        raise _unusable(f"the response is not complete JSON ({problem})", raw, {}) from problem
    if not isinstance(answer, dict):
        raise _unusable("the response is not a JSON object", raw, {})
    choices = answer.get("choices")
    choices = choices if isinstance(choices, list) and choices else [None]
    replies: list[Reply] = []
    failures: list[CallFailed] = []
    for choice in choices:
        try:
            replies.append(_reply_of_choice(choice, answer, raw, latency_s))
        except CallFailed as problem:  # other choices may be usable
            failures.append(problem)
    if not replies:
        raise failures[0]
    return replies[0] if len(replies) == 1 else replace(replies[0], others=tuple(replies[1:]))


def _reply_of_choice(choice: Any, answer: Mapping[str, Any], raw: str, latency_s: float | None) -> Reply:
    """Return the reply in one choice, with the usage of the whole response. Raises CallFailed."""
    error = answer.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if error:
        raise _inner_error(error, raw, answer)
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise _unusable("the response has no choices", raw, answer)
    text, finish_reason = _text(choice["message"].get("content")), choice.get("finish_reason")
    refusal = choice["message"].get("refusal") or None
    is_refused = refusal is not None or finish_reason == "content_filter"
    if not (text or "").strip() and not is_refused and finish_reason != "length":
        if not any(choice["message"].get(name) for name in _WITHOUT_TEXT):
            raise _unusable(f"the reply has no text (finish_reason {finish_reason})", raw, answer)
        finish_reason = finish_reason or "stop"
    error_text = "stopped by a content filter" if is_refused else None
    if refusal:
        error_text = "the model refused"
    return Reply(
        text=text,
        state="refused" if is_refused else "ok",
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        refusal=str(refusal) if refusal else None,
        error=error_text,
        **read_usage(answer)._asdict(),
        latency_s=latency_s,
        model=answer.get("model") if isinstance(answer.get("model"), str) else None,
        logprobs=_logprobs(choice.get("logprobs")),
        tool_calls=_tool_calls(choice["message"]),
    )


def _text(content: Any) -> str | None:
    """Return a message's content as one string, or None. Some endpoints send the content in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str)) or None
    return content if isinstance(content, str) else None


def read_usage(answer: Mapping[str, Any]) -> Usage:
    """Return the token counts of a response in the same form for all endpoints.

    OpenAI includes hidden reasoning in ``completion_tokens``, but xAI and Gemini only in ``total_tokens``, so
    for them it is added to the output here. DeepSeek uses a different field for cached input.
    """
    usage = _object(answer, "usage")
    of_prompt = _object(usage, "prompt_tokens_details")
    of_completion = _object(usage, "completion_tokens_details")
    prompt, made, total = (_count(usage, f"{name}_tokens") for name in ("prompt", "completion", "total"))
    reasoning = _count(of_completion, "reasoning_tokens")
    cached = _count(of_prompt, "cached_tokens")
    cached = _count(usage, "prompt_cache_hit_tokens") if cached is None else cached
    written = _count(of_prompt, "cache_write_tokens")
    if prompt is not None and made is not None and total is not None:
        left_out = total - prompt - made
        if left_out > 0 and (left_out == reasoning or (reasoning is None and not cached)):
            made, reasoning = made + left_out, left_out
    return Usage(prompt, made, cached or None, written or None, reasoning or None)


def _object(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = answer.get(name)
    return found if isinstance(found, dict) else {}


def _count(counts: Mapping[str, Any], name: str) -> int | None:
    count = counts.get(name)
    return count if type(count) is int and count >= 0 else None


def _logprobs(logprobs: Any) -> tuple[TokenProbability, ...] | None:
    """Return each token with its alternatives, or None if log-probabilities are missing or unreadable."""
    try:
        return tuple(map(_token_probability, logprobs["content"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _token_probability(entry: Any) -> TokenProbability:
    token = entry["token"]
    rivals = [each for each in entry.get("top_logprobs") or () if each["token"] != token]
    pairs = tuple((each["token"], float(each["logprob"])) for each in rivals)
    return TokenProbability(token, float(entry["logprob"]), pairs)


def _unusable(message: str, raw: str, answer: Mapping[str, Any]) -> CallFailed:
    """Return the failure for a response that was paid for but is unusable. Another attempt may succeed."""
    return CallFailed("transient", message, maybe_paid=True, raw=raw, usage=read_usage(answer))


def _inner_error(error: Any, raw: str, answer: Mapping[str, Any]) -> CallFailed:
    """Return the failure for an error in a response with status 200. Routers send it if a provider fails."""
    code = error.get("code") if isinstance(error, dict) else None
    body = json.dumps({"error": error})
    if type(code) is int and 400 <= code < 600:
        return classify_status(code, body)
    if (failure := classify_status(400, body)).kind in ("rate_limit", "account"):
        return failure
    return _unusable(f"the response contains an error: {json.dumps(error)}", raw, answer)


_STREAM: Final[dict[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
_STREAM_ONLY: Final = re.compile(
    r"\bstream(ing)?\b.{0,40}\b(true|required|enabled?|only)\b|\b(only|must|enable)\b.{0,40}\bstream"
    r"|\bnon-?stream",
    re.IGNORECASE | re.DOTALL,
)
"""Matches the error messages of gateways that answer only in streams."""


class OpenAIEndpoint:
    """An OpenAI-compatible endpoint that makes requests without retrying, in the event loop that creates it.

    If a gateway refuses a request because it answers only in streams, the request is repeated as a stream,
    and so are all later requests to the model.
    """

    takes_choices = True
    """Whether a request may ask for several answers (``n`` in ``extra``)."""

    def __init__(self, access: EndpointAccess, timeout_s: float = TIMEOUT_S):
        self._access = access
        self._timeout_s = timeout_s
        self._address = endpoint_url(access.base_url, "chat/completions")
        self._session = open_session(access)
        self._stream_fields: dict[str, dict[str, Any]] = {}

    async def attempt(self, request: Request) -> Reply:
        """Make one request and return the reply. Raises only CallFailed.

        The reply's latency is the time from sending the request to receiving the last byte.
        """
        body = request_body(request, self._access.output_limit)
        model = request.model.model
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, text = await self._post(body, model)
            if not 200 <= answer.status < 300:
                raise classify_status(answer.status, text, answer.headers)
            is_stream = is_event_stream(answer.content_type, text)
            reply = parse_reply(
                completion_of_stream(text) if is_stream else text, time.perf_counter() - begun
            )
            if is_stream and reply.input_tokens is None:  # later requests will ask for the token counts
                self._stream_fields.setdefault(model, _STREAM)
            limits = read_rate_limits(answer.headers)
            return reply if limits is None else replace(reply, rate_limits=limits)
        except Exception as problem:
            raise without_key(classify(problem), self._access) from problem

    async def _post(self, body: dict[str, Any], model: str) -> tuple[ClientResponse, str]:
        """Return the response to a request, and its text. If the endpoint requires it, ask for a stream."""
        while True:
            fields = self._stream_fields.get(model, {})
            sent = io.BytesIO(encoded(body | fields))  # sent in pieces, so other calls do not wait
            follows = may_redirect(self._access)
            async with self._session.post(self._address, data=sent, allow_redirects=follows) as answer:
                text = await read_text(answer)
            if answer.status not in (400, 422):
                return answer, text
            if not fields and not body.get("stream") and _STREAM_ONLY.search(text):
                self._stream_fields.setdefault(model, _STREAM)
            elif fields == _STREAM and "stream_options" in text:
                self._stream_fields[model] = {"stream": True}
            else:
                return answer, text

    async def close(self) -> None:
        await self._session.close()
