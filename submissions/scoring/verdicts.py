"""Verdicts that are read again: of submissions from their stored files, of paper judges from a folder."""

import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from arb.core.cache import ByteCache
from arb.core.predictions import read_predictions
from arb.core.predictions.check import CheckResult, check
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import OFFICIAL, Suite
from submissions.resources import Resources

logger = logging.getLogger(__name__)

VERDICT_FILES: Final = (".jsonl", ".csv", ".parquet")
CACHE_BYTES: Final = 48_000_000
"""Of verdicts and texts that stay in memory: over a thousand plain files, or one of the longest texts."""


class VerdictsUnavailable(Exception):
    """Verdicts that cannot be shown; the message says why, in words that anyone may read."""


def check_stored_file(app: Resources, sha256: str, split: str, keep_reasoning: bool = False) -> CheckResult:
    """Read the stored file with this SHA-256 and check it against a split, as when it was submitted.

    It was within the size limit of its day, so today's does not apply. Raises OSError or ValueError if the
    file is missing or damaged.
    """
    content = app.files.read(sha256)
    limits = ReadingLimits(max_bytes=len(content), keep_reasoning=keep_reasoning)
    table, findings = read_predictions(content, limits=limits, parsers=app.parsers)
    return check(table, findings, app.suite, split)


def read_stored_verdicts(app: Resources, sha256: str, split: str) -> Predictions:
    """Return the columns of a stored file in the order of the split, with its texts if they fit.

    Raises VerdictsUnavailable if the file is missing, damaged or not acceptable for the suite any more.
    """
    for keep_reasoning in (True, False):  # texts that are too many cost nobody the verdicts
        try:
            checked = check_stored_file(app, sha256, split, keep_reasoning)
        except (OSError, ValueError):
            logger.error("verdicts cannot be shown: the stored file %s is missing or damaged", sha256)
            raise VerdictsUnavailable("the submitted file is missing or damaged on this server") from None
        if checked.aligned is not None:
            return checked.aligned
    raise VerdictsUnavailable("the submitted file does not fit the current suite")


def read_paper_verdicts(settings: Settings, suite: Suite) -> Mapping[str, Predictions]:
    """The files in ARB_PAPER_VERDICTS by the row of the judge that a file is named for, on test.

    A file that cannot be used is named in the log. Empty without such a folder, and on other suites.
    """
    from leaderboard.paper.evidence import gather
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    found: dict[str, Predictions] = {}
    if settings.paper_verdicts is None or suite.name != OFFICIAL:
        return found
    for path in _files_in(settings.paper_verdicts):
        try:
            verdicts = read_verdict_file(path, suite, "test", settings.max_upload_bytes)
            found |= gather(None, {path.stem: verdicts}).verdicts
        except (VerdictFileError, ValueError) as problem:
            logger.warning("a file of ARB_PAPER_VERDICTS cannot be used: %s", problem)
    return MappingProxyType(found)


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in VERDICT_FILES)
    except OSError as error:
        logger.warning("ARB_PAPER_VERDICTS cannot be read: %s", error)
        return []


def verdict_cache() -> ByteCache[Predictions]:
    return ByteCache(CACHE_BYTES, _size)


def _size(verdicts: Predictions) -> int:
    """Bytes, about: of the numbers, the texts, and a word for each id and state."""
    columns = [getattr(verdicts, field.name) for field in fields(verdicts)]
    columns += verdicts.targets.values()
    numbers = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
    words = 8 * sum(len(column) for column in columns if isinstance(column, tuple))
    return numbers + words + sum(len(text) for text in verdicts.reasoning or () if text)
