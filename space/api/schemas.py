"""Describes the responses of the REST API in OpenAPI, from ``responses.yaml`` and from our classes."""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final, get_type_hints

import yaml
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, create_model

from arb.core.predictions.check import BenchmarkSummary
from leaderboard.board.rows import BoardRow
from leaderboard.labels.agreement import OpenItem, QuestionAgreement
from leaderboard.success_rates.estimate import AgentEstimate
from leaderboard.success_rates.files import CrashedRuns
from leaderboard.suites.matrix import SuiteMatrix
from space.pages.trajectories.parts import RunPart
from submissions.records.statuses import SubmissionStatus
from submissions.scoring.rescore import JudgeEffect, Rescoring

Schema = dict[str, Any]
_COMPONENTS: Final = "#/components/schemas/"
_FILE: Final = Path(__file__).with_name("responses.yaml")
_CLASSES: Final = (
    AgentEstimate, BenchmarkSummary, CrashedRuns, JudgeEffect, OpenItem, QuestionAgreement, Rescoring,
    RunPart, SubmissionStatus, SuiteMatrix,
)  # fmt: skip
"""Classes whose instances routes return as JSON."""


def operation_id(route: APIRoute) -> str:
    """Return the name of an operation in generated clients, such as ``get_board_json``."""
    words = re.sub(r"\W+", "_", route.path_format.removeprefix("/api")).strip("_")
    return f"{min(route.methods or ()).lower()}_{words}"


def describe_responses(app: FastAPI) -> None:
    """Add the responses and their schemas to the application's OpenAPI document."""
    make = app.openapi

    def openapi() -> Schema:
        if app.openapi_schema is None:
            document = make()
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):  # `Problem` says what errors have
                schemas.pop(name, None)
            for name in [name for name in schemas if name.startswith("Body_")]:
                schemas[name] = _plain_form(schemas[name], schemas)
            schemas |= response_schemas()
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    if path != "/healthz":
                        operation.setdefault("parameters", []).append(described()["suite_parameter"])
                    responses = operation["responses"]
                    statuses = described()["statuses"].get(f"{method.upper()} {path}", {})
                    responses |= {status: {"description": text} for status, text in statuses.items()}
                    for status, response in responses.items():
                        response["content"] = _content(response_of(method.upper(), path, status))
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


def _plain_form(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Return a form's schema without ``allOf`` and with files as ``format: binary``.

    Otherwise, client generators omit the file field of forms that also contain a declaration, and send
    files as text.
    """
    parts = [schemas[part["$ref"].rpartition("/")[2]] for part in schema.get("allOf", ())]
    properties = {name: field for each in (*parts, schema) for name, field in each["properties"].items()}
    for field in properties.values():
        for value in (field, field.get("items", {}), *field.get("anyOf", ())):
            if "contentMediaType" in value:
                value["format"] = "binary"
    required = [name for each in (*parts, schema) for name in each.get("required", ())]
    return {"type": "object", "title": schema["title"], "properties": properties, "required": required}


@cache
def described() -> Schema:
    """Return the content of ``responses.yaml``, with references rewritten as OpenAPI ``$ref`` values."""
    text = _FILE.read_text(encoding="utf-8")
    found: Schema = yaml.safe_load(re.sub(r"\$ref: (\w+)", rf'$ref: "{_COMPONENTS}\1"', text))
    return found


def response_of(method: str, path: str, status: str) -> str:
    """Return the schema or the media type of a response; raise KeyError if its route is not described."""
    named: Mapping[str, str] = described()["responses"]
    if not status.startswith("2"):
        return named.get(f"{status} {path}", "Problem")
    return named.get(path) or named[f"{method} {path}"]


def response_schemas() -> Schema:
    """Return the schemas of all objects in responses, keyed by name."""
    # Rows from papers may have kinds and inputs that a submission may not.
    hints = get_type_hints(BoardRow) | {"kind": str, "inputs": str}
    of_row: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(BoardRow)}
    row: type[BaseModel] = create_model("BoardRow", __doc__="A row of the board.", **of_row)
    _, document = TypeAdapter.json_schemas(
        [(each.__name__, "serialization", TypeAdapter(each)) for each in (row, *_CLASSES)],
        ref_template=f"{_COMPONENTS}{{model}}",
    )
    schemas: Schema = document["$defs"]
    schemas["SuiteComparison"] = schemas.pop("SuiteMatrix") | {"title": "SuiteComparison"}
    for name, schema in described()["schemas"].items():
        optional = schema.get("optional", ())
        required = [
            each
            for each, value in schema["properties"].items()
            if each not in optional and "default" not in value
        ]
        rest = {key: value for key, value in schema.items() if key != "optional"}
        schemas[name] = {"title": name, "type": "object", "required": required, **rest}
    return schemas


def _content(kind: str) -> Schema:
    if "/" in kind:
        return {kind: {"schema": {"type": "string", **({} if "text" in kind else {"format": "binary"})}}}
    return {"application/json": {"schema": {"$ref": _COMPONENTS + kind}}}
