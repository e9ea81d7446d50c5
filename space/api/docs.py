"""``/api``: the REST API for people to read, made from the OpenAPI document that programs read.

Not by Swagger UI or ReDoc: those are scripts of more than a megabyte, without which nothing is drawn.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from markupsafe import Markup, escape
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from space.operations.security import POLICY, content_policy, script_hashes
from space.web.frame import PageFrame

PATH: Final = "/api"
TITLE: Final = "API"
DESCRIPTION: Final = "The REST API of the leaderboard: every address with its parameters, body and answers."
ABOUT_REST: Final = (
    "Answers are JSON unless stated otherwise. An error says in `detail` (or `error`) what is wrong and what "
    "to do. Reading needs no account. On a Space, submitting needs a Hugging Face access token, sent as "
    "`Authorization: Bearer hf_…`. It is used to ask the Hub for your name and is not stored."
)
_TYPES: Final = {"integer": "whole number", "boolean": "true or false", "string": "text", "object": "object"}
_FROM_FASTAPI: Final = ("Successful Response", "Validation Error")
"""Descriptions that say nothing."""


@dataclass(frozen=True)
class Field:
    """A parameter of an address (``place`` is "address"), or a field of a body ("form", "JSON")."""

    name: str
    place: str
    type: str
    is_required: bool
    schema: Mapping[str, Any]

    @property
    def values(self) -> list[str]:
        return [str(value) for each in _choices(self.schema) for value in each.get("enum", [])]


@dataclass(frozen=True)
class Operation:
    """One method of one address."""

    tag: str
    method: str
    path: str
    details: Mapping[str, Any]
    fields: tuple[Field, ...]

    @property
    def anchor(self) -> str:
        return f"{self.method}{self.path}".replace("/", "-").translate(str.maketrans("", "", "{}"))

    @property
    def answers(self) -> list[tuple[str, str]]:
        """What each status means, where the route says so."""
        found = [(status, each["description"]) for status, each in self.details["responses"].items()]
        return sorted(pair for pair in found if pair[1] not in _FROM_FASTAPI)


def build_api_router(app: FastAPI, pages: PageFrame) -> APIRouter:
    """The route of the page; it is made at the first request, when every route is there."""
    router = APIRouter()

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def describe(request: Request) -> Response:
        return pages.cached(request, PATH, "pages/api.html", TITLE, PATH, lambda: page_values(app.openapi()))

    return router


def page_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the template takes of an OpenAPI document."""
    by_tag = {tag: list(found) for tag, found in groupby(operations_of(document), lambda each: each.tag)}
    about = document["info"]["description"]
    return {"description": DESCRIPTION, "about": about, "groups": by_tag, "code": with_code}


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """The operations of a document, sorted by tag in the order in which tags first appear."""
    found = [
        Operation(each["tags"][0], method.upper(), path, each, tuple(_fields(document, each)))
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]
    order = list(dict.fromkeys(each.tag for each in found))
    return sorted(found, key=lambda each: order.index(each.tag))


def with_code(text: str) -> Markup:
    """The text on one line as HTML, with what stands in backquotes as code."""
    pieces = " ".join(text.split()).replace("``", "`").split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(pieces)
    )


def _fields(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[Field]:
    for each in operation.get("parameters", []):
        schema = {"description": each.get("description", ""), **each["schema"]}
        yield _field(document, each["name"], "address", each.get("required", False), schema)
    for media_type, each in operation.get("requestBody", {}).get("content", {}).items():
        place = "JSON" if media_type == "application/json" else "form"
        body = _merged(document, each["schema"])
        for name, schema in body.get("properties", {}).items():
            yield _field(document, name, place, name in body.get("required", ()), schema)


def _field(
    document: Mapping[str, Any], name: str, place: str, is_required: bool, schema: Mapping[str, Any]
) -> Field:
    schema = _merged(document, schema)
    types = dict.fromkeys(map(_type_of, _choices(schema)))
    return Field(name, place, " or ".join(types), is_required, schema)


def _type_of(schema: Mapping[str, Any]) -> str:
    if "contentMediaType" in schema:
        return "file"
    if schema.get("type") == "array":
        return f"{_type_of(schema['items'])}, again for more"
    return _TYPES.get(schema.get("type", "string"), schema["type"])


def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]


def _merged(document: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to."""
    found: dict[str, Any] = {"properties": {}, "required": []}
    refers = [{"$ref": schema["$ref"]}] if "$ref" in schema else schema.get("allOf", [])
    for each in [*refers, schema]:
        if "$ref" in each and each is not schema:
            name = each["$ref"].rpartition("/")[2]
            each = _merged(document, document["components"]["schemas"][name])
        properties = {**each.get("properties", {}), **found["properties"]}
        required = [*found["required"], *each.get("required", [])]
        found = {**found, **each, "properties": properties, "required": required}
    return found


class Documentation(StaticFiles):
    """The built documentation (`make docs`) under ``/docs``, whose own inline scripts are allowed by hash."""

    def __init__(self, folder: Path, on_space: bool) -> None:
        super().__init__(directory=folder, html=True)
        self._on_space = on_space

    def file_response(
        self,
        full_path: os.PathLike[str] | str,
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        if Path(full_path).suffix == ".html":
            hashes = script_hashes(Path(full_path).read_text(encoding="utf-8"))
            response.headers[POLICY] = content_policy(self._on_space, hashes)
        return response
