"""An OpenAI-compatible endpoint: one session of aiohttp, its connections kept and reused.

The openai package would do the same at a multiple of the CPU, and takes a second to import: a request of ours
is one address, the same headers every time and a body of bytes, and its answer is read more tolerantly than
a typed client would.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import time
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from arb.judges.endpoints.event_stream import completion_of_stream, is_event_stream
from arb.judges.endpoints.providers import PROVIDERS, EndpointAccess, endpoint_url
from arb.judges.engine.errors import (
    OUTPUT_LIMITS,
    CallFailed,
    classify,
    classify_status,
    read_json,
    read_rate_limits,
)
from arb.judges.types import Image, Message, ModelSettings, Reply, TokenProbability, Usage

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientResponse, ClientSession

TOP_LOGPROBS: Final = 5
"""How many rivals of each token are asked for, where log-probabilities are."""

_WITHOUT_TEXT: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "tool_calls",
    "function_call",
)
"""Fields of a message in which a model may have written instead of in the text."""


def request_body(
    model: ModelSettings,
    messages: tuple[Message, ...],
    max_output_tokens: int,
    *,
    unsupported_params: Set[str] = frozenset(),
    output_limit: str = "max_tokens",
) -> dict[str, Any]:
    """The body of a request, without ``unsupported_params``; where one name of the output limit is
    unsupported, the other is used.
    """
    body: dict[str, Any] = {"model": model.model, "messages": [message_to_json(each) for each in messages]}
    optional: dict[str, Any] = {
        "temperature": model.temperature,
        "seed": model.seed,
        "reasoning_effort": model.reasoning_effort,
    }
    if model.prompt_cache and PROVIDERS[model.provider].prompt_cache == "cache_control":
        _mark_for_cache(body["messages"], model.prompt_cache)
    elif model.prompt_cache:
        optional["prompt_cache_key"] = _prompt_cache_key(messages, model.prompt_cache)
    limits = [
        name for name in sorted(OUTPUT_LIMITS, key=output_limit.__ne__) if name not in unsupported_params
    ]
    if limits and not any(name in model.extra for name in OUTPUT_LIMITS):
        body[limits[0]] = max_output_tokens
    if model.logprobs and "logprobs" not in unsupported_params:
        optional |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    body |= {
        name: value
        for name, value in optional.items()
        if value is not None and name not in unsupported_params
    }
    return body | dict(model.extra)


def encoded(body: Mapping[str, Any]) -> bytes:
    """A body as JSON: with pictures in it many times faster than by the standard library."""
    import msgspec

    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError):  # half of a surrogate pair, which some pages have
        return json.dumps(body).encode("ascii")


def message_to_json(message: Message) -> dict[str, Any]:
    """A message as it is sent: a text as a string, texts and pictures as parts."""
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return {"role": message.role, "content": [_part(part) for part in message.content]}


def _mark_for_cache(messages: list[dict[str, Any]], what: str) -> None:
    """Say where a prefix ends that Anthropic should keep: after the system message, which all trajectories
    share; for ``prompt`` also after the last text, up to which the samples of a trajectory are the same.
    """
    ends = [each for each in messages if each["role"] == "system"]
    for message in [*ends, *(messages[-1:] if what == "prompt" else ())]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        if texts := [part for part in message["content"] if part.get("text")]:
            texts[-1]["cache_control"] = {"type": "ephemeral"}


def _prompt_cache_key(messages: tuple[Message, ...], what: str) -> str:
    """Requests with the same key go to the same machine of OpenAI, where a prefix was kept."""
    parts = messages[0].parts if what == "system" else (part for each in messages for part in each.parts)
    texts = (part if isinstance(part, str) else part.sha256 for part in parts)
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def _part(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    detail = {} if part.detail == "auto" else {"detail": part.detail}  # some endpoints know no detail
    return {"type": "image_url", "image_url": {"url": part.data_url, **detail}}


def parse_reply(raw: str, latency_s: float | None = None) -> Reply:
    """The reply in the answer to a call, its text as it came.

    A refusal, in words of its own or by a filter, has the state ``refused``. A reply with nothing but
    reasoning or tool calls is a reply without text: it was paid for, and the next one would be the same. Of
    several answers the further ones are in ``others``; those that cannot be used are left out. Raises
    CallFailed for an answer without a reply: cut JSON, no choices, an error inside, or nothing at all
    although the model says it was done.
    """
    try:
        answer = read_json(raw)
    except ValueError as problem:
        raise _unusable(f"the answer is not complete JSON ({problem})", raw, {}) from problem
    if not isinstance(answer, dict):
        raise _unusable("the answer is not a JSON object", raw, {})
    choices = answer.get("choices")
    choices = choices if isinstance(choices, list) and choices else [None]
    replies: list[Reply] = []
    failure: CallFailed | None = None
    for choice in choices:
        try:
            replies.append(_reply_of_choice(choice, answer, raw, latency_s))
        except CallFailed as problem:  # of several answers some may be of use
            failure = failure or problem
    if not replies:
        raise failure
    return replies[0] if len(replies) == 1 else replace(replies[0], others=tuple(replies[1:]))


def _reply_of_choice(choice: Any, answer: Mapping[str, Any], raw: str, latency_s: float | None) -> Reply:
    """Its usage is that of the whole answer."""
    error = answer.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if error:
        raise _inner_error(error, raw, answer)
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise _unusable("the answer has no choices", raw, answer)
    text, finish_reason = _text(choice["message"].get("content")), choice.get("finish_reason")
    refusal = choice["message"].get("refusal") or None
    is_refused = refusal is not None or finish_reason == "content_filter"
    if not (text or "").strip() and not is_refused and finish_reason != "length":
        if not any(choice["message"].get(name) for name in _WITHOUT_TEXT):
            raise _unusable(f"the reply has no text (finish_reason {finish_reason})", raw, answer)
        finish_reason = finish_reason or "stop"
    return Reply(
        text=text,
        state="refused" if is_refused else "ok",
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        refusal=str(refusal) if refusal else None,
        error="the model refused" if refusal else "stopped by a content filter" if is_refused else None,
        **read_usage(answer)._asdict(),
        latency_s=latency_s,
        model=answer.get("model") if isinstance(answer.get("model"), str) else None,
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _text(content: Any) -> str | None:
    """The text of a content; some endpoints send it in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str)) or None
    return content if isinstance(content, str) else None


