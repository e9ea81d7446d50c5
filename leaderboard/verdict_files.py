"""A prediction file from the command line, read, checked and aligned with a split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataset_script.prediction_file.aligned import Predictions
    from dataset_script.suite import Suite


class VerdictFileError(ValueError):
    """A file that cannot be used; the message lists every error in it."""


def read_verdict_file(path: Path, suite: Suite, split: str, max_bytes: int) -> Predictions:
    """The verdicts of a file in the order of the split. Raises VerdictFileError; reads no label."""
    from dataset_script.prediction_file.check import check
    from dataset_script.prediction_file.limits import ReadingLimits
    from dataset_script.prediction_file.read import read_predictions

    limits = ReadingLimits(max_bytes=max_bytes)
    try:
        with path.open("rb") as opened:
            content = opened.read(limits.max_bytes + 1)
    except OSError as error:
        raise VerdictFileError(f"{path} cannot be read: {error.strerror}") from error
    table, findings = read_predictions(content, path.name, limits)
    result = check(table, findings, suite, split)
    if not result.acceptable:
        errors = [f"  {finding.message}" for finding in result.findings if finding.level == "error"]
        raise VerdictFileError("\n".join([f"{path.name} cannot be scored on {split}:", *errors]))
    return result.aligned
