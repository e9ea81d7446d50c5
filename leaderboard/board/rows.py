"""The rows of a board: what each holds, and where it stands.

Rows that were scored have intervals over tasks. Of published rows only counts are known, worked out from the
printed figures: their intervals are approximate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final

from arb.core.judge_info import JudgeInfo
from arb.core.vocabulary import EVIDENCE, LABELS, LOWER_IS_BETTER
from leaderboard.board.ranks import Rank
from leaderboard.paper.published import SPLIT_TITLES, PublishedRow, published_label
from leaderboard.paper.published_files import INFERRED
from leaderboard.score import Cell, Score

STRICT: Final = "strict: no verdict counts as no"
"""The protocol of rows that are scored here."""


@dataclass(frozen=True)
class ScoredRecord:
    """A submission with its score, as the records hold it."""

    id: str
    info: JudgeInfo
    file_sha256: str
    submitted_at: str
    report: Mapping[str, Any] = field(repr=False)
    counts_by_task: Mapping[str, Any] = field(repr=False)
    is_verified: bool = False
    is_label_exposed: bool = False
    ranking: Mapping[str, Any] | None = field(default=None, repr=False)
    """Overall CELLs by label that rank in place of the report's: those of a half that is not shown."""
    keeps_version: bool = False
    """It stays on boards of later label versions with the report of its own: labels are private."""

    @property
    def label_version(self) -> str:
        return self.report["label_version"]

    def is_current(self, label_version: str | None) -> bool:
        """Whether it stands on a board of these labels, and does not wait for a new score."""
        return self.keeps_version or self.label_version == label_version


@dataclass(frozen=True, kw_only=True)
class BoardRow(JudgeInfo):
    """A row of the board, without anything that is not public.

    ``labels`` maps a label to its score, or to None if the judge gives no such verdicts. How the figures
    came about: ``protocol``, ``split`` (test, test (inferred), dev and test) and ``n``, empty or None if the
    source does not say, and ``evidence``, a key of `arb.core.vocabulary.EVIDENCE`. ``cost`` is that of
    `leaderboard.report.cost_of`, None if the file gives none.
    """

    id: str
    date: str
    provenance: str
    source: str
    protocol: str = ""
    split: str = ""
    n: int | None = None
    evidence: str = "verdicts"
    attempts: int | None = None
    file_sha256: str | None = None
    note: str = ""
    labels: Mapping[str, Score | None]
    cost: Mapping[str, float | int] | None = None
    marks: tuple[str, ...] = ()
    """What maintainers found: ``verified`` (run again by others), ``labels exposed`` (test labels got in)."""

    def with_ranks(self, ranks: Mapping[str, Mapping[str, Rank | None]]) -> "BoardRow":
        """Return the row with its ranks of these, by label and row id.

        A row that is in them is the best one of its judge; None where its metric is undefined.
        """
        labels = {}
        for label, found in self.labels.items():
            rank = ranks[label].get(self.id)
            ranked = {"best": self.id in ranks[label], "rank": rank and dict(vars(rank))}
            labels[label] = found and {**found, **ranked}
        return replace(self, labels=labels)

    @property
    def why_not_comparable(self) -> str:
        """Why its figures do not stand beside those of others; empty where they do.

        A submission may have used test labels: it says so, and is compared and ranked with what it says.
        """
        if self.provenance in ("scored", "reference"):
            return ""
        if self.test_labels_used:
            return "tuned on test"
        if self.split == "dev and test":
            return "evaluated on dev and test together"
        is_known = self.protocol and self.split in ("test", INFERRED)
        return "" if is_known else "reported without split or protocol"

    @property
    def is_comparable(self) -> bool:
        """Whether it was evaluated on test, by a protocol that is named, and not tuned on it."""
        return not self.why_not_comparable

    @property
    def basis(self) -> str:
        """What its figures rest on: evidence, split and protocol, and which of these is not known."""
        split = SPLIT_TITLES.get(self.split, self.split) or "split not named"
        n = "" if self.n is None else f"{self.n:,} trajectories"
        protocol = self.protocol or "protocol not named"
        return "; ".join(filter(None, (EVIDENCE[self.evidence], split, n, protocol)))


