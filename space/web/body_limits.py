"""Middleware that limits the size, the speed and the number of request bodies.

It is needed because FastAPI reads a body before it checks who sent it, and Gradio 6.31 reads JSON of any
size. Requests are counted per sender before their bodies are read.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypedDict

from anyio import CapacityLimiter, fail_after, to_thread
from fastapi import HTTPException, Request, Response
from python_multipart.multipart import parse_options_header
from starlette.datastructures import MutableHeaders
from starlette.formparsers import MultiPartException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.web.http_errors import RenderError, error_response
from submissions.errors import TemporarilyClosed

FORM_BYTES: Final = 64_000
"""The maximum size in bytes of a form without its file, and of a single field."""
JSON_BYTES: Final = 8_000
"""The maximum size of a JSON body in bytes, except on the paths in ``larger``."""
GRADIO_JSON_BYTES: Final = 64_000
"""The size limit of a JSON body for Gradio, in bytes. Parsing 1 MB of ``{},`` would block the event loop
for 0.1 s."""


class FormLimits(TypedDict, total=False):
    """FastAPI's limits on a form, for which FastAPI has no public type."""

    max_files: int
    max_fields: int
    max_part_size: int


FORM_LIMITS: Final[FormLimits] = {"max_files": 1, "max_fields": 16, "max_part_size": FORM_BYTES}
"""The limits of a form with a file."""
PAGE_UPLOAD: Final = "/gradio_api/upload"
FORM_ROUTES: Final = (
    "/api/check",
    "/api/submissions",
    "/api/estimate",
    "/my-agent",
    "/rates",
    "/validate",
    PAGE_UPLOAD,
)
Gate = Callable[[Request], object]
"""A function that raises HTTPException if the body of a request must not be read."""
ALL_OTHERS: Final = ""
"""The key, in place of a path, of the function that counts requests to all other paths."""
GATES_AT_ONCE: Final = 8
"""The maximum number of threads that wait for the Hub to confirm a token. Pages use other threads."""
MOST_OPEN: Final = 256
MOST_OPEN_EACH: Final = 8
"""The maximum number of bodies received at the same time, in total and per sender."""
GRACE_SECONDS: Final = 20.0
SLOWEST_BYTES_A_SECOND: Final = 10_000
"""After `GRACE_SECONDS`, a body that arrives more slowly than this is cut off. 5 MB may take 520 s."""
TOO_SLOW: Final = f"the file arrives too slowly; send at least {SLOWEST_BYTES_A_SECOND:,} bytes per second"
TOO_LARGE: Final = "the upload has more than {:,} bytes; send a smaller file (for example without reasoning)"
TOO_MANY_OPEN: Final = "too many files are arriving at the same time; try again in a few seconds"
RETRY_AFTER_SECONDS: Final = "5"
MOST_DELAYED: Final = 500
"""The limit on refusals delayed at the same time; see `space.operations.limits.REFUSAL_DELAY_SECONDS`."""

_CHARSETS: Final = (b"", b"utf-8", b"utf8", b"us-ascii")
_LONGEST_NUMBER: Final = 15


class BodyCutOff(MultiPartException):
    """Raised when a body is too large or too slow. Form parsers then delete their temporary files."""


