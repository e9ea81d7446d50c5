"""``python -m leaderboard tables`` and ``audit``: the paper's tables, and the counts behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from arb.core.cli import JsonOption, plain_console, print_json, read_settings, read_suite, stop
from arb.core.console import text_table
from arb.core.vocabulary import BENCHMARK_TITLES, LABEL_TITLES

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from leaderboard.paper.published import PublishedCell, PublishedRow


def tables(
    table: Annotated[
        list[int] | None,
        typer.Option(help="A table's number in the paper; may be repeated. All if left out."),
    ] = None,
    verdicts: Annotated[
        list[str] | None,
        typer.Option(
            help="A judge's verdicts on test: FILE named as the judge (aer-c.jsonl), or NAME=FILE. "
            "May be repeated."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the paper's tables, computed here, beside the printed figures.

    Every difference is explained. Tables 9 to 12 (one agent each) need verdict files.
    """
    from leaderboard.labels.labels import LabelsInvalid, load_labels
    from leaderboard.labels.source import LabelsUnavailable
    from leaderboard.paper import TABLES
    from leaderboard.paper.evidence import gather
    from leaderboard.paper.table import to_markdown
    from leaderboard.report import read_verdict_files

    if unknown := [str(number) for number in table or () if number not in TABLES]:
        stop(f"no table of results is numbered {', '.join(unknown)}; there are {', '.join(map(str, TABLES))}")
    settings = read_settings()
    suite = read_suite("agent-reward-bench", settings)
    try:
        labels = load_labels(suite, "test", settings)
    except (LabelsUnavailable, LabelsInvalid) as reason:
        typer.echo(f"without labels, tables 3 and 6 have no computed figures: {reason}", err=True)
        labels = None
    try:
        paths = _paths_by_judge(verdicts or [])
        records = gather(labels, read_verdict_files(paths, suite, "test", settings.max_upload_bytes))
    except ValueError as problem:
        stop(str(problem), code=1)
    made = [TABLES[number](records) for number in table or TABLES]
    if as_json:
        print_json([asdict(each) for each in made])
        return
    typer.echo("\n".join(map(to_markdown, made)), nl=False)


def _paths_by_judge(named: list[str]) -> dict[str, Path]:
    """Return each file by its judge's name: ``NAME=FILE``, or a file that is named as the judge."""
    found = {}
    for text in named:
        name, separator, path = text.rpartition("=")
        found[name if separator else Path(text).stem] = Path(path)
    return found


def audit(as_json: JsonOption = False) -> None:
    """Audit the published figures.

    Works the counts behind each out again, and says where no whole numbers or several fit.
    """
    from leaderboard.paper.published import load_published_rows

    rows = load_published_rows()
    if as_json:
        print_json(audit_to_json(rows))
        return
    plain_console().print(audit_table(rows))


AUDIT_COLUMNS: Final = ("judge", "label", "benchmark", "P", "R", "F1", "TP/FP/FN/TN", "status", "note")


def audit_cells(rows: Iterable[PublishedRow]) -> Iterator[tuple[PublishedRow, str, str, PublishedCell]]:
    """Yield each cell of which something is known with its row, label and benchmark (or ``overall``)."""
    from leaderboard.paper.audit import OVERALL

    for row in rows:
        for label, published in row.labels.items():
            if published is None:
                continue
            yield row, label, OVERALL, published.overall
            for benchmark, cell in published.by_benchmark.items():
                if cell is not None:
                    yield row, label, benchmark, cell


def audit_texts(rows: Iterable[PublishedRow]) -> list[tuple[str, ...]]:
    """Return the cells as text, in the order of `AUDIT_COLUMNS`; figures in percent."""
    return [
        (
            row.judge + (f" ({row.inputs})" if row.inputs else ""),
            LABEL_TITLES[label],
            BENCHMARK_TITLES.get(benchmark, "Overall"),
            *("" if x is None else f"{100 * x:.1f}" for x in (cell.precision, cell.recall, cell.f1)),
            "" if cell.counts is None else str(cell.counts),
            cell.status,
            cell.note,
        )
        for row, label, benchmark, cell in audit_cells(rows)
    ]


def audit_table(rows: Iterable[PublishedRow]) -> Group:
    """Return the same for a terminal of 80 columns or more: a table with notes per row, then the summary."""
    from rich import box
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for row in rows:
        texts = audit_texts([row])
        if not texts:
            continue
        table = text_table(
            *AUDIT_COLUMNS[1:3], figures=AUDIT_COLUMNS[3:7], box=box.SIMPLE_HEAD, collapse_padding=True,
            pad_edge=False,
        )  # fmt: skip
        table.add_column(AUDIT_COLUMNS[7])
        for _, label, benchmark, *cells, _ in texts:
            table.add_row(label if benchmark == "Overall" else "", benchmark, *cells)
        notes = [Text(f"{label}, {benchmark}: {note}") for _, label, benchmark, *_, note in texts if note]
        parts += [Text(f"{texts[0][0]}, {row.provenance}", "bold"), table, *notes, Text()]
    for provenance, labels in audit_summary(rows).items():
        for label, statuses in labels.items():
            counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
            parts.append(Text(f"{provenance}, {LABEL_TITLES[label].lower()}: {counts}"))
    return Group(*parts, *map(Text, audit_findings(rows)))


def audit_summary(rows: Iterable[PublishedRow]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the cells (overall and benchmarks) by provenance, then label, then status."""
    summary: dict[str, dict[str, Counter[str]]] = {}
    for row, label, _, cell in audit_cells(rows):
        summary.setdefault(row.provenance, {}).setdefault(label, Counter())[cell.status] += 1
    return summary


def audit_findings(rows: Iterable[PublishedRow]) -> list[str]:
    """Return sentences on rows that contradict themselves or fit no whole numbers."""
    return [
        f"{row.row_id}, {LABEL_TITLES[label].lower()}: {finding}"
        for row in rows
        for label, published in row.labels.items()
        if published is not None
        for finding in published.findings
    ]


def audit_to_json(rows: Iterable[PublishedRow]) -> dict:
    """Return the audit as plain data: summary, findings, and every cell."""
    cells = [
        {
            "row_id": row.row_id,
            "judge": row.judge,
            "provenance": row.provenance,
            "label": label,
            "benchmark": benchmark,
            **asdict(cell),
            "counts": cell.counts and cell.counts._asdict(),
            "bounds": cell.bounds and [bound._asdict() for bound in cell.bounds],
        }
        for row, label, benchmark, cell in audit_cells(rows)
    ]
    return {"summary": audit_summary(rows), "findings": audit_findings(rows), "cells": cells}
