"""The handlers that turn exceptions into responses, registered once for the whole application.

Under ``/api``, an error is JSON. Elsewhere, it is a page if the client accepts HTML.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from math import ceil
from tempfile import gettempdir
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import HTTPConnection
from starlette.routing import Match, Mount

from arb.core.files import DISK_FULL
from arb.core.judge_info import DeclarationError
from leaderboard.errors import ErrorTagInvalid
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, RateLimited, SubmissionError, TemporarilyClosed, disk_full
from submissions.intake.accounts import Actor
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events

RenderError = Callable[[str, str, int], Response]
"""A function that returns an error page, given its heading, message and status."""

NO_STORE: Final = MappingProxyType({"Cache-Control": "no-store"})
NOT_YOURS: Final = "there is no submission with this id, or only its owner and maintainers may do this"
NO_SUBMISSION: Final = "there is no submission with this id"
FILE_PARTS: Final = ("file", "files", "verdicts", "labels")
NO_FILE: Final = "there is no file; send it as the form's part `{part}` (curl -F {part}=@FILE)"
NOT_JSON: Final = "the body is not JSON; send an object in UTF-8"
SUBMITTING: Final = "/api/submissions"
"""The route whose errors name each invalid field of a declaration."""
_JSON_ONLY: Final = ("/api", "/gradio_api", "/healthz", "/readyz", "/metrics", "/bundles")


class RequestBody(BaseModel):
    """A JSON body that may have no unknown fields."""

    model_config = ConfigDict(extra="forbid")


def add_error_handlers(
    app: FastAPI, service: SubmissionsApp, render_error: RenderError | None = None
) -> None:
    """Register the handlers; ``render_error`` returns the error page for paths outside ``/api``."""

    def problem(
        request: Request, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Response:
        return error_response(request, status, message, render_error, headers, {"detail": message, **more})

    async def refused(request: Request, error: SubmissionError) -> Response:
        return problem(request, 403 if isinstance(error, PermissionDenied) else 409, str(error))

    async def closed_for_now(request: Request, error: TemporarilyClosed) -> Response:
        return problem(request, error.STATUS, str(error), {"Retry-After": str(error.RETRY_AFTER_SECONDS)})

    async def limit_reached(request: Request, error: RateLimited) -> Response:
        if error.next_at.year >= 9999:  # there is no next time
            return problem(request, 429, str(error), next_at=None)
        seconds = max(1, ceil((error.next_at - service.clock()).total_seconds()))
        headers = {"Retry-After": str(seconds)}
        return problem(request, 429, str(error), headers, next_at=error.next_at.isoformat())

    async def invalid_fields(request: Request, error: DeclarationError | ErrorTagInvalid) -> Response:
        if isinstance(error, ErrorTagInvalid):
            return problem(request, 422, str(error))
        if request.url.path != SUBMITTING:
            return problem(request, 422, "; ".join(message for _, message in error.problems))
        fields = [{"field": field, "message": message} for field, message in error.problems]
        return problem(request, 422, "the declaration is not complete", fields=fields)

    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        message = "; ".join(dict.fromkeys(map(_invalid_field, found)))
        if all(each["loc"][0] == "body" for each in found) or wants_page(request.url.path, request.headers):
            return await http_error(request, HTTPException(422, message))
        return await request_validation_exception_handler(request, error)

    async def http_error(request: Request, error: StarletteHTTPException) -> Response:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in DISK_FULL:  # the form has files of more than 1 MB
            return await closed_for_now(request, disk_full(gettempdir()))
        status, message = _unreadable_body(error) or (error.status_code, error.detail)
        headers = {"Allow": _allowed(request)} if "Allow" in (error.headers or {}) else error.headers
        if status >= 400 and wants_page(request.url.path, request.headers):
            return problem(request, status, str(message), headers)
        return await http_exception_handler(request, HTTPException(status, message, headers))

    handlers: tuple[tuple[type[Exception], Callable[[Request, Any], Awaitable[Response]]], ...] = (
        (SubmissionError, refused),
        (TemporarilyClosed, closed_for_now),
        (RateLimited, limit_reached),
        (DeclarationError, invalid_fields),
        (ErrorTagInvalid, invalid_fields),
        (RequestValidationError, invalid_request),
        (StarletteHTTPException, http_error),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)


def error_response(
    request: HTTPConnection,
    status: int,
    message: str,
    render_error: RenderError | None,
    headers: Mapping[str, str] | None = None,
    content: Mapping[str, Any] | None = None,
) -> Response:
    """Return an error: as a page if a browser asked for one, else as JSON.

    The JSON is ``content``, or the message under ``detail``.
    """
    if render_error is None or not wants_page(request.url.path, request.headers):
        return JSONResponse(content or {"detail": message}, status, headers)
    heading = "Invalid request" if status == 422 else HTTPStatus(status).phrase.capitalize()
    page = render_error(heading, sentence(message), status)
    page.headers.update(headers or {})
    return page


def require_open(service: SubmissionsApp, even_if_lost: bool = False) -> None:
    """Raise HTTPException (503) while records cannot be stored.

    With ``even_if_lost``, it is enough if records are stored until the server restarts.
    """
    lost = None if even_if_lost else service.durability_problem
    if closed := service.durability.closed or lost:
        passes = service.intake.is_closed_for_now
        headers = {"Retry-After": str(TemporarilyClosed.RETRY_AFTER_SECONDS)} if passes else None
        raise HTTPException(503, f"nothing was done: {closed}", headers)


class AccessRefused(HTTPException):
    """Raised when a caller may not do something; ``detail`` says why."""


class NotSignedIn(AccessRefused):
    """Raised when nobody is signed in (401)."""

    def __init__(self, detail: str) -> None:
        super().__init__(401, detail, headers={"WWW-Authenticate": "Bearer"})


class InvalidToken(NotSignedIn):
    """Raised when a token is not valid, or when it does not belong to a person (401)."""


class HubUnavailable(AccessRefused):
    """Raised when the Hub cannot tell whom a token belongs to (503)."""

    def __init__(self, detail: str) -> None:
        super().__init__(503, detail, headers={"Retry-After": "60"})


class NotAMaintainer(AccessRefused):
    """Raised when the signed-in account is not a maintainer (403)."""

    def __init__(self, name: str) -> None:
        super().__init__(403, f"only maintainers may do this, and {name} is not one (see ARB_MAINTAINERS)")


P = ParamSpec("P")
T = TypeVar("T")


def hide_unknown(actor: Actor, act: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Call ``act`` on a submission without revealing which ids exist.

    If ``act`` finds no submission, or the submission of another account, raise HTTPException: 404 for
    maintainers, 403 for everybody else.
    """
    try:
        return act(*args, **options)
    except (KeyError, PermissionDenied):
        if actor.is_maintainer:
            raise HTTPException(404, NO_SUBMISSION) from None
        raise HTTPException(403, NOT_YOURS) from None


