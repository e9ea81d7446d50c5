"""An OpenAI-compatible endpoint, through the openai package: one client, its connections kept and reused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set
from typing import TYPE_CHECKING, Final

from judges.base import Message, ModelSettings, Reply
from judges.engine.completions import encoded, reply_of, request_body
from judges.engine.errors import CallFailed, classify
from judges.engine.providers import Access

if TYPE_CHECKING:
    from openai import AsyncOpenAI

TIMEOUT_S: Final = 300.0
"""A call may take so long in all, however slowly its bytes come."""

CONNECT_TIMEOUT_S: Final = 10.0

KEEP_ALIVE_S: Final = 4.0
"""Shorter than servers keep idle connections (uvicorn: 5 s), so that none is used as it is closed."""


class OpenAIEndpoint:
    """Makes single attempts; whether to try again is the asker's affair. For one event loop."""

    def __init__(self, access: Access, timeout_s: float = TIMEOUT_S):
        self._access = access
        self._timeout_s = timeout_s
        self._client = _open_client(access, timeout_s)

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        dropped: Set[str] = frozenset(),
    ) -> Reply:
        """One request without the ``dropped`` parameters. Raises CallFailed, and nothing else.

        The reply's latency is the time from sending to the last byte.
        """
        import httpx2  # what openai makes its requests with

        body = request_body(
            model, messages, max_output_tokens, dropped=dropped, output_limit=self._access.output_limit
        )
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                # Straight to the answer's text: it is kept as it came, and read more tolerantly than typed.
                answer = await self._client.post(
                    "/chat/completions", content=encoded(body), cast_to=httpx2.Response
                )
            return reply_of(answer.text, time.perf_counter() - begun)
        except Exception as problem:
            raise self._without_key(classify(problem)) from problem

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _without_key(self, failure: CallFailed) -> CallFailed:
        """Endpoints may repeat the key they were given; it goes into no file."""
        if self._access.key:
            failure.message = failure.message.replace(self._access.key, "[key]")
            failure.args = (failure.message,)
            failure.raw = failure.raw and failure.raw.replace(self._access.key, "[key]")
        return failure


def _open_client(access: Access, timeout_s: float) -> AsyncOpenAI:
    import httpx2
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S
    )
    return AsyncOpenAI(
        base_url=access.base_url,
        api_key=access.key or "none",  # the client wants one; such endpoints do not look at it
        max_retries=0,
        timeout=timeout,
        http_client=DefaultAsyncHttpxClient(limits=limits, timeout=timeout),
    )
