"""``arb leaderboard tables`` and ``audit``: the paper's tables, and the counts behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from arb.core.cli import JsonOption, plain_console, print_json, read_settings, read_suite, stop
from arb.core.console import text_table
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import BENCHMARK_TITLES
from leaderboard.cli.options import described

with lazy_imports():
    from rich import box
    from rich import console as rich_console
    from rich import text as rich_text

    from leaderboard import verdict_files
    from leaderboard.labels import labels as labels_module
    from leaderboard.labels import source
    from leaderboard.paper import audit as integer_audit
    from leaderboard.paper import evidence, published, published_files
    from leaderboard.paper import table as paper_table
    from leaderboard.paper import tables as paper_tables

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from leaderboard.paper.published_files import PublishedCell, PublishedRow


@described
def tables(
    table: list[int] | None = None, verdicts: list[str] | None = None, as_json: JsonOption = False
) -> None:
    """Compute the paper's tables and compare them with the printed figures.

    Notes explain every difference. Tables 9 to 12 (one per agent) need files of verdicts.
    """
    known = paper_tables.TABLES
    if unknown := [str(number) for number in table or () if number not in known]:
        stop(f"the paper has no table of results {', '.join(unknown)}; use {', '.join(map(str, known))}")
    settings = read_settings()
    suite = read_suite("agent-reward-bench", settings)
    labels = None
    try:
        labels = labels_module.load_labels(suite, "test", settings)
    except (source.LabelsUnavailable, labels_module.LabelsInvalid) as reason:
        typer.echo(f"warning: tables 3 and 6 have no computed figures without labels: {reason}", err=True)
    try:
        paths = _paths_by_judge(verdicts or [])
        found = verdict_files.read_verdict_files(paths, suite, "test", settings.max_upload_bytes)
        records = evidence.gather(labels, found)
    except ValueError as problem:
        stop(str(problem), code=1)
    made = [known[number](records) for number in table or known]
    if as_json:
        print_json([asdict(each) for each in made])
        return
    typer.echo("\n".join(map(paper_table.to_markdown, made)), nl=False)


def _paths_by_judge(named: list[str]) -> dict[str, Path]:
    """Return the path of each judge's file from ``NAME=FILE``, or ``FILE`` if it is named after the judge."""
    found = {}
    for text in named:
        name, separator, path = text.rpartition("=")
        found[name if separator else Path(text).stem] = Path(path)
    return found


def audit(as_json: JsonOption = False) -> None:
    """Audit the published figures.

    Derives the confusion counts (TP, FP, FN, TN) from each judge's printed precision, recall and F1. Reports
    figures that no whole numbers fit, and those that several sets of numbers fit.
    """
    rows = published.load_published_rows()
    if as_json:
        print_json(audit_to_json(rows))
        return
    plain_console().print(audit_table(rows))


AUDIT_COLUMNS: Final = ("judge", "label", "benchmark", "P", "R", "F1", "TP/FP/FN/TN", "status", "note")


def audit_cells(rows: Iterable[PublishedRow]) -> Iterator[tuple[PublishedRow, str, str, PublishedCell]]:
    """Yield (row, label, benchmark or ``overall``, cell) for each cell with known figures."""
    for row in rows:
        for label, found in row.labels.items():
            if found is None:
                continue
            yield row, label, integer_audit.OVERALL, found.overall
            for benchmark, cell in found.by_benchmark.items():
                if cell is not None:
                    yield row, label, benchmark, cell


def audit_texts(rows: Iterable[PublishedRow]) -> list[tuple[str, ...]]:
    """Return one tuple of strings per cell, in the order of `AUDIT_COLUMNS`, with figures in percent."""
    found = []
    for row, label, benchmark, cell in audit_cells(rows):
        judge = f"{row.judge} ({row.inputs})" if row.inputs else row.judge
        place = judge, published_files.LABEL_TITLES[label], BENCHMARK_TITLES.get(benchmark, "Overall")
        figures = ["" if x is None else f"{100 * x:.1f}" for x in (cell.precision, cell.recall, cell.f1)]
        counts = "" if cell.counts is None else str(cell.counts)
        found.append((*place, *figures, counts, cell.status, cell.note))
    return found


def audit_table(rows: Iterable[PublishedRow]) -> Group:
    """Return the audit for a terminal: a table and notes for each row of the board, then a summary."""
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
        parts += [rich_text.Text(f"{texts[0][0]}, {row.provenance}", "bold"), table]
        for _, label, benchmark, *_, note in texts:
            if note:
                parts.append(rich_text.Text(f"{label}, {benchmark}: {note}"))
        parts.append(rich_text.Text())
    for provenance, labels in audit_summary(rows).items():
        for label, statuses in labels.items():
            counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
            parts.append(
                rich_text.Text(f"{provenance}, {published_files.LABEL_TITLES[label].lower()}: {counts}")
            )
    return rich_console.Group(*parts, *map(rich_text.Text, audit_findings(rows)))


def audit_summary(rows: Iterable[PublishedRow]) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Count the cells (overall and benchmarks) by provenance, then label, then status."""
    summary: dict[str, dict[str, Counter[str]]] = {}
    for row, label, _, cell in audit_cells(rows):
        summary.setdefault(row.provenance, {}).setdefault(label, Counter())[cell.status] += 1
    return summary


def audit_findings(rows: Iterable[PublishedRow]) -> list[str]:
    """Return a sentence for each row whose figures contradict each other or fit no integer counts."""
    return [
        f"{row.row_id}, {published_files.LABEL_TITLES[label].lower()}: {finding}"
        for row in rows
        for label, found in row.labels.items()
        if found is not None
        for finding in found.findings
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
