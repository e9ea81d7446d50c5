"""JSON Lines to a raw table: one object a line; a bad line is named and does not stop the rest."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.predictions.findings import Finding, error, quoted, row_finding
from core.predictions.raw import (
    MISSING,
    RawTable,
    ReadingLimits,
    blank_rows,
    settle_header,
    too_many_rows,
    without_rows,
)


@dataclass(frozen=True, slots=True)
class _BadLine:
    code: str
    detail: str


_BAD_LINES = {
    "invalid_json": ("not valid JSON", "Write one complete JSON object on each line."),
    "not_an_object": (
        "not a JSON object", 'Write an object with keys: {"trajectory_id": "…", "success": true}.'
    ),
    "duplicate_key": ("a key written twice", "Keep one of them."),
}  # fmt: skip
"""By code: the problem, and what to do."""


def read_jsonl(text: str, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """Read text without a byte order mark; row numbers are line numbers.

    None when there is nothing to read row by row: a JSON array, no row, too many rows.
    """
    if text.lstrip()[:1] == "[":
        return None, [_array()]
    body = text.rstrip()
    if body.count("\n") >= limits.max_rows:
        return None, [too_many_rows(limits)]
    lines = body.split("\n")
    decoder = _RowDecoder()
    rows: list[Mapping[str, object]] = []
    numbers: list[int] = []
    blank: list[int] = []
    bad: list[tuple[int, _BadLine]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blank.append(number)
            continue
        row, problem = decoder.decode(line)
        if problem is not None:
            bad.append((number, problem))
        if row is not None:
            rows.append(row)
            numbers.append(number)
    findings = _line_findings(bad) + blank_rows(blank)
    if not rows:
        return None, without_rows(findings)
    return _to_columns(rows, numbers, findings, limits)


class _RowDecoder:
    """Decodes lines with the json module, seeing keys that are written twice."""

    def __init__(self) -> None:
        self._twice: list[str] = []
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        row = dict(pairs)
        if len(row) != len(pairs):
            seen: set[str] = set()
            self._twice += [key for key, _ in pairs if key in seen or seen.add(key)]
        return row

    def decode(self, line: str) -> tuple[dict[str, object] | None, _BadLine | None]:
        """The row and its problem; NaN and Infinity come as floats, for the columns to judge."""
        self._twice.clear()
        try:
            row = self._decoder.decode(line)
        except json.JSONDecodeError as problem:
            return None, _BadLine(
                "invalid_json", f"{quoted(problem.msg)[1:-1]} at character {problem.colno:,}"
            )
        except RecursionError:
            return None, _BadLine("invalid_json", "nested too deeply")
        except ValueError:  # the interpreter's bound on the digits of a whole number
            return None, _BadLine("invalid_json", "a whole number with thousands of digits")
        if not isinstance(row, dict):
            return None, _BadLine("not_an_object", quoted(row))
        if self._twice:
            return row, _BadLine("duplicate_key", quoted(self._twice[0]))
        return row, None


def _to_columns(
    rows: Sequence[Mapping[str, object]], numbers: list[int], findings: list[Finding], limits: ReadingLimits
) -> tuple[RawTable, list[Finding]]:
    # Rows of one file share few sets of keys, so names are collected over the distinct ones.
    names = list(dict.fromkeys(key for keys in dict.fromkeys(map(tuple, rows)) for key in keys))
    header = settle_header(names, limits)
    columns: dict[str, Sequence[object]] = {}
    for column, position in header.known.items():
        name = names[position]
        columns[column] = [row.get(name, MISSING) for row in rows]
    return RawTable(numbers, columns), findings + header.findings


def _line_findings(bad: Sequence[tuple[int, _BadLine]]) -> list[Finding]:
    findings = []
    for code, (problem, advice) in _BAD_LINES.items():
        found = {number: line.detail for number, line in bad if line.code == code}
        if found:
            details = list(found.values())
            findings.append(
                row_finding("error", code, problem, list(found), advice, show=details.__getitem__)
            )
    return findings


def _array() -> Finding:
    return error(
        "json_array",
        "the file is one JSON array. Write JSON Lines: one object on each line, without brackets around them "
        'or commas between them (pandas: to_json(path, orient="records", lines=True)).',
    )
