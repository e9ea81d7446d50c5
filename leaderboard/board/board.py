"""The board, made from scored submissions, published rows and a label version.

The same input always gives the same bytes.
"""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from arb.core.formats import FORMATS, format_problem
from arb.core.suites.targets import Target, default_targets, main_target, scored
from leaderboard.board.ranks import RANKED_METRICS, Rank, RankingData, rank_cells
from leaderboard.board.rows import (
    STRICT,
    BoardRow,
    Order,
    ScoredRecord,
    VerdictScores,
    is_rankable,
    is_ranked_by_half,
    judge_of,
    order_on_board,
    published_row,
    rank_in,
    ranking_order,
    scored_row,
    with_verdict_scores,
)
from leaderboard.paper.published_files import PublishedRow
from leaderboard.score import Cell, metric_of

__all__ = ["STRICT", "Board", "BoardRow", "ScoredRecord", "make_board"]

Ranks = Mapping[str, Rank | None]
"""The rank of each judge's best row, keyed by row id. It is None if the row's metric is undefined."""


@dataclass(frozen=True)
class Board:
    """A board. Its rows are in the order of the ranking on the main target; see `order_on_board`."""

    suite: str
    label_version: str | None
    rows: Sequence[BoardRow]
    targets: tuple[Target, ...] = field(default_factory=default_targets, repr=False)
    """The targets of the suite; `board.json` names them unless they are AgentRewardBench's."""
    _ranking_data: RankingData = field(default_factory=RankingData, repr=False, compare=False)
    _ranks_by: dict[tuple[str, str], Ranks] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    key: object = field(default_factory=object, init=False, repr=False, compare=False)
    """A cache key, unique to this object. The digest would be slower, because it hashes all rows."""

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The index of each row in ``rows``, keyed by row id."""
        return {row.id: place for place, row in enumerate(self.rows)}

    def row(self, row_id: str) -> BoardRow | None:
        place = self.places.get(row_id)
        return None if place is None else self.rows[place]

    @cached_property
    def content(self) -> bytes:
        """The board as canonical JSON, without the digest."""
        facts: dict[str, Any] = {
            "format": FORMATS["board.json"], "suite": self.suite, "split": "test",
            "label_version": self.label_version,
        }  # fmt: skip
        if self.targets != default_targets():
            facts["targets"] = [
                {"name": target.name, "title": target.title, "type": target.type, "level": target.level,
                 "metrics": list(target.metrics)}
                for target in scored(self.targets)
            ]  # fmt: skip
        return canonical({**facts, "policy": "strict", "rows": [vars(row) for row in self.rows]})

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of ``content`` in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def to_bytes(self) -> bytes:
        return b'{"digest":"%s",' % self.digest.encode() + self.content[1:]  # no key sorts before "digest"

    @classmethod
    def from_bytes(cls, content: bytes) -> "Board":
        """Read a board that ``to_bytes`` wrote. Unknown fields of rows are ignored.

        Raises ValueError if the content is not a board or does not match its digest.
        """
        names, problem = {each.name for each in fields(BoardRow)}, None
        try:
            values = json.loads(content)
            digest = values.pop("digest")
            problem = format_problem("board.json", values)
            known = [{name: row[name] for name in row.keys() & names} for row in values["rows"]]
            rows = [BoardRow(**{**row, "marks": tuple(row.get("marks", ()))}) for row in known]
            targets = tuple(
                Target(**{**each, "text": each["title"], "metrics": tuple(each["metrics"])})
                for each in values.get("targets", ())
            )
            board = cls(values["suite"], values["label_version"], tuple(rows), targets or default_targets())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                problem or "is not a board.json; download /api/board.json from a Space"
            ) from error
        if problem is not None:
            raise ValueError(problem)
        if hashlib.sha256(canonical(values)).hexdigest() != digest:
            raise ValueError("has a digest that does not match its content; download it again")
        return board

    @property
    def main(self) -> Target:
        """The target that the rows are ordered by."""
        return main_target(self.targets)

    def counts_by_task(self, row_id: str, label: str) -> np.ndarray | None:
        """Return a row's counts for each task, or None if they are unknown; see `RankingData.all_counts`."""
        return self._ranking_data.all_counts(row_id, label)

    def order(self, row: BoardRow) -> tuple[bool, bool, float, float, float, str, str]:
        """Return the sort key by which the rows are ordered."""
        return order_on_board(row, self.main, self.main.main_metric)

    def target(self, name: str) -> Target:
        """Return the target called ``name``. Raises ValueError if the board has no such target."""
        known = {target.name: target for target in scored(self.targets)}
        if name not in known:
            raise ValueError(f"label: the board has none named {name!r}; use one of {', '.join(known)}")
        return known[name]

    def ranking(self, label: str, metric: str | None = None) -> list[BoardRow]:
        """Return the rows with a score on a target, best first by a metric (default: the main one).

        Comparable rows come first, then other rows, then references. In each group, rows without the metric
        are last.
        """
        target = self.target(label)
        chosen = metric or target.main_metric
        return sorted(self._rows_with(label), key=lambda row: order_on_board(row, target, chosen))

    def ranks(self, label: str, metric: str | None = None) -> Ranks:
        """Return the ranks by a metric of the target, with the range of places that the data allow.

        A judge is ranked by its best submission on that metric, which is not always its best by precision.
        Rows that are ranked by a hidden half of the tasks have no rank by other metrics, because every
        further rank would reveal more about that half. Ranks are cached, because computing them for hundreds
        of rows takes seconds. Raises ValueError for an unknown metric.
        """
        target = self.target(label)
        known = dict.fromkeys((*(RANKED_METRICS if target.type == "binary" else ()), *target.metrics))
        metric = metric or target.main_metric
        if metric not in known:
            raise ValueError(f"metric: cannot rank by {metric!r}; use one of {', '.join(known)}")
        with self._lock:
            if (label, metric) not in self._ranks_by:
                self._ranks_by[label, metric] = self._make_ranks(target, metric)
            return self._ranks_by[label, metric]

    def _rows_with(self, label: str) -> list[BoardRow]:
        return [row for row in self.rows if row.labels.get(label)]

    def _make_ranks(self, target: Target, metric: str) -> Ranks:
        best = [row for row in self._rows_with(target.name) if row.score(target.name)["best"]]
        if metric == target.main_metric:
            return {row.id: rank_in(row.score(target.name)) for row in best}
        by_half = [row.id for row in best if is_ranked_by_half(row, target.name)]
        return {**rank_rows(self.rows, target, metric, self._ranking_data), **dict.fromkeys(by_half)}


