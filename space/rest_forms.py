"""The forms of the REST answers that take a file, as OpenAPI describes them."""

from typing import Any, Final

from submissions.declaration import INPUTS, KINDS

_FILE: Final = {
    "type": "string",
    "format": "binary",
    "description": "A prediction file: JSONL, CSV or Parquet.",
}


def _form(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


CHECK_FORM: Final = _form({"file": _FILE}, ["file"])
SUBMISSION_FORM: Final = _form(
    {
        "file": _FILE,
        "account": _text("Your name; on a Space that of the signed-in account counts."),
        "judge": _text("The judge's name."),
        "kind": _text("What kind of judge it is.", enum=list(KINDS)),
        "inputs": _text("What the judge sees of a trajectory.", enum=list(INPUTS)),
        "model": _text("The model behind it."),
        "authors": _text("Who made it."),
        "link": _text("An https:// address about it."),
        "test_labels_used": _text(
            "Whether test labels were used to build or tune it.", enum=["yes", "no", "true", "false"]
        ),
    },
    ["file", "judge", "kind", "inputs", "test_labels_used"],
)

TOO_OFTEN: Final = "Too often; Retry-After says in how many seconds to ask again."
CHECKED: Final = {
    200: {"description": "Every finding, an error or a warning each, also where the file is not acceptable."},
    400: {"description": "The form cannot be read."},
    413: {"description": "The file is too large."},
    422: {"description": "There is no file."},
    429: {"description": TOO_OFTEN},
}
SUBMITTED: Final = {
    200: {"description": "The receipt again: the same file of this judge was sent before."},
    201: {"description": "Accepted: the signed receipt, and the figures that you may see."},
    202: {"description": "Recorded, but `waiting` for where records last, or `held`; `told` says why."},
    400: {"description": "The form cannot be read."},
    401: {"description": "Nobody is signed in."},
    403: {"description": "This account may not submit; the answer says why."},
    409: {"description": "Not taken; the answer says why."},
    413: {"description": "The file is too large."},
    422: {"description": "The file or the declaration is not in order; every problem is in the answer."},
    429: {"description": "The account has no file left for now; `next_at` and Retry-After say until when."},
}
