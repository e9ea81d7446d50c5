"""Rows that nobody uploads: the paper's 13 judges, later self-reported ones, and references.

They are CSV files under ``published/`` (see the README there). Counts are not in the files: the integer audit
works them out when the rows are loaded, in about 20 ms, so that they cannot drift from the figures.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, get_args

from core.vocabulary import BENCHMARKS, LABELS
from leaderboard.judge_precision.confusion import f1_from_counts, ratio
from leaderboard.paper.audit import (
    OVERALL,
    AuditResult,
    Counts,
    Figures,
    LabelAudit,
    Marginal,
    Status,
    audit_row,
)

PUBLISHED: Final = Path(__file__).parents[1] / "published"

CELLS: Final = (OVERALL, *BENCHMARKS)
Provenance = Literal["published", "self-reported", "reference"]
PROVENANCES: Final = get_args(Provenance)


class PublishedDataError(ValueError):
    """Files that cannot be used; the message lists every problem with its file, row and field."""


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One label of one row, overall or on one benchmark.

    Figures are fractions as printed (0.688), for references exact; None where not given or undefined.
    ``n`` and ``positives`` are the labels'; ``counts``, where known, cover ``n - no_verdict`` trajectories.
    ``fits`` sets of counts are possible, between ``bounds``.
    """

    n: int
    positives: int
    precision: float | None
    recall: float | None
    f1: float | None
    counts: Counts | None
    status: Status | Literal["exact"]
    no_verdict: int
    fits: int
    bounds: tuple[Counts, Counts] | None
    note: str


