"""``/api``: the REST answers described for people, from the same OpenAPI document that programs read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response

from space.plain_page import PlainPages

PATH: Final = "/api"
TITLE: Final = "REST"
SAID: Final = "Every REST answer of the leaderboard: addresses, parameters, forms, answers."
ABOUT_REST: Final = (
    "Answers are JSON where nothing else is said, and a refusal says in `error` or `detail` what to do. "
    "Reading needs no account. On a Space, submitting takes an access token of Hugging Face as "
    "`Authorization: Bearer hf_…`; it is used to ask the Hub for your name, and not kept."
)
_OTHER: Final = "This Space"


@dataclass(frozen=True)
class Field:
    """A parameter of an address, or a field of a form."""

    name: str
    kind: str
    is_required: bool
    said: str
    values: tuple[str, ...]
    is_of_form: bool


@dataclass(frozen=True)
class Operation:
    """One address with a method; ``body`` is what its body is: ``form``, ``JSON``, or nothing."""

    method: str
    path: str
    anchor: str
    title: str
    said: str
    fields: tuple[Field, ...]
    body: str
    answers: tuple[tuple[str, str], ...]


def build_description_router(app: FastAPI, pages: PlainPages) -> APIRouter:
    """The route of the page; it is made when it is first asked for, so of every route of the application."""
    router = APIRouter()

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def describe(request: Request) -> Response:
        return pages.cached(
            request, PATH, "rest.html", TITLE, PATH, lambda: description_values(app.openapi())
        )

    return router


def description_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's template takes of an OpenAPI document."""
    about = _pieces(document["info"].get("description", ""))
    return {"description": SAID, "about": about, "groups": groups_of(document), "pieces": _pieces}


def groups_of(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """The operations of a document under their tags, in its order."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            group = (found.get("tags") or [_OTHER])[0]
            groups.setdefault(group, []).append(_operation(document, method, path, found))
    return groups


def _operation(document: Mapping[str, Any], method: str, path: str, found: Mapping[str, Any]) -> Operation:
    body, form = _body_of(found)
    fields = [_parameter(document, each) for each in found.get("parameters", [])]
    required = form.get("required", ())
    for name, schema in form.get("properties", {}).items():
        said = schema.get("description", "")
        fields.append(_field(document, name, schema, name in required, said, is_of_form=True))
    answers = [(status, each.get("description", "")) for status, each in found.get("responses", {}).items()]
    return Operation(
        method=method.upper(),
        path=path,
        anchor=f"{method}{path}".replace("/", "-").translate(str.maketrans("", "", "{}")),
        title=found.get("summary", ""),
        said=" ".join(found.get("description", "").split()),
        fields=tuple(fields),
        body=body,
        answers=tuple(sorted((status, said) for status, said in answers if said not in _GENERIC)),
    )


_GENERIC: Final = ("Successful Response", "Validation Error")
"""What FastAPI writes where nobody said more."""


def _body_of(found: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """What a body is (``form``, ``JSON``) and its schema; two times nothing where none is sent."""
    content = found.get("requestBody", {}).get("content", {})
    for kind, said in (("multipart/form-data", "form"), ("application/json", "JSON")):
        if kind in content:
            return said, content[kind].get("schema", {})
    return "", {}


def _parameter(document: Mapping[str, Any], found: Mapping[str, Any]) -> Field:
    schema = found.get("schema", {})
    said = found.get("description") or schema.get("description", "")
    return _field(document, found["name"], schema, found.get("required", False), said)


def _field(
    document: Mapping[str, Any],
    name: str,
    schema: Mapping[str, Any],
    is_required: bool,
    said: str,
    is_of_form: bool = False,
) -> Field:
    schemas = [_resolved(document, each) for each in schema.get("anyOf", [schema])]
    schemas = [each for each in schemas if each.get("type") != "null"]
    kinds = dict.fromkeys(_kind(each) for each in schemas)
    values = [str(value) for each in schemas for value in each.get("enum", [])]
    if "default" in schema and schema["default"] not in (None, ""):
        said = f"{said} Default: {schema['default']}.".strip()
    return Field(name, " or ".join(kinds), is_required, said, tuple(values), is_of_form)


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = schema
    if "$ref" in schema:
        found = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
    return "file" if schema.get("format") == "binary" else words.get(schema.get("type", ""), "text")


def _pieces(text: str) -> Iterable[tuple[bool, str]]:
    """The text cut at its backquotes: (is it code, the piece)."""
    return [
        (bool(place % 2), piece) for place, piece in enumerate(text.replace("``", "`").split("`")) if piece
    ]
