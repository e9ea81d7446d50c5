"""Connect to endpoints with aiohttp, read responses of limited length, and classify failed connections."""

from __future__ import annotations

import os
import ssl
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from arb.core.lazy import lazy_imports
from arb.judges.endpoints.providers import EndpointAccess
from arb.judges.engine.errors import CallFailed

with lazy_imports():  # planning a run needs no connection
    import aiohttp
    import httpx2

TIMEOUT_S: Final = 300.0
"""The time limit for a whole call, which ends the call even if bytes are still arriving."""

CONNECT_TIMEOUT_S: Final = 10.0

KEEP_ALIVE_S: Final = 4.0
"""How long to keep idle connections. Servers must keep them longer (uvicorn: 5 s). Otherwise they may close a
connection that is in use."""

MAX_REPLY_BYTES: Final = 32 << 20
"""The maximum size of a decompressed response. With log-probabilities, a token takes about 600 bytes."""

_SECRET_CHARS: Final = 8
"""The minimum length of a header value that is treated as a secret."""


def open_session(access: EndpointAccess) -> aiohttp.ClientSession:
    """Open a session that sends the key and the headers of an endpoint with every request."""
    address = urlsplit(access.base_url)
    headers = {"Accept": "application/json", "Content-Type": "application/json", **dict(access.headers)}
    own = {name.casefold() for name, _ in access.own_headers}
    if address.username is None and own.isdisjoint(("authorization", "api-key")):
        # If the address has a user name, aiohttp sends that instead. Some endpoints without keys still
        # require the header.
        headers["Authorization"] = f"Bearer {access.key or 'none'}"
    return aiohttp.ClientSession(
        headers={name: value for name, value in headers.items() if name.casefold() not in own}
        | dict(access.own_headers),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=_trust(address.scheme)),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=_proxy(address.scheme, address.hostname or ""),
    )


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """Return the certificate authorities to trust: the system's, or those in ``SSL_CERT_FILE``."""
    # httpx2 also finds certificates in places where Python's own ssl does not look.
    return True if scheme == "http" else httpx2.create_ssl_context()


def _proxy(scheme: str, host: str) -> str | None:
    """Return the proxy for a host from ``HTTPS_PROXY`` and similar variables, or None."""
    proxies: dict[str, Any] = getproxies()
    return None if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")


def may_redirect(access: EndpointAccess) -> bool:
    """Return whether requests may follow redirects: not if the user gave headers, which may be secrets."""
    return not access.own_headers


async def read_text(answer: aiohttp.ClientResponse) -> str:
    """Return the text of a response. Raises CallFailed if it is longer than `MAX_REPLY_BYTES`."""
    held = bytearray()
    async for piece in answer.content.iter_any():
        held += piece
        if len(held) > MAX_REPLY_BYTES:
            answer.close()
            raise CallFailed("final", too_long_message(answer), maybe_paid=True)
    try:
        return held.decode(answer.charset or "utf-8", errors="replace")
    except LookupError:  # an unknown character set
        return held.decode(errors="replace")


def too_long_message(answer: aiohttp.ClientResponse) -> str:
    return f"{answer.status}: the response is longer than {MAX_REPLY_BYTES >> 20} MiB and was cut off"


def without_key(failure: CallFailed, access: EndpointAccess) -> CallFailed:
    """Remove the key and the user's headers from a failure, since endpoints may quote them. Return it."""
    secrets = [value for _, value in access.own_headers if len(value) >= _SECRET_CHARS]
    for secret in filter(None, (access.key, *secrets)):
        failure.message = failure.message.replace(secret, "[key]")
        failure.args = (failure.message,)
        failure.raw = failure.raw and failure.raw.replace(secret, "[key]")
    return failure


def classify(problem: BaseException) -> CallFailed:
    """Return a CallFailed for any exception that a request raised."""
    if isinstance(problem, CallFailed):
        return problem
    never_sent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
    was_sent = not isinstance(problem, never_sent)
    if isinstance(problem, TimeoutError):
        return CallFailed(
            "transient", "no reply in time", maybe_paid=was_sent, is_slow=True, is_unreachable=not was_sent
        )
    if isinstance(problem, aiohttp.ClientError) and not isinstance(problem, aiohttp.InvalidURL):
        reason = f"no connection: {str(problem) or type(problem).__name__}"
        if isinstance(problem, aiohttp.ClientConnectorError):  # its text has details of sockets
            number, text = problem.os_error.errno or 0, problem.os_error.strerror
            text = os.strerror(number) if number > 0 else text
            reason = f"no connection: {problem.host}:{problem.port}: {text}"
        elif isinstance(problem, aiohttp.ClientPayloadError):  # its text has an object of the library
            reason = "the connection was lost before the reply was complete"
        return CallFailed("transient", reason, maybe_paid=was_sent, is_unreachable=not was_sent)
    return CallFailed("final", f"{type(problem).__name__}: {problem}")
