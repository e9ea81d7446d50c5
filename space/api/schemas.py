"""The schemas of the REST API's responses, for OpenAPI.

Routes return ready-made bytes or dicts that other parts make, so FastAPI cannot tell what is in them. A
schema names the fields that every response has. Further fields may be added.
"""

from typing import Any, Final

from fastapi import FastAPI

Schema = dict[str, Any]
_TYPES: Final[dict[str, Schema]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {}},
    "dict": {"type": "object"},
    "any": {},
}


def _fields(text: str) -> Schema:
    """Return the schema of an object from its fields, such as ``"name:str? rows:[Row] n:int"``.

    ``?`` allows null, ``[Row]`` is a list of another schema, and ``~`` marks a field that may be missing.
    """
    properties, required = {}, []
    for part in text.split():
        name, _, kind = part.partition(":")
        properties[name.rstrip("~")] = _type(kind)
        if not name.endswith("~"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _type(kind: str) -> Schema:
    if kind.endswith("?"):
        return {"anyOf": [_type(kind[:-1]), {"type": "null"}]}
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind[1:-1])}
    return _TYPES.get(kind, {"$ref": f"#/components/schemas/{kind}"})


SCHEMAS: Final[dict[str, Schema]] = {
    name: _fields(text)
    for name, text in {
        "BoardRow": "id:str judge:str account:str kind:str inputs:str model:str provenance:str date:str "
        "labels:dict",
        "Board": "suite:str split:str label_version:str policy:str rows:[BoardRow] digest:str",
        "BoardPage": "suite:str split:str label_version:str policy:str n_rows:int next:str? rows:[BoardRow]",
        "Judge": "judge:str account:str kind:str inputs:str model:str provenance:str best_row:str rows:[str] "
        "figures:dict",
        "Judges": "suite:str label_version:str board_digest:str judges:[Judge]",
        "LabelVersions": "label_versions:[str] current:str?",
        "Health": "status:str",
        "Readiness": "status:str suite:str submissions:str waiting:int records:str? label_version:str? "
        "board_digest:str",
        "Finding": "level:str code:str message:str rows:[int] count:int column~:str",
        "CheckReport": "file:str? suite:str split:str acceptable:bool rows:int coverage:float "
        "success_share:float? by_benchmark:dict findings:[Finding]",
        "Estimates": "",
        "Submission": "submission_id:str account:str judge:str judge_name:str suite:str split:str "
        "file_sha256:str submitted_at:str label_version:str record:int record_hash:str signature:str "
        "is_new:bool status:str standing:dict report:dict? appears_at:str? message:str",
        "Recorded": "lasts:bool",
        "Allowance": "account:str message:str",
        "Job": "state:str found~:any message~:str?",
        "Log": "records:list",
        "Disputes": "disputes:list of:int",
        "Queue": "annotator:str done:int next:str? tasks:list",
        "GivenAnswers": "answers:dict saved:int is_closed:bool",
        "SavedAnswers": "saved:int lasts:bool next:str? next_address:str?",
        "Discussions": "items:list",
        "Agreement": "questions:dict items:list?",
        "Sessions": "sessions:list",
        "Ended": "ended:int",
        "Account": "name:str? is_maintainer:bool is_annotator:bool how:str? may_submit_from:str? "
        "problem:str?",
    }.items()
}
"""The objects in responses, by name."""

_CSV, _PICTURE = "text/csv", "image/*"
_PATHS: Final[dict[str, str]] = {
    "/api/board.json": "Board",
    "/api/board": "BoardPage",
    "/api/board.csv": _CSV,
    "/api/judges": "Judges",
    "/api/boards": "LabelVersions",
    "/api/boards/{label_version}": "Board",
    "/healthz": "Health",
    "/readyz": "Readiness",
    "/api/template": "application/octet-stream",
    "/api/check": "CheckReport",
    "/api/estimate": "Estimates",
    "/api/submissions": "Submission",
    "/api/submissions/{submission_id}": "Submission",
    "/api/submissions/{submission_id}/withdraw": "Submission",
    "/api/submissions/{submission_id}/publish": "Submission",
    "/api/submissions/{submission_id}/refresh": "Submission",
    "/api/allowance": "Allowance",
    "/api/screenshot": _PICTURE,
    "/api/goal_image": _PICTURE,
    "/api/tree": "text/plain",
    "/api/annotate/screenshot": _PICTURE,
    "/api/annotate/goal_image": _PICTURE,
    "/api/annotate/tree": "text/plain",
    "/api/maintain/rescore": "Job",
    "/api/maintain/labels": "Job",
    "/api/maintain/log": "Log",
    "GET /api/disputes": "Disputes",
    "/api/errors.csv": _CSV,
    "/api/annotate": "Queue",
    "GET /api/annotate/answers": "GivenAnswers",
    "PUT /api/annotate/answers": "SavedAnswers",
    "/api/discuss": "Discussions",
    "/api/discuss/agreement": "Agreement",
    "/api/sessions": "Sessions",
    "/api/sessions/end": "Ended",
    "/api/me": "Account",
}
"""The schema or the media type of each successful response; the others are a `Recorded` event."""


def describe_responses(app: FastAPI) -> None:
    """Add the schemas of responses to the application's OpenAPI document."""
    make = app.openapi

    def openapi() -> Schema:
        if app.openapi_schema is None:
            document = make()
            document["components"]["schemas"] |= SCHEMAS
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    kind = _PATHS.get(path) or _PATHS.get(f"{method.upper()} {path}", "Recorded")
                    for status, response in operation["responses"].items():
                        if status.startswith("2"):
                            response["content"] = _content(kind)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


def _content(kind: str) -> Schema:
    if "/" in kind:
        return {kind: {"schema": {"type": "string", **({} if "text" in kind else {"format": "binary"})}}}
    return {"application/json": {"schema": _type(kind)}}
