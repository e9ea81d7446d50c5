"""JSON that is sent to us: never more of it than a small form, and checked field by field."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, ValidationError

MOST_BYTES: Final = 8_000
Said = TypeVar("Said", bound=BaseModel)


def json_body(model: type[Said], most_bytes: int = MOST_BYTES) -> Callable[[Request], Awaitable[Said]]:
    """A FastAPI dependency that gives the body of a request as ``model``; an empty body is an empty object.

    It raises HTTPException: 413 for more than a form holds, 422 naming every field that is not in order.
    """

    async def read(request: Request) -> Said:
        try:
            said = json.loads(await _bounded(request, most_bytes) or b"{}")
        except (ValueError, RecursionError):
            raise HTTPException(422, "the body is no JSON: send an object in UTF-8") from None
        if not isinstance(said, dict):
            raise HTTPException(422, "the body has to be a JSON object")
        try:
            return model.model_validate(said)
        except ValidationError as error:
            raise HTTPException(422, "; ".join(map(_message, error.errors()))) from None

    return read


def described(model: type[BaseModel]) -> dict[str, Any]:
    """The body as OpenAPI describes it, for ``openapi_extra``."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


async def _bounded(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            raise HTTPException(413, f"the body is over {most_bytes:,} bytes")
    return bytes(body)


def _message(detail: Mapping[str, Any]) -> str:
    name = ".".join(map(str, detail["loc"]))
    match detail["type"]:
        case "missing":
            return f"{name}: fill it in"
        case "literal_error":
            return f"{name}: is not one of {detail['ctx']['expected']}"
        case "extra_forbidden":
            return f"{name[:40]!r}: there is no such field"
        case "string_too_long":
            return f"{name}: is over {detail['ctx']['max_length']} characters; shorten it"
        case _:
            return f"{name}: {detail['msg']}"