def canonical(value: Any) -> bytes:
    """Return a value as canonical JSON: equal values give equal bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def rank_rows(rows: Iterable[BoardRow], target: Target, metric: str, data: RankingData) -> Ranks:
    """Return the rank of each judge's best row by a metric. Rows that may not be ranked are left out."""
    label = target.name
    best: dict[tuple[str, str], tuple[Order, Cell | None]] = {}
    for row in rows:
        score = row.labels.get(label)
        if not score or not is_rankable(row) or (metric != target.main_metric and "ranked_by" in score):
            continue
        cell = data.hidden[row.id].get(label) if row.id in data.hidden else score["overall"]
        order, judge = ranking_order(row, cell, metric, target), judge_of(row)
        if judge not in best or order < best[judge][0]:
            best[judge] = order, cell
    ranks: dict[str, Rank | None] = {}
    cells: dict[str, Cell] = {}
    for order, cell in sorted(best.values(), key=lambda each: each[0]):
        row_id = order[-1]
        ranks[row_id] = None
        if cell is not None and metric_of(cell, metric) is not None:
            cells[row_id] = cell
    return ranks | rank_cells(cells, target, metric, data)


def make_board(
    suite: str,
    records: Sequence[ScoredRecord],
    published: Iterable[PublishedRow],
    label_version: str | None,
    references: Sequence[BoardRow] = (),
    labels_by_task: Mapping[str, Sequence[Sequence[int]]] | None = None,
    verdict_scores: Mapping[str, VerdictScores] = MappingProxyType({}),
    targets: tuple[Target, ...] = (),
) -> Board:
    """Make the board of scored submissions and published rows under a label version.

    ``targets`` are the suite's targets, by default AgentRewardBench's. Rows are ordered by the main metric of
    the main target, then a second metric, then date. A judge is ranked by its best submission for each label.
    Its other rows, self-reported rows without verdicts, and references have no rank. Submissions that were
    scored under another label version are left out; those with ``keeps_version`` stay and get a ``note`` that
    names their version.

    ``references`` are rows such as that of `leaderboard.labels.quality.ceiling_row`; each replaces the
    published row with the same id. ``labels_by_task`` has counts of labels (see `leaderboard.report`), which
    are needed to rank rows with verdicts by other metrics than precision. ``verdict_scores`` has the scores
    of those published rows whose verdicts are known, keyed by row id.
    """
    current = [record for record in records if record.is_current(label_version)]
    attempts = Counter((record.info.account, record.info.judge) for record in current)
    rows = {
        record.id: scored_row(record, attempts[record.info.account, record.info.judge], label_version)
        for record in current
    }
    for row in map(published_row, published):
        found = verdict_scores.get(row.id)
        rows[row.id] = with_verdict_scores(row, found.labels) if found else row
    rows |= {row.id: row for row in references}
    data = RankingData(
        counts_by_task={
            **{record.id: record.counts_by_task for record in current},
            **{row_id: found.counts_by_task for row_id, found in verdict_scores.items()},
        },
        labels_by_task=labels_by_task or {},
        hidden={record.id: record.ranking for record in current if record.ranking is not None},
    )
    targets = targets or default_targets()
    ranks = {
        target.name: rank_rows(rows.values(), target, target.main_metric, data) for target in scored(targets)
    }
    main = main_target(targets)
    ranked = [row.with_ranks(ranks) for row in rows.values()]
    ranked.sort(key=lambda row: order_on_board(row, main, main.main_metric))
    return Board(suite, label_version, tuple(ranked), targets, data)
