"""Estimates agents' rates from uploaded files, for the REST API and the page ``/my-agent``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeVar

import fastapi
from fastapi import Request, UploadFile

from arb.core.ids import reading_key
from arb.core.predictions import read_predictions
from arb.core.predictions.findings import Finding
from arb.core.predictions.parser_pool import ReadResult
from arb.core.predictions.raw import ReadingLimits
from dataset_script.new_suite import source_facts
from leaderboard.success_rates.files import (
    CrashedRuns,
    FilesDraw,
    FilesEstimate,
    draw_from_files,
    estimate_files,
)
from leaderboard.success_rates.runs import (
    OUTCOME_LABELS,
    OUTCOME_VERDICTS,
    RunTexts,
    read_texts,
    stem_of,
)
from space.operations.limits import sender_of
from space.operations.upload_queue import UploadQueue, reads_apart
from space.web.body_limits import FORM_LIMITS, FormLimits
from submissions.app import SubmissionsApp
from submissions.intake.upload import safe_file_name

T = TypeVar("T")
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
        description="Labels for a random sample of the runs: a table of ids and labels, such as the column "
        "trajectory_id and one with the name of the main target, or annotations as the released CSV or our "
        "Parquet."
    ),
]
DrawFile = Annotated[
    UploadFile | None,
    fastapi.File(
        description="The JSON record that ``annotation-template --for-estimate`` wrote about the draw. It is "
        "required if the sample is stratified; without it, a uniform sample is assumed."
    ),
]
TextsFile = Annotated[
    UploadFile | None,
    fastapi.File(description="Goals and answers of the runs, as ``inspect-source --json`` prints them."),
]
CrashedChoice = Annotated[
    Literal["failures", "apart"],
    fastapi.Form(
        description="Count crashed runs as failures, or list them and leave them out. Which runs crashed is "
        "known only to a Space that was started with ``--source``."
    ),
]
MOST_IN_PLACE: Final = 300
"""The maximum number of runs that can be labelled on the page. A form with their answers has about 35 kB."""
ESTIMATE_LIMITS: Final[FormLimits] = {**FORM_LIMITS, "max_files": MOST_VERDICT_FILES + 2}
LABELLING_LIMITS: Final[FormLimits] = {
    **FORM_LIMITS,
    "max_files": MOST_VERDICT_FILES + 3,
    "max_fields": MOST_IN_PLACE + 8,
}


class FileEstimates:
    """The service that draws runs and estimates rates from uploaded files.

    A form counts as one check, since all its files together may be no larger than one prediction file.
    The files are read in the upload queue and are not stored.
    """

    def __init__(self, service: SubmissionsApp, uploads: UploadQueue) -> None:
        self._service, self._uploads = service, uploads
        self._on_space = service.settings.space_id is not None
        source = source_facts(service.settings.data_dir)
        self.crashed = None if source is None else source.crashed
        """The runs of the served source that crashed, or None if no source is served."""

    async def make(
        self,
        request: Request,
        verdicts: Sequence[UploadFile],
        labels: UploadFile,
        draw: UploadFile | None = None,
        crashed: CrashedChoice = "failures",
    ) -> FilesEstimate:
        """Return the estimate from the files of a form; ``crashed`` says how crashed runs count.

        Raises:
            QueueFull: Too many files are waiting to be read.
        """

        def estimate() -> FilesEstimate:
            records = []
            if draw is not None and draw.filename:  # the page's form sends an empty part without a file
                records = [(safe_file_name(draw.filename), draw.file.read())]
            tables = list(self._tables(verdicts))
            judged = [run for _, _, (table, _) in tables if table for run in table.trajectory_ids]
            return estimate_files(
                tables,
                [(safe_file_name(labels.filename or "labels"), self._read(labels, OUTCOME_LABELS))],
                records,
                crashed=self.crashed_among(judged, crashed),
            )

        return await self._run(request, estimate)

    async def draw(
        self, request: Request, verdicts: Sequence[UploadFile], n_labels: int, texts: UploadFile | None = None
    ) -> tuple[FilesDraw, Mapping[str, RunTexts]]:
        """Return a draw of at most `MOST_IN_PLACE` runs to label, and the run texts in the file ``texts``.

        The run texts are keyed by reading key. If a file cannot be used, the draw contains the errors. Raises
        QueueFull as `make` does.
        """

        def draw() -> tuple[FilesDraw, Mapping[str, RunTexts]]:
            found, errors = draw_from_files(self._tables(verdicts), n_labels, MOST_IN_PLACE), list[Finding]()
            known: Mapping[str, RunTexts] = {}
            if texts is not None and texts.filename:
                known, errors = read_texts(safe_file_name(texts.filename), texts.file.read())
            return (FilesDraw(errors=(*found.errors, *errors)) if errors else found), known

        return await self._run(request, draw)

    def crashed_among(
        self, judged: Iterable[str], count_as: Literal["failures", "apart"]
    ) -> CrashedRuns | None:
        """Return the crashed runs of agents whose other runs are all judged; None if no source is served."""
        if self.crashed is None:
            return None
        keys = set(map(reading_key, judged))
        is_whole: dict[str, bool] = {}
        for run in (each.trajectory_id for each in self._service.suite.trajectories):
            agent = run.rpartition("/")[0]
            is_whole[agent] = is_whole.get(agent, True) and reading_key(run) in keys
        otherwise = all(is_whole.values())  # of agents of which every run crashed
        runs = tuple(run for run in self.crashed if is_whole.get(run.rpartition("/")[0], otherwise))
        return CrashedRuns(runs, count_as, len(self.crashed) - len(runs))

    def _read(self, file: UploadFile, reader: str) -> ReadResult:
        targets = self._service.suite.targets
        limits = ReadingLimits(max_bytes=self._service.settings.max_upload_bytes, targets=targets)
        return read_predictions(file.file.read(), limits, self._service.parsers, reads_apart(), reader)

    def _tables(self, verdicts: Sequence[UploadFile]) -> Iterator[tuple[str, str, ReadResult]]:
        """Yield each file's name, its judge's name and its table."""
        for file in verdicts:
            name = safe_file_name(file.filename or "")
            yield name, stem_of(name), self._read(file, OUTCOME_VERDICTS)

    async def _run(self, request: Request, work: Callable[[], T]) -> T:
        return await self._uploads.run(sender_of(request, self._on_space), work)
