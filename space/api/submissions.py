"""REST routes that check and submit files and estimate rates from files.

`space.web.body_limits` limits the size of requests before they reach these routes.
"""

import logging
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import fastapi
from fastapi import APIRouter, Depends, Form, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from arb.core.formats import FORMATS
from arb.core.judge_info import REQUIRED, DeclarationError, declared_fields
from arb.core.predictions.write import template
from space.estimates import (
    ESTIMATE_LIMITS,
    CrashedChoice,
    DrawFile,
    FileEstimates,
    LabelsFile,
    VerdictFiles,
)
from space.operations.limits import sender_of
from space.operations.upload_queue import reads_apart
from space.services import Services
from space.web.body_limits import FORM_LIMITS
from space.web.http_errors import NO_STORE
from space.web.submission_text import waiting_headers
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor, declare_as

logger = logging.getLogger(__name__)
FAILED = "something failed on our side; send the same file again (it is not entered twice)"
MEDIA_TYPES = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
_ABOUT_FILE: Final = (
    f"A prediction file of format {FORMATS['prediction file']} or older: JSONL, CSV or Parquet."
)
File = Annotated[UploadFile, fastapi.File(description=_ABOUT_FILE)]


def _form_field(name: str) -> Any:
    """Return the type and field of a form field that accepts any string; `declare` checks the value later."""
    schema = declared_fields()[name]
    choices = ["yes", "no", "true", "false"] if name == "test_labels_used" else schema.get("enum")

    def offer_choices(described: dict[str, Any]) -> None:
        if choices:
            described.pop("default", None)  # "" stands for a field that is missing, and is not a choice
            described["enum"] = choices

    return str, Field("", description=schema["description"], json_schema_extra=offer_choices)


if TYPE_CHECKING:
    DeclarationForm = BaseModel
else:
    _REQUIRED: Final = [name for name in REQUIRED if name != "account"]
    DeclarationForm = create_model(
        "DeclarationForm",
        __config__=ConfigDict(json_schema_extra={"required": _REQUIRED}),
        **{name: _form_field(name) for name in declared_fields()},
    )


def build_submission_router(services: Services) -> APIRouter:
    router = APIRouter(form_limits=FORM_LIMITS)
    service, uploads = services.submissions, services.uploads
    Submitter = Annotated[Actor | None, Depends(services.auth.submitter_of)]
    on_space = service.settings.space_id is not None
    estimates = FileEstimates(service, uploads)

    @router.get("/api/template", summary="Get a prediction file to fill in, with every trajectory of a split")
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
        summary="Check a prediction file and get every finding; nothing is recorded",
    )
    async def check(request: Request, file: File, split: Literal["dev", "test"] = "test") -> JSONResponse:
        def answer() -> JSONResponse:
            upload = service.intake.check(file.file.read(), file.filename or "", split, reads_apart())
            return JSONResponse(upload.check.to_json())

        return await uploads.run(sender_of(request, on_space), answer)

    @router.post(
        "/api/estimate",
        summary="Estimate agents' rates from your files; nothing is stored",
        form_limits=ESTIMATE_LIMITS,
    )
    async def estimate(
        request: Request,
        verdicts: VerdictFiles,
        labels: LabelsFile,
        draw: DrawFile = None,
        crashed: CrashedChoice = "failures",
    ) -> JSONResponse:
        """The response is the same as the output of ``leaderboard estimate --json``.

        It has an estimate from the verdicts of each judge, one from the labels, and one from both (assisted).
        Rates and their 95 % intervals are from 0 to 1. Findings name the file, the rows and the column.

        A Space that serves a folder of runs (``--source``) knows which of them crashed before a judge could
        see them. On other Spaces ``crashed`` is null, and such runs are missing from the rates.
        """
        found = await estimates.make(request, verdicts, labels, draw, crashed)
        return JSONResponse(found.to_json(), 422 if found.errors else 200, NO_STORE)

    @router.post(
        "/api/submissions",
        summary="Submit a judge's test verdicts; a file that is sent twice is one submission",
    )
    async def submit(
        request: Request, submitter: Submitter, file: File, declared: Annotated[DeclarationForm, Form()]
    ) -> JSONResponse:
        def answer() -> JSONResponse:
            upload = service.intake.check(file.file.read(), file.filename or "", "test", reads_apart())
            if not upload.check.acceptable:
                problem = {"detail": "the file is not acceptable", "check": upload.check.to_json()}
                return JSONResponse(problem, status_code=422)
            try:
                view = service.intake.submit(upload, *declare_as(submitter, **declared.model_dump()))
            except (DeclarationError, SubmissionError):
                raise
            except Exception:
                logger.exception("submitting failed")
                return JSONResponse({"detail": FAILED}, status_code=500)
            status = 200
            if view.receipt.is_new:
                status = 201 if view.receipt.status == "accepted" else 202
            return JSONResponse(view.to_json(), status, waiting_headers(view.receipt))

        return await uploads.run(sender_of(request, on_space, submitter), answer)

    return router
