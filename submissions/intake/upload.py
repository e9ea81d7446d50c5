"""Uploaded prediction files: reading and checking them, and reasons to hold them for review."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from arb.core.ids import Trajectory
from arb.core.predictions import read_predictions
from arb.core.predictions.check import CheckResult, check
from arb.core.predictions.parser_pool import ParserPool
from arb.core.predictions.raw import ReadingLimits, too_large
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import Suite, SuiteRules
from arb.core.suites.targets import Target

_LONGEST_NAME: Final = 120
_UNNAMED: Final = "predictions"


@dataclass(frozen=True, eq=False)
class Upload:
    """An uploaded file and the result of its check.

    ``sha256`` is the hexadecimal hash of ``content``. Both are empty if a file on disk is too large, which is
    a finding of the check. ``file_name`` is safe to print and to store.
    """

    file_name: str
    content: bytes
    sha256: str
    check: CheckResult


def read_upload(
    source: Path | bytes, file_name: str | None, settings: Settings, *, suite: Suite, split: str,
    parsers: ParserPool | None = None, apart: bool = False,
) -> Upload:  # fmt: skip
    """Read a file, given by its content or path, and check it against a split of a suite.

    Problems in the file become findings of the check. A server passes its worker processes as ``parsers``.
    They read large files and, if ``apart`` is true, small files too. Raises OSError if the path cannot be
    read, and SuiteError if the split does not exist.
    """
    limits = ReadingLimits(max_bytes=settings.max_upload_bytes, targets=suite.targets)
    if isinstance(source, bytes):
        content = source
    else:
        file_name = file_name or source.name
        with source.open("rb") as file:
            content = file.read(limits.max_bytes + 1)
    name = safe_file_name(file_name or "")
    if isinstance(source, Path) and len(content) > limits.max_bytes:
        refused = too_large(source.stat().st_size, limits.max_bytes)
        return Upload(name, b"", "", check(None, [refused], suite, split, name))
    table, findings = read_predictions(content, limits, parsers, apart)
    sha256 = hashlib.sha256(content).hexdigest()
    return Upload(name, content, sha256, check(table, findings, suite, split, name))


def safe_file_name(name: str) -> str:
    """Return the last part of an untrusted file name, printable and at most 120 characters long."""
    base = PurePosixPath(name.replace("\\", "/")).name
    printable = "".join(character for character in base if character.isprintable()).strip()
    if printable.strip(".") == "":
        return _UNNAMED
    if len(printable) <= _LONGEST_NAME:
        return printable
    ending = PurePosixPath(printable).suffix[:12]
    return printable[: _LONGEST_NAME - len(ending)] + ending


def reasons_to_hold(
    verdicts: Predictions, items: Sequence[Trajectory], rules: SuiteRules, main: Target
) -> tuple[str, ...]:
    """Return the reasons why a maintainer has to review a file, one sentence each. Most files have none.

    ``items`` are those of the split in the order of the verdicts. Only verdicts on the ``main`` target are
    examined: others, such as side effects, may be so rare that an honest judge reports only a few, or all on
    one benchmark. A file that says yes to likely failures on all benchmarks is not held, because only the
    labels could reveal it.
    """
    codes = zip(items, verdicts.codes(main.name), strict=True)
    runs = [(item.benchmark, code == 1) for item, code in codes if item.level == "run"]
    called = [benchmark for benchmark, is_called in runs if is_called]
    on = f"on {main.title.lower()}"
    if len(called) in (0, len(runs)):
        which = "every" if called else "no"
        return (f"It says yes to {which} trajectory {on}, so all its verdicts are the same.",)
    reasons = []
    if len(called) < rules.fewest_positives:
        reasons.append(
            f"It says yes to {len(called)} of {len(runs)} trajectories {on}; with fewer than "
            f"{rules.fewest_positives}, its metrics could reveal the label of a single trajectory."
        )
    if len(set(called)) == 1 < len({benchmark for benchmark, _ in runs}):
        reasons.append(
            f"All trajectories to which it says yes {on} are in one benchmark, {called[0]}; a judge of "
            "this suite has to cover every benchmark."
        )
    return tuple(reasons)
