"""The page ``/validate``: how good a judge is on a reader's own table of labels and verdicts.

The tables are read and measured in a worker process, and nothing of them is stored or logged. The downloads
are in the page itself, so no report has to be kept for them.
"""

import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

import fastapi
from fastapi import APIRouter, Depends, Request, Response, UploadFile

from arb.core.predictions.parser_pool import WorkerFailed
from arb.core.predictions.raw import ReadingLimits
from leaderboard.success_rates.runs import stem_of
from leaderboard.validation import html
from leaderboard.validation.tables import Columns
from leaderboard.validation.uploaded import (
    MOST_JUDGES,
    MOST_ROWS,
    UploadedTable,
    ValidationAnswer,
    ask_worker,
)
from space.operations.limits import sender_of
from space.services import Services
from space.web.body_limits import FORM_BYTES, FORM_LIMITS, FormLimits
from space.web.frame import PageFrame
from submissions.intake.upload import safe_file_name

PATH: Final = "/validate"
TITLE, TEMPLATE = "Is my judge any good?", "judge/validate.html"
MOST_VERDICT_FILES: Final = 8
MOST_PASTED: Final = FORM_BYTES // 2
"""At most this many characters can be pasted. A character can have several bytes."""
LIMITS: Final[FormLimits] = {**FORM_LIMITS, "max_files": MOST_VERDICT_FILES + 1, "max_fields": 64}
NOTHING: Final = "No table was sent. Choose a file, or paste a table with its header."
BOTH: Final = "A table was pasted and a file of labels was chosen. Send only one of them."
WITHOUT_LABELS: Final = "Verdicts were sent without labels. Choose a file of labels too, or paste them."

Files = Annotated[list[UploadFile], fastapi.File(max_length=MOST_VERDICT_FILES)]
Names = Annotated[list[str], fastapi.Form(max_length=MOST_JUDGES)]
Name = Annotated[str, fastapi.Form(max_length=500)]


def sent_tables(
    pasted: str, labels: UploadFile | None, verdicts: Sequence[UploadFile]
) -> list[UploadedTable] | str:
    """Return a form's tables, labels first, or a message on what is wrong. Empty parts are ignored."""
    judges = [file for file in verdicts if file.filename]
    own = labels if labels is not None and labels.filename else None
    if own is not None and pasted.strip():
        return BOTH
    if own is None and not pasted.strip():
        return WITHOUT_LABELS if judges else NOTHING
    first = UploadedTable("the pasted table", pasted.encode())
    if own is not None:
        first = UploadedTable(safe_file_name(own.filename or ""), own.file.read())
    return [first, *(_judge(file) for file in judges)]


def _judge(file: UploadFile) -> UploadedTable:
    return UploadedTable(stem_of(safe_file_name(file.filename or "")), file.file.read())


def chosen_columns(
    label: Name = "",
    verdict: Names = [],  # noqa: B006 - FastAPI copies defaults
    id_: Annotated[str, fastapi.Form(alias="id", max_length=500)] = "",
    group: Name = "",
    by: Name = "",
    weights: Name = "",
) -> Columns:
    """Return the columns that a form names."""
    return Columns(
        ids=(id_,) if id_ else (),
        labels=(label,) if label else (),
        verdicts=tuple(name for name in verdict if name),
        group=group or None,
        by=(by,) if by else (),
        weights=weights or None,
    )


def view_answer(answer: ValidationAnswer) -> dict[str, Any]:
    """Return the template's values for a report or, if there is none, for what is wrong with the tables."""
    of_labels, of_verdicts = answer.columns
    found: dict[str, Any] = {"of_labels": of_labels, "of_verdicts": of_verdicts, "unclear": answer.unclear}
    if answer.report is None:
        # the message of the command ends with the option to use, for which this page has a field
        message = answer.problem.rpartition("; name one with --")[0] if answer.unclear else answer.problem
        return {**found, "problems": message.splitlines()}
    downloads = (
        ("HTML", "report.html", "text/html", html.render(answer.report)),
        ("JSON", "report.json", "application/json", json.dumps(answer.report.to_json(), indent=2)),
    )
    links = [(title, name, _address(kind, text)) for title, name, kind, text in downloads]
    return {**found, "report": html.render_body(answer.report), "downloads": links}


def _address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


def build_validate_router(services: Services, pages: PageFrame) -> APIRouter:
    router = APIRouter()
    service = services.submissions
    limits = ReadingLimits(max_bytes=service.settings.max_upload_bytes)
    on_space = service.settings.space_id is not None
    empty = {
        "chosen": Columns(),
        "threshold": 0.5,
        "answer": None,
        "most_files": MOST_VERDICT_FILES,
        "most_pasted": MOST_PASTED,
        "most_rows": MOST_ROWS,
        "most_mb": limits.max_bytes / 1e6,
    }

    @router.get(PATH, include_in_schema=False)
    def validate_page(request: Request) -> Response:
        return pages.cached(request, "", TEMPLATE, TITLE, PATH, lambda: empty)

    @router.post(PATH, include_in_schema=False, form_limits=LIMITS)
    async def validate(
        request: Request,
        columns: Annotated[Columns, Depends(chosen_columns)],
        verdicts: Files = [],  # noqa: B006 - FastAPI copies defaults
        labels: UploadFile | None = None,
        pasted: Annotated[str, fastapi.Form(max_length=FORM_BYTES)] = "",
        threshold: Annotated[float, fastapi.Form(ge=0, le=1)] = 0.5,
    ) -> Response:
        def measure() -> Response:
            sent = sent_tables(pasted, labels, verdicts)
            if isinstance(sent, str):
                return respond(ValidationAnswer(problem=sent))
            try:
                return respond(ask_worker(service.parsers, sent, columns, threshold, limits))
            except WorkerFailed as problem:
                return respond(
                    ValidationAnswer(problem=f"The tables cannot be read: {problem}. Send smaller ones.")
                )

        def respond(answer: ValidationAnswer) -> Response:
            view = view_answer(answer)
            values = {**empty, "chosen": columns, "threshold": threshold, "answer": view}
            return pages.answer(TEMPLATE, TITLE, PATH, 200 if answer.report else 422, **values)

        if services.checks is not None:
            for _ in verdicts:  # the form itself was counted before it was read
                services.checks.take(request)
        return await services.uploads.run(sender_of(request, on_space), measure)

    return router
