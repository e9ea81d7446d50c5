"""Rows of the board that nobody uploads: the paper's 13 judges, self-reported judges, and references.

The CSV files have no counts. The integer audit derives them when the rows are loaded, in about 20 ms, so they
always match the figures. It does this only for rows that were evaluated on test by a known protocol. The
other rows have only the printed figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from arb.core.vocabulary import BENCHMARKS
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import FIGURES, approximate_interval
from leaderboard.paper.audit import (
    NOTHING_PRINTED,
    OVERALL,
    AuditResult,
    Counts,
    Figures,
    LabelAudit,
    Marginal,
    audit_row,
)
from leaderboard.paper.published_files import (
    INFERRED,
    LABELS,
    PUBLISHED,
    VERDICTS,
    PublishedCell,
    PublishedFiles,
    PublishedLabel,
    PublishedRow,
    Reading,
    read_published_files,
)
from leaderboard.score import Cell, Score, interval_of

SECOND_ANNOTATOR: Final = "reference/second-annotator"
ALWAYS: Final = "reference/always-successful"
NEVER: Final = "reference/never-successful"


def load_published_rows(folder: Path = PUBLISHED) -> tuple[PublishedRow, ...]:
    """Read and audit all rows, ordered as in ``judges.csv``. Raises PublishedDataError with every problem."""
    files = read_published_files(folder)
    with_verdicts = {path.name.partition(".jsonl")[0] for path in (folder / VERDICTS).glob("*.jsonl.gz")}
    return tuple(
        replace(
            row,
            labels=MappingProxyType(_labels(row, files)),
            has_verdicts=row.row_id.rpartition("/")[2] in with_verdicts,
        )
        for row in files.judges
    )


def _labels(row: PublishedRow, files: PublishedFiles) -> dict[str, PublishedLabel | None]:
    row_id = row.row_id
    if row_id == SECOND_ANNOTATOR:
        return {label: _exact_label(files.second_annotator[label]) for label in LABELS}
    if row_id in (ALWAYS, NEVER):
        return {label: _exact_label(_constant(files.marginals[label], row_id == ALWAYS)) for label in LABELS}
    printed = files.figures.get(row_id, {})
    found: dict[str, PublishedLabel | None] = dict.fromkeys(LABELS)
    if not row.is_derivable:
        found |= {label: _reported_label(row, cells) for label, cells in printed.items()}
        return found
    readings = files.readings.get(row_id, {})
    for label, audit in audit_row(printed, files.marginals).items():
        found[label] = _audited_label(audit, readings.get(label))
    return found


def _constant(marginals: Mapping[str, Marginal], answer: bool) -> dict[str, Counts]:
    """Return the counts, by benchmark, of a judge that always gives the same answer."""
    counts = {}
    for benchmark in BENCHMARKS:
        n, positives = marginals[benchmark]
        negatives = n - positives
        counts[benchmark] = (
            Counts(positives, negatives, 0, 0) if answer else Counts(0, 0, positives, negatives)
        )
    return counts


def _label(
    overall: PublishedCell, by_benchmark: Mapping[str, PublishedCell], findings: tuple[str, ...] = ()
) -> PublishedLabel:
    by_name = {benchmark: by_benchmark.get(benchmark) for benchmark in BENCHMARKS}
    return PublishedLabel(overall, MappingProxyType(by_name), findings)


def _reported_label(row: PublishedRow, figures: Mapping[str, Figures]) -> PublishedLabel:
    """Return a label with the figures as reported, and without counts."""
    cells = {cell: PublishedCell(None, None, *_fractions(found)) for cell, found in figures.items()}
    overall = PublishedCell(row.n, None, *_fractions(figures.get(OVERALL, NOTHING_PRINTED)))
    return _label(overall, cells)


def _audited_label(audit: LabelAudit, reading: Reading | None) -> PublishedLabel:
    cells = {cell: _audited_cell(result) for cell, result in audit.cells.items()}
    overall = cells[OVERALL] if reading is None else _read_cell(audit.cells[OVERALL], reading)
    printed = {name: cell for name, cell in cells.items() if cell.status != "not printed"}
    return _label(overall, printed, audit.findings)


def _read_cell(result: AuditResult, reading: Reading) -> PublishedCell:
    """Return an audited cell with the counts that somebody read from the released judgments.

    No printed figure involves TN, so only such a `Reading` can reveal missing verdicts on negatives.
    """
    counts = reading.counts
    found = replace(_audited_cell(result), counts=counts, fits=1, bounds=(counts, counts))
    missing, lost = result.n - counts.n, result.positives - counts.positives
    if not missing:
        # The reading says which of several possible sets of counts is the right one.
        return found if result.status == "unique" else replace(found, status="exact", note="")
    tp, fp, fn, _ = counts
    note = (
        f"a reading of the released judgments ({reading.source}) counts {counts.n:,} verdicts, {missing} "
        f"unparseable, {lost or 'none'} of them positive: {tp} of {tp + fn} and {tp} of {tp + fp} fit exactly"
    )
    return replace(found, no_verdict=missing, note="; ".join(filter(None, (found.note, note))))


def _fractions(figures: Figures) -> tuple[float | None, float | None, float | None]:
    precision, recall, f1 = (
        None if tenths is None else tenths / 1000
        for tenths in (figures.precision, figures.recall, figures.f1)
    )
    return precision, recall, f1


def _audited_cell(result: AuditResult) -> PublishedCell:
    return PublishedCell(
        result.n, result.positives, *_fractions(result.figures), result.status, result.counts,
        result.missing, len(result.possible), result.bounds, result.note,
    )  # fmt: skip


def _exact_label(counts: Mapping[str, Counts]) -> PublishedLabel:
    """Return a label from known counts for each benchmark; overall is their sum."""
    overall = Counts(*map(sum, zip(*counts.values(), strict=True)))
    return _label(_exact_cell(overall), {name: _exact_cell(found) for name, found in counts.items()})


def _exact_cell(counts: Counts) -> PublishedCell:
    known = figures(*counts)
    shares = known["precision"], known["recall"], known["f1"]
    bounds = counts, counts
    return PublishedCell(counts.n, counts.positives, *shares, "exact", counts, 0, fits=1, bounds=bounds)


SPLIT_TITLES: Final = MappingProxyType(
    {
        "test": "test split",
        INFERRED: "test split (not named by the source, but the metrics fit no other)",
        "dev and test": "dev and test together",
    }
)
_UNKNOWN = ("tp", "fp", "fn", "tn", "accuracy", "npv", "tnr", "fpr", "balanced_accuracy", "kappa")


def published_label(label: PublishedLabel | None) -> Score | None:
    """Return a published row's label as a score, or None if the judge gives no verdicts on the label."""
    if label is None:
        return None
    by_benchmark = {
        name: published_cell(cell) for name, cell in label.by_benchmark.items() if cell is not None
    }
    overall = published_cell(label.overall)
    notes = [label.overall.note, *label.findings]
    return {
        "overall": overall,
        "by_benchmark": by_benchmark,
        "by_agent": {},
        "rank": None,
        "best": False,
        "intervals": "approximate" if any(interval_of(overall, figure) for figure in FIGURES) else None,
        "note": "; ".join(dict.fromkeys(note for note in notes if note)),
    }


