"""Compares JSON responses of the REST API with the schemas that the OpenAPI document gives for them."""

import re
from functools import cache
from typing import Any

from httpx import Response
from jsonschema import Draft202012Validator

from space.api.schemas import described, response_of, response_schemas


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
def _validator(schema: str) -> Draft202012Validator:
    schemas = {name: _closed(each) for name, each in response_schemas().items()}
    reference = f"#/components/schemas/{schema}"
    return Draft202012Validator({"$ref": reference, "components": {"schemas": schemas}})


@cache
def _routes() -> list[tuple[re.Pattern[str], str]]:
    paths = {key.rpartition(" ")[2] for key in described()["responses"]}
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in sorted(paths)]


def check_response(method: str, path: str, response: Response) -> None:
    """Fail if a JSON response lacks a field of its schema, or has a field that the schema does not name."""
    known = next((template for pattern, template in _routes() if pattern.fullmatch(path)), None)
    if method == "HEAD" or known is None or "json" not in response.headers.get("content-type", ""):
        return
    schema = response_of(method, known, str(response.status_code))
    if "/" in schema:
        return
    problems = list(_validator(schema).iter_errors(response.json()))
    assert not problems, f"{method} {path}, {schema}: {problems[0].json_path}: {problems[0].message}"
