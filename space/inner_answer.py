"""Ask an application inside the server for an answer, whole and unpacked."""

import asyncio
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Scope

NOT_PASSED_ON = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range", b"cookie"}


@dataclass(frozen=True)
class InnerAnswer:
    """Status, content type and body of an answer."""

    status: int
    media_type: str
    body: bytes


async def ask(app: ASGIApp, scope: Scope) -> InnerAnswer:
    """GET the path of ``scope`` from ``app``, without its query, cookies, and wishes about the form."""
    headers = [pair for pair in scope["headers"] if pair[0] not in NOT_PASSED_ON]
    asked = {**scope, "method": "GET", "query_string": b"", "headers": headers}
    status, media_type, body = 500, "", []

    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        # Who streams an answer waits here for the client to leave, which it does when it has everything.
        return next(requests, None) or await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        nonlocal status, media_type
        if message["type"] == "http.response.start":
            status = message["status"]
            media_type = dict(message["headers"]).get(b"content-type", b"").decode("latin-1")
        elif message["type"] == "http.response.body":
            body.append(message.get("body", b""))

    await app(asked, receive, send)
    return InnerAnswer(status, media_type, b"".join(body))
