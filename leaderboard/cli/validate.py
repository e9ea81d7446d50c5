"""``arb validate``: measure judges on a table of labels and verdicts, without a suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from arb.core.cli import (
    JsonOption,
    print_json,
    stop,
    write_file,
)
from arb.core.console import counted, printable
from arb.core.files import csv_text
from arb.core.lazy import lazy_imports
from leaderboard.cli.options import described
from leaderboard.cli.text import print_template

with lazy_imports():
    from leaderboard import judge_names
    from leaderboard.success_rates import runs as agent_runs
    from leaderboard.validation import html, parsing, report, scout, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaderboard.validation.report import ValidationReport
    from leaderboard.validation.tables import ValidationTable

NOT_MET, BAD_INPUT, UNDEFINED = 1, 2, 3
"""Exit codes: a requirement is not met; the input has problems; a required figure is undefined."""


@described
def validate(  # noqa: PLR0913 - a command's options
    table: Path | None = None,
    labels: Path | None = None,
    verdicts: list[Path] | None = None,
    label: list[str] | None = None,
    verdict: list[str] | None = None,
    id_: list[str] | None = None,
    group: str | None = None,
    by: list[str] | None = None,
    weights: str | None = None,
    draw: Path | None = None,
    threshold: float = 0.5,
    half_width: float = 5.0,
    require: list[str] | None = None,
    disagreements: Path | None = None,
    page: Path | None = None,
    to: Literal["scout"] | None = None,
    out: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Measure judges against labels in tables with any ids and columns.

    Give one table with columns of labels and verdicts, or --labels and --verdicts. Tables are CSV with any
    separator, JSONL, JSON, YAML, Parquet, or files of Inspect Scout. Answers are yes/no, true/false, 1/0,
    pass/fail, or scores from 0 to 1.

    Exit code 0: done; 1: a requirement is not met; 2: the input has problems; 3: a required figure is
    undefined.
    """
    if (to is None) != (out is None):
        stop("give --to scout and --out FOLDER together", BAD_INPUT)
    if to is not None and labels is None and not id_:
        stop("--to scout needs the ids of the transcripts; add --id COLUMN", BAD_INPUT)
    try:
        requirements = [report.parse_requirement(text) for text in require or ()]
        columns = tables.Columns(
            tuple(id_ or ()), tuple(label or ()), tuple(verdict or ()), group, tuple(by or ()), weights
        )
        read = _read(table, labels, verdicts or [], columns, threshold)
        if draw is not None:
            read = _weighted(read, draw)
        found = report.validate_table(read, half_width / 100)
        if out is not None:
            for path in scout.write_scout(read, out):
                typer.echo(f"{path}: written", err=True)
    except tables.TableError as problem:
        stop(str(problem), BAD_INPUT)
    if disagreements is not None:
        _write_disagreements(read, disagreements)
    if page is not None:
        write_file(page, html.render(found))
    if as_json:
        print_json(found.to_json())
    else:
        print_template("validate.txt.j2", report=found)
        for warning in found.warnings:
            typer.echo(f"note: {printable(warning)}", err=True)
    _check(requirements, found)


def _read(
    table: Path | None,
    labels: Path | None,
    verdicts: Sequence[Path],
    columns: tables.Columns,
    threshold: float,
) -> ValidationTable:
    if table is not None and labels is None and not verdicts:
        return tables.read_one(parsing.read_table(table), columns, threshold)
    if table is not None or labels is None or not verdicts:
        stop("give one table, or both --labels FILE and --verdicts FILE", BAD_INPUT)
    named = [parsing.read_table(path) for path in verdicts]
    names = judge_names.judge_names(verdicts)
    read = [replace(each, judge=name) for each, name in zip(named, names, strict=True)]
    return tables.read_several(parsing.read_table(labels), read, columns, threshold)


def _weighted(read: ValidationTable, draw: Path) -> ValidationTable:
    found, problems = agent_runs.read_draw(draw.name, draw.read_bytes())
    if problems:
        raise tables.TableError("\n".join(f"{draw.name} {each.message}" for each in problems))
    weights = report.draw_weights([(each.n, each.drawn) for each in found.strata], read.ids)
    return replace(read, weights=weights)


def _write_disagreements(read: ValidationTable, path: Path) -> None:
    lines = report.disagreements(read)
    fields = list(dict.fromkeys(name for line in lines for name in line)) or ["id", "label"]
    write_file(path, csv_text(fields, [[line.get(name, "") for name in fields] for line in lines]))
    typer.echo(f"{path}: {counted(len(lines), 'row')} that at least one judge gets wrong", err=True)


def _check(requirements: Sequence[report.Requirement], found: ValidationReport) -> None:
    """Exit with 1 or 3 unless every judge meets every requirement."""
    code = 0
    for judge in found.judges:
        for each in requirements:
            holds = each.holds(judge)
            if holds:
                continue
            outcome = "undefined" if holds is None else "not met"
            typer.echo(f"{printable(judge.judge)}: {each.text} is {outcome}", err=True)
            code = max(code, UNDEFINED if holds is None else NOT_MET)
    if code:
        raise typer.Exit(code)
