"""Call endpoints with other protocols through the library any-llm (the extra `providers`).

The protocols are Anthropic Messages, Gemini generateContent, Bedrock Converse and OpenAI Responses. The
library translates them to and from chat completions. Only `CallExecutor` retries; the providers' clients do
not. We do not use litellm, since it pins huggingface_hub below 2, takes 124 MB and always needs boto3.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from arb.judges.endpoints.connection import TIMEOUT_S, classify, without_key
from arb.judges.endpoints.openai_compatible import parse_reply, request_body
from arb.judges.endpoints.providers import EndpointAccess
from arb.judges.engine.errors import (
    OPTIONAL_PARAMS,
    OUTPUT_LIMITS,
    CallFailed,
    classify_status,
    with_whole_characters,
)
from arb.judges.engine.rate_limits import read_rate_limits
from arb.judges.types import OptionsError, Reply, Request

MAX_CONNECTIONS: Final = 64
"""The maximum number of connections to Bedrock, whose client blocks a thread for each call."""

_RESPONSE_HEADERS: ContextVar[Mapping[str, str] | None] = ContextVar("headers of the answer", default=None)
"""The response headers of the current call, which the library does not return."""

_SLOW: Final = frozenset(
    {"TimeoutError", "APITimeoutError", "TimeoutException", "ReadTimeoutError", "ConnectTimeoutError"}
)
_NO_CONNECTION: Final = frozenset({"APIConnectionError", "TransportError", "HTTPClientError"})
_NEVER_SENT: Final = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "ConnectTimeoutError",
        "ClientConnectorError",
        "EndpointConnectionError",
    }
)
"""Exceptions of the providers' clients for requests that were never sent. The set contains their names, since
importing the classes would take seconds."""


class AnyLLMEndpoint:
    """An endpoint that makes requests through any-llm, without retrying, in the event loop that creates it.

    Raises OptionsError if the provider's client cannot be created.
    """

    def __init__(self, access: EndpointAccess, timeout_s: float = TIMEOUT_S):
        self._access = access
        self._timeout_s = timeout_s
        try:
            self._provider = _open(access, timeout_s)
        except Exception as problem:  # such as missing AWS credentials
            raise OptionsError(f"{access.base_url} cannot be used: {problem}") from problem

    async def attempt(self, request: Request) -> Reply:
        """Make one request and return the reply. Raises only CallFailed."""
        body = with_whole_characters(request_body(request))
        _RESPONSE_HEADERS.set(None)
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._access.library == "openai":
                    answer = await self._provider.aresponses(
                        **responses_body(body), timeout=self._timeout_s, store=False
                    )
                    completion = completion_of_response(answer.model_dump(mode="json", warnings=False))
                else:
                    answer = await self._provider.acompletion(**body, timeout=self._timeout_s)
                    completion = answer.model_dump(mode="json", warnings=False)
            completion["model"] = completion.get("model") or None  # Bedrock's is empty
            if not (completion.get("usage") or {}).get("prompt_tokens"):
                completion["usage"] = None  # the library reports missing counts as 0
            reply = parse_reply(json.dumps(completion), time.perf_counter() - begun)
            return replace(reply, rate_limits=read_rate_limits(_RESPONSE_HEADERS.get() or {}))
        except Exception as problem:
            raise without_key(classify_library_error(problem), self._access) from problem

    async def close(self) -> None:
        client = self._provider.client
        if self._access.library == "gemini":
            await client.aio.aclose()
        elif self._access.library == "bedrock":
            client.close()
        else:
            await client.close()


def _open(access: EndpointAccess, timeout_s: float) -> Any:
    """Return the library's provider, with a client that does not retry and can make many calls at a time."""
    from any_llm import AnyLLM  # noqa: PLC0415  the extra `providers`

    options: dict[str, Any] = {}
    if access.library in ("openai", "anthropic"):
        client = importlib.import_module(access.library).DefaultAsyncHttpxClient
        options["http_client"] = client(event_hooks={"response": [_note_headers]})
        options["default_headers"] = dict(access.headers)
    if access.library == "bedrock":
        from botocore.config import Config  # noqa: PLC0415  the extra `providers`

        options["config"] = Config(
            retries={"total_max_attempts": 1},
            max_pool_connections=MAX_CONNECTIONS,
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
        )
        named = re.search(r"bedrock-runtime[^/]*?\.([a-z]+(?:-[a-z]+)+-\d)\.", access.base_url)
        region = named[1] if named else os.environ.get("AWS_REGION")  # boto3 ignores AWS_REGION
        options |= {"region_name": region} if region else {}
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MAX_CONNECTIONS))
        logging.getLogger("any_llm").setLevel(logging.ERROR)  # it would log a warning per call
    else:
        options["max_retries"] = 0
    return AnyLLM.create(
        access.library, api_key=access.key, api_base=access.base_url, unified_exceptions=True, **options
    )


async def _note_headers(response: Any) -> None:
    _RESPONSE_HEADERS.set({name.lower(): value for name, value in response.headers.items()})


