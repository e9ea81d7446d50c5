"""The first steps of reading a prediction file: limits, format, text and header.

The format is recognised from the content, not from the file's name. All readers return a RawTable.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from arb.core.console import counted
from arb.core.predictions.columns import PredictionColumn, column_of, prediction_columns
from arb.core.predictions.findings import Finding, finding, finding_in_rows, quoted, quoted_names
from arb.core.suites.targets import Target


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """The columns that a prediction file may have, and the limits on its size.

    Each limit is checked before the work that it limits.
    """

    max_bytes: int = 5_000_000
    max_rows: int = 50_000
    max_columns: int = 100
    max_cell_chars: int = 200_000
    max_unpacked_bytes: int = 50_000_000
    """The largest total size of the columns that are read, after decompression (only for Parquet)."""

    keep_reasoning: bool = False
    """Whether to keep the column ``reasoning``, which checks and scores do not use."""

    targets: tuple[Target, ...] = ()
    """The targets of the suite; by default those of AgentRewardBench."""

    @property
    def columns(self) -> Mapping[str, PredictionColumn]:
        return prediction_columns(self.targets)


class Missing:
    """The type of MISSING, the value for a key that a JSONL row lacks. The value for null is None."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


@dataclass(frozen=True)
class RawTable:
    """Columns by name, with raw values: str, bool, int, float, None, MISSING, or bytes for invalid UTF-8."""

    row_numbers: Sequence[int]
    columns: Mapping[str, Sequence[object]]


def settle_header(names: Sequence[str], limits: ReadingLimits) -> tuple[dict[str, int], list[Finding]]:
    """Return the position of each known column in a file's header, and findings about the header.

    Aliases are recognised, and spaces around names are ignored. If two names refer to the same column, it is
    an error, and the position is that of the first one.
    """
    columns = limits.columns
    stripped = [name.strip() for name in names]
    known: dict[str, int] = {}
    doubled: dict[str, set[str]] = {}
    unknown: list[str] = []
    for position, name in enumerate(stripped):
        column = column_of(name, columns)
        if column not in columns:
            unknown.append(name)
        elif column in known:
            doubled.setdefault(column, {stripped[known[column]]}).add(name)
        else:
            known[column] = position
    findings = [
        finding("duplicate_column", column=column, names=quoted_names(sorted(spellings)))
        for column, spellings in doubled.items()
    ]
    found = f"the file has {quoted_names(stripped)}" if any(stripped) else "the file has no column names"
    for name, about in columns.items():
        if about.is_required and name not in known:
            null = "; null is allowed as a value" if about.target else ""
            findings.append(finding("missing_column", column=name, found=found, null=null))
    n, most = len(names), limits.max_columns
    if n > most:
        number, listed = counted(n, "column"), ", ".join(columns)
        findings.append(finding("too_many_columns", count=n, columns=number, most=most, known=listed))
    if unknown:
        listed = quoted_names(unknown, partial(_with_hint, columns=tuple(columns)))
        number = counted(len(unknown), "unknown column")
        findings.append(finding("unknown_columns", count=len(unknown), columns=number, listed=listed))
    return known, findings


def without_rows(findings: list[Finding]) -> list[Finding]:
    """Return the findings about a file without rows, with an error added unless they already contain one."""
    has_errors = any(each.level == "error" for each in findings)
    return findings if has_errors else [*findings, finding("no_rows")]


def blank_rows(rows: Sequence[int]) -> list[Finding]:
    """Return a list with a warning about blank rows, or an empty list."""
    if not rows:
        return []
    few = ", ".join(map(str, rows[:5])) + (" …" if len(rows) > 5 else "")
    skipped = counted(len(rows), "blank row")
    return [finding("blank_rows", rows=rows, count=len(rows), skipped=skipped, few=few)]


def _with_hint(name: str, columns: Sequence[str]) -> str:
    spelled = name[:80].casefold().replace(" ", "_")
    close = difflib.get_close_matches(spelled, columns, n=1, cutoff=0.75)
    return f"{quoted(name)} (did you mean {close[0]}?)" if close else quoted(name)


FileFormat = Literal["jsonl", "csv", "parquet"]

UTF8_MARK: Final = b"\xef\xbb\xbf"
_FOREIGN: Final = tomllib.loads(Path(__file__).with_name("foreign.toml").read_text(encoding="utf-8"))
_MOST_BAD_LINES: Final = 50_000


def recognise(content: bytes) -> FileFormat | Finding:
    """Return the format of non-empty bytes, or an error if they are not a prediction file."""
    if content.startswith(b"PAR1"):
        return "parquet"
    for other in _FOREIGN["formats"]:
        if re.match(other["begins_with"].encode("latin-1"), content):
            return replace(finding("foreign", says=other["says"]), code=other["code"])
    if _is_utf16(content):
        return finding("utf16")
    start = content.removeprefix(UTF8_MARK).lstrip(b" \t\r\n")[:1]
    return "jsonl" if start in (b"{", b"[") else "csv"


def to_text(content: bytes) -> tuple[str | None, list[Finding]]:
    """Return the text of UTF-8 bytes, without the byte order mark, and findings.

    If lines end in a lone carriage return, it becomes a line feed, with a warning. If the bytes are not UTF-8
    or contain a NUL, the text is None and an error names the lines.
    """
    try:
        text = content.removeprefix(UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError:
        return None, [_not_utf8(content)]
    if "\0" in text:
        lines = [number for number, line in enumerate(text.split("\n"), 1) if "\0" in line]
        return None, [finding_in_rows("nul_bytes", lines)]
    body = text.rstrip()
    if "\r" in body and "\n" not in body:
        return body.replace("\r", "\n"), [finding("line_ends")]
    return text, []


def _is_utf16(content: bytes) -> bool:
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return True
    head = content[:200]
    # Without a byte order mark, ASCII text in UTF-16 has a NUL in every second byte and only there.
    return len(head) >= 4 and (
        (not any(head[1::2]) and all(head[0::2])) or (not any(head[0::2]) and all(head[1::2]))
    )


def _not_utf8(content: bytes) -> Finding:
    # A broken sequence never spans a line feed, so the lines can be decoded one by one.
    lines, offsets, position = [], [], 0
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as bad:
            lines.append(number)
            offsets.append(position + bad.start)
            if len(lines) == _MOST_BAD_LINES:
                break
        position += len(line) + 1

    def show(i: int) -> str:
        return f"byte 0x{content[offsets[i]]:02x} at offset {offsets[i]:,}"

    return finding_in_rows("wrong_encoding", lines, show=show)


def too_large(size: int, max_bytes: int) -> Finding:
    return finding("too_large", size=counted(size, "byte"), most=max_bytes)


def has_parquet_footer(content: bytes) -> bool:
    """Return whether the bytes end with a plausible footer length and Parquet's magic number."""
    length = int.from_bytes(content[-8:-4], "little")
    return content.endswith(b"PAR1") and 0 < length <= len(content) - 12
