"""Takes the file out of the JSON body of an MCP call before the MCP server parses the body.

The MCP server parses on the event loop. A body of 4 MB can contain a million objects, which would block the
loop for half a second. So a long body is parsed in a thread, which creates only the fields of a tool call.
The MCP server gets a short body; the tool finds the file in the state of the request.
"""

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from anyio import to_thread
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arb.core.judge_info import declared_fields
from space.web.body_limits import JSON_BYTES

_Text = str | msgspec.UnsetType
NOT_A_CALL: Final = (
    f"a body over {JSON_BYTES:,} bytes must be a call of the tool check or submit; send the file in "
    "content, and every argument as a string"
)
_INVALID_REQUEST: Final = -32600


class _FileArguments(msgspec.Struct):
    content: _Text = msgspec.UNSET
    encoding: _Text = msgspec.UNSET
    split: _Text = msgspec.UNSET
    suite: _Text = msgspec.UNSET


if TYPE_CHECKING:
    _Arguments = _FileArguments
else:
    _DECLARED: Final = [(name, _Text, msgspec.UNSET) for name in declared_fields()]
    _Arguments = msgspec.defstruct("_Arguments", _DECLARED, bases=(_FileArguments,))


class _Params(msgspec.Struct, rename={"meta": "_meta"}):
    name: Literal["check", "submit"]
    arguments: _Arguments
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Call(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


_DECODER: Final = msgspec.json.Decoder(_Call)


def without_content(body: bytes) -> tuple[bytes, str]:
    """Return the body of a tool call with an empty ``content``, and the content.

    Raise ValueError if this is not a call of a tool that takes a file, or if the body is long even without
    the file.
    """
    try:
        call = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(NOT_A_CALL) from None
    content, call.params.arguments.content = call.params.arguments.content, ""
    short = msgspec.json.encode(call)
    if content is msgspec.UNSET or len(short) > JSON_BYTES:
        raise ValueError(NOT_A_CALL)
    return short, content


def content_of(request: HTTPConnection, content: str) -> str:
    """Return the file that was taken out of the body of a call, or else the tool's argument ``content``."""
    return getattr(request.state, "mcp_content", content)


class ContentOutside:
    """Middleware that takes the file out of a long body, so that the MCP server parses only short bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the request, without the file if its body is long; answer 400 if it is not a valid call."""
        request = Request(scope, receive)
        body = await request.body()
        if len(body) > JSON_BYTES:
            try:
                body, request.state.mcp_content = await to_thread.run_sync(without_content, body)
            except ValueError as problem:
                error = {"code": _INVALID_REQUEST, "message": str(problem)}
                answer = JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)
                await answer(scope, receive, send)
                return
        is_sent = False

        async def replay() -> Message:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)
