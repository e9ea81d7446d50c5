"""Rows that nobody uploads: the paper's 13 judges, later self-reported ones, and references.

Read from the CSV files under ``published/`` (see the README there). Counts are not in the files: the integer
audit works them out when the rows are loaded, in about 20 ms, so that they cannot drift from the figures.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dataset_script.vocabulary import BENCHMARKS, LABELS
from leaderboard.audit import AuditResult
from leaderboard.audit_row import OVERALL, LabelAudit, Marginal, audit_row
from leaderboard.printed_figures import Counts
from leaderboard.published_files import (
    PUBLISHED,
    PublishedCell,
    PublishedFiles,
    PublishedLabel,
    PublishedRow,
    read_published_files,
)

SECOND_ANNOTATOR: Final = "reference/second-annotator"
ALWAYS: Final = "reference/always-successful"
NEVER: Final = "reference/never-successful"


def load_published_rows(folder: Path = PUBLISHED) -> tuple[PublishedRow, ...]:
    """Read and audit every row, in the order of ``judges.csv`` (the paper's Table 1, then the others).

    Raises PublishedDataError naming every file, row and field that is wrong.
    """
    files = read_published_files(folder)
    return tuple(replace(row, labels=MappingProxyType(_labels(row.row_id, files))) for row in files.judges)


def _labels(row_id: str, files: PublishedFiles) -> dict[str, PublishedLabel | None]:
    if row_id == SECOND_ANNOTATOR:
        return {label: _exact_label(files.second_annotator[label]) for label in LABELS}
    if row_id in (ALWAYS, NEVER):
        return {label: _exact_label(_constant(files.marginals[label], row_id == ALWAYS)) for label in LABELS}
    audits = audit_row(files.figures.get(row_id, {}), files.marginals)
    return {label: _audited_label(audits[label]) if label in audits else None for label in LABELS}


def _constant(marginals: Mapping[str, Marginal], answer: bool) -> dict[str, Counts]:
    """Counts on each benchmark of a judge that gives one answer to everything."""
    counts = {}
    for benchmark in BENCHMARKS:
        n, positives = marginals[benchmark]
        yes, no = (positives, n - positives), (0, 0)
        counts[benchmark] = Counts(*yes, *no) if answer else Counts(*no, *yes)
    return counts


def _audited_label(audit: LabelAudit) -> PublishedLabel:
    cells = {
        cell: None if result.status == "not printed" else _audited_cell(result)
        for cell, result in audit.cells.items()
    }
    by_benchmark = MappingProxyType({benchmark: cells[benchmark] for benchmark in BENCHMARKS})
    return PublishedLabel(_audited_cell(audit.cells[OVERALL]), by_benchmark, audit.findings)


def _audited_cell(result: AuditResult) -> PublishedCell:
    figures = result.figures
    precision, recall, f1 = (
        None if tenths is None else tenths / 1000
        for tenths in (figures.precision, figures.recall, figures.f1)
    )
    return PublishedCell(
        n=result.n,
        positives=result.positives,
        precision=precision,
        recall=recall,
        f1=f1,
        counts=result.counts,
        status=result.status,
        no_verdict=result.missing,
        fits=len(result.possible),
        bounds=result.bounds,
        note=result.note,
    )


def _exact_label(counts: Mapping[str, Counts]) -> PublishedLabel:
    """A label whose counts are known for each benchmark; overall is their sum."""
    overall = Counts(*map(sum, zip(*counts.values(), strict=True)))
    by_benchmark = {b: _exact_cell(counts[b]) if b in counts else None for b in BENCHMARKS}
    return PublishedLabel(_exact_cell(overall), MappingProxyType(by_benchmark), ())


def _exact_cell(counts: Counts) -> PublishedCell:
    tp, fp, fn, _ = counts
    return PublishedCell(
        n=counts.n,
        positives=counts.positives,
        precision=_ratio(tp, tp + fp),
        recall=_ratio(tp, tp + fn),
        f1=_ratio(2 * tp, 2 * tp + fp + fn),
        counts=counts,
        status="exact",
        no_verdict=0,
        fits=1,
        bounds=(counts, counts),
        note="",
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
