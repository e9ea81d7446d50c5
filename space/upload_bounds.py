"""Bounds on forms with files, whichever route they are for: their encoding, their size, what they leave.

Gradio 6.31 bounds each file of a form and not the form, which may hold a thousand files; and what it had
written when a sender went away stays in its folder for good, since it only removes files that arrived.
"""

import contextlib
import math
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.form_headers import FORM_BYTES, charset_problem

_LEFT_OVER: Final = re.compile(r"tmp[a-z0-9_]{8}")
"""How Python names a temporary file."""
_LONGEST_NUMBER: Final = 15
PAGES_UPLOAD: Final = "/gradio_api/upload"


class FormTooLarge(MultiPartException):
    """More was sent than may be taken; of a kind at which parsers of forms remove what they have written."""


class UploadBounds:
    """Middleware: a form over ``most_bytes`` is cut off with 413, one in an odd encoding refused with 422.

    ``folder`` is where uploads lie while they come in; what is left there of one that broke off is removed
    after ``keep_seconds``. ``count`` counts what a page uploads by address: it raises HTTPException for too
    many (REST counts its own).
    """

    def __init__(
        self,
        app: ASGIApp,
        most_bytes: int,
        folder: Path,
        keep_seconds: float,
        count: Callable[[HTTPConnection], None] = lambda request: None,
    ) -> None:
        self._app, self._most, self._count = app, most_bytes, count
        self._folder, self._keep_seconds, self._swept = folder, keep_seconds, -math.inf

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Bound a request that holds a form; all others pass through."""
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if not headers.get("content-type", "").lower().startswith("multipart/"):
            await self._app(scope, receive, send)
            return
        if time.monotonic() - self._swept > self._keep_seconds / 4:
            self._swept = time.monotonic()
            await run_in_threadpool(remove_left_over, self._folder, self._keep_seconds)
        if scope["path"] == PAGES_UPLOAD:
            try:
                self._count(HTTPConnection(scope))
            except HTTPException as refused:
                answer = JSONResponse({"detail": refused.detail}, refused.status_code, refused.headers)
                await answer(scope, receive, send)
                return
        problem = charset_problem(headers["content-type"])
        if problem:
            await JSONResponse({"detail": problem}, status_code=422)(scope, receive, send)
        elif _says_more_than(self._most, headers.get("content-length", "")):
            await self._refusal()(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken = 0

        async def receive_bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._most:
                raise FormTooLarge("the form is too large")
            return message

        async def send_unless_cut(message: Message) -> None:
            if taken <= self._most:
                await send(message)

        try:
            await self._app(scope, receive_bounded, send_unless_cut)
        except Exception:
            if taken <= self._most:
                raise
        if taken > self._most:  # whatever the route made of the body that ended
            await self._refusal()(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        said = f"more than {self._most - FORM_BYTES:,} bytes: send a smaller file (without reasoning, say)"
        return JSONResponse({"detail": said}, status_code=413)


def remove_left_over(folder: Path, keep_seconds: float) -> None:
    """Remove temporary files right in the folder that were not written to for so long.

    The system's own folder for temporary files is left alone: there are others' files in it.
    """
    if folder.resolve() == Path(tempfile.gettempdir()).resolve():
        return
    oldest = time.time() - keep_seconds
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if _LEFT_OVER.fullmatch(path.name) and path.is_file() and path.stat().st_mtime < oldest:
                    path.unlink()


def _says_more_than(most: int, length: str) -> bool:
    return length.isascii() and length.isdigit() and (len(length) > _LONGEST_NUMBER or int(length) > most)
