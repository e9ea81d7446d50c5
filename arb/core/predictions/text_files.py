"""Read CSV and JSON Lines into a raw table.

CSV files have a header and are separated by commas, semicolons or tabs. Every value stays a string. Rows
are numbered as in a spreadsheet: the header is row 1, a quoted line end does not begin a row, and blank
lines count.
In JSON Lines, each line is an object, and rows are numbered by line. Invalid lines are skipped and reported.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from arb.core.predictions.columns import PredictionColumn, column_of, prediction_columns
from arb.core.predictions.findings import Finding, finding, finding_in_rows, quoted
from arb.core.predictions.raw import (
    MISSING,
    RawTable,
    ReadingLimits,
    blank_rows,
    settle_header,
    without_rows,
)

_DELIMITERS: Final = (",", ";", "\t")


class BrokenQuotesError(ValueError):
    """Raised when the quotes of a CSV file do not match."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_csv(text: str, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """Read CSV text without a byte order mark and return the table and findings.

    The table is None if the file has no rows or too many, or if the quotes do not match.
    """
    # The csv module has one limit for the whole process, 131,072 by default. It is only ever raised, so that
    # threads cannot undo each other's change. The size of the file still limits the work.
    csv.field_size_limit(max(csv.field_size_limit(), limits.max_cell_chars))
    known: dict[str, int] = {}
    findings: list[Finding] = []
    width = 0  # number of columns, once the header was read
    kept: list[list[str]] = []  # only cells of known columns, since there may be many others
    numbers: list[int] = []
    blank: list[int] = []
    uneven: dict[int, int] = {}  # row number to its number of fields
    try:
        for number, record in numbered_records(text, limits.columns):
            if number > limits.max_rows + 1:
                return None, [finding("too_many_rows", most=limits.max_rows)]
            if not any(map(str.strip, record)):
                blank.append(number)
            elif not width:
                width = len(record)
                known, findings = settle_header(record, limits)
            elif len(record) != width:
                uneven[number] = len(record)
            else:
                kept.append([record[position] for position in known.values()])
                numbers.append(number)
    except BrokenQuotesError as broken:
        return None, [broken.finding]
    # Spreadsheets leave empty records at the end, so only those between rows deserve a warning.
    last = max([*numbers[-1:], *uneven], default=0)
    if not width:
        _, findings = settle_header([], limits)
    if uneven:
        rows = list(uneven)
        findings.append(
            finding_in_rows("field_count", rows, show=lambda i: f"{uneven[rows[i]]:,}", width=width)
        )
    findings += blank_rows([number for number in blank if number < last])
    if not kept:
        return None, without_rows(findings)
    columns = dict(zip(known, zip(*kept, strict=True), strict=True))
    return RawTable(numbers, columns), findings


def numbered_records(
    text: str, columns: Mapping[str, PredictionColumn] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every record. The header is record 1.

    The delimiter is the one with which the header contains the most of ``columns``. Raises BrokenQuotesError.
    """
    delimiter = _delimiter(text, columns or prediction_columns())
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, line = 1, 1
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            raise BrokenQuotesError(_broken(number, line, problem)) from problem
        yield number, record
        number, line = number + 1, reader.line_num + 1


def _delimiter(text: str, columns: Mapping[str, PredictionColumn]) -> str:
    """Return the delimiter that splits the header into the most known columns, by default a comma."""
    first_line = text.lstrip().split("\n", 1)[0][:10_000]

    def known(delimiter: str) -> int:
        names = (name.strip().strip('"').strip() for name in first_line.split(delimiter))
        return sum(column_of(name, columns) in columns for name in names)

    return max(_DELIMITERS, key=known)


def _broken(number: int, line: int, problem: csv.Error) -> Finding:
    if "field larger" in str(problem):
        what = "a cell is too long, or a quote is opened and not closed"
    elif "end of data" in str(problem):
        what = "a quote is opened and not closed"
    else:
        what = "a quote inside a cell is not doubled, or one is opened and not closed"
    return finding("broken_quotes", rows=[number], what=what, row=number, line=line)


_BAD_LINES: Final = ("invalid_json", "not_an_object", "duplicate_key")
"""The findings about lines of JSONL."""


def read_jsonl(text: str, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """Read JSON Lines without a byte order mark and return the table and findings.

    The table is None if the text is a JSON array, or if it has no rows or too many.
    """
    if text.lstrip()[:1] == "[":
        return None, [finding("json_array")]
    body = text.rstrip()
    if body.count("\n") >= limits.max_rows:
        return None, [finding("too_many_rows", most=limits.max_rows)]
    rows: list[Mapping[str, object]] = []
    numbers: list[int] = []
    blank: list[int] = []
    bad: dict[str, dict[int, str]] = {code: {} for code in _BAD_LINES}  # by line number: the detail shown
    repeated: list[str] = []  # keys that the current line has twice

    def to_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        row = dict(pairs)
        if len(row) != len(pairs):
            repeated.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return row

    decoder = json.JSONDecoder(object_pairs_hook=to_object)
    for number, line in enumerate(body.split("\n"), 1):
        if not line.strip():
            blank.append(number)
            continue
        repeated.clear()
        try:
            row = decoder.decode(line)
        except json.JSONDecodeError as invalid:
            bad["invalid_json"][number] = f"{quoted(invalid.msg)[1:-1]} at character {invalid.colno:,}"
            continue
        except RecursionError:
            bad["invalid_json"][number] = "nested too deeply"
            continue
        except ValueError:  # Python limits the number of digits
            bad["invalid_json"][number] = "a whole number with thousands of digits"
            continue
        if not isinstance(row, dict):
            bad["not_an_object"][number] = quoted(row)
            continue
        if repeated:
            bad["duplicate_key"][number] = quoted(repeated[0])
        rows.append(row)
        numbers.append(number)
    findings = []
    for code, found in bad.items():
        if found:
            findings.append(finding_in_rows(code, list(found), show=list(found.values()).__getitem__))
    findings += blank_rows(blank)
    if not rows:
        return None, without_rows(findings)
    return _to_columns(rows, numbers, findings, limits)


def _to_columns(
    rows: Sequence[Mapping[str, object]], numbers: list[int], findings: list[Finding], limits: ReadingLimits
) -> tuple[RawTable, list[Finding]]:
    # A file has few different sets of keys, so collecting the names from those is fast.
    names = list(dict.fromkeys(key for keys in dict.fromkeys(map(tuple, rows)) for key in keys))
    known, found = settle_header(names, limits)
    columns: dict[str, Sequence[object]] = {}
    for column, position in known.items():
        name = names[position]
        columns[column] = [row.get(name, MISSING) for row in rows]
    return RawTable(numbers, columns), findings + found