def responses_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the body of a chat completion for OpenAI's Responses API, which has no seed."""
    other = dict(body)
    other["input_data"] = [item for message in other.pop("messages") for item in _input_items(message)]
    if "tools" in other:
        other["tools"] = [{"type": "function", **tool["function"]} for tool in other["tools"]]
    other.pop("seed", None)
    if (limit := other.pop("max_tokens", None) or other.pop("max_completion_tokens", None)) is not None:
        other["max_output_tokens"] = limit
    if (effort := other.pop("reasoning_effort", None)) is not None:
        other["reasoning"] = {"effort": effort}
    if other.pop("logprobs", False):
        other["include"] = ["message.output_text.logprobs"]
    if (form := other.pop("response_format", None)) is not None:
        is_schema = form.get("type") == "json_schema"
        other["text"] = {"format": {"type": "json_schema", **form["json_schema"]} if is_schema else form}
    return other


def _input_items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message as input items. Tool calls and their results are separate items."""
    if message["role"] == "tool":
        result = {"call_id": message["tool_call_id"], "output": message["content"]}
        return [{"type": "function_call_output", **result}]
    items = []
    if message["content"]:
        items.append({"role": message["role"], "content": _input_parts(message["content"])})
    for call in message.get("tool_calls", ()):
        items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def _input_parts(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        if part["type"] == "text":
            parts.append({"type": "input_text", "text": part["text"]})
        else:
            image = part["image_url"]
            detail = image.get("detail", "auto")
            parts.append({"type": "input_image", "image_url": image["url"], "detail": detail})
    return parts


def completion_of_response(answer: Mapping[str, Any]) -> dict[str, Any]:
    items = answer.get("output") or ()
    kinds = {item.get("type") for item in items}
    calls = [
        {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
        for item in items
        if item.get("type") == "function_call"
    ]
    messages = [item for item in items if item.get("type") == "message"]
    parts = [part for message in messages for part in message.get("content") or ()]
    texts = [part for part in parts if part.get("type") == "output_text"]
    refused_texts = [part["refusal"] for part in parts if part.get("type") == "refusal"]
    logprobs = [token for part in texts for token in part.get("logprobs") or ()]
    reason = (answer.get("incomplete_details") or {}).get("reason") or "stop"
    usage = answer.get("usage") or {}
    choice = {
        "message": {
            "content": "".join(part["text"] for part in texts) or None,
            "refusal": "\n".join(refused_texts) or None,
            "reasoning": "reasoning" in kinds,
            "tool_calls": calls or None,
        },
        "finish_reason": "length" if reason == "max_output_tokens" else reason,
        "logprobs": {"content": logprobs} if logprobs else None,
    }
    return {
        "model": answer.get("model"),
        "error": answer.get("error"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        },
    }


def classify_library_error(problem: BaseException) -> CallFailed:
    """Convert an exception of the library to a CallFailed, based on the provider's response if it has one."""
    original = getattr(problem, "original_exception", None) or problem
    if isinstance(original, CallFailed):
        return original
    if (answer := _answer_of(original)) is not None:
        status, body, headers = answer
        if status < 400:
            return CallFailed("transient", f"unreadable response: {original}", maybe_paid=True, raw=body)
        return classify_status(status, body, headers)
    names = {each.__name__ for each in type(original).__mro__}
    if names & (_SLOW | _NO_CONNECTION):
        is_slow = bool(names & _SLOW)
        is_unsent = any(type(each).__name__ in _NEVER_SENT for each in _causes(original))
        message = "no reply in time" if is_slow else f"no connection: {original}"
        return CallFailed(
            "transient", message, maybe_paid=not is_unsent, is_slow=is_slow, is_unreachable=is_unsent
        )
    if (parameter := _parameter_that_is_unknown(problem)) is not None:
        return CallFailed("unsupported_parameter", str(problem), parameter=parameter)
    failed = classify(original)
    # The response was cut off or has an unexpected form.
    if failed.kind == "final" and type(problem).__name__ in ("ProviderError", "JSONDecodeError"):
        return CallFailed("transient", f"unusable response: {problem}", maybe_paid=True, raw="")
    return failed


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and the exceptions that caused it."""
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _parameter_that_is_unknown(problem: BaseException) -> str | None:
    """Return the optional parameter that the library cannot send at all, or None.

    The result is also None if the library rejects only a value of the parameter, or if the parameter is an
    output limit, which limits the cost and must not be left out.
    """
    found = _NO_SUCH_PARAMETER.search(str(problem))
    name = getattr(problem, "parameter_name", None) or (found and found[1])
    return name if name in OPTIONAL_PARAMS and name not in OUTPUT_LIMITS else None


_NO_SUCH_PARAMETER: Final = re.compile(r"unexpected keyword argument '(\w+)'")


def _answer_of(problem: BaseException) -> tuple[int, str, dict[str, str]] | None:
    """Return the status, body and headers of the response in an exception, or None if it has none."""
    response = getattr(problem, "response", None)
    if isinstance(response, dict):  # botocore
        about = response.get("ResponseMetadata", {})
        error = response.get("Error", {})
        body = json.dumps({"error": {"code": error.get("Code"), "message": error.get("Message")}})
        return about.get("HTTPStatusCode", 500), body, _lower(about.get("HTTPHeaders", {}))
    if isinstance(details := getattr(problem, "details", None), dict):  # google-genai
        headers = getattr(response, "headers", None) or {}
        return getattr(problem, "code", 500), json.dumps(details), _lower(headers)
    if response is not None and hasattr(response, "status_code"):  # openai, anthropic
        return response.status_code, response.text, _lower(response.headers)
    return None


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): value for name, value in headers.items()}
