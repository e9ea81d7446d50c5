"""The verdicts of scored submissions, read again from their kept files; the last few stay in memory."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from typing import Final

import numpy as np

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


class VerdictCache:
    """Verdicts by submission, as many as fit: those asked for last stay. Safe for threads."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Predictions, int]] = OrderedDict()

    def get(self, key: str, read: Callable[[], Predictions]) -> Predictions:
        """The verdicts under ``key``; ``read`` gives them when they are not here."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        found = read()  # two readers of one new file both read it: rare, and harmless
        with self._lock:
            self._kept[key] = (found, _size(found))
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._max_bytes:
                self._kept.popitem(last=False)
        return found


def _size(verdicts: Predictions) -> int:
    """Bytes, about: of the numbers, the texts, and a word for each id and state."""
    columns = [getattr(verdicts, field.name) for field in fields(verdicts)]
    numbers = sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
    words = 8 * sum(len(column) for column in columns if isinstance(column, tuple))
    return numbers + words + sum(len(text) for text in verdicts.reasoning or () if text)