@dataclass(frozen=True, slots=True)
class PublishedLabel:
    """One label of one row; ``by_benchmark`` has every benchmark, None where nothing is known of it."""

    overall: PublishedCell
    by_benchmark: Mapping[str, PublishedCell | None]
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row: a line of ``judges.csv``, and ``labels``, None for one that the judge gives no verdicts on.

    ``aliases`` are the names that the paper's tables, the released judgment folders and the released
    runner use for the judge.
    """

    row_id: str
    judge: str
    kind: str
    inputs: tuple[str, ...]
    model: str | None
    authors: str | None
    date: date
    provenance: Provenance
    source: str
    source_url: str
    aliases: tuple[str, ...]
    note: str
    labels: Mapping[str, PublishedLabel | None] = field(default_factory=lambda: MappingProxyType({}))


JUDGE_COLUMNS: Final = tuple(each.name for each in fields(PublishedRow) if each.name != "labels")


@dataclass(frozen=True)
class PublishedFiles:
    """All files: judges without their labels, and figures by row id, label and cell (`CELLS`)."""

    judges: tuple[PublishedRow, ...]
    figures: Mapping[str, Mapping[str, Mapping[str, Figures]]]
    marginals: Mapping[str, Mapping[str, Marginal]]
    second_annotator: Mapping[str, Mapping[str, Counts]]


def read_published_files(folder: Path = PUBLISHED) -> PublishedFiles:
    """Read the four files of ``folder``; raises PublishedDataError listing every problem."""
    problems: list[str] = []
    rows = _rows(folder / "judges.csv", problems)
    marginals = _marginals(folder / "marginals.csv", problems)
    figures = _figures(folder / "figures.csv", {row.row_id for row in rows}, problems)
    second = _second_annotator(folder / "second_annotator.csv", problems)
    problems += [
        f"judges.csv: {row.row_id} has no line in figures.csv"
        for row in rows
        if row.provenance != "reference" and row.row_id not in figures
    ]
    if problems:
        raise PublishedDataError("; ".join(problems))
    return PublishedFiles(rows, figures, marginals, second)


class _Line:
    """One CSV row that collects what is wrong with its fields."""

    def __init__(self, where: str, values: Mapping[str, str], problems: list[str]):
        self.where, self.values, self.problems = where, values, problems
        if None in values:  # where csv puts what is left over
            problems.append(f"{where}: more fields than columns; quote a field that has a comma in it")

    def __getitem__(self, field: str) -> str:
        return self.values[field]

    def complain(self, field: str, why: str) -> None:
        self.problems.append(f"{self.where}, {field} {self[field][:60]!r}: {why}")

    def choice(self, field: str, choices: tuple[str, ...]) -> str:
        if self[field] not in choices:
            self.complain(field, f"use one of {', '.join(choices)}")
        return self[field]

    def whole_number(self, field: str) -> int:
        if self[field].isascii() and self[field].isdigit():
            return int(self[field])
        self.complain(field, "expected a whole number")
        return 0

    def parts(self, field: str) -> tuple[str, ...]:
        return tuple(part for part in self[field].split(";") if part)


@contextmanager
def _lines(path: Path, columns: tuple[str, ...], problems: list[str]) -> Iterator[Iterator[_Line]]:
    if not path.is_file():
        problems.append(f"{path.name}: not found; it comes with the code, in {path.parent.name}/")
        yield iter(())
        return
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="")
        if tuple(reader.fieldnames or ()) != columns:
            problems.append(f"{path.name}: the first line must be {','.join(columns)}")
            yield iter(())
            return
        yield (_Line(f"{path.name} row {reader.line_num}", values, problems) for values in reader)


def _rows(path: Path, problems: list[str]) -> tuple[PublishedRow, ...]:
    rows: list[PublishedRow] = []
    names: set[str] = set()
    with _lines(path, JUDGE_COLUMNS, problems) as lines:
        for line in lines:
            row = PublishedRow(
                row_id=line["row_id"],
                judge=line["judge"],
                kind=line["kind"],
                inputs=line.parts("inputs"),
                model=line["model"] or None,
                authors=line["authors"] or None,
                date=_date(line),
                provenance=line.choice("provenance", PROVENANCES),
                source=line["source"],
                source_url=line["source_url"],
                aliases=line.parts("aliases"),
                note=line["note"],
            )
            for name in {row.row_id, *row.aliases} & names:
                line.complain("aliases", f"{name} names an earlier row already")
            names |= {row.row_id, *row.aliases}
            rows.append(row)
    return tuple(rows)


def _date(line: _Line) -> date:
    try:
        return date.fromisoformat(line["date"])
    except ValueError:
        line.complain("date", "expected YYYY-MM-DD")
        return date.min


def _figures(path: Path, row_ids: set[str], problems: list[str]) -> dict[str, dict[str, dict[str, Figures]]]:
    figures: dict[str, dict[str, dict[str, Figures]]] = {}
    with _lines(path, ("row_id", "label", "benchmark", "precision", "recall", "f1"), problems) as lines:
        for line in lines:
            if line["row_id"] not in row_ids:
                line.complain("row_id", "no row of judges.csv has it")
            cells = figures.setdefault(line["row_id"], {})
            try:
                printed = Figures.printed(line["precision"], line["recall"], line["f1"])
            except ValueError as error:
                problems.append(f"{line.where}, {error}")
                continue
            _put(cells, line, CELLS, printed)
    return figures


def _marginals(path: Path, problems: list[str]) -> dict[str, dict[str, Marginal]]:
    marginals: dict[str, dict[str, Marginal]] = {}
    with _lines(path, ("label", "benchmark", "n", "positives"), problems) as lines:
        for line in lines:
            marginal = Marginal(line.whole_number("n"), line.whole_number("positives"))
            if marginal.positives > marginal.n:
                line.complain("positives", f"more than n = {marginal.n}")
            _put(marginals, line, CELLS, marginal)
    for label in LABELS:
        cells = marginals.get(label, {})
        if set(cells) != set(CELLS):
            problems.append(f"{path.name}: {label} needs one row for each of {', '.join(CELLS)}")
        elif cells[OVERALL] != Marginal(*map(sum, zip(*(cells[b] for b in BENCHMARKS), strict=True))):
            problems.append(f"{path.name}: {label}: overall is not the sum of the benchmarks")
    return marginals


def _second_annotator(path: Path, problems: list[str]) -> dict[str, dict[str, Counts]]:
    counts: dict[str, dict[str, Counts]] = {}
    with _lines(path, ("label", "benchmark", *Counts._fields), problems) as lines:
        for line in lines:
            _put(counts, line, BENCHMARKS, Counts(*map(line.whole_number, Counts._fields)))
    problems += [f"{path.name}: no row for {label}" for label in LABELS if label not in counts]
    return counts


def _put(table: dict, line: _Line, benchmarks: tuple[str, ...], value: object) -> None:
    """Enter a value by label and benchmark, complaining of unknown names and of a second entry."""
    label, benchmark = line.choice("label", LABELS), line.choice("benchmark", benchmarks)
    if benchmark in table.setdefault(label, {}):
        line.complain("benchmark", f"{label} on {benchmark} is given twice")
    table[label][benchmark] = value


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
        precision=ratio(tp, tp + fp),
        recall=ratio(tp, tp + fn),
        f1=f1_from_counts(tp, fp, fn),
        counts=counts,
        status="exact",
        no_verdict=0,
        fits=1,
        bounds=(counts, counts),
        note="",
    )
