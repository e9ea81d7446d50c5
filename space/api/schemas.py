"""The schemas of the REST API's responses, for OpenAPI.

Routes return ready-made bytes or dicts that other parts make, so FastAPI cannot tell what is in them. The
models are in `space.api.models`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from space.api import models

Schema = dict[str, Any]
_COMPONENTS: Final = "#/components/schemas/"
_CSV, _PICTURE, _TEXT = "text/csv", "image/*", "text/plain"
RESPONSES: Final[dict[str, type[BaseModel] | str]] = {
    "/api/board.json": models.BoardJson,
    "/api/board": models.BoardPage,
    "/api/board.csv": _CSV,
    "/api/judges": models.Judges,
    "/api/suites": models.SuiteComparison,
    "/api/boards": models.LabelVersions,
    "/api/boards/{label_version}": models.BoardJson,
    "/healthz": models.Health,
    "/readyz": models.ReadinessJson,
    "/api/template": "application/octet-stream",
    "/api/check": models.CheckReport,
    "/api/estimate": models.Estimates,
    "/api/submissions": models.SubmissionJson,
    "/api/submissions/{submission_id}": models.SubmissionJson,
    "/api/submissions/{submission_id}/withdraw": models.SubmissionJson,
    "/api/submissions/{submission_id}/publish": models.SubmissionJson,
    "/api/submissions/{submission_id}/refresh": models.SubmissionJson,
    "/api/judges/rename": models.RecordedRenaming,
    "/api/allowance": models.Allowance,
    "/api/screenshot": _PICTURE,
    "/api/goal_image": _PICTURE,
    "/api/tree": _TEXT,
    "/api/parts": models.RunParts,
    "/api/annotate/screenshot": _PICTURE,
    "/api/annotate/goal_image": _PICTURE,
    "/api/annotate/tree": _TEXT,
    "/api/maintain/submissions/{submission_id}": models.RecordedDecision,
    "/api/maintain/accounts/{name}": models.RecordedAccount,
    "GET /api/maintain/rescore": models.JobJson,
    "POST /api/maintain/rescore": models.StartedJob,
    "GET /api/maintain/labels": models.NextVersionPreview,
    "POST /api/maintain/labels": models.StartedJob,
    "/api/maintain/log": models.Log,
    "GET /api/disputes": models.Disputes,
    "POST /api/disputes": models.RecordedDispute,
    "/api/maintain/disputes/{dispute_id}": models.RecordedDispute,
    "GET /api/errors": models.JudgeErrors,
    "POST /api/errors": models.RecordedTag,
    "/api/errors.csv": _CSV,
    "/api/annotate": models.Queue,
    "GET /api/annotate/answers": models.OwnAnswers,
    "PUT /api/annotate/answers": models.SavedAnswersJson,
    "/api/discuss": models.Discussions,
    "/api/discuss/agreement": models.AgreementReportJson,
    "/api/discuss/decisions": models.RecordedQuestion,
    "/api/discuss/invite": models.RecordedInvitation,
    "/api/discuss/uninvite": models.Recorded,
    "/api/discuss/assign": models.RecordedAssignments,
    "/api/discuss/rule": models.RecordedRule,
    "/api/discuss/gold": models.RecordedGold,
    "/api/discuss/publish": models.RecordedLabels,
    "/api/sessions": models.SessionsJson,
    "/api/sessions/end": models.Ended,
    "/api/me": models.AccountJson,
    "503 /readyz": models.NotReady,
}
"""The model or the media type of each successful response, by path, with a method if they differ.

Every other response is a `models.ProblemJson`.
"""


SUITE_PARAMETER: Final[Schema] = {
    "name": "suite",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "default": "", "title": "Suite"},
    "description": "The suite, if the Space has several; by default its default suite.",
}
"""A parameter of every route, which `space.web.suite_path.SuitePath` reads."""


def operation_id(route: APIRoute) -> str:
    """Return the name of an operation in generated clients, such as ``get_board_json``."""
    words = re.sub(r"\W+", "_", route.path_format.removeprefix("/api")).strip("_")
    return f"{min(route.methods or ()).lower()}_{words}"


def describe_responses(app: FastAPI) -> None:
    """Add the schemas of responses to the application's OpenAPI document."""
    make = app.openapi

    def openapi() -> Schema:
        if app.openapi_schema is None:
            document = make()
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):  # `Problem` says what errors have
                schemas.pop(name, None)
            for name in [name for name in schemas if name.startswith("Body_")]:
                schemas[name] = _plain_form(schemas[name], schemas)
            schemas |= schemas_of_models()
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    if path != "/healthz":
                        operation.setdefault("parameters", []).append(SUITE_PARAMETER)
                    for status, response in operation["responses"].items():
                        if status.startswith("2"):
                            kind = RESPONSES.get(path) or RESPONSES[f"{method.upper()} {path}"]
                        else:
                            kind = RESPONSES.get(f"{status} {path}", models.ProblemJson)
                        response["content"] = _content(kind)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


def _plain_form(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema of a form without ``allOf``, and with files as ``format: binary``.

    Generators of clients otherwise leave out the file next to a declaration, and send files as texts.
    """
    parts = [schemas[part["$ref"].rpartition("/")[2]] for part in schema.get("allOf", ())]
    properties = {name: field for each in (*parts, schema) for name, field in each["properties"].items()}
    for field in properties.values():
        for value in (field, field.get("items", {}), *field.get("anyOf", ())):
            if "contentMediaType" in value:
                value["format"] = "binary"
    required = [name for each in (*parts, schema) for name in each.get("required", ())]
    return {"type": "object", "title": schema["title"], "properties": properties, "required": required}


def schemas_of_models() -> Schema:
    """Return the schemas of all models by name."""
    found = {kind for kind in (*RESPONSES.values(), models.ProblemJson) if not isinstance(kind, str)}
    ordered = sorted(found, key=schema_name)
    _, document = models_json_schema(
        [(model, "serialization") for model in ordered], ref_template=f"{_COMPONENTS}{{model}}"
    )
    text = re.sub(rf'(": "(?:{_COMPONENTS})?\w+)Json"', r'\1"', json.dumps(document["$defs"]))
    schemas = {name.removesuffix("Json"): schema for name, schema in json.loads(text).items()}
    for name, schema in schemas.copy().items():
        if "$ref" in schema:  # a model of only another class; generators of clients would make it twice
            schemas[name] = schemas.pop(schema["$ref"].rpartition("/")[2]) | {"title": name}
    return schemas


def schema_name(model: type[BaseModel]) -> str:
    """Return the name of a model in the document: without the ``Json`` of models of domain objects."""
    return model.__name__.removesuffix("Json")


def _content(kind: type[BaseModel] | str) -> Schema:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string", **({} if "text" in kind else {"format": "binary"})}}}
    return {"application/json": {"schema": {"$ref": _COMPONENTS + schema_name(kind)}}}
