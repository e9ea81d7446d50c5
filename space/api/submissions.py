"""Checking and submitting over HTTP, and estimates from files: what the pages do, for scripts.

What is sent is bounded before it gets here (see `body_limits`).
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import fastapi
from fastapi import APIRouter, Depends, Form, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from arb.core.predictions import ReadingLimits, read_predictions
from arb.core.predictions.parser_pool import PREDICTIONS
from arb.core.predictions.write import template
from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS
from leaderboard.success_rates.files import FilesEstimate, estimate_files
from leaderboard.success_rates.runs import SUCCESS_LABELS
from space.auth.auth import Auth
from space.operations.limits import CheckLimit, UploadQueue, reads_apart, sender_of
from space.web.body_limits import FORM_LIMITS
from space.web.http_errors import NO_STORE
from space.web.submission_text import waiting_headers
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.intake.receipts import SubmissionView
from submissions.intake.upload import DeclarationError, Upload, declare_as, safe_file_name
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
FAILED = "something failed on our side; sending the same file again makes no second entry"
YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}
MEDIA_TYPES = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
TOO_OFTEN = "Too many requests; Retry-After says how many seconds to wait."
TOO_MANY = "Too many files wait to be read; Retry-After says how many seconds to wait."
CHECKED = {
    200: {"description": "Every finding, an error or a warning each, also where the file is not acceptable."},
    400: {"description": "The form cannot be read."},
    408: {"description": "The file came in too slowly."},
    413: {"description": "The file is too large."},
    422: {"description": "There is no file."},
    429: {"description": TOO_OFTEN},
    503: {"description": TOO_MANY},
}
ESTIMATED = {
    **CHECKED,
    200: {"description": "The agents with their rates, and warnings."},
    413: {"description": "The files are too large together."},
    422: {"description": "The files cannot be used: every finding of every file."},
}
SUBMITTED = {
    200: {"description": "The receipt again: the same file of this judge was sent before."},
    201: {"description": "Accepted: the signed receipt, and the figures that you may see."},
    202: {
        "description": "Recorded, but `waiting` until it is stored for good, or `held`; `told` says why. "
        "While it is `waiting`, ask `Location` again after `Retry-After` seconds."
    },
    400: {"description": "The form cannot be read."},
    401: {"description": "Nobody is signed in."},
    403: {"description": "This account may not submit; the answer says why."},
    409: {"description": "Not accepted; the answer says why."},
    413: {"description": "The file is too large."},
    422: {"description": "The file or the declaration is not valid; every problem is in the answer."},
    429: {"description": "The account's limit is reached until `next_at`; see Retry-After."},
    503: {
        "description": "Nothing can be recorded now, or too many files wait to be read: send it again after "
        "the seconds in Retry-After."
    },
}
File = Annotated[UploadFile, fastapi.File(description="A prediction file: JSONL, CSV or Parquet.")]
MOST_VERDICT_FILES: Final = 8
VerdictFiles = Annotated[
    list[UploadFile],
    fastapi.File(
        max_length=MOST_VERDICT_FILES,
        description="A judge's verdicts on all runs: JSONL, CSV or Parquet. Again for each further judge, "
        f"{MOST_VERDICT_FILES} at most; a judge is named for its file.",
    ),
]
LabelsFile = Annotated[
    UploadFile,
    fastapi.File(
        description="Labels of some runs, drawn at random: trajectory_id and success, or annotations (the "
        "released CSV, our Parquet)."
    ),
]
DrawFile = Annotated[
    UploadFile | None,
    fastapi.File(
        description="What ``annotation-template --for-estimate`` recorded of the draw of the labelled runs "
        "(JSON): a stratified draw needs it. Without it the labelled runs count as a uniform draw."
    ),
]
ESTIMATE_LIMITS: Final = {**FORM_LIMITS, "max_files": MOST_VERDICT_FILES + 2}
_REQUIRED = {"required": ["judge", "kind", "inputs", "test_labels_used"]}


class DeclarationForm(BaseModel):
    """The declaration as a form has it. Its fields are checked with the file, all at once, by `declare`."""

    model_config = ConfigDict(json_schema_extra=_REQUIRED)
    account: str = Field("", description="Your name. On a Space it is the name of the signed-in account.")
    judge: str = Field("", description="The judge's name.")
    kind: str = Field(
        "", description="What kind of judge it is.", json_schema_extra={"enum": list(JUDGE_KINDS)}
    )
    inputs: str = Field(
        "", description="What the judge sees of a trajectory.", json_schema_extra={"enum": list(JUDGE_INPUTS)}
    )
    model: str = Field("", description="The model that the judge uses.")
    authors: str = Field("", description="Who made the judge.")
    link: str = Field("", description="A web page about the judge (https://).")
    test_labels_used: str = Field(
        "",
        description="Whether test labels were used to build or tune the judge.",
        json_schema_extra={"enum": ["yes", "no", "true", "false"]},
    )


class FileEstimates:
    """Estimates from a reader's files, for REST and the page: each file counts as one that is checked.

    They are read where all files are, and nothing of them is kept.
    """

    def __init__(self, service: SubmissionService, uploads: UploadQueue, checks: CheckLimit | None) -> None:
        self._service, self._uploads, self._checks = service, uploads, checks
        self._on_space = service.settings.space_id is not None

    async def make(
        self,
        request: Request,
        verdicts: Sequence[UploadFile],
        labels: UploadFile,
        draw: UploadFile | None = None,
    ) -> FilesEstimate:
        """The estimate of a form's files. Raises TooManyChecks, QueueFull."""
        if self._checks is not None:
            for _ in verdicts:  # the form itself was counted before it was read
                self._checks.take(request)
        sender = sender_of(request, self._on_space)
        return await self._uploads.run(sender, self._make, verdicts, labels, draw)

    def _make(
        self, verdicts: Sequence[UploadFile], labels: UploadFile, draw: UploadFile | None
    ) -> FilesEstimate:
        limits = ReadingLimits(max_bytes=self._service.settings.max_upload_bytes)

        def read(file: UploadFile, reader: str = PREDICTIONS):
            content = file.file.read()
            return read_predictions(content, "", limits, self._service.parsers, reads_apart(), reader)

        has_draw = draw is not None and draw.filename  # a page's form sends an empty part for no file
        return estimate_files(
            ((safe_file_name(file.filename or ""), read(file)) for file in verdicts),
            (safe_file_name(labels.filename or "labels"), read(labels, SUCCESS_LABELS)),
            (safe_file_name(draw.filename), draw.file.read()) if has_draw else None,
        )


