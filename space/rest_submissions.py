"""Checking and submitting over HTTP: what the submit page does, for commands and scripts.

Nothing that is sent is trusted: a body is cut off at the limit while it comes in, the number and size of form
fields are bounded, and pages of other sites are refused (a browser says where a request comes from).
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Annotated, Literal

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

from dataset_script.prediction_file.template import template
from space.auth.auth import Auth
from space.auth.declaring import declare_as
from space.form_headers import FORM_BYTES, form_problem
from space.own.rest import told_json
from space.rest_forms import CHECK_FORM, CHECKED, SUBMISSION_FORM, SUBMITTED
from submissions.accounts import Actor
from submissions.declaration import DeclarationError
from submissions.predictions import Upload
from submissions.refusals import NotAllowed, SubmissionRefused, TooMany
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
MOST_FIELDS = 16
CHECKED_AT_ONCE = 4
"""Files; the others wait outside of memory. Each may take 120 MB, and Parquet a process of its own."""
DECLARED = ("account", "judge", "kind", "inputs", "model", "authors", "link")
ANSWERS = {"true": True, "yes": True, "false": False, "no": False}
MEDIA_TYPES = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


class BodyTooLarge(Exception):
    """More was sent than may be taken."""


def no_limit(request: Request) -> None:
    """As many checks as are asked for."""


def build_submission_router(
    service: SubmissionService,
    limit_checks: Callable[[Request], None] = no_limit,
    auth: Auth | None = None,
) -> APIRouter:
    """The routes over a service; ``limit_checks`` raises HTTPException for an address that asks too often."""
    router = APIRouter()
    auth = auth or Auth(service.settings)
    Submitter = Annotated[Actor | None, Depends(auth.submitter_of)]
    limit, room = service.settings.max_upload_bytes, CapacityLimiter(CHECKED_AT_ONCE)

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
        openapi_extra=CHECK_FORM,
        responses=CHECKED,
        dependencies=[Depends(limit_checks)],
    )
    async def check(form: Form, split: Literal["dev", "test"] = "test") -> JSONResponse:
        upload = await _upload(service, form, split, room)
        return JSONResponse(upload.check.to_json())

    @router.post(
        "/api/submissions",
        summary="Submit a judge's test verdicts; the same file of the same judge is one submission",
        openapi_extra=SUBMISSION_FORM,
        responses=SUBMITTED,
    )
    async def submit(submitter: Submitter, form: Form) -> JSONResponse:
        upload = await _upload(service, form, "test", room)
        if not upload.check.acceptable:
            report = upload.check.to_json()
            return JSONResponse({"error": "the file is not acceptable", "check": report}, status_code=422)
        return await run_in_threadpool(_submit, service, upload, form, submitter)

    return router


async def read_form(request: Request, most_bytes: int) -> FormData:
    """The form of a request, never more of it than ``most_bytes``. Raises HTTPException with what to do."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HTTPException(403, "a page of another site may not send files here")
    problem = form_problem(request.headers.get("content-type", ""))
    if problem:
        raise HTTPException(422, problem)
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


async def _upload(service: SubmissionService, form: FormData, split: str, room: CapacityLimiter) -> Upload:
    """The file of the form, checked in a thread of its own when there is room."""
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise HTTPException(422, "no file: send it as the form's part `file` (curl -F file=@FILE)")
    async with room:
        content = await file.read()
        return await run_in_threadpool(service.check, content, file.filename or "", split)


def _submit(
    service: SubmissionService, upload: Upload, form: FormData, submitter: Actor | None
) -> JSONResponse:
    try:
        texts = {name: form.get(name) for name in DECLARED}
        used = ANSWERS.get(str(form.get("test_labels_used", "")).lower())
        declaration, actor = declare_as(submitter, **texts, test_labels_used=used)
        receipt = service.submit(upload, declaration, actor)
        told = service.submission(receipt.submission_id, actor)
    except DeclarationError as error:
        fields = [{"field": field, "message": message} for field, message in error.problems]
        return JSONResponse({"error": "the declaration is not complete", "fields": fields}, status_code=422)
    except TooMany as error:
        return _too_many(error, service.clock())
    except NotAllowed as error:
        return JSONResponse({"error": str(error)}, status_code=403)
    except SubmissionRefused as error:
        return JSONResponse({"error": str(error)}, status_code=409)
    except Exception:
        logger.exception("submitting failed")
        said = "something failed on our side; sending the same file again makes no second entry"
        return JSONResponse({"error": said}, status_code=500)
    found = told_json(replace(told, receipt=receipt))
    status = 200 if not receipt.is_new else 201 if receipt.status == "accepted" else 202
    return JSONResponse(found, status_code=status)


def _too_many(error: TooMany, now: datetime) -> JSONResponse:
    """429 with the moment of the next file; where there is none, no moment to come back at."""
    found, headers = {"error": str(error), "next_at": None}, {}
    if error.next_at.year < 9999:
        found["next_at"] = error.next_at.isoformat()
        headers["Retry-After"] = str(max(1, ceil((error.next_at - now).total_seconds())))
    return JSONResponse(found, status_code=429, headers=headers)
