"""Compares JSON responses of the REST API with the schemas that the OpenAPI document gives for them."""

import re
from functools import cache
from typing import Any

from httpx import Response
from jsonschema import Draft202012Validator

from space.api import models
from space.api.schemas import RESPONSES, schema_name, schemas_of_models


def _closed(schema: Any) -> Any:
    """The schema, in which objects have no fields but those that it names."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


@cache
def _validator(model: type) -> Draft202012Validator:
    schemas = {name: _closed(schema) for name, schema in schemas_of_models().items()}
    reference = f"#/components/schemas/{schema_name(model)}"
    return Draft202012Validator({"$ref": reference, "components": {"schemas": schemas}})


@cache
def _routes() -> list[tuple[re.Pattern[str], str]]:
    paths = {key.rpartition(" ")[2] for key in RESPONSES}
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in sorted(paths)]


def check_response(method: str, path: str, response: Response) -> None:
    """Fail if a JSON response lacks a field of its model, or has a field that the model does not name."""
    known = next((template for pattern, template in _routes() if pattern.fullmatch(path)), None)
    if method == "HEAD" or known is None or "json" not in response.headers.get("content-type", ""):
        return
    if response.is_success:
        model = RESPONSES.get(known) or RESPONSES.get(f"{method} {known}")
    else:
        model = RESPONSES.get(f"{response.status_code} {known}", models.ProblemJson)
    if isinstance(model, type):
        problems = list(_validator(model).iter_errors(response.json()))
        assert not problems, (
            f"{method} {path}, {model.__name__}: {problems[0].json_path}: {problems[0].message}"
        )
