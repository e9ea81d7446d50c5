"""The first steps of reading a prediction file: limits, format, text and header.

The format is recognised from the content, not from the file's name. All readers return a RawTable.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from arb.core.predictions.columns import PredictionColumn, column_of, prediction_columns
from arb.core.predictions.findings import Finding, counted, error, quoted, quoted_names, row_finding, warning
from arb.core.suites.targets import Target


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What a prediction file may contain: the columns of its suite, and limits.

    Each limit is checked before the work that it limits.
    """

    max_bytes: int = 5_000_000
    max_rows: int = 50_000
    max_columns: int = 100
    max_cell_chars: int = 200_000
    max_unpacked_bytes: int = 50_000_000
    """The total size of the columns that are read, after decompression (only for Parquet)."""

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

    Aliases are recognised, and spaces around names are ignored. If two names mean the same column, it is an
    error, and the position is that of the first one.
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
    findings = [_doubled(column, spellings) for column, spellings in doubled.items()]
    findings += [
        _missing(name, stripped, column)
        for name, column in columns.items()
        if column.is_required and name not in known
    ]
    if len(names) > limits.max_columns:
        findings.append(
            error(
                "too_many_columns",
                f"the file has {counted(len(names), 'column')}; at most {limits.max_columns} are accepted. "
                f"Keep the columns of a prediction file: {', '.join(columns)}.",
                count=len(names),
            )
        )
    if unknown:
        findings.append(_unknown(unknown, columns))
    return known, findings


def too_many_rows(limits: ReadingLimits) -> Finding:
    return error(
        "too_many_rows",
        f"the file has more than {limits.max_rows:,} rows. Write one row per trajectory of the split.",
    )


def without_rows(findings: list[Finding]) -> list[Finding]:
    """Return the findings about a file without rows. An error is added unless they contain one."""
    if any(finding.level == "error" for finding in findings):
        return findings
    message = (
        "the file has no rows. Write one row per trajectory; "
        "`arb submissions template --split test` writes a file to fill in."
    )
    return [*findings, error("no_rows", message)]


def blank_rows(rows: Sequence[int]) -> list[Finding]:
    """Return a list with a warning about blank rows, or an empty list."""
    if not rows:
        return []
    few = ", ".join(map(str, rows[:5])) + (" …" if len(rows) > 5 else "")
    message = f"{counted(len(rows), 'blank row')} skipped (row {few}). Remove them or add the missing data."
    return [Finding("warning", "blank_rows", message, tuple(rows[:1_000]), len(rows))]


def _doubled(column: str, spellings: set[str]) -> Finding:
    message = f"{column}: the file has this column twice ({quoted_names(sorted(spellings))}). Keep only one."
    return error("duplicate_column", message, column=column)


def _missing(name: str, names: Sequence[str], column: PredictionColumn) -> Finding:
    found = f"the file has {quoted_names(names)}" if any(names) else "the file has no column names"
    return error(
        "missing_column",
        f"{name}: this column is missing ({found}). Every row needs it"
        f"{'; null is allowed as a value' if column.target else ''}.",
        column=name,
    )


def _unknown(names: Sequence[str], columns: Iterable[str]) -> Finding:
    listed = quoted_names(names, partial(_with_hint, columns=tuple(columns)))
    message = f"{counted(len(names), 'unknown column')} ignored: {listed}. Remove or rename them."
    return warning("unknown_columns", message, count=len(names))


def _with_hint(name: str, columns: Sequence[str]) -> str:
    spelled = name[:80].casefold().replace(" ", "_")
    close = difflib.get_close_matches(spelled, columns, n=1, cutoff=0.75)
    return f"{quoted(name)} (did you mean {close[0]}?)" if close else quoted(name)


FileFormat = Literal["jsonl", "csv", "parquet"]

UTF8_MARK: Final = b"\xef\xbb\xbf"
_FOREIGN: Final = (
    (b"\x1f\x8b", "compressed", "is compressed with gzip", "Unpack it first"),
    (
        b"PK\x03\x04",
        "compressed",
        "is a zip archive or Excel workbook",
        "Unpack it, or in Excel use Save As with the type CSV UTF-8",
    ),
    (b"BZh", "compressed", "is compressed with bzip2", "Unpack it first"),
    (b"\xfd7zXZ", "compressed", "is compressed with xz", "Unpack it first"),
    (b"(\xb5/\xfd", "compressed", "is compressed with zstd", "Unpack it first"),
    (b"7z\xbc\xaf", "compressed", "is a 7z archive", "Unpack it first"),
    (b"PARE", "encrypted", "is an encrypted Parquet file", "Write it without encryption"),
    (
        b"\xd0\xcf\x11\xe0",
        "not_text",
        "is an old Excel workbook",
        "In Excel, use Save As with the type CSV UTF-8",
    ),
    (b"ARROW1", "not_text", "is an Arrow (Feather) file", "Write it as Parquet"),
    (b"\x89HDF", "not_text", "is an HDF5 file", "Write it as Parquet or JSONL"),
    (b"\x89PNG", "not_text", "is a picture", "Choose the prediction file"),
    (b"%PDF", "not_text", "is a PDF", "Choose the prediction file"),
)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]")
_MOST_BAD_LINES: Final = 50_000
_FORMATS_READ: Final = "a prediction file is JSONL, CSV (UTF-8, with a header line) or Parquet"


def recognise(content: bytes) -> FileFormat | Finding:
    """Return the format of non-empty bytes, or an error that says what else they are."""
    if content.startswith(b"PAR1"):
        return "parquet"
    for magic, code, says, advice in _FOREIGN:
        if content.startswith(magic):
            return error(code, f"the file {says}. {advice}; {_FORMATS_READ}.")
    if _PICKLE.match(content):
        return error(
            "not_text", f"the file looks like a Python pickle, which is never opened; {_FORMATS_READ}."
        )
    if _is_utf16(content):
        return error("wrong_encoding", "the file is UTF-16 or UTF-32, not UTF-8. Save it as UTF-8.")
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
        advice = "The file is damaged or not text; write it again as UTF-8."
        return None, [row_finding("error", "nul_bytes", "a NUL byte", lines, advice, of="line")]
    body = text.rstrip()
    if "\r" in body and "\n" not in body:
        message = "lines end with a carriage return only, as on old Macs. Save the file with LF line ends."
        return body.replace("\r", "\n"), [warning("line_ends", message)]
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
    return row_finding(
        "error",
        "wrong_encoding",
        "bytes that are not UTF-8",
        lines,
        "The file may be Latin-1 or Windows-1252, or not text at all; save it as UTF-8.",
        show=lambda i: f"byte 0x{content[offsets[i]]:02x} at offset {offsets[i]:,}",
        of="line",
    )


def too_large(size: int, max_bytes: int) -> Finding:
    return error(
        "too_large",
        f"the file has {counted(size, 'byte')}; at most {max_bytes:,} are accepted. "
        "Leave out long columns such as reasoning, or write Parquet.",
    )


def has_parquet_footer(content: bytes) -> bool:
    """Return whether the bytes end with a plausible footer length and Parquet's magic number."""
    length = int.from_bytes(content[-8:-4], "little")
    return content.endswith(b"PAR1") and 0 < length <= len(content) - 12


def damaged_parquet(why: str) -> Finding:
    return error("invalid_parquet", f"the Parquet file cannot be read ({why}). Write it again.")