class BodyLimits:
    """Middleware that answers 413 for a large body, 408 for a slow one, and 422 for a form of the wrong type.

    Args:
        app: The inner application.
        upload_bytes: The maximum size of a file in bytes.
        gates: Functions, keyed by path, that may refuse a request before its body is read, in a thread.
        larger: JSON limits in bytes, keyed by path.
        counts: Functions, keyed by path, that count a request; called before the gates, on the event loop.
        sender: A function that returns the address whose limits apply to a body.
        render_error: A function that returns an error page for a browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        upload_bytes: int,
        gates: Mapping[str, Gate] | None = None,
        larger: Mapping[str, int] | None = None,
        counts: Mapping[str, Gate] | None = None,
        sender: Callable[[Request], str] = lambda request: "",
        render_error: RenderError | None = None,
    ) -> None:
        self._app, self._upload_bytes = app, upload_bytes
        self._gates, self._larger, self._counts = gates or {}, larger or {}, counts or {}
        self._threads = CapacityLimiter(GATES_AT_ONCE)
        self._sender, self._open, self._delayed = sender, Counter[str](), 0
        self._render_error = render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the headers, then count the bytes of the body as they arrive."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        try:
            scope, most, refusal = await self._checked(scope)
            sender = self._sender(Request(scope))
            if self._open[sender] >= MOST_OPEN_EACH or self._open.total() >= MOST_OPEN:
                raise HTTPException(503, TOO_MANY_OPEN, {"Retry-After": RETRY_AFTER_SECONDS})
            await self._bounded(scope, receive, send, most, refusal, sender)
        except TemporarilyClosed as error:
            headers = {"Retry-After": str(error.RETRY_AFTER_SECONDS)}
            await self._answer(scope, error.STATUS, str(error), headers)(scope, receive, send)
        except HTTPException as error:  # also raised by an inner middleware that has not responded yet
            headers = dict(error.headers or {})
            if delay_s := getattr(error, "delay_s", 0.0):
                headers["Connection"] = "close"  # otherwise the server would read the rest of the body
                await self._delay(delay_s)
            answer = self._answer(scope, error.status_code, str(error.detail), headers)
            await answer(scope, receive, send)

    async def _delay(self, seconds: float) -> None:
        if self._delayed < MOST_DELAYED:
            self._delayed += 1
            try:
                await asyncio.sleep(seconds)
            finally:
                self._delayed -= 1

    async def _checked(self, scope: Scope) -> tuple[Scope, float, str]:
        """Return the scope for the application, its body's size limit in bytes, and the message if exceeded.

        Raise HTTPException if the headers are enough to refuse the request.
        """
        request, path = Request(scope), scope["path"]
        content_type = request.headers.get("content-type", "")
        is_form_route = path in FORM_ROUTES
        is_form = is_form_route and scope["method"] == "POST"  # the routes refuse other methods
        if count := self._counts.get(path, self._counts.get(ALL_OTHERS)):
            count(request)
        if gate := self._gates.get(path):
            await to_thread.run_sync(gate, request, limiter=self._threads)
        if is_form and request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HTTPException(403, "a page of another site may not send files here")
        if path.startswith("/api/") and not is_form_route:
            scope = _as_json(scope)
        if is_form_route:
            if is_form and (problem := form_problem(content_type)):
                raise HTTPException(422, problem)
            most = self._upload_bytes + FORM_BYTES
            refusal = TOO_LARGE.format(self._upload_bytes)
        else:
            is_gradio = path.startswith("/gradio_api/")
            most = self._larger.get(path, GRADIO_JSON_BYTES if is_gradio else JSON_BYTES)
            refusal = f"the body has more than {most:,} bytes; send a smaller one"
        if _says_more_than(most, request.headers.get("content-length", "")):
            raise HTTPException(413, refusal)
        return scope, most, refusal

    async def _bounded(
        self, scope: Scope, receive: Receive, send: Send, most: float, refusal: str, sender: str
    ) -> None:
        taken, is_late, is_open, begun = 0, False, True, time.monotonic()
        self._open[sender] += 1

        def close() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                self._open.subtract([sender])
                self._open += Counter()  # drops counts of zero

        async def receive_bounded() -> Message:
            nonlocal taken, is_late
            if not is_open:
                return await receive()
            left = begun + GRACE_SECONDS + taken / SLOWEST_BYTES_A_SECOND - time.monotonic()
            try:
                with fail_after(max(0.0, left)):
                    message = await receive()
            except TimeoutError:
                is_late = True
                raise BodyCutOff("the body is too slow") from None
            taken += len(message.get("body", b""))
            if taken > most:
                raise BodyCutOff("the body is too large")
            if not message.get("more_body", False):
                close()
            return message

        async def send_unless_cut(message: Message) -> None:
            if taken <= most and not is_late:
                await send(message)

        try:
            await self._app(scope, receive_bounded, send_unless_cut)
        except Exception:
            if taken <= most and not is_late:
                raise
        finally:
            close()
        # Replace the route's response to a body that was cut off.
        if is_late:
            answer = self._answer(scope, 408, TOO_SLOW, {"Connection": "close"})
            await answer(scope, receive, send)
        elif taken > most:
            await self._answer(scope, 413, refusal)(scope, receive, send)

    def _answer(
        self, scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        return error_response(Request(scope), status, message, self._render_error, headers)


def form_problem(content_type: str) -> str | None:
    """Return why a form of this content type is refused, or None if it is accepted.

    It has to be multipart, because parsing a URL-encoded body of nothing but ``&`` blocks the server for
    seconds. It has to be in UTF-8, because the parser fails on codecs such as ``punycode``.
    """
    kind, parameters = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        return "the form cannot be read; send it as multipart/form-data (curl -F file=@FILE)"
    if parameters.get(b"charset", b"").lower() not in _CHARSETS:
        return "the form cannot be read; use UTF-8, and leave charset out of the content type"
    return None


def _as_json(scope: Scope) -> Scope:
    """Return the scope with a JSON content type, because ``curl -d`` sends a different one."""
    headers = MutableHeaders(raw=list(scope["headers"]))
    headers["content-type"] = "application/json"
    return {**scope, "headers": headers.raw}


def _says_more_than(most: int, length: str) -> bool:
    return length.isascii() and length.isdigit() and (len(length) > _LONGEST_NUMBER or int(length) > most)
