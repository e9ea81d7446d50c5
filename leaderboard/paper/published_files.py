"""The CSV files under ``leaderboard/published/``, and the types of their rows (see the README there)."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, NonNegativeInt, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from arb.core.suites.targets import default_targets, scored
from arb.core.vocabulary import BENCHMARKS, JUDGE_INPUTS, JUDGE_KINDS
from leaderboard.paper.audit import OVERALL, Counts, Figures, Marginal, Status, prints, read_tenths

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PUBLISHED: Final = Path(__file__).parents[1] / "published"
VERDICTS: Final = "verdicts"
"""The folder in ``published/`` with prediction files on test. Each is named after the end of a row's id."""

LABEL_TITLES: Final = MappingProxyType({target.name: target.title for target in scored(default_targets())})
LABELS: Final = tuple(LABEL_TITLES)
"""The targets of AgentRewardBench on which the paper reports judges. The first one is the main one."""
MAIN_LABEL: Final = LABELS[0]

CELLS: Final = (OVERALL, *BENCHMARKS)
PROVENANCES: Final = ("published", "self-reported", "reference")
INFERRED: Final = "test (inferred)"
ROW_SPLITS: Final = ("test", INFERRED, "dev and test", "")
"""The possible values of a row's split; empty if not known. `INFERRED` means that the source names no split,
but its figures fit the labels of test, and not the labels of all trajectories.
"""


def _choice(*choices: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise PydanticCustomError("choice", "use one of {choices}", {"choices": ", ".join(choices)})
        return value

    return AfterValidator(check)


_NONE_IF_EMPTY: Final = BeforeValidator(lambda value: value or None)

Label = Annotated[str, _choice(*LABELS)]
CellName = Annotated[str, _choice(*CELLS)]
Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(filter(None, value.split(";"))))]
OptionalText = Annotated[str | None, _NONE_IF_EMPTY]
Percentage = Annotated[int | None, BeforeValidator(read_tenths)]
"""A percentage as printed, in tenths of a percent."""


class PublishedDataError(ValueError):
    """Raised when the files cannot be used; the message lists every problem with its file, row and field."""


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """The figures of one row on one label, overall or on one benchmark.

    Figures are fractions as printed (0.688), or exact for references. They are None if absent or undefined.
    ``n`` and ``positives`` count labels. ``counts``, if known, cover ``n - no_verdict`` trajectories.
    ``fits`` is the number of possible sets of counts, and ``bounds`` has the range of each count. With the
    status "reported", only the figures and perhaps ``n`` are known.
    """

    n: int | None
    positives: int | None
    precision: float | None
    recall: float | None
    f1: float | None
    status: Status | Literal["exact", "reported"] = "reported"
    counts: Counts | None = None
    no_verdict: int | None = None
    fits: int = 0
    bounds: tuple[Counts, Counts] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PublishedLabel:
    """The figures of one row on one label. A benchmark without figures is None in ``by_benchmark``."""

    overall: PublishedCell
    by_benchmark: Mapping[str, PublishedCell | None]
    findings: tuple[str, ...] = ()

    def cell(self, name: str) -> PublishedCell | None:
        return self.overall if name == OVERALL else self.by_benchmark.get(name)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A judge's line in ``judges.csv``. ``labels`` has its figures, None if it does not answer a label.

    ``group`` is the paper's group (Existing or Simplified). ``protocol`` says how the figures were made,
    ``split`` is one of `ROW_SPLITS`, and ``n`` is the number of trajectories that the judge was evaluated on.
    These three are empty or None if the source does not say. ``aliases`` are the judge's names in the paper's
    tables, in the folders of released judgments and in the released runner.
    """

    row_id: str
    judge: str
    kind: Annotated[str, _choice(*JUDGE_KINDS)]
    group: Annotated[str, _choice("Existing", "Simplified", "")]
    inputs: Annotated[str, _choice(*JUDGE_INPUTS, "")]
    model: OptionalText
    authors: OptionalText
    date: date
    provenance: Annotated[str, _choice(*PROVENANCES)]
    protocol: str
    split: Annotated[str, _choice(*ROW_SPLITS)]
    n: Annotated[int | None, _NONE_IF_EMPTY]
    test_labels_used: Annotated[bool | None, _NONE_IF_EMPTY]
    source: str
    source_url: str
    aliases: Names
    note: str
    has_verdicts: bool = False
    """Whether `VERDICTS` has the judge's verdicts. Not a column of the file."""
    labels: Mapping[str, PublishedLabel | None] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_derivable(self) -> bool:
        """Whether counts may be derived from the figures, which needs a known protocol and the split test."""
        return bool(self.protocol) and self.split in ("test", INFERRED)

    @property
    def evidence(self) -> str:
        """The key of `EVIDENCE` for the first label that has figures."""
        if self.has_verdicts:
            return "verdicts"
        found = next((label.overall for label in self.labels.values() if label), None)
        if found is None or found.status == "reported":
            return "reported"
        if found.status == "exact":
            return "verdicts"
        return {0: "no counts", 1: "unique counts"}.get(found.fits, "several counts")


@dataclass(frozen=True)
class Reading:
    """A judge's confusion counts on test, as somebody read them from the released judgments."""

    row_id: str
    label: Label
    tp: NonNegativeInt
    fp: NonNegativeInt
    fn: NonNegativeInt
    tn: NonNegativeInt
    source: str
    source_url: str

    @property
    def counts(self) -> Counts:
        return Counts(self.tp, self.fp, self.fn, self.tn)


