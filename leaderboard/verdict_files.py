"""Read and check prediction files for scoring. The errors of all files are reported together."""

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.table import Predictions
from arb.core.suite import Suite


class VerdictFileError(ValueError):
    """Raised when a file cannot be used; the message lists every error in it."""


def read_verdict_file(
    path: Path, suite: Suite, split: str, max_bytes: int, keep_reasoning: bool = False
) -> Predictions:
    """Return a file's verdicts in the order of the split, without reading labels. Raises VerdictFileError."""
    limits = ReadingLimits(max_bytes=max_bytes, keep_reasoning=keep_reasoning, targets=suite.targets)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
            content = opened.read(limits.max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "it is not a complete gzip file"
        raise VerdictFileError(f"{path} cannot be read: {why}") from error
    table, findings = read_predictions(content, limits)
    result = check(table, findings, suite, split)
    if result.aligned is None or not result.acceptable:
        errors = [f"  {finding.message}" for finding in result.findings if finding.level == "error"]
        raise VerdictFileError("\n".join([f"{path.name} cannot be scored on {split}:", *errors]))
    return result.aligned


def read_verdict_files(
    paths: Mapping[str, Path], suite: Suite, split: str, max_bytes: int
) -> dict[str, Predictions]:
    """Return each file's verdicts, keyed as ``paths``. Raises VerdictFileError with all files' errors."""
    found, problems = {}, []
    for name, path in paths.items():
        try:
            found[name] = read_verdict_file(path, suite, split, max_bytes)
        except VerdictFileError as problem:
            problems.append(str(problem))
    if problems:
        raise VerdictFileError("\n".join(problems))
    return found
