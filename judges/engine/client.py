"""An OpenAI-compatible endpoint: one session of aiohttp, its connections kept and reused.

The openai package would do the same at a multiple of the CPU, and takes a second to import: a request of ours
is one address, the same headers every time and a body of bytes, and its answer is kept as it came, read more
tolerantly than typed.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Set
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from judges.base import Message, ModelSettings, Reply
from judges.engine.completions import encoded, parse_reply, request_body
from judges.engine.errors import CallFailed, classify, classify_status
from judges.engine.providers import Access

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientSession

TIMEOUT_S: Final = 300.0
"""A call may take so long in all, however slowly its bytes come."""

CONNECT_TIMEOUT_S: Final = 10.0

KEEP_ALIVE_S: Final = 4.0
"""Shorter than servers keep idle connections (uvicorn: 5 s), so that none is used as it is closed."""


class OpenAIEndpoint:
    """Makes single attempts and leaves retries to the executor. For the event loop that creates it."""

    def __init__(self, access: Access, timeout_s: float = TIMEOUT_S):
        self._access = access
        self._timeout_s = timeout_s
        self._address = access.base_url.rstrip("/") + "/chat/completions"
        self._session = open_session(access)

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
                sent = io.BytesIO(encoded(body))  # so aiohttp lets other calls go on between its pieces
                async with self._session.post(self._address, data=sent) as answer:
                    text = await answer.text(errors="replace")
            if not 200 <= answer.status < 300:
                raise classify_status(answer.status, text, answer.headers)
            return parse_reply(text, time.perf_counter() - begun)
        except Exception as problem:
            raise without_key(classify(problem), self._access) from problem

    async def close(self) -> None:
        await self._session.close()


def without_key(failure: CallFailed, access: Access) -> CallFailed:
    """Endpoints may repeat the key they were given; it goes into no file."""
    if access.key:
        failure.message = failure.message.replace(access.key, "[key]")
        failure.args = (failure.message,)
        failure.raw = failure.raw and failure.raw.replace(access.key, "[key]")
    return failure


def open_session(access: Access) -> ClientSession:
    import aiohttp

    address = urlsplit(access.base_url)
    headers = {"Accept": "application/json", "Content-Type": "application/json", **dict(access.headers)}
    if address.username is None:  # a name in the address is sent by aiohttp, in the key's place
        headers["Authorization"] = f"Bearer {access.key or 'none'}"  # some look that there is one, no further
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=_trust(address.scheme)),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=_proxy(address.scheme, address.hostname or ""),
    )


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """Whom to believe who an endpoint is: what the system does, or ``SSL_CERT_FILE`` says."""
    if scheme == "http":
        return True
    import httpx2  # it also finds the authorities where Python's own ssl does not look

    return httpx2.create_ssl_context()


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that ``HTTPS_PROXY`` and its like name for a host; looked up once, not for every call."""
    from urllib.request import getproxies, proxy_bypass

    proxies: dict[str, Any] = getproxies()
    return None if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")