def build_submission_router(
    service: SubmissionService,
    auth: Auth | None = None,
    uploads: UploadQueue | None = None,
    checks: CheckLimit | None = None,
) -> APIRouter:
    """The routes over a service; `BodyLimits` stands before them."""
    router = APIRouter(form_limits=FORM_LIMITS)
    auth = auth or Auth(service.settings)
    Submitter = Annotated[Actor | None, Depends(auth.submitter_of)]
    uploads, on_space = uploads or UploadQueue(), service.settings.space_id is not None
    estimates = FileEstimates(service, uploads, checks)

    @router.get("/api/template", summary="A prediction file to fill in, with every trajectory of a split")
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
        responses=CHECKED,
    )
    async def check(request: Request, file: File, split: Literal["dev", "test"] = "test") -> JSONResponse:
        def answer() -> JSONResponse:
            upload = service.check(file.file.read(), file.filename or "", split, reads_apart())
            return JSONResponse(upload.check.to_json())

        return await uploads.run(sender_of(request, on_space), answer)

    @router.post(
        "/api/estimate",
        summary="Agents' success rates from your verdicts and labels; nothing is kept",
        responses=ESTIMATED,
        form_limits=ESTIMATE_LIMITS,
    )
    async def estimate(
        request: Request, verdicts: VerdictFiles, labels: LabelsFile, draw: DrawFile = None
    ) -> JSONResponse:
        """The JSON of ``leaderboard estimate --json``: each judge alone, labels only and assisted, with 95 %
        intervals from 0 to 1. Findings name file, rows and column."""
        found = await estimates.make(request, verdicts, labels, draw)
        return JSONResponse(found.to_json(), 422 if found.errors else 200, NO_STORE)

    @router.post(
        "/api/submissions",
        summary="Submit a judge's test verdicts; sending the same file again is not a second submission",
        responses=SUBMITTED,
    )
    async def submit(
        request: Request, submitter: Submitter, file: File, declared: Annotated[DeclarationForm, Form()]
    ) -> JSONResponse:
        def answer() -> JSONResponse:
            upload = service.check(file.file.read(), file.filename or "", "test", reads_apart())
            if not upload.check.acceptable:
                report = upload.check.to_json()
                return JSONResponse({"error": "the file is not acceptable", "check": report}, status_code=422)
            return _submit(service, upload, declared, submitter)

        return await uploads.run(sender_of(request, on_space, submitter), answer)

    return router


def submit_upload(
    service: SubmissionService, upload: Upload, fields: Mapping[str, Any], submitter: Actor | None
) -> SubmissionView:
    """Submit a checked file with the declaration that these texts make: REST, MCP, Gradio's endpoint.

    Raises DeclarationError, and what `SubmissionService.submit` raises.
    """
    used = YES_OR_NO.get(str(fields["test_labels_used"]).lower())
    declaration, actor = declare_as(submitter, **{**fields, "test_labels_used": used})
    return service.submit(upload, declaration, actor)


def _submit(
    service: SubmissionService, upload: Upload, declared: DeclarationForm, submitter: Actor | None
) -> JSONResponse:
    try:
        view = submit_upload(service, upload, declared.model_dump(), submitter)
    except (DeclarationError, SubmissionError):
        raise
    except Exception:
        logger.exception("submitting failed")
        return JSONResponse({"error": FAILED}, status_code=500)
    receipt = view.receipt
    status = 200 if not receipt.is_new else 201 if receipt.status == "accepted" else 202
    return JSONResponse(view.to_json(), status, waiting_headers(receipt))