def scored_row(record: ScoredRecord, attempts: int, label_version: str | None) -> BoardRow:
    version = record.label_version
    ranked_by = {} if record.ranking is None else {"ranked_by": "a half of the tasks that is not shown"}
    return BoardRow(
        **vars(record.info), id=record.id, date=record.submitted_at, provenance="scored",
        source="scored here", attempts=attempts, file_sha256=record.file_sha256,
        protocol=STRICT, split="test", n=_n_scored(record.report), evidence="verdicts",
        labels={
            label: found
            and {**found, "rank": None, "best": False, "intervals": "tasks", "note": "", **ranked_by}
            for label, found in record.report["labels"].items()
        },
        cost=record.report.get("cost"),
        marks=("verified",) * record.is_verified + ("labels exposed",) * record.is_label_exposed,
        note="" if version == label_version else f"scored under label version {version}",
    )  # fmt: skip


def _n_scored(report: Mapping[str, Any]) -> int | None:
    """On how many trajectories a submission was scored, by its first label."""
    return next((found["overall"]["n"] for found in report["labels"].values() if found), None)


def is_rankable(row: BoardRow) -> bool:
    """Whether a row may be ranked: scored here, or published on test as its source says, and not tuned."""
    is_published = row.provenance == "published" and row.split == "test" and row.is_comparable
    return row.provenance == "scored" or is_published


def published_row(row: PublishedRow) -> BoardRow:
    return BoardRow(
        id=row.row_id, judge=row.judge, kind=row.kind, inputs=row.inputs, model=row.model or "",
        authors=row.authors or "", link=row.source_url, test_labels_used=row.test_labels_used,
        date=row.date.isoformat(), provenance=row.provenance, source=row.source,
        note="; ".join(filter(None, (row.group and f"{row.group} judge in the paper", row.note))),
        protocol=row.protocol, split=row.split, n=row.n, evidence=row.evidence,
        labels={label: published_label(row.labels.get(label)) for label in LABELS},
    )  # fmt: skip


def ranking_order(row: BoardRow, cell: Cell, metric: str = "precision") -> tuple:
    """The metric, then precision (recall, where precision ranks), undefined last; then date and id."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    ends = [
        inf if cell.get(name) is None else direction * cell[name]
        for name, direction in ((metric, sign), ("recall" if metric == "precision" else "precision", -1))
    ]
    return (*ends, row.date, row.id)


def has_label(row: BoardRow, label: str) -> bool:
    """Whether the judge gives verdicts of a label."""
    return bool(row.labels.get(label))


def parts_of(row: BoardRow, label: str, group: str) -> Mapping[str, Cell]:
    """Return the row's cells by name of a group, ``by_benchmark`` or ``by_agent``."""
    return (row.labels.get(label) or {}).get(group, {})


def judge_of(row: BoardRow) -> tuple[str, str]:
    """What is ranked as one: the name of an account's judge, or a published row."""
    return (row.account, row.judge) if row.provenance == "scored" else ("", row.id)


def is_ranked_by_half(row: BoardRow, label: str) -> bool:
    """Whether it is ranked by figures that are not shown."""
    return "ranked_by" in (row.labels.get(label) or {})


def order_on_board(row: BoardRow, label: str = "success", metric: str = "precision") -> tuple:
    """Return the sort key of a row: the comparable first, best first, references last.

    Rows are ordered by rank if that comes from figures that are not shown, else by the figures.
    """
    found = row.labels.get(label) or {}
    first = 0.0
    if metric == "precision" and is_ranked_by_half(row, label):
        first = found["rank"]["place"] if found["rank"] else inf
    figures_order = ranking_order(row, found.get("overall") or {}, metric)
    return (row.provenance == "reference", not row.is_comparable, first, *figures_order)
