"""The rows of a board, and their order.

Rows that were scored here have intervals over tasks. For published rows, only counts derived from the printed
figures are known, so their intervals are approximate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, NamedTuple, cast

from arb.core.judge_info import JudgeInfo
from arb.core.suites.targets import Target
from arb.core.vocabulary import EVIDENCE, is_low, metric_name
from leaderboard.board.ranks import Rank
from leaderboard.costs import Cost
from leaderboard.paper.models import model_fields, read_costs
from leaderboard.paper.published import SPLIT_TITLES, published_label
from leaderboard.paper.published_files import INFERRED, PublishedRow
from leaderboard.score import Cell, Ends, Score, interval_of, metric_of

STRICT: Final = "strict: no verdict counts as no"
"""The protocol of rows that were scored here."""

Order = tuple[float, float, str, str]
"""The sort key of a row: metric, second metric, date, id."""


@dataclass(frozen=True)
class ScoredRecord:
    """A stored submission with its score report."""

    id: str
    info: JudgeInfo
    file_sha256: str
    submitted_at: str
    report: Mapping[str, Any] = field(repr=False)
    counts_by_task: Mapping[str, Any] = field(repr=False)
    is_verified: bool = False
    is_label_exposed: bool = False
    ranking: Mapping[str, Cell] | None = field(default=None, repr=False)
    """Overall cells on the hidden half of the tasks, keyed by label. None if they do not rank the row."""
    keeps_version: bool = False
    """Whether the row keeps its old report on boards of later label versions (only with private labels)."""

    @property
    def label_version(self) -> str:
        return self.report["label_version"]

    def is_current(self, label_version: str | None) -> bool:
        """Return whether the record belongs on a board of these labels; if not, it waits to be re-scored."""
        return self.keeps_version or self.label_version == label_version


class VerdictScores(NamedTuple):
    """The scores of a published row's verdicts, keyed by label, and their `report.counts_by_task`."""

    labels: Mapping[str, Score | None]
    counts_by_task: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class BoardRow(JudgeInfo):
    """A row of the board, with public values only.

    ``labels`` maps a label to its score, or to None if the judge gives no verdicts on it. ``protocol``,
    ``split`` ("test", "test (inferred)" or "dev and test") and ``n`` (the number of trajectories) say how the
    figures were measured; they are empty or None if the source does not say. ``evidence`` is a key of
    `arb.core.vocabulary.EVIDENCE`. For published rows, ``cost`` also has ``is_at_least`` (whether some
    calls are not counted) and ``basis``.
    ``maker``, ``weights`` ("open", "closed", "open and closed"), ``licence`` and ``model_link`` describe the
    model as in `leaderboard.paper.models`, and are empty if unknown.
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
    cost: Cost | None = None
    maker: str = ""
    weights: str = ""
    licence: str = ""
    model_link: str = ""
    marks: tuple[str, ...] = ()
    """Set by maintainers: ``verified`` (reproduced by others), ``labels exposed`` (test labels leaked)."""

    def score(self, label: str) -> Score:
        """Return the score on a label. Raises KeyError if the judge gives no verdicts on it."""
        found = self.labels[label]
        if found is None:
            raise KeyError(label)
        return found

    def with_ranks(self, ranks: Mapping[str, Mapping[str, Rank | None]]) -> "BoardRow":
        """Return a copy of the row with its ranks. ``ranks`` has ranks, keyed by label and then by row id.

        Only the best row of each judge has an entry, which is None if the metric is undefined.
        """
        labels: dict[str, Score | None] = {}
        for label, found in self.labels.items():
            if found:
                rank = _described(ranks[label].get(self.id))
                found = cast(Score, {**found, "best": self.id in ranks[label], **rank})
            labels[label] = found
        return replace(self, labels=labels)

    @property
    def why_not_comparable(self) -> str:
        """Why the figures cannot be compared with those of other rows; empty if they can.

        Submissions are always compared and ranked, even if they declare the use of test labels.
        """
        if self.provenance in ("scored", "reference"):
            return ""
        if self.test_labels_used:
            return "tuned on test"
        if self.split == "dev and test":
            return "evaluated on dev and test together"
        is_known = self.protocol and self.split in ("test", INFERRED)
        return "" if is_known else "reported without split or protocol"

    def interval(self, cell: Cell | None, metric: str) -> Ends:
        """Return the 95 % interval to show next to other rows, or None if the row cannot be compared."""
        return interval_of(cell, metric) if cell and self.is_comparable else None

    @property
    def needs(self) -> str:
        """What the judge needs apart from the recorded trajectory, in words; empty if nothing."""
        return "needs the environment's reward" if self.inputs == "reward" else ""

    @property
    def is_comparable(self) -> bool:
        """Whether the judge was evaluated on test by a named protocol, and not tuned on test."""
        return not self.why_not_comparable

    @property
    def basis(self) -> str:
        """The evidence, split, number of trajectories and protocol of the figures, in words."""
        split = SPLIT_TITLES.get(self.split, self.split) or "split not named"
        n = "" if self.n is None else f"{self.n:,} trajectories"
        protocol = self.protocol or "protocol not named"
        return "; ".join(filter(None, (EVIDENCE[self.evidence], split, n, protocol)))


def _described(rank: Rank | None) -> dict[str, Any]:
    """Return the fields of a `Score` that store a rank. `rank_in` reads them."""
    if rank is None:
        return {"rank": None, "n_separated": None, "separated_from": None}
    places = {"place": rank.place, "low": rank.low, "high": rank.high}
    names = None if rank.separated_from is None else list(rank.separated_from)
    return {"rank": places, "n_separated": rank.n_separated, "separated_from": names}


def rank_in(score: Score) -> Rank | None:
    """Return the rank that is stored in a score of a board, or None if the row has no rank."""
    rank, listed = score.get("rank"), score.get("separated_from")
    if not rank:
        return None
    names = None if listed is None else tuple(listed)
    return Rank(rank["place"], rank["low"], rank["high"], score.get("n_separated") or 0, names)


def on_board(score: Score) -> Score:
    """Return a score with the additional fields that scores on a board have. It has no rank yet."""
    return {**score, "rank": None, "best": False, "intervals": "tasks", "note": ""}


def scored_row(record: ScoredRecord, attempts: int, label_version: str | None) -> BoardRow:
    version = record.label_version
    labels: dict[str, Score | None] = {}
    n = None  # the number of trajectories on the first scored label
    for label, reported in record.report["labels"].items():
        score: Score | None = reported
        if score is not None:
            score = on_board(score)
            if record.ranking is not None:
                score["ranked_by"] = "a half of the tasks that is not shown"
            n = score["overall"]["n"] if n is None else n
        labels[label] = score
    return BoardRow(
        **vars(record.info), id=record.id, date=record.submitted_at, provenance="scored",
        source="scored here", attempts=attempts, file_sha256=record.file_sha256,
        protocol=STRICT, split="test", n=n, evidence="verdicts", labels=labels,
        cost=record.report.get("cost"), **model_fields(record.info.model),
        marks=("verified",) * record.is_verified + ("labels exposed",) * record.is_label_exposed,
        note="" if version == label_version else f"scored under label version {version}",
    )  # fmt: skip


def is_rankable(row: BoardRow) -> bool:
    """Return whether a row may be ranked: it was scored here, or published for test and not tuned on it.

    What a judge's authors report is ranked only if anybody can recompute it from the verdicts.
    """
    is_checked = row.provenance == "published" or (
        row.provenance == "self-reported" and row.evidence == "verdicts"
    )
    return row.provenance == "scored" or (is_checked and row.split == "test" and row.is_comparable)


def published_row(row: PublishedRow) -> BoardRow:
    cost = read_costs().get(row.row_id)
    return BoardRow(
        id=row.row_id, judge=row.judge, kind=row.kind, inputs=row.inputs, model=row.model or "",
        authors=row.authors or "", link=row.source_url, test_labels_used=row.test_labels_used,
        date=row.date.isoformat(), provenance=row.provenance, source=row.source,
        note="; ".join(filter(None, (row.group and f"{row.group} judge in the paper", row.note))),
        protocol=row.protocol, split=row.split, n=row.n, evidence=row.evidence,
        labels={label: published_label(found) for label, found in row.labels.items()},
        cost=cost.as_cost() if cost else None, **model_fields(row.model or ""),
    )  # fmt: skip


def with_verdict_scores(row: BoardRow, scores: Mapping[str, Score | None]) -> BoardRow:
    """Return a published row with metrics from its verdicts, or as printed for labels without verdicts."""
    labels = dict(row.labels)
    for label, printed in row.labels.items():
        found = scores.get(label)
        if printed and found:
            labels[label] = {**printed, **found, "intervals": "tasks", "note": ""}
    return replace(row, protocol=STRICT, evidence="verdicts", labels=labels)


def ranking_order(row: BoardRow, cell: Cell | None, metric: str, target: Target) -> Order:
    """Return the sort key of a row: the metric, a second metric, date and id.

    The second metric of a binary target is precision, or recall if ``metric`` is precision. On other targets
    it is the main metric, or the next one if ``metric`` is the main one. Undefined metrics come last.
    """
    known = ("precision", "recall") if target.type == "binary" else target.metrics
    second = next((name for name in known if name != metric), metric)
    first_key, second_key = (_sorted_by(cell, name, 1 if is_low(name) else -1) for name in (metric, second))
    return (first_key, second_key, row.date, row.id)


def _sorted_by(cell: Cell | None, metric: str, sign: int) -> float:
    value = None if cell is None else metric_of(cell, metric)
    return inf if value is None else sign * value


def parts_of(row: BoardRow, label: str, group: str) -> Mapping[str, Cell]:
    """Return the row's cells in a group: ``by_benchmark``, ``by_agent`` or ``by_subset``."""
    score = row.labels.get(label)
    if score is None:
        return {}
    if group == "by_subset":
        return score.get("by_subset", {})
    return score["by_agent"] if group == "by_agent" else score["by_benchmark"]


