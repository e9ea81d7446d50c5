"""Tables 1, 2, 7, 8, and 9 to 12: judges by precision, recall and F1."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from arb.core.suite import read_rows
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, BENCHMARKS
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import FIGURES
from leaderboard.paper.audit import OVERALL, Figures, audit_cell, read_tenths
from leaderboard.paper.evidence import NO_FILE, POLICY, CellEvidence, Records
from leaderboard.paper.published import ALWAYS
from leaderboard.paper.published_files import LABEL_TITLES, LABELS, MAIN_LABEL, PUBLISHED, PublishedRow
from leaderboard.paper.table import FROM_COUNTS, PaperCell, PaperTable, TableRow

LETTERS: Final = ("P", "R", "F1")
TABLE_OF_AGENT: Final = (
    (9, "GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct"),
    (10, "GenericAgent-meta-llama_Llama-3.3-70B-Instruct"),
    (11, "GenericAgent-anthropic_claude-3.7-sonnet"),
    (12, "GenericAgent-gpt-4o-2024-11-20"),
)
UNDEFINED: Final = "undefined (0 / 0); the released scorer prints 0"
ROUNDED_F1: Final = "from the counts; the released scorer computes F1 from rounded precision and recall"


def table_1(records: Records) -> PaperTable:
    """Make Table 1: overall figures on the main label, and precision by benchmark."""
    rows = []
    for row in _of_paper(records):
        overall = _cells(records, row, MAIN_LABEL, OVERALL)
        by_benchmark = [_cells(records, row, MAIN_LABEL, benchmark)[0] for benchmark in BENCHMARKS]
        rows.append(TableRow((row.group or row.kind, paper_name(row)), (*overall, *by_benchmark)))
    return PaperTable(
        number=1,
        title=f"Judges on {LABEL_TITLES[MAIN_LABEL].lower()}: overall, and precision by benchmark",
        headings=("Category", "Judge"),
        groups=(("Overall", 3), ("Precision", len(BENCHMARKS))),
        columns=("Precision", "Recall", "F1", *(BENCHMARK_TITLES[b] for b in BENCHMARKS)),
        rows=tuple(rows),
        remarks=_missing_judgment(records),
    )


def table_2(records: Records) -> PaperTable:
    """Make Table 2: GPT-4o Mini as a judge that sees the tree, the screenshot, both or neither."""
    marginals = {label: _marginal(records, label) for label in LABELS}
    printed: dict[tuple[str, str], list[PaperCell]] = {}
    for line in read_rows(PUBLISHED / "ablation.csv"):
        n, positives = marginals[line["label"]]
        audit = audit_cell(Figures(*(read_tenths(line[name]) for name in FIGURES)), positives, n)
        evidence = CellEvidence(audit.counts, FROM_COUNTS, audit.note, audit.missing)
        wanted = [float(line[figure]) / 100 for figure in FIGURES]
        seen = (line["tree"], line["screenshot"])
        printed.setdefault(seen, []).extend(_compare(evidence, wanted, n))
    rows = [TableRow(seen, tuple(cells)) for seen, cells in printed.items()]
    return _table_of_labels(2, "GPT-4o Mini: what the judge is shown", ("Tree", "Screenshot"), rows, ())


def table_7(records: Records) -> PaperTable:
    """Make Table 7: all three labels over all benchmarks."""
    rows = [
        TableRow((paper_name(row),), _all_labels(records, row, OVERALL)) for row in _by_paper_name(records)
    ]
    title, remarks = "Judges on every label, all benchmarks together", _missing_judgment(records)
    return _table_of_labels(7, title, ("Judge",), rows, remarks)


def table_8(records: Records) -> PaperTable:
    """Make Table 8: all three labels by benchmark."""
    rows = [
        TableRow((BENCHMARK_TITLES[benchmark], paper_name(row)), _all_labels(records, row, benchmark))
        for benchmark in BENCHMARKS
        for row in _by_paper_name(records)
    ]
    title, remarks = "Judges on every label, by benchmark", _missing_judgment(records)
    return _table_of_labels(8, title, ("Benchmark", "Judge"), rows, remarks)


def table_of_agent(records: Records, number: int) -> PaperTable:
    """Make one agent's table (9 to 12) from verdicts. The paper itself repeats Table 8 instead."""
    agent = dict(TABLE_OF_AGENT)[number]
    judges = [row for row in _of_paper(records) if row.row_id in records.verdicts]
    ran = {t.benchmark for t in records.labels.trajectories if t.agent == agent} if records.labels else set()
    rows = []
    for benchmark in (name for name in BENCHMARKS if name in ran):
        for row in judges:
            found = [records.evidence(row.row_id, label, benchmark, agent) for label in LABELS]
            cells = [cell for evidence in found for cell in _compare(evidence, [None] * 3, None)]
            rows.append(TableRow((BENCHMARK_TITLES[benchmark], paper_name(row)), tuple(cells)))
    title = f"Judges on the trajectories of {AGENT_TITLES[agent]}, by benchmark"
    remarks = ["The paper's Tables 9 to 12 repeat its Table 8 exactly, so there is nothing to compare with."]
    if not rows:
        remarks.append("This table is computed from files of judges' verdicts, and none are given.")
    return _table_of_labels(number, title, ("Benchmark", "Judge"), rows, tuple(remarks))