@dataclass(frozen=True)
class PublishedFiles:
    """The content of the five CSV files. The judges have no ``labels`` before the audit."""

    judges: tuple[PublishedRow, ...]
    figures: Mapping[str, Mapping[str, Mapping[str, Figures]]]
    marginals: Mapping[str, Mapping[str, Marginal]]
    second_annotator: Mapping[str, Mapping[str, Counts]]
    readings: Mapping[str, Mapping[str, Reading]]


def read_published_files(folder: Path = PUBLISHED) -> PublishedFiles:
    """Read the five CSV files in ``folder``. Raises PublishedDataError with every problem."""
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


Line = TypeVar("Line", bound="DataclassInstance")


def read_lines(path: Path, line_type: type[Line], problems: list[str]) -> list[tuple[str, Line]]:
    """Return (place, line) for each valid line of a CSV file, and add each wrong field to ``problems``."""
    columns = [each.name for each in fields(line_type) if each.name not in ("has_verdicts", "labels")]
    if not path.is_file():
        problems.append(f"{path.name}: not found; it comes with the code, in {path.parent.name}/")
        return []
    found, adapter = [], TypeAdapter(line_type)  # building it takes longer than reading the file
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="", restval="")
        if reader.fieldnames != columns:
            problems.append(f"{path.name}: the first line must be {','.join(columns)}")
            return []
        for values in reader:
            where = f"{path.name} row {reader.line_num}"
            if values.pop("", None):
                problems.append(f"{where}: more fields than columns; quote a field that has a comma in it")
            try:
                found.append((where, adapter.validate_python(values)))
            except ValidationError as invalid:
                problems += [
                    f"{where}, {each['loc'][0]} {str(each['input'])[:60]!r}: {each['msg']}"
                    for each in invalid.errors()
                ]
    return found


def _rows(path: Path, problems: list[str]) -> tuple[PublishedRow, ...]:
    names: set[str] = set()
    rows = read_lines(path, PublishedRow, problems)
    for where, row in rows:
        for name in {row.row_id, *row.aliases} & names:
            problems.append(f"{where}, aliases: {name} already names an earlier row")
        names |= {row.row_id, *row.aliases}
    return tuple(row for _, row in rows)


@dataclass(frozen=True)
class _FiguresLine:
    row_id: str
    label: Label
    benchmark: CellName
    precision: Percentage
    recall: Percentage
    f1: Percentage


@dataclass(frozen=True)
class _MarginalLine:
    label: Label
    benchmark: CellName
    n: NonNegativeInt
    positives: NonNegativeInt


@dataclass(frozen=True)
class _CountsLine:
    label: Label
    benchmark: CellName
    tp: NonNegativeInt
    fp: NonNegativeInt
    fn: NonNegativeInt
    tn: NonNegativeInt


def _figures(path: Path, row_ids: set[str], problems: list[str]) -> dict[str, dict[str, dict[str, Figures]]]:
    figures: dict[str, dict[str, dict[str, Figures]]] = {}
    for where, line in read_lines(path, _FiguresLine, problems):
        if line.row_id not in row_ids:
            problems.append(f"{where}, row_id {line.row_id!r}: there is no such row in judges.csv")
        printed = Figures(line.precision, line.recall, line.f1)
        _put(figures.setdefault(line.row_id, {}), where, line, printed, problems)
    return figures


def _marginals(path: Path, problems: list[str]) -> dict[str, dict[str, Marginal]]:
    marginals: dict[str, dict[str, Marginal]] = {}
    for where, line in read_lines(path, _MarginalLine, problems):
        _put(marginals, where, line, Marginal(line.n, line.positives), problems)
    for label in LABELS:
        cells = marginals.get(label, {})
        if set(cells) != set(CELLS):
            problems.append(f"{path.name}: {label} needs one row for each of {', '.join(CELLS)}")
        elif cells[OVERALL] != Marginal(*map(sum, zip(*(cells[b] for b in BENCHMARKS), strict=True))):
            problems.append(f"{path.name}: {label}: overall is not the sum of the benchmarks")
    return marginals


def _second_annotator(path: Path, problems: list[str]) -> dict[str, dict[str, Counts]]:
    counts: dict[str, dict[str, Counts]] = {}
    for where, line in read_lines(path, _CountsLine, problems):
        _put(counts, where, line, Counts(line.tp, line.fp, line.fn, line.tn), problems)
    problems += [f"{path.name}: no row for {label}" for label in LABELS if label not in counts]
    return counts


def _readings(
    path: Path, figures: Mapping[str, Mapping[str, Mapping[str, Figures]]], problems: list[str]
) -> dict[str, dict[str, Reading]]:
    """Return readings, keyed by row id, then label. Counts must give the row's printed overall figures."""
    readings: dict[str, dict[str, Reading]] = {}
    for where, line in read_lines(path, Reading, problems):
        printed = figures.get(line.row_id, {}).get(line.label, {}).get(OVERALL)
        if printed is None or not prints(line.counts, printed):
            problems.append(
                f"{where}, row_id {line.row_id!r}: {line.counts} does not give the printed figures"
            )
        readings.setdefault(line.row_id, {})[line.label] = line
    return readings


def _put(table: dict, where: str, line: Any, value: object, problems: list[str]) -> None:
    """Store a value by label and benchmark. Report a second value for the same label and benchmark."""
    cells = table.setdefault(line.label, {})
    if line.benchmark in cells:
        problems.append(
            f"{where}, benchmark {line.benchmark!r}: {line.label} on {line.benchmark} is given twice"
        )
    cells[line.benchmark] = value