def why_not_ranked(
    row: BoardRow, label: str, metric: str, is_best: bool, main_metric: str = "precision"
) -> str:
    """Return why a row has no rank by a metric, in words that fit after "not ranked: ".

    ``is_best`` says whether the row represents its judge, so that `Board.ranks` has an entry for it.
    ``main_metric`` is the main metric of the target.
    """
    if row.provenance == "reference":
        return "a reference, not a judge"
    if row.why_not_comparable:
        return row.why_not_comparable
    if row.provenance == "scored" and not is_best:
        return "another submission of the judge is ranked"
    if is_ranked_by_half(row, label) and metric != main_metric:
        return f"ranked only by {metric_name(main_metric)}, on a hidden half of the tasks"
    if not is_rankable(row):
        no_split = "its source names no split, although its metrics fit only test"
        no_verdicts = "reported by its authors, and its verdicts are not known here"
        return no_split if row.split != "test" else no_verdicts
    is_known = row.score(label)["overall"].get("tp", 0) is not None  # without TP if it is not binary
    return f"its {metric_name(metric)} is {'undefined' if is_known else 'not known'}"


def judge_of(row: BoardRow) -> tuple[str, str]:
    """Return the identity of a row's judge: account and name, or the row id if it was not scored here."""
    return (row.account, row.judge) if row.provenance == "scored" else ("", row.id)


def is_ranked_by_half(row: BoardRow, label: str) -> bool:
    """Return whether the row is ranked by the hidden half of the tasks."""
    score = row.labels.get(label)
    return score is not None and "ranked_by" in score


def order_on_board(
    row: BoardRow, target: Target, metric: str
) -> tuple[bool, bool, float, float, float, str, str]:
    """Return the sort key of a row on a board: comparable rows, then other rows, then references.

    Within each group, rows that are ranked on the hidden half of the tasks are sorted by their rank, and
    other rows by their figures.
    """
    score = row.labels.get(target.name)
    first = 0.0
    if score is not None and metric == target.main_metric and "ranked_by" in score:
        rank = score["rank"]
        first = rank["place"] if rank else inf
    figures_order = ranking_order(row, score["overall"] if score is not None else None, metric, target)
    return (row.provenance == "reference", not row.is_comparable, first, *figures_order)
