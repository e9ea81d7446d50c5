"""The board: a pure function of records, published rows and label version. Same input, same bytes."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from dataset_script.vocabulary import LABELS
from leaderboard.board_cells import published_label
from leaderboard.published_rows import PublishedRow
from leaderboard.ties import Contender, precision_samples_of_all, rank_contenders

RANKED_PROVENANCES = ("scored", "published")


@dataclass(frozen=True)
class ScoredRecord:
    """A submission with its score, as the records hold it."""

    id: str
    judge: str
    account: str
    kind: str
    inputs: str
    model: str
    authors: str
    link: str
    test_labels_used: bool
    file_sha256: str
    submitted_at: str
    report: Mapping[str, Any] = field(repr=False)
    counts_by_task: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class BoardRow:
    """A row of the board, without anything that is not public.

    ``labels`` maps a label to ``{"rank": {"place", "low", "high"} or None, "best": bool, "overall": CELL,
    "by_benchmark": {…}, "by_agent": {…}, "intervals": "tasks" | "approximate" | None, "note": str}``, or to
    None where the judge gives no such verdicts. ``best`` marks the row that stands for its judge. ``cost`` is
    that of `leaderboard.costs.cost_of`, None where the file gives none.
    """

    id: str
    judge: str
    account: str
    kind: str
    inputs: str
    model: str
    authors: str
    link: str
    date: str
    provenance: str
    source: str
    attempts: int | None
    test_labels_used: bool | None
    file_sha256: str | None
    note: str
    labels: Mapping[str, Any]
    cost: Mapping[str, float | int] | None = None


@dataclass(frozen=True)
class Board:
    """Rows in the order of the success ranking; ``digest`` is the SHA-256 of everything else."""

    suite: str
    label_version: str | None
    rows: tuple[BoardRow, ...]

    @cached_property
    def content(self) -> bytes:
        """The board as canonical JSON: what the digest is taken of."""
        return _canonical(
            {
                "suite": self.suite,
                "split": "test",
                "label_version": self.label_version,
                "policy": "strict",
                "rows": [vars(row) for row in self.rows],  # asdict would copy every figure
            }
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ``content``, hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def to_bytes(self) -> bytes:
        """The board with its digest, as canonical JSON in UTF-8."""
        return _canonical({**json.loads(self.content), "digest": self.digest})

    def ranking(self, label: str) -> tuple[BoardRow, ...]:
        """Every row that has the label: ranked ones best first, then the others by precision."""
        rows = [row for row in self.rows if row.labels.get(label)]
        return tuple(sorted(rows, key=lambda row: _order_within(row, label)))


def make_board(
    suite: str, records: Sequence[ScoredRecord], published: Iterable[PublishedRow], label_version: str | None
) -> Board:
    """The board of records and published rows under a label version.

    Order: precision, then recall, then the earlier submission. A judge is ranked by its best submission for
    each label; its others are kept without a rank. Self-reported and reference rows have none either.
    Records of another label version are left out: they wait for a new score.
    """
    current = [record for record in records if record.report["label_version"] == label_version]
    attempts: dict[tuple[str, str], int] = {}
    for record in current:
        key = (record.account, record.judge)
        attempts[key] = attempts.get(key, 0) + 1
    rows = [_scored_row(record, attempts[record.account, record.judge]) for record in current]
    rows += [_published_row(row) for row in published]
    task_counts = {record.id: record.counts_by_task for record in current}
    for label in LABELS:
        _rank(rows, label, task_counts)
    return Board(suite, label_version, tuple(sorted(rows, key=lambda row: _order_within(row, "success"))))


def _scored_row(record: ScoredRecord, attempts: int) -> BoardRow:
    return BoardRow(
        id=record.id, judge=record.judge, account=record.account, kind=record.kind, inputs=record.inputs,
        model=record.model, authors=record.authors, link=record.link, date=record.submitted_at,
        provenance="scored", source="scored here", attempts=attempts,
        test_labels_used=record.test_labels_used, file_sha256=record.file_sha256, note="",
        labels={
            label: found and {**found, "rank": None, "best": False, "intervals": "tasks", "note": ""}
            for label, found in record.report["labels"].items()
        },
        cost=record.report.get("cost"),
    )  # fmt: skip


def _published_row(row: PublishedRow) -> BoardRow:
    return BoardRow(
        id=row.row_id, judge=row.judge, account="", kind=row.kind, inputs=", ".join(row.inputs),
        model=row.model or "", authors=row.authors or "", link=row.source_url, date=row.date.isoformat(),
        provenance=row.provenance, source=row.source, attempts=None, test_labels_used=None, file_sha256=None,
        note=row.note,
        labels={label: published_label(row.labels.get(label)) for label in LABELS},
    )  # fmt: skip


def _rank(rows: Sequence[BoardRow], label: str, task_counts: Mapping[str, Mapping[str, Any]]) -> None:
    """Fill in ``best`` and ``rank`` of the rows being built, for one label."""
    seen: set[tuple[str, str]] = set()
    ranked = []
    candidates = [row for row in rows if row.labels.get(label) and row.provenance in RANKED_PROVENANCES]
    for row in sorted(candidates, key=lambda row: _order(row, label)):
        judge = (row.account, row.judge) if row.provenance == "scored" else ("", row.id)
        if judge in seen:
            continue
        seen.add(judge)
        row.labels[label]["best"] = True
        if row.labels[label]["overall"]["precision"] is not None:  # a judge that never says yes has no place
            ranked.append(row)
    contenders = _contenders(ranked, label, task_counts)
    for row, rank in zip(ranked, rank_contenders(contenders), strict=True):
        row.labels[label]["rank"] = asdict(rank)


def _contenders(
    ranked: Sequence[BoardRow], label: str, task_counts: Mapping[str, Mapping[str, Any]]
) -> list[Contender]:
    counts = {row.id: found for row in ranked if (found := task_counts.get(row.id, {}).get(label))}
    samples = dict(zip(counts, precision_samples_of_all(list(counts.values())), strict=True))
    cells = [(row.id, row.labels[label]["overall"]) for row in ranked]
    return [Contender(cell["precision"], cell["precision_ci"], samples.get(row_id)) for row_id, cell in cells]


def _order(row: BoardRow, label: str) -> tuple:
    """Precision, then recall, both falling and undefined last; then date and id."""
    overall = (row.labels.get(label) or {}).get("overall") or {}
    falling = [-1.0 if overall.get(figure) is None else overall[figure] for figure in ("precision", "recall")]
    return (-falling[0], -falling[1], row.date, row.id)


def _order_within(row: BoardRow, label: str) -> tuple:
    return (row.provenance == "reference", *_order(row, label))


def _canonical(value: Any) -> bytes:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
