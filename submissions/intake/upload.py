"""An uploaded prediction file: read within limits, hashed and checked. Reads no label."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from arb.core.predictions import ParserPool, read_predictions
from arb.core.predictions.check import CheckResult, check
from arb.core.predictions.raw import ReadingLimits, too_large
from arb.core.suite import Suite

if TYPE_CHECKING:
    from arb.core.settings import Settings

_LONGEST_NAME: Final = 120
_UNNAMED: Final = "predictions"


@dataclass(frozen=True, eq=False)
class Upload:
    """A file as it came and what the check says of it.

    `content` and `sha256` (hex, of the bytes as they came) are None only for a file on disk that is over the
    size limit: it is not read, and not acceptable. `file_name` is safe to print and to keep.
    """

    file_name: str
    content: bytes | None
    sha256: str | None
    check: CheckResult


def read_upload(
    source: Path | bytes,
    file_name: str | None,
    settings: Settings,
    *,
    suite: Suite,
    split: str,
    parsers: ParserPool | None = None,
    apart: bool = False,
) -> Upload:
    """Read and check a file against a suite's split; `file_name` defaults to the path's own. A server names
    its `parsers`; see `read_predictions`.

    Raises OSError when the path cannot be read, SuiteError for a split that does not exist; what is wrong
    with the file itself is in the check's findings.
    """
    limits = ReadingLimits(max_bytes=settings.max_upload_bytes)
    if file_name is None and isinstance(source, Path):
        file_name = source.name
    name = safe_file_name(file_name or "")
    content = source if isinstance(source, bytes) else _read_bounded(source, limits.max_bytes)
    if content is None:
        size = Path(source).stat().st_size
        refused = too_large(size, limits.max_bytes)
        return Upload(name, None, None, check(None, [refused], suite, split, name))
    table, findings = read_predictions(content, limits, parsers, apart)
    return Upload(
        file_name=name,
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        check=check(table, findings, suite, split, name),
    )


def safe_file_name(name: str) -> str:
    """The last part of a name a stranger gave, printable, at most 120 characters, its ending kept."""
    base = PurePosixPath(name.replace("\\", "/")).name
    printable = "".join(character for character in base if character.isprintable()).strip()
    if printable.strip(".") == "":
        return _UNNAMED
    if len(printable) <= _LONGEST_NAME:
        return printable
    ending = PurePosixPath(printable).suffix[:12]
    return printable[: _LONGEST_NAME - len(ending)] + ending


def _read_bounded(path: Path, max_bytes: int) -> bytes | None:
    """The file's bytes; None when there are more than the limit, without reading them all."""
    with Path(path).open("rb") as file:
        content = file.read(max_bytes + 1)
    return content if len(content) <= max_bytes else None