def _table_of_labels(
    number: int, title: str, headings: tuple[str, ...], rows: Sequence[TableRow], remarks: tuple[str, ...]
) -> PaperTable:
    groups = tuple((LABEL_TITLES[label], 3) for label in LABELS)
    return PaperTable(number, title, headings, groups, LETTERS * len(LABELS), tuple(rows), remarks)


def paper_name(row: PublishedRow) -> str:
    """Return the judge's name in the paper's tables, such as "GPT-4o (A)" for a simplified judge."""
    marked = [alias for alias in row.aliases if alias.endswith(("(A)", "(S)"))]
    return marked[0] if marked else row.judge


def _of_paper(records: Records) -> list[PublishedRow]:
    return [row for row in records.published.values() if row.provenance == "published"]


def _by_paper_name(records: Records) -> list[PublishedRow]:
    return sorted(_of_paper(records), key=lambda row: paper_name(row).lower())


def _all_labels(records: Records, row: PublishedRow, cell: str) -> tuple[PaperCell, ...]:
    return tuple(found for label in LABELS for found in _cells(records, row, label, cell))


def _cells(records: Records, row: PublishedRow, label: str, cell: str) -> tuple[PaperCell, ...]:
    """Return precision, recall and F1 of one judge, printed and computed."""
    on_label = row.labels.get(label)
    found = None if on_label is None else on_label.cell(cell)
    printed = [None, None, None] if found is None else [found.precision, found.recall, found.f1]
    return _compare(records.evidence(row.row_id, label, cell), printed, found.n if found else None)


def _compare(evidence: CellEvidence, printed: Sequence[float | None], n: int | None) -> tuple[PaperCell, ...]:
    """Return one cell each for precision, recall and F1, as printed and as computed from the counts."""
    if evidence.counts is None:
        note = evidence.note or (NO_FILE if any(value is not None for value in printed) else "")
        return tuple(PaperCell(value, None, "", note, n) for value in printed)
    computed = figures(*evidence.counts, evidence.no_verdict, policy=POLICY)
    cells = []
    for name, value in zip(FIGURES, printed, strict=True):
        cell = PaperCell(value, computed[name], evidence.basis, evidence.note, computed["n"])
        if cell.computed is None:
            cell = replace(cell, note=UNDEFINED)
        elif cell.agrees is False and name == "f1":
            cell = replace(cell, note=ROUNDED_F1)
        cells.append(cell)
    return tuple(cells)


def _marginal(records: Records, label: str) -> tuple[int, int]:
    """Return the numbers of trajectories and of positives on a label, from the judge that always says yes."""
    always = records.published[ALWAYS].labels[label]
    if always is None or always.overall.counts is None:
        raise ValueError(f"{ALWAYS} has no counts on {label}")
    return always.overall.counts.n, always.overall.counts.positives


def _missing_judgment(records: Records) -> tuple[str, ...]:
    """Return a remark for every judge whose figures fit counts only if a judgment is missing."""
    sentences = []
    for row in _of_paper(records):
        found = row.labels[MAIN_LABEL]
        if found is not None and found.overall.status == "none":
            note = f"{paper_name(row)}: {found.overall.note}"
            sentences.append(f"{note}. The paper's scorer leaves such a trajectory out.")
    return tuple(sentences)
