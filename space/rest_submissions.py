"""Checking and submitting over HTTP: what the submit page does, for commands and scripts.

Nothing that is sent is trusted: a body is cut off at the limit while it comes in, the number and size of form
fields are bounded, and pages of other sites are refused (a browser says where a request comes from).
"""

import logging
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

from dataset_script.prediction_file.template import template
from submissions.declaration import DeclarationError, declare
from submissions.predictions import Upload
from submissions.service import SubmissionRefused, SubmissionService

logger = logging.getLogger(__name__)
FORM_BYTES = 64_000
"""Room for the fields and the boundaries beside the file; also the longest single field."""
MOST_FIELDS = 16
DECLARED = ("account", "judge", "kind", "inputs", "model", "authors", "link")
ANSWERS = {"true": True, "yes": True, "false": False, "no": False}
MEDIA_TYPES = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
FORM_SCHEMA = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
            }
        },
    }
}


class BodyTooLarge(Exception):
    """More was sent than may be taken."""


def build_submission_router(service: SubmissionService) -> APIRouter:
    """The routes over a service."""
    router = APIRouter()
    limit = service.settings.max_upload_bytes

    async def form(request: Request) -> FormData:
        return await read_form(request, limit + FORM_BYTES)

    Form = Annotated[FormData, Depends(form)]

    @router.get("/api/template", summary="A prediction file to fill in: every trajectory of a split")
    def fill_in(
        split: Literal["dev", "test"], format: Literal["jsonl", "csv", "parquet"] = "jsonl"
    ) -> Response:
        name = f"{service.suite.name}-{split}.{format}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(
            template(service.suite, split, format), media_type=MEDIA_TYPES[format], headers=headers
        )

    @router.post(
        "/api/check",
        summary="Every finding of a prediction file; nothing is recorded",
        openapi_extra=FORM_SCHEMA,
    )
    async def check(form: Form, split: Literal["dev", "test"] = "test") -> JSONResponse:
        upload = await _upload(service, form, split)
        return JSONResponse(upload.check.to_json())

    @router.post(
        "/api/submissions",
        summary="Submit a judge's test verdicts; the same file of the same judge is one submission",
        openapi_extra=FORM_SCHEMA,
    )
    async def submit(form: Form) -> JSONResponse:
        upload = await _upload(service, form, "test")
        if not upload.check.acceptable:
            report = upload.check.to_json()
            return JSONResponse({"error": "the file is not acceptable", "check": report}, status_code=422)
        return await run_in_threadpool(_submit, service, upload, form)

    return router


async def read_form(request: Request, most_bytes: int) -> FormData:
    """The form of a request, never more of it than ``most_bytes``. Raises HTTPException with what to do."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HTTPException(403, "a page of another site may not send files here")
    taken = 0

    async def bounded():
        nonlocal taken
        message = await request.receive()
        taken += len(message.get("body", b""))
        if taken > most_bytes:
            raise BodyTooLarge
        return message

    try:
        return await Request(request.scope, bounded).form(
            max_files=1, max_fields=MOST_FIELDS, max_part_size=FORM_BYTES
        )
    except BodyTooLarge:
        raise HTTPException(
            413, f"more than {most_bytes - FORM_BYTES:,} bytes: send a smaller file (without reasoning, say)"
        ) from None
    except MultiPartException as problem:
        raise HTTPException(400, f"the form cannot be read: {problem.message}") from None


async def _upload(service: SubmissionService, form: FormData, split: str) -> Upload:
    """The file of the form, checked in a thread of its own."""
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise HTTPException(422, "no file: send it as the form's part `file` (curl -F file=@FILE)")
    content = await file.read()
    return await run_in_threadpool(service.check, content, file.filename or "", split)


def _submit(service: SubmissionService, upload: Upload, form: FormData) -> JSONResponse:
    try:
        texts = {name: form.get(name) for name in DECLARED}
        used = ANSWERS.get(str(form.get("test_labels_used", "")).lower())
        declaration = declare(**texts, test_labels_used=used)
        receipt = service.submit(upload, declaration)
    except DeclarationError as error:
        fields = [{"field": field, "message": message} for field, message in error.problems]
        return JSONResponse({"error": "the declaration is not complete", "fields": fields}, status_code=422)
    except SubmissionRefused as error:
        return JSONResponse({"error": str(error)}, status_code=409)
    except Exception:
        logger.exception("submitting failed")
        said = "something failed on our side; sending the same file again makes no second entry"
        return JSONResponse({"error": said}, status_code=500)
    row = next((row for row in service.board().rows if row.id == receipt.submission_id), None)
    found = {
        "submission_id": receipt.submission_id,
        "judge": receipt.judge,
        "account": receipt.account,
        "file_sha256": receipt.file_sha256,
        "submitted_at": receipt.submitted_at.isoformat(),
        "label_version": receipt.label_version,
        "is_new": receipt.is_new,
        "labels": row.labels if row else None,
    }
    return JSONResponse(found, status_code=201 if receipt.is_new else 200)