def read_usage(answer: Mapping[str, Any]) -> Usage:
    """What an answer says of its tokens, made the same for all endpoints (see `arb.judges.types.Usage`).

    OpenAI counts hidden reasoning into ``completion_tokens``. Some (xAI, Gemini) leave it out there and count
    it into ``total_tokens`` alone; it is added, since it is paid. DeepSeek names cached input otherwise.
    """
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    of_prompt, of_completion = (
        details if isinstance(details := usage.get(name), dict) else {}
        for name in ("prompt_tokens_details", "completion_tokens_details")
    )
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


def _count(counts: Mapping[str, Any], name: str) -> int | None:
    count = counts.get(name)
    return count if type(count) is int and count >= 0 else None


def _logprobs(logprobs: Any) -> tuple[TokenProbability, ...] | None:
    """Each token with its rivals; None when there are none, or none that can be read."""
    try:
        return tuple(
            TokenProbability(
                each["token"],
                float(each["logprob"]),
                tuple(
                    (rival["token"], float(rival["logprob"]))
                    for rival in each.get("top_logprobs") or ()
                    if rival["token"] != each["token"]
                ),
            )
            for each in logprobs["content"]
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _unusable(message: str, raw: str, answer: Mapping[str, Any]) -> CallFailed:
    """A paid answer that nothing can be made of: it may come out well another time."""
    return CallFailed("transient", message, maybe_paid=True, raw=raw, usage=read_usage(answer))


def _inner_error(error: Any, raw: str, answer: Mapping[str, Any]) -> CallFailed:
    """An error under the status 200, as routers send them when the endpoint behind them failed."""
    code = error.get("code") if isinstance(error, dict) else None
    body = json.dumps({"error": error})
    if type(code) is int and 400 <= code < 600:
        return classify_status(code, body)
    if (failure := classify_status(400, body)).kind in ("rate_limit", "account"):
        return failure
    return _unusable(f"an error in the answer: {json.dumps(error)}", raw, answer)


TIMEOUT_S: Final = 300.0
"""A call may take so long in all, however slowly its bytes come."""

CONNECT_TIMEOUT_S: Final = 10.0

KEEP_ALIVE_S: Final = 4.0
"""Shorter than servers keep idle connections (uvicorn: 5 s), so that none is used as it is closed."""


MAX_REPLY_BYTES: Final = 32 << 20
"""The longest answer, decompressed; with log-probabilities a token takes some 600 bytes."""

_STREAM: Final = {"stream": True, "stream_options": {"include_usage": True}}
_STREAM_ONLY: Final = re.compile(
    r"\bstream(ing)?\b.{0,40}\b(true|required|enabled?|only)\b|\b(only|must|enable)\b.{0,40}\bstream"
    r"|\bnon-?stream",
    re.IGNORECASE | re.DOTALL,
)
"""What gateways say that answer only in streams."""


class OpenAIEndpoint:
    """Makes single attempts and leaves retries to the executor. For the event loop that creates it.

    A gateway that answers only in streams is found out by its refusal, once per model.
    """

    takes_choices = True
    """A request may ask for several answers (``n`` in ``extra``)."""

    def __init__(self, access: EndpointAccess, timeout_s: float = TIMEOUT_S):
        self._access = access
        self._timeout_s = timeout_s
        self._address = endpoint_url(access.base_url, "chat/completions")
        self._session = open_session(access)
        self._redirects = redirects(access)
        self._stream_fields: dict[str, Mapping[str, Any]] = {}

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """One request without ``unsupported_params``. Raises CallFailed, and nothing else.

        The reply's latency is the time from sending to the last byte.
        """
        body = request_body(
            model,
            messages,
            max_output_tokens,
            unsupported_params=unsupported_params,
            output_limit=self._access.output_limit,
        )
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, text = await self._post(body, model.model)
            if not 200 <= answer.status < 300:
                raise classify_status(answer.status, text, answer.headers)
            is_stream = is_event_stream(answer.content_type, text)
            reply = parse_reply(
                completion_of_stream(text) if is_stream else text, time.perf_counter() - begun
            )
            if is_stream and reply.input_tokens is None:  # the next streams say what they cost
                self._stream_fields.setdefault(model.model, _STREAM)
            limits = read_rate_limits(answer.headers)
            return reply if limits is None else replace(reply, rate_limits=limits)
        except Exception as problem:
            raise without_key(classify(problem), self._access) from problem

    async def _post(self, body: dict[str, Any], model: str) -> tuple[ClientResponse, str]:
        """Return the answer to a request and its text; asks again if the answer says how to stream."""
        while True:
            fields = self._stream_fields.get(model, {})
            sent = io.BytesIO(encoded(body | fields))  # so aiohttp lets other calls go on between its pieces
            async with self._session.post(self._address, data=sent, **self._redirects) as answer:
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


async def read_text(answer: ClientResponse) -> str:
    """Return the text of an answer. Raises CallFailed if it is longer than MAX_REPLY_BYTES.

    The connection of an answer that was not read to its end is closed.
    """
    held = bytearray()
    async for piece in answer.content.iter_any():
        held += piece
        if len(held) > MAX_REPLY_BYTES:
            answer.close()
            raise CallFailed("final", too_long_message(answer), maybe_paid=True)
    try:
        return held.decode(answer.charset or "utf-8", errors="replace")
    except LookupError:  # a character set that nobody knows
        return held.decode(errors="replace")


def too_long_message(answer: ClientResponse) -> str:
    return f"{answer.status}: the answer is longer than {MAX_REPLY_BYTES >> 20} MiB and was not read on"


_SECRET_CHARS: Final = 8
"""The value of a header that is at least so long is taken for a secret."""


def without_key(failure: CallFailed, access: EndpointAccess) -> CallFailed:
    """Remove the key and the user's headers from a failure: endpoints may repeat them in an error."""
    secrets = [value for _, value in access.own_headers if len(value) >= _SECRET_CHARS]
    for secret in filter(None, (access.key, *secrets)):
        failure.message = failure.message.replace(secret, "[key]")
        failure.args = (failure.message,)
        failure.raw = failure.raw and failure.raw.replace(secret, "[key]")
    return failure


def redirects(access: EndpointAccess) -> dict[str, bool]:
    """Return how requests treat a redirect: the user's headers must not be sent to another host."""
    return {"allow_redirects": not access.own_headers}


def open_session(access: EndpointAccess) -> ClientSession:
    import aiohttp

    address = urlsplit(access.base_url)
    headers = {"Accept": "application/json", "Content-Type": "application/json", **dict(access.headers)}
    own = {name.casefold() for name, _ in access.own_headers}
    if address.username is None and own.isdisjoint(("authorization", "api-key")):
        # A name in the address is sent by aiohttp, in the key's place.
        headers["Authorization"] = f"Bearer {access.key or 'none'}"  # some look that there is one, no further
    return aiohttp.ClientSession(
        headers={name: value for name, value in headers.items() if name.casefold() not in own}
        | dict(access.own_headers),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=_trust(address.scheme)),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=_proxy(address.scheme, address.hostname or ""),
    )


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """The certificate authorities to trust: the system's, or those of ``SSL_CERT_FILE``."""
    if scheme == "http":
        return True
    import httpx2  # it also finds the authorities where Python's own ssl does not look

    return httpx2.create_ssl_context()


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that ``HTTPS_PROXY`` and its like name for a host; looked up once, not for every call."""
    from urllib.request import getproxies, proxy_bypass

    proxies: dict[str, Any] = getproxies()
    return None if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")
