"""Estimates agents' success rates from uploaded files, for the REST API and the page ``/rates``."""

from collections.abc import Sequence
from typing import Annotated, Final

import fastapi
from fastapi import Request, UploadFile

from arb.core.predictions import read_predictions
from arb.core.predictions.parser_pool import PREDICTIONS, ReadResult
from arb.core.predictions.raw import ReadingLimits
from leaderboard.success_rates.files import FilesEstimate, estimate_files
from leaderboard.success_rates.runs import SUCCESS_LABELS, stem_of
from space.operations.limits import CheckLimit, sender_of
from space.operations.upload_queue import UploadQueue, reads_apart
from space.web.body_limits import FORM_LIMITS, FormLimits
from submissions.app import SubmissionsApp
from submissions.intake.upload import safe_file_name

MOST_VERDICT_FILES: Final = 8
VerdictFiles = Annotated[
    list[UploadFile],
    fastapi.File(
        max_length=MOST_VERDICT_FILES,
        description="A judge's verdicts on all runs: JSONL, CSV or Parquet. Repeat to add judges, "
        f"{MOST_VERDICT_FILES} at most. A judge is named after its file.",
    ),
]
LabelsFile = Annotated[
    UploadFile,
    fastapi.File(
        description="Labels for a random sample of the runs: the columns trajectory_id and success, or "
        "annotations as the released CSV or our Parquet."
    ),
]
DrawFile = Annotated[
    UploadFile | None,
    fastapi.File(
        description="The JSON record that ``annotation-template --for-estimate`` wrote about the draw. It is "
        "required if the sample is stratified; without it, a uniform sample is assumed."
    ),
]
ESTIMATE_LIMITS: Final[FormLimits] = {**FORM_LIMITS, "max_files": MOST_VERDICT_FILES + 2}


class FileEstimates:
    """The service that estimates success rates from uploaded files.

    Each file counts as one check. The files are read in the upload queue and are not stored.
    """

    def __init__(self, service: SubmissionsApp, uploads: UploadQueue, checks: CheckLimit | None) -> None:
        self._service, self._uploads, self._checks = service, uploads, checks
        self._on_space = service.settings.space_id is not None

    async def make(
        self,
        request: Request,
        verdicts: Sequence[UploadFile],
        labels: UploadFile,
        draw: UploadFile | None = None,
    ) -> FilesEstimate:
        """Return the estimate from the files of a form.

        Raises:
            TooManyChecks: The sender has reached its limit of checks per minute.
            QueueFull: Too many files are waiting to be read.
        """
        if self._checks is not None:
            for _ in verdicts:  # the form itself was counted before it was read
                self._checks.take(request)
        limits = ReadingLimits(max_bytes=self._service.settings.max_upload_bytes)

        def read(file: UploadFile, reader: str) -> ReadResult:
            content = file.file.read()
            return read_predictions(content, limits, self._service.parsers, reads_apart(), reader)

        def estimate() -> FilesEstimate:
            record = None
            if draw is not None and draw.filename:  # the page's form sends an empty part without a file
                record = safe_file_name(draw.filename), draw.file.read()
            return estimate_files(
                (
                    (name, stem_of(name), read(file, PREDICTIONS))
                    for file in verdicts
                    for name in [safe_file_name(file.filename or "")]
                ),
                (safe_file_name(labels.filename or "labels"), read(labels, SUCCESS_LABELS)),
                record,
            )

        return await self._uploads.run(sender_of(request, self._on_space), estimate)