def published_cell(cell: PublishedCell) -> Cell:
    """Return a published cell as a score's cell, with metrics from its counts, or else as printed.

    If several sets of counts fit, an interval spans the intervals of all of them.
    """
    if cell.counts is not None:
        known = figures(*cell.counts, cell.no_verdict or 0, policy="published")
    else:
        known = {"n": cell.n, "positives": cell.positives, "no_verdict": cell.no_verdict, "coverage": None,
                 "precision": cell.precision, "recall": cell.recall, "f1": cell.f1,
                 **dict.fromkeys(_UNKNOWN)}  # fmt: skip
    found = {**known, **_intervals(cell.bounds), "audit": cell.status, "note": cell.note}
    return cast(Cell, found)  # the metric is also published on its own, so `figures` cannot name the type


def _intervals(bounds: tuple[Counts, Counts] | None) -> dict[str, list[float] | None]:
    if bounds is None:
        return {"precision_ci": None, "recall_ci": None, "f1_ci": None}
    least, most = bounds
    # If the recall is printed, TP is fixed and FP varies. If only the precision is, FP grows with TP.
    worst_fp, best_fp = (most.fp, least.fp) if least.tp == most.tp else (least.fp, most.fp)
    ends = ((least.tp, worst_fp, most.fn), (most.tp, best_fp, least.fn))
    share = _hull("f1", [(tp, fp + fn) for tp, fp, fn in ends])
    return {
        "precision_ci": _hull("precision", [(tp, fp) for tp, fp, _ in ends]),
        "recall_ci": _hull("recall", [(tp, fn) for tp, _, fn in ends]),
        # F1 = 2 J / (1 + J) rises with the share J = TP / (TP + FP + FN), so its interval follows from J's.
        "f1_ci": share and [2 * end / (1 + end) for end in share],
    }


def _hull(figure: str, ends: Sequence[tuple[int, int]]) -> list[float] | None:
    """Return the span of the intervals for all (hits, misses), or None if one of them is undefined."""
    found = [approximate_interval(hits, hits + misses, DESIGN_EFFECTS[figure]) for hits, misses in ends]
    defined = [interval for interval in found if interval]
    if len(defined) < len(found):
        return None
    return [min(low for low, _ in defined), max(high for _, high in defined)]
