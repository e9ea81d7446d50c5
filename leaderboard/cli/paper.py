"""``python -m leaderboard tables`` and ``audit``: the paper's tables, and the counts behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from arb.core.cli import JsonOption, plain_console, print_json, read_settings, read_suite, stop
from arb.core.console import text_table
from arb.core.vocabulary import BENCHMARK_TITLES, LABEL_TITLES

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from leaderboard.paper.published import PublishedCell, PublishedRow


def tables(
    table: Annotated[
        list[int] | None,
        typer.Option(help="A table's number in the paper; may be repeated. All if left out."),
    ] = None,
    format: Annotated[Literal["markdown", "latex"], typer.Option(help="What to print.")] = "markdown",
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
    from leaderboard.paper import TABLES, make_table
    from leaderboard.paper.evidence import gather
    from leaderboard.paper.table import to_latex, to_markdown

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
        records = gather(labels, _read_all(verdicts or [], suite, settings.max_upload_bytes))
    except ValueError as problem:
        stop(str(problem), code=1)
    made = [make_table(number, records) for number in table or TABLES]
    if as_json:
        print_json([asdict(each) for each in made])
        return
    write = to_latex if format == "latex" else to_markdown
    typer.echo("\n".join(map(write, made)), nl=False)


def _read_all(named: list[str], suite, max_bytes: int) -> dict:
    """Every verdict file by its judge's name; stops with the errors of all of them."""
    from leaderboard.report import VerdictFileError, read_verdict_file

    found, problems = {}, []
    for text in named:
        name, given, path = text.rpartition("=")
        path = Path(path if given else text)
        try:
            found[name if given else path.stem] = read_verdict_file(path, suite, "test", max_bytes)
        except VerdictFileError as problem:
            problems.append(str(problem))
    if problems:
        raise ValueError("\n".join(problems))
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


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One audited cell and where it stands; ``benchmark`` may be ``overall``."""

    row: PublishedRow
    label: str
    benchmark: str
    cell: PublishedCell


def audit_lines(rows: Iterable[PublishedRow]) -> Iterator[AuditLine]:
    """Every cell of which something is known: by row, then label, overall before the benchmarks."""
    from leaderboard.paper.audit import OVERALL

    for row in rows:
        for label, published in row.labels.items():
            if published is None:
                continue
            yield AuditLine(row, label, OVERALL, published.overall)
            for benchmark, cell in published.by_benchmark.items():
                if cell is not None:
                    yield AuditLine(row, label, benchmark, cell)


def audit_texts(rows: Iterable[PublishedRow]) -> list[tuple[str, ...]]:
    """The cells as text, a tuple in the order of `AUDIT_COLUMNS` each; figures in percent."""
    return [_texts(line) for line in audit_lines(rows)]


def audit_table(rows: Iterable[PublishedRow]) -> Group:
    """The same for a terminal, 80 columns or more: a table and notes for each row, then the summary."""
    from rich.console import Group
    from rich.text import Text

    rows = tuple(rows)
    parts: list[RenderableType] = []
    for row in rows:
        texts = audit_texts([row])
        if texts:
            notes = [Text(f"{label}, {cell}: {note}") for _, label, cell, *_, note in texts if note]
            parts += [Text(f"{texts[0][0]}, {row.provenance}", "bold"), _row_table(texts), *notes, Text()]
    beneath = [*_summary_texts(rows), *audit_findings(rows)]
    return Group(*parts, *map(Text, beneath))


def _row_table(texts: Iterable[tuple[str, ...]]) -> Table:
    from rich import box

    options = {"box": box.SIMPLE_HEAD, "collapse_padding": True, "pad_edge": False}
    table = text_table(*AUDIT_COLUMNS[1:3], figures=AUDIT_COLUMNS[3:7], **options)
    table.add_column(AUDIT_COLUMNS[7])
    earlier = None
    for _, label, *cells, _ in texts:
        table.add_row("" if label == earlier else label, *cells)
        earlier = label
    return table


def audit_summary(rows: Iterable[PublishedRow]) -> dict[str, dict[str, dict[str, int]]]:
    """How many cells (overall and benchmarks) have each status: by provenance, then label, then status."""
    tally = Counter((line.row.provenance, line.label, line.cell.status) for line in audit_lines(rows))
    summary: dict[str, dict[str, dict[str, int]]] = {}
    for (provenance, label, status), number in tally.items():
        summary.setdefault(provenance, {}).setdefault(label, {})[status] = number
    return summary


def audit_findings(rows: Iterable[PublishedRow]) -> list[str]:
    """Sentences on rows that contradict themselves or fit no whole numbers."""
    return [
        f"{row.row_id}, {LABEL_TITLES[label].lower()}: {finding}"
        for row in rows
        for label, published in row.labels.items()
        if published is not None
        for finding in published.findings
    ]


def audit_to_json(rows: Iterable[PublishedRow]) -> dict:
    """The audit as plain data, ready for ``json.dumps``: summary, findings, and every cell."""
    rows = tuple(rows)
    cells = []
    for line in audit_lines(rows):
        cell = line.cell
        cells.append(
            {
                "row_id": line.row.row_id,
                "judge": line.row.judge,
                "provenance": line.row.provenance,
                "label": line.label,
                "benchmark": line.benchmark,
                "n": cell.n,
                "positives": cell.positives,
                "precision": cell.precision,
                "recall": cell.recall,
                "f1": cell.f1,
                "status": cell.status,
                "counts": cell.counts and cell.counts._asdict(),
                "no_verdict": cell.no_verdict,
                "fits": cell.fits,
                "bounds": cell.bounds and [bound._asdict() for bound in cell.bounds],
                "note": cell.note,
            }
        )
    return {"summary": audit_summary(rows), "findings": audit_findings(rows), "cells": cells}


def _texts(line: AuditLine) -> tuple[str, ...]:
    row, cell = line.row, line.cell
    inputs = f" ({row.inputs})" if row.inputs else ""
    return (
        row.judge + inputs,
        LABEL_TITLES[line.label],
        BENCHMARK_TITLES.get(line.benchmark, "Overall"),
        *("" if x is None else f"{100 * x:.1f}" for x in (cell.precision, cell.recall, cell.f1)),
        "" if cell.counts is None else str(cell.counts),
        cell.status,
        cell.note,
    )


def _summary_texts(rows: Iterable[PublishedRow]) -> list[str]:
    return [
        f"{provenance}, {LABEL_TITLES[label].lower()}: "
        + ", ".join(f"{number} {status}" for status, number in statuses.items())
        for provenance, labels in audit_summary(rows).items()
        for label, statuses in labels.items()
    ]
