"""The paper's tables for the pages: made once for each label version, then kept."""

import logging
import threading
from pathlib import Path

from dataset_script.suite import OFFICIAL, load_suite
from leaderboard.paper_tables.evidence import gather
from leaderboard.paper_tables.make import TABLES, make_table
from leaderboard.paper_tables.table import PaperTable
from leaderboard.verdict_files import VerdictFileError, read_verdict_file
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
VERDICT_FILES = (".jsonl", ".csv", ".parquet")


class PaperTables:
    """The tables from the official labels and the maintainer's verdict files (ARB_PAPER_VERDICTS)."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._made: tuple[str | None, dict[int, PaperTable]] | None = None

    def get(self, number: int) -> PaperTable:
        """A table by its number; raises KeyError for one that holds no results."""
        labels = self._service.labels_for_public_figures() if self._service.suite.name == OFFICIAL else None
        version = labels and labels.version
        with self._lock:
            if self._made is None or self._made[0] != version:
                records = gather(labels, self._verdicts() if labels is not None else None)
                self._made = (version, {known: make_table(known, records) for known in TABLES})
            return self._made[1][number]

    def _verdicts(self) -> dict:
        """The judges' verdicts in the maintainer's folder; a file that cannot be used is named in the log."""
        settings = self._service.settings
        if settings.paper_verdicts is None:
            return {}
        suite, found = load_suite(OFFICIAL), {}
        for path in _files_in(settings.paper_verdicts):
            try:
                verdicts = read_verdict_file(path, suite, "test", settings.max_upload_bytes)
                gather(None, {path.stem: verdicts})  # the file's name has to be a judge's
                found[path.stem] = verdicts
            except (VerdictFileError, ValueError) as problem:
                logger.warning("a file of ARB_PAPER_VERDICTS cannot be used: %s", problem)
        return found


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in VERDICT_FILES)
    except OSError as error:
        logger.warning("ARB_PAPER_VERDICTS cannot be read: %s", error)
        return []