def is_durable(service: SubmissionsApp) -> bool:
    """Return whether every record so far is durable, without waiting for the Hub."""
    with snapshot(service.engine) as session:
        last = number_of_events(session)
    return service.durability.wait(last, 0.0)


def recorded(service: SubmissionsApp, status: int = 200, **fields: Any) -> JSONResponse:
    """Return the response to a recorded action. Its ``lasts`` says whether the record is durable already."""
    return JSONResponse({**fields, "lasts": is_durable(service)}, status, NO_STORE)


def wants_page(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether to show an error as a page: if the client accepts HTML, except under ``/api``."""
    return not path.startswith(_JSON_ONLY) and "text/html" in headers.get("accept", "")


def sentence(message: str) -> str:
    """Return a message as a sentence: with a capital letter and a full stop."""
    end = "" if message.endswith((".", "!", "?")) else "."
    return f"{message[:1].upper()}{message[1:]}{end}"


def _allowed(request: Request) -> str:
    """Return the methods of all routes at the address; Starlette names only those of the first route."""
    # Without the suite in ``state``, for which `SuiteRoutes` takes any method. All suites have these routes.
    scope = {**request.scope, "state": {}}
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]
    methods = ", ".join(
        method
        for method in ("DELETE", "GET", "PATCH", "POST", "PUT")
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    )
    return methods.replace("GET", "GET, HEAD")  # `HeadLikeGet` answers HEAD


def _unreadable_body(error: StarletteHTTPException) -> tuple[int, str] | None:
    """Return (status, message) if FastAPI or Starlette could not read a body, or None for other errors."""
    if error.status_code != 400:
        return None
    if isinstance(error.__cause__, UnicodeDecodeError | RecursionError):
        return 422, NOT_JSON
    if isinstance(error.__context__, MultiPartException):
        return 400, f"the form cannot be read: {error.detail}"
    return None


def _invalid_field(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a field. The message does not quote the value, which may be an answer."""
    name = ".".join(map(str, error["loc"][1:]))
    match error["type"]:
        case "json_invalid":
            return NOT_JSON
        case _ if (part := name.partition(".")[0]) in FILE_PARTS:
            return NO_FILE.format(part=part)
        case _ if not name:
            return "the body must be a JSON object"
        case "missing":
            return f"{name}: fill it in"
        case "literal_error":
            expected = error["ctx"]["expected"].removeprefix("'', ")  # an empty value means the default
            return f"{name}: must be {expected}"
        case "int_parsing":
            return f"{name}: must be a whole number"
        case "greater_than_equal":
            return f"{name}: must be at least {error['ctx']['ge']}"
        case "extra_forbidden":
            return f"{name[:40]!r}: there is no such field"
        case "string_too_long":
            return f"{name}: is over {error['ctx']['max_length']} characters; shorten it"
        case _:
            return f"{name}: {error['msg']}"
