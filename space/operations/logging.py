"""Logs as JSON lines, or as text on a terminal, without tokens, labels or contents of files.

All loggers of the standard library are formatted here, including those of uvicorn. An exception is logged
with its type, its stack frames and, for errors of the operating system, the system's description, but
without its message, because libraries put values such as whole database rows into messages.
"""

import errno
import logging
import os
import re
import secrets
import sys
import time
import traceback
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, TextIO

import structlog
from fastapi.responses import JSONResponse, Response
from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import Processor

from arb.core.settings import Settings
from space.operations.metrics import Metrics
from space.web.http_errors import RenderError, wants_page

REQUEST_FIELDS: Final = frozenset({"method", "path", "status", "ms"})
"""The fields in the log line of a request, in addition to the request's id."""
HIDDEN: Final = "[hidden]"
_TOKENS: Final = re.compile(r"hf_(?:oauth_)?[A-Za-z0-9_.\-]{8,}|(?i:bearer)\s+[^\s\"']+")
_QUIET: Final = (
    "httpx", "httpx2", "httpcore", "httpcore2", "huggingface_hub", "asyncio", "multipart", "python_multipart",
)  # fmt: skip
_LONGEST_FIELD: Final = 2_000
_MOST_FRAMES: Final = 30

_OURS: Final = ("arb", "space", "submissions", "leaderboard", "dataset_script")
LogFormat = Literal["json", "text"]
Event = MutableMapping[str, Any]


def configure_logs(
    settings: Settings, stream: TextIO | None = None, log_format: LogFormat | None = None
) -> None:
    """Send all logs of this process to ``stream``, which defaults to stderr.

    By default, the format is text if the stream is a terminal and this is not a Space, and JSON otherwise.
    """
    out = stream or sys.stderr
    if log_format is None:
        log_format = "text" if settings.space_id is None and out.isatty() else "json"
    as_json = log_format == "json"
    secrets_set = [value for value in vars(settings).values() if isinstance(value, SecretStr)]
    hidden = [secret.get_secret_value() for secret in secrets_set]
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter(as_json, hidden))
    root = logging.getLogger()
    for other in list(root.handlers):
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)  # otherwise Python prints warnings between the log lines
    handler.addFilter(lambda record: as_json or not _is_library_warning(record))


def formatter(as_json: bool, hidden: Iterable[str] = ()) -> logging.Formatter:
    """Return a formatter for the standard library's loggers. It hides the values in ``hidden``."""
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=REQUEST_FIELDS),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _where_it_failed,
        SecretFilter(hidden),
    ]
    last = structlog.processors.JSONRenderer(ensure_ascii=False) if as_json else _as_text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )


class SecretFilter:
    """A structlog processor that hides tokens and known secrets in an event, and truncates long strings."""

    def __init__(self, hidden: Iterable[str]) -> None:
        self._hidden = sorted((value for value in hidden if value), key=len, reverse=True)

    def __call__(self, logger: Any, method: str, event: Event) -> Event:
        return {name: value if name.startswith("_") else self._clean(value) for name, value in event.items()}

    def _clean(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        if not isinstance(value, str):
            return value
        for secret in self._hidden:
            value = value.replace(secret, HIDDEN)
        value = _TOKENS.sub(HIDDEN, value)
        return value if len(value) <= _LONGEST_FIELD else value[:_LONGEST_FIELD] + "…"


def _is_library_warning(record: logging.LogRecord) -> bool:
    """Return whether a library logged this record below ERROR; such records are not shown on a terminal."""
    return record.levelno < logging.ERROR and record.name.partition(".")[0] not in _OURS


def _where_it_failed(logger: Any, method: str, event: Event) -> Event:
    """Replace the exception in a log event by its type, frames and causes, without messages."""
    found = event.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found
    if not isinstance(error, BaseException):
        return event
    lines: list[str] = []
    while error is not None and len(lines) < _MOST_FRAMES:
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}{_code_of(error)}")
        lines += _places(error.__traceback__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {**event, "exception": lines}


def _code_of(error: BaseException) -> str:
    """Return the system's description of an error, such as "No space left on device", without values."""
    code = error.errno if isinstance(error, OSError) else None
    return f": {os.strerror(code)}" if code is not None and code in errno.errorcode else ""


def _places(raised_through: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(raised_through)[-_MOST_FRAMES:]
    return [f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}" for frame in frames]


def _as_text(logger: Any, method: str, event: Event) -> str:
    """Return an event as text for a terminal: time, message and fields, then the frames of an exception."""
    level, name, message, at = (str(event.pop(key, "")) for key in ("level", "logger", "event", "at"))
    places = event.pop("exception", [])
    if level == "info":
        event.pop("request_id", None)
    line = [at[11:19]]
    if level != "info":
        line += [level.upper(), f"{name}:"]
    if name == "space.requests" and level == "info":
        line += [f"{event.get('method')} {event.get('path')} {event.get('status')} in {event.get('ms')} ms"]
    else:
        line += [message, *(f"{key}={value}" for key, value in event.items())]
    return "\n  ".join([" ".join(line), *places])


logger = logging.getLogger("space.requests")
HEADER: Final = "X-Request-ID"
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NAMES_A_FILE: Final = re.compile(r"(/file=|/file/|/stream/|/upload).*", re.DOTALL)
_LONGEST_PATH: Final = 200


class RequestLog:
    """The outermost middleware, which gives every request an id, a log line and a count in the metrics.

    An uncaught exception becomes a response with the status 500.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, render_error: RenderError | None = None) -> None:
        self._app, self._metrics, self._render_error = app, metrics, render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                if status:  # part of the response has been sent already
                    raise
                await self._failure(scope, request_id)(scope, receive, send_with_id)
            finally:
                seconds = time.perf_counter() - started
                fields = {"method": method, "path": path, "status": status, "ms": round(1000 * seconds, 1)}
                logger.info("request", extra=fields)
                known_method = method if method in _METHODS else "other"
                self._metrics.observe(known_method, route_of(scope), status, seconds)

    def _failure(self, scope: Scope, request_id: str) -> Response:
        message = f"something failed on our side; give the operator of this Space the request id {request_id}"
        if self._render_error and wants_page(scope["path"], Headers(scope=scope)):
            return self._render_error("Something failed", f"S{message[1:]}.", 500)
        return JSONResponse({"detail": message, "request_id": request_id}, 500)


def request_id_of(headers: Headers) -> str:
    """Return the request's ``X-Request-ID`` if it is a short plain word, else a new random id."""
    sent_id = headers.get(HEADER, "")
    return sent_id if _PLAIN.fullmatch(sent_id) else secrets.token_hex(8)


def path_for_log(path: str) -> str:
    """Return the path for a log, without names of uploaded files and without line breaks."""
    text = _NAMES_A_FILE.sub(r"\1…", path)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= _LONGEST_PATH else text[:_LONGEST_PATH] + "…"


def route_of(scope: Scope) -> str:
    """Return the template of the route that answered, such as ``/api/submissions/{submission_id}``.

    It is ``other`` if no route matched, so that unknown paths do not add lines to the metrics.
    """
    return getattr(scope.get("route"), "path", None) or "other"
