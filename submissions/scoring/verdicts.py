"""Reads verdicts from the stored files of submissions, and those of published judges from files."""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from arb.core.cache import ByteCache
from arb.core.predictions import read_predictions
from arb.core.predictions.check import CheckResult, check
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import OFFICIAL, Suite
from leaderboard.paper.evidence import row_named
from leaderboard.paper.published_files import PUBLISHED, VERDICTS, read_published_files
from leaderboard.verdict_files import VerdictFileError, read_verdict_file
from submissions.resources import Resources

logger = logging.getLogger(__name__)

VERDICT_FILES: Final = (".jsonl", ".csv", ".parquet", ".gz")
CACHE_BYTES: Final = 48_000_000
"""The size of the verdict cache in bytes: enough for a thousand files, or one with the longest reasoning."""


class PaperVerdicts(Protocol):
    """A source of the test verdicts of judges from papers."""

    @property
    def mark(self) -> Hashable:
        """A value that changes when the verdicts may have changed. It is fast enough for an event loop."""

    def of_papers(self) -> Mapping[str, Predictions]:
        """Return the known verdicts in the order of ``suite.split("test")``, keyed by row id."""


class VerdictsUnavailable(Exception):
    """Raised when verdicts cannot be shown; the message is public."""


def check_stored_file(app: Resources, sha256: str, split: str, keep_reasoning: bool = False) -> CheckResult:
    """Read a stored file and check it against a split, as at submission but without a size limit.

    Raises OSError or ValueError if the file is missing or damaged.
    """
    content = app.files.read(sha256)
    limits = ReadingLimits(max_bytes=len(content), keep_reasoning=keep_reasoning, targets=app.suite.targets)
    table, findings = read_predictions(content, limits=limits, parsers=app.parsers)
    return check(table, findings, app.suite, split)


def read_stored_verdicts(app: Resources, sha256: str, split: str) -> Predictions:
    """Return the verdicts in a stored file in the order of the split, with reasoning unless it is too long.

    Raises VerdictsUnavailable if the file is missing, damaged or no longer acceptable for the suite.
    """
    for keep_reasoning in (True, False):
        try:
            checked = check_stored_file(app, sha256, split, keep_reasoning)
        except (OSError, ValueError):
            logger.error("verdicts cannot be shown: the stored file %s is missing or damaged", sha256)
            raise VerdictsUnavailable("the submitted file is missing or damaged on this server") from None
        if checked.aligned is not None:
            return checked.aligned
    raise VerdictsUnavailable("the submitted file no longer fits the suite")


def read_paper_verdicts(settings: Settings, suite: Suite) -> Mapping[str, Predictions]:
    """Return the test verdicts of published judges, keyed by row id, including what the judges wrote.

    Those of the official suite come with the code (`leaderboard/published/verdicts`) and from
    ARB_PAPER_VERDICTS, which takes precedence. Those of another suite with public labels are in its folder
    ``verdicts``. A file's name without its suffix names the judge. Unusable files are logged.
    """
    found: dict[str, Predictions] = {}
    is_official, of_suite = suite.name == OFFICIAL, suite.folder / VERDICTS
    if not is_official and not (suite.labels_are_public and of_suite.is_dir()):
        return found
    folders = (PUBLISHED / VERDICTS, settings.paper_verdicts) if is_official else (of_suite,)
    rows = [row for row in read_published_files().judges if row.provenance != "reference"]
    for folder in filter(None, folders):
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix in VERDICT_FILES)
        except OSError as error:
            logger.warning("ARB_PAPER_VERDICTS cannot be read: %s", error)
            continue
        for path in paths:
            name = Path(path.name.removesuffix(".gz")).stem
            row = row_named(name, rows) if is_official else None
            if is_official and row is None:
                logger.warning(
                    "%s of ARB_PAPER_VERDICTS cannot be used: no published judge has this name", path.name
                )
                continue
            try:
                verdicts = read_verdict_file(path, suite, "test", settings.max_upload_bytes, True)
                found[row.row_id if row else f"published/{name}"] = verdicts
            except VerdictFileError as problem:
                logger.warning("a file of ARB_PAPER_VERDICTS cannot be used: %s", problem)
    return MappingProxyType(found)


def verdict_cache() -> ByteCache[Predictions]:
    return ByteCache(CACHE_BYTES, _size)


def _size(verdicts: Predictions) -> int:
    """Estimate the bytes in memory: those of arrays and reasoning, and 8 bytes for each id and state."""
    columns = [getattr(verdicts, field.name) for field in fields(verdicts)]
    columns += verdicts.targets.values()
    numbers = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
    words = 8 * sum(len(column) for column in columns if isinstance(column, tuple))
    return numbers + words + sum(len(text) for text in verdicts.reasoning or () if text)
