"""Every request gets an id, a log line and a count in the metrics; what nobody caught becomes a 500."""

import logging
import re
import secrets
import time
from typing import Final

import structlog
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.operations.metrics import Metrics
from space.web.http_errors import RenderError, wants_page

logger = logging.getLogger("space.requests")
HEADER: Final = "X-Request-ID"
ROUTE: Final = "arb_route"
"""Key of the scope under which a middleware that answers by itself says what the metrics call it."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NAMES_A_FILE: Final = re.compile(r"(/file=|/file/|/stream/|/upload).*", re.DOTALL)
_LONGEST_PATH: Final = 200


class RequestLog:
    """Middleware around all others."""

    def __init__(self, app: ASGIApp, metrics: Metrics, render_error: RenderError | None = None) -> None:
        self._app, self._metrics, self._render_error = app, metrics, render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of HTTP; all else passes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Headers(scope=scope))
        method, path = scope["method"], path_for_log(scope["path"])
        status, started = 0, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            except Exception:
                logger.exception("the request failed")
                self._metrics.failures.labels("request").inc()
                if status:  # a part of the answer is gone already
                    raise
                await self._failure(scope, request_id)(scope, receive, send_with_id)
            finally:
                seconds = time.perf_counter() - started
                fields = {"method": method, "path": path, "status": status, "ms": round(1000 * seconds, 1)}
                logger.info("request", extra=fields)
                known_method = method if method in _METHODS else "other"
                self._metrics.observe(known_method, route_of(scope), status, seconds)

    def _failure(self, scope: Scope, request_id: str) -> Response:
        message = f"something failed on our side; tell whoever runs this Space the request id {request_id}"
        if self._render_error and wants_page(scope["path"], Headers(scope=scope)):
            return self._render_error("Something failed", f"S{message[1:]}.", 500)
        return JSONResponse({"error": message, "request_id": request_id}, 500)


def request_id_of(headers: Headers) -> str:
    """The id that a proxy gave the request where it is a short plain word, else a new one."""
    given = headers.get(HEADER, "")
    return given if _PLAIN.fullmatch(given) else secrets.token_hex(8)


def path_for_log(path: str) -> str:
    """The path for a log: without the query, without the names of files that were sent, without line ends."""
    shown = _NAMES_A_FILE.sub(r"\1…", path)
    shown = "".join(letter if letter.isprintable() else "?" for letter in shown)
    return shown if len(shown) <= _LONGEST_PATH else shown[:_LONGEST_PATH] + "…"


def route_of(scope: Scope) -> str:
    """The template of the route that answered, such as ``/api/submissions/{submission_id}``.

    What no route matched is ``other``: whoever asks for many addresses makes no new line in the metrics.
    """
    return scope.get(ROUTE) or getattr(scope.get("route"), "path", None) or "other"
