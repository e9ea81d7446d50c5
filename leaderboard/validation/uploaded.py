"""Validate tables that strangers uploaded. Servers call `validate_upload` in a worker (`parser_pool`)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from arb.core.predictions.parser_pool import ParserPool
from arb.core.predictions.raw import ReadingLimits
from leaderboard.validation.parsing import parse_table
from leaderboard.validation.report import ValidationReport, validate_table
from leaderboard.validation.tables import (
    Columns,
    ColumnUnclear,
    NamedTable,
    TableError,
    ValidationTable,
    read_one,
    read_several,
)

MOST_ROWS: Final = 10_000
MOST_JUDGES: Final = 12
MOST_VALUES: Final = 50
"""The maximum number of different values in a column by which figures are reported."""
READER: Final = f"{__name__}:validate_upload"


@dataclass(frozen=True)
class UploadedTable:
    """An uploaded table: its name in the report, and the content of the file, which is not parsed yet."""

    name: str
    content: bytes


@dataclass(frozen=True)
class ValidationAnswer:
    """The report on uploaded tables, or what is wrong with them.

    Attributes:
        report: The report, or None if the tables cannot be used.
        problem: What is wrong; empty if there is a report.
        unclear: If a column was not found, the option that names it, such as ``--label``; else empty.
        columns: The columns of the table of labels, and those of the first table of verdicts.
    """

    report: ValidationReport | None = None
    problem: str = ""
    unclear: str = ""
    columns: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


@cache
def _answers() -> TypeAdapter[ValidationAnswer]:
    return TypeAdapter(ValidationAnswer)


def ask_worker(
    parsers: ParserPool,
    tables: Sequence[UploadedTable],
    columns: Columns,
    threshold: float,
    limits: ReadingLimits,
) -> ValidationAnswer:
    """Return a worker's report on tables: one with labels and verdicts, or one with labels and one per judge.

    Raises:
        WorkerFailed: The worker gave no answer.
    """
    header = {
        "columns": asdict(columns),
        "threshold": threshold,
        "tables": [(table.name, len(table.content)) for table in tables],
    }
    content = b"\n".join([json.dumps(header).encode(), b"".join(table.content for table in tables)])
    most = replace(limits, max_rows=MOST_ROWS)
    return parsers.call(content, most, READER, _answers().validate_python)


def validate_upload(content: bytes, limits: ReadingLimits) -> dict[str, Any]:
    """Return a `ValidationAnswer` as plain values; ``content`` is what `ask_worker` sends."""
    header, _, body = content.partition(b"\n")
    asked = json.loads(header)
    columns = TypeAdapter(Columns).validate_python(asked["columns"])
    tables: list[NamedTable] = []
    answer = ValidationAnswer()
    try:
        for name, size in asked["tables"]:
            try:
                tables.append(NamedTable(name, parse_table(body[:size], limits)))
            except (ValueError, RecursionError) as error:
                raise TableError(f"{name}: {error}") from error
            body = body[size:]
        first, *others = tables
        answer = replace(answer, columns=(_names(first), _names((others or tables)[0])))
        if others:
            table = read_several(first, others, columns, asked["threshold"])
        else:
            table = read_one(first, columns, asked["threshold"])
        _check(table)
        answer = replace(answer, report=validate_table(table))
    except TableError as problem:
        unclear = problem.option if isinstance(problem, ColumnUnclear) else ""
        answer = replace(answer, problem=str(problem), unclear=unclear)
    found: dict[str, Any] = _answers().dump_python(answer, mode="json")
    return found


def _names(table: NamedTable) -> tuple[str, ...]:
    return tuple(str(name) for name in table.frame.columns)


def _check(table: ValidationTable) -> None:
    """Raise TableError if the report would take too long."""
    if len(table.judges) > MOST_JUDGES:
        raise TableError(f"there are {len(table.judges)} judges; send at most {MOST_JUDGES} at a time")
    for column, values in table.slices.items():
        if (n := len(set(values.tolist()))) > MOST_VALUES:
            raise TableError(f"column {column} has {n} values; choose one with at most {MOST_VALUES}")
