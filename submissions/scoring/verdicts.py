"""The verdicts of scored submissions, read again from their stored files."""

import logging
from dataclasses import fields
from typing import Final

import numpy as np

from core.cache import ByteCache
from core.predictions import read_predictions
from core.predictions.check import check
from core.predictions.raw import ReadingLimits
from core.predictions.table import Predictions
from core.suite import Suite
from submissions.records.files import FileStore

logger = logging.getLogger(__name__)

CACHE_BYTES: Final = 48_000_000
"""Of verdicts and texts that stay in memory: over a thousand plain files, or one of the longest texts."""


class VerdictsUnavailable(Exception):
    """Verdicts that cannot be shown; the message says why, in words that anyone may read."""


def read_stored_verdicts(files: FileStore, sha256: str, suite: Suite, split: str) -> Predictions:
    """The columns of the kept file with this SHA-256; raises VerdictsUnavailable like `read_verdicts`."""
    try:
        content = files.read(sha256)
    except (OSError, ValueError):
        logger.error("verdicts cannot be shown: the kept file %s is missing or damaged", sha256)
        raise VerdictsUnavailable("the submitted file is missing or damaged on this server") from None
    return read_verdicts(content, suite, split)


def read_verdicts(content: bytes, suite: Suite, split: str) -> Predictions:
    """The columns of a kept file in the order of ``suite.split(split)``, with its texts where they fit.

    Raises VerdictsUnavailable where the file is not acceptable now (the suite has changed since).
    """
    for keep_reasoning in (True, False):  # texts that are too many cost nobody the verdicts
        limits = ReadingLimits(max_bytes=len(content), keep_reasoning=keep_reasoning)
        table, findings = read_predictions(content, limits=limits)
        checked = check(table, findings, suite, split)
        if checked.aligned is not None:
            return checked.aligned
    raise VerdictsUnavailable("the submitted file does not fit the current suite")


def verdict_cache() -> ByteCache[Predictions]:
    """For verdicts by submission."""
    return ByteCache(CACHE_BYTES, _size)


def _size(verdicts: Predictions) -> int:
    """Bytes, about: of the numbers, the texts, and a word for each id and state."""
    columns = [getattr(verdicts, field.name) for field in fields(verdicts)]
    numbers = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
    words = 8 * sum(len(column) for column in columns if isinstance(column, tuple))
    return numbers + words + sum(len(text) for text in verdicts.reasoning or () if text)
