"""The CSV files under ``leaderboard/published/`` and what a row of them is (see the README there)."""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, get_args

from arb.core.vocabulary import BENCHMARKS, JUDGE_INPUTS, JUDGE_KINDS, LABELS
from leaderboard.paper.audit import (
    OVERALL,
    Counts,
    Figures,
    Marginal,
    Status,
    prints,
)

PUBLISHED: Final = Path(__file__).parents[1] / "published"

CELLS: Final = (OVERALL, *BENCHMARKS)
Provenance = Literal["published", "self-reported", "reference"]
PROVENANCES: Final = get_args(Provenance)
INFERRED: Final = "test (inferred)"
ROW_SPLITS: Final = ("test", INFERRED, "dev and test", "")
"""What a row was evaluated on; `INFERRED`: the source names no split, and its figures fit the labels of test
and not those of all trajectories; empty: not known."""


class PublishedDataError(ValueError):
    """Files that cannot be used; the message lists every problem with its file, row and field."""


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One label of one row, overall or on one benchmark.

    Figures are fractions as printed (0.688), for references exact; None where not given or undefined.
    ``n`` and ``positives`` are the labels'; ``counts``, where known, cover ``n - no_verdict`` trajectories.
    ``fits`` sets of counts are possible, between ``bounds``. With the status "reported" nothing is known
    beside the figures: ``positives`` and ``no_verdict`` are None, and ``n`` where the source does not say it.
    """

    n: int | None
    positives: int | None
    precision: float | None
    recall: float | None
    f1: float | None
    counts: Counts | None
    status: Status | Literal["exact", "reported"]
    no_verdict: int | None
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

    ``group`` is the paper's own (Existing or Simplified). ``protocol`` says how the figures came about,
    ``split`` is one of `ROW_SPLITS`, ``n`` how many trajectories it was evaluated on; empty or None where the
    source does not say. ``aliases`` are the names that the paper's tables, the released judgment folders and
    the released runner use for the judge.
    """

    row_id: str
    judge: str
    kind: str
    group: str
    inputs: str
    model: str | None
    authors: str | None
    date: date
    provenance: Provenance
    protocol: str
    split: str
    n: int | None
    test_labels_used: bool | None
    source: str
    source_url: str
    aliases: tuple[str, ...]
    note: str
    labels: Mapping[str, PublishedLabel | None] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_derivable(self) -> bool:
        """Whether counts may be derived from the figures: evaluated on test, by a protocol that is known."""
        return bool(self.protocol) and self.split in ("test", INFERRED)

    @property
    def evidence(self) -> str:
        """A key of `EVIDENCE`, by the first label that there are figures for."""
        found = next((label.overall for label in self.labels.values() if label), None)
        if found is None or found.status == "reported":
            return "reported"
        if found.status == "exact":
            return "verdicts"
        return {0: "no counts", 1: "unique counts"}.get(found.fits, "several counts")


JUDGE_COLUMNS: Final = tuple(each.name for each in fields(PublishedRow) if each.name != "labels")


class Reading(NamedTuple):
    """Verdicts on test that someone counted in the released judgments, over all benchmarks."""

    counts: Counts
    source: str
    source_url: str


@dataclass(frozen=True)
class PublishedFiles:
    """All files: judges without their labels, and figures by row id, label and cell (`CELLS`)."""

    judges: tuple[PublishedRow, ...]
    figures: Mapping[str, Mapping[str, Mapping[str, Figures]]]
    marginals: Mapping[str, Mapping[str, Marginal]]
    second_annotator: Mapping[str, Mapping[str, Counts]]
    readings: Mapping[str, Mapping[str, Reading]]


def read_published_files(folder: Path = PUBLISHED) -> PublishedFiles:
    """Read the five files of ``folder``; raises PublishedDataError listing every problem."""
    problems: list[str] = []
    rows = _rows(folder / "judges.csv", problems)
    marginals = _marginals(folder / "marginals.csv", problems)
    figures = _figures(folder / "figures.csv", {row.row_id for row in rows}, problems)
    second = _second_annotator(folder / "second_annotator.csv", problems)
    readings = _readings(folder / "readings.csv", figures, problems)
    problems += [
        f"judges.csv: {row.row_id} has no line in figures.csv"
        for row in rows
        if row.provenance != "reference" and row.row_id not in figures
    ]
    if problems:
        raise PublishedDataError("; ".join(problems))
    return PublishedFiles(rows, figures, marginals, second, readings)


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

    def number_or_none(self, field: str) -> int | None:
        return self.whole_number(field) if self[field] else None

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


YES_NO: Final = ("yes", "no", "")


def _rows(path: Path, problems: list[str]) -> tuple[PublishedRow, ...]:
    rows: list[PublishedRow] = []
    names: set[str] = set()
    with _lines(path, JUDGE_COLUMNS, problems) as lines:
        for line in lines:
            row = PublishedRow(
                row_id=line["row_id"],
                judge=line["judge"],
                kind=line.choice("kind", JUDGE_KINDS),
                group=line.choice("group", ("Existing", "Simplified", "")),
                inputs=line.choice("inputs", (*JUDGE_INPUTS, "")),
                model=line["model"] or None,
                authors=line["authors"] or None,
                date=_date(line),
                provenance=line.choice("provenance", PROVENANCES),
                protocol=line["protocol"],
                split=line.choice("split", ROW_SPLITS),
                n=line.number_or_none("n"),
                test_labels_used={"yes": True, "no": False}.get(line.choice("test_labels_used", YES_NO)),
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


def _readings(
    path: Path, figures: Mapping[str, Mapping[str, Mapping[str, Figures]]], problems: list[str]
) -> dict[str, dict[str, Reading]]:
    """By row id and label; a reading has to print the row's overall figures."""
    readings: dict[str, dict[str, Reading]] = {}
    with _lines(path, ("row_id", "label", *Counts._fields, "source", "source_url"), problems) as lines:
        for line in lines:
            row_id, label = line["row_id"], line.choice("label", LABELS)
            counts = Counts(*map(line.whole_number, Counts._fields))
            printed = figures.get(row_id, {}).get(label, {}).get(OVERALL)
            if printed is None:
                line.complain("row_id", "no line of figures.csv has its overall figures")
            elif not prints(counts, printed):
                line.complain("row_id", f"{counts} gives other figures than those printed")
            readings.setdefault(row_id, {})[label] = Reading(counts, line["source"], line["source_url"])
    return readings


def _put(table: dict, line: _Line, benchmarks: tuple[str, ...], value: object) -> None:
    """Enter a value by label and benchmark, complaining of unknown names and of a second entry."""
    label, benchmark = line.choice("label", LABELS), line.choice("benchmark", benchmarks)
    if benchmark in table.setdefault(label, {}):
        line.complain("benchmark", f"{label} on {benchmark} is given twice")
    table[label][benchmark] = value
