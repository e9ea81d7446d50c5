"""The board: a pure function of scored records, published rows and label version. Same input, same bytes."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from arb.core.vocabulary import LABELS
from leaderboard.board.ranks import RANKED_METRICS, Rank, RankingData, Ranks
from leaderboard.board.rows import (
    STRICT,
    BoardRow,
    Columns,
    RankedRows,
    ScoredRecord,
    canonical,
    has_label,
    in_order,
    is_ranked_by_half,
    order_within,
    published_row,
    scored_row,
)
from leaderboard.board.ties import Changes, Ranker
from leaderboard.paper.published import PublishedRow

__all__ = ["STRICT", "Board", "BoardCache", "BoardRow", "ScoredRecord", "make_board"]


@dataclass(frozen=True)
class Board:
    """Rows in the order of the success ranking; ``digest`` is the SHA-256 of everything else."""

    suite: str
    label_version: str | None
    rows: Sequence[BoardRow]
    _ranking_data: RankingData = field(default_factory=RankingData, repr=False, compare=False)
    _ranker: Ranker = field(default_factory=Ranker, repr=False, compare=False)
    _ranks_by: dict[tuple[str, str], Ranks] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _orders: dict[tuple[str, str], np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    key: object = field(default_factory=object, init=False, repr=False, compare=False)
    """Of this board alone, for caches of what is made from it: the digest takes reading every row."""

    @property
    def plain_rows(self) -> Sequence[BoardRow]:
        """The rows, which need not have their ranks: what looks at thousands takes these, and `ranks`."""
        return self.rows.plain if isinstance(self.rows, RankedRows) else self.rows

    @cached_property
    def columns(self) -> Columns:
        """What follows from each of ``plain_rows`` alone."""
        return self.rows.columns if isinstance(self.rows, RankedRows) else Columns(self.rows)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each row stands in ``rows``, by its id."""
        return {row.id: place for place, row in enumerate(self.plain_rows)}

    def row(self, row_id: str) -> BoardRow | None:
        """The row of an id; None where the board has none."""
        place = self.places.get(row_id)
        return None if place is None else self.rows[place]

    def encoded_rows(self, start: int = 0, stop: int | None = None) -> bytes:
        """The rows of a slice as canonical JSON, with commas between them."""
        if isinstance(self.rows, RankedRows):
            return b",".join(self.rows.encoded(start, stop))
        return b",".join(row.encoded() for row in self.rows[start:stop])

    @property
    def content(self) -> bytes:
        """The board as canonical JSON: what the digest is taken of."""
        facts = {"suite": self.suite, "split": "test", "label_version": self.label_version}
        before, after = canonical({**facts, "policy": "strict", "rows": []}).split(b'"rows":[]')
        return b"".join((before, b'"rows":[', self.encoded_rows(), b"]", after))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ``content``, hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def to_bytes(self) -> bytes:
        """The board with its digest, as canonical JSON in UTF-8."""
        content = self.content
        self.__dict__.setdefault("digest", hashlib.sha256(content).hexdigest())
        return b'{"digest":"%s",' % self.digest.encode() + content[1:]  # no name comes before it

    @classmethod
    def from_bytes(cls, content: bytes) -> "Board":
        """The board that ``to_bytes`` wrote; what a later version added to its rows is left out.

        Raises ValueError where it is no board, or its digest is another's.
        """
        names = {each.name for each in fields(BoardRow)}
        try:
            values = json.loads(content)
            digest = values.pop("digest")
            known = [{name: row[name] for name in row.keys() & names} for row in values["rows"]]
            rows = [BoardRow(**{**row, "marks": tuple(row.get("marks", ()))}) for row in known]
            board = cls(values["suite"], values["label_version"], tuple(rows))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                "is no board.json of a leaderboard; download a Space's /api/board.json"
            ) from error
        if hashlib.sha256(canonical(values)).hexdigest() != digest:
            raise ValueError("its digest is not that of its content; download it again")
        return board

    def ranking(self, label: str, metric: str = "precision") -> tuple[BoardRow, ...]:
        """Every row that has the label, by the metric, best first; undefined ones and references last."""
        return tuple(self.rows[place] for place in self.order(label, metric).tolist())

    def order(self, label: str, metric: str = "precision") -> np.ndarray:
        """The rows of `ranking`, as their places in ``rows``."""
        if (label, metric) not in self._orders:
            places = np.flatnonzero(self.columns.get(has_label, label, dtype=bool))
            if not isinstance(self.rows, RankedRows) or (label, metric) != ("success", "precision"):
                keys = self.columns.get(order_within, label, metric)
                hidden = np.flatnonzero(self.columns.get(is_ranked_by_half, label, dtype=bool))
                if metric == "precision" and len(hidden):
                    keys, ranks = keys.copy(), self.ranks(label)
                    for place in hidden:
                        row = self.plain_rows[place]
                        keys[place] = order_within(row, label, metric, ranks.get(row.id))
                places = np.array(sorted(places.tolist(), key=keys.__getitem__), dtype=np.int64)
            self._orders[label, metric] = places
        return self._orders[label, metric]

    def ranks(self, label: str, metric: str = "precision") -> Ranks:
        """Ranks by one of `RANKED_METRICS`, by row id, with tie ranges for the whole board at once.

        The rows that stand for their judge under that metric: its best submission, which may be another one
        than by precision. None where the metric is undefined. Rows that are ranked by a hidden half have no
        rank by other metrics: each would tell more of that half. Kept once made: hundreds of rows with
        verdicts take seconds. Raises ValueError for an unknown metric.
        """
        if metric not in RANKED_METRICS:
            raise ValueError(
                f"metric: there is no {metric!r} to rank by; use one of {', '.join(RANKED_METRICS)}"
            )
        if (label, metric) not in self._ranks_by:
            self._ranks_by[label, metric] = self._make_ranks(label, metric)
        return self._ranks_by[label, metric]

    def _make_ranks(self, label: str, metric: str) -> Ranks:
        if metric == "precision" and isinstance(self.rows, RankedRows):
            return self.rows.ranks[label]
        if metric == "precision":
            found = {row.id: row.labels[label] for row in self.rows if row.labels.get(label)}
            best = {row_id: each["rank"] for row_id, each in found.items() if each["best"]}
            return Ranks.of({row_id: rank and Rank(**rank) for row_id, rank in best.items()})
        rows = {row.id: row for row in self.plain_rows}
        found = self._ranker.ranks(rows, label, metric, self._ranking_data)
        hidden = self.columns.get(is_ranked_by_half, label, dtype=bool)
        if not hidden.any():
            return found
        undefined = {row_id for row_id in self.ranks(label) if hidden[self.places[row_id]]}
        return Ranks(found.ids, found.numbers, undefined | (found.keys() - set(found.ids)))


@dataclass
class BoardCache:
    """What one board leaves for the next one of the same suite: rows, their order, columns, ranks."""

    version: str | None = None
    labels_by_task: Mapping[str, Any] = field(default_factory=dict)
    ranker: Ranker = field(default_factory=Ranker)
    data: RankingData = field(default_factory=RankingData)
    rows: Mapping[str, BoardRow] = field(default_factory=dict)
    """Without ranks, by id, in any order."""
    order: list[tuple] = field(default_factory=list)
    """Where each row stands by its own figures, ending with its id."""
    columns: Columns | None = None
    sources: Mapping[str, Any] = field(default_factory=dict)
    """By id what a row was made from."""
    judges: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """The rows that were scored of each judge, by account and name."""
    changes: Changes | None = None

    def update(
        self,
        sources: Mapping[str, ScoredRecord | PublishedRow | BoardRow],
        version: str | None,
        labels_by_task: Mapping[str, Any],
    ) -> None:
        """Make the rows of the sources that came, or are other objects than before; forget what went."""
        if (self.version, self.labels_by_task) != (version, labels_by_task):
            self.__init__(version, labels_by_task)
        before, self.sources = self.sources, sources
        changed = {row_id for row_id, source in sources.items() if before.get(row_id) is not source}
        changed |= before.keys() - sources
        for row_id in [*changed]:
            for each in (before.get(row_id), sources.get(row_id)):
                if isinstance(each, ScoredRecord):
                    rows_of_judge = self.judges.setdefault((each.info.account, each.info.judge), set())
                    changed |= rows_of_judge  # these say how many there are
                    rows_of_judge.discard(row_id)
                    if each is sources.get(row_id) and each.is_current(version):
                        rows_of_judge.add(row_id)
        rows, counts, hidden = dict(self.rows), dict(self.data.counts_by_task), dict(self.data.hidden)
        for row_id in changed:
            for known in (rows, counts, hidden):
                known.pop(row_id, None)
            source = sources.get(row_id)
            if isinstance(source, ScoredRecord) and source.is_current(version):
                n = len(self.judges[source.info.account, source.info.judge])
                rows[row_id] = scored_row(source, n, version)
                counts[row_id] = source.counts_by_task
                if source.ranking is not None:
                    hidden[row_id] = source.ranking
            elif isinstance(source, PublishedRow):
                rows[row_id] = published_row(source)
            elif isinstance(source, BoardRow):
                rows[row_id] = replace(source)
        gone, new = (
            [order_within(known[row_id], "success", "precision") for row_id in changed & known.keys()]
            for known in (self.rows, rows)
        )
        self.order = in_order(self.order, gone, new)
        self.changes = (self.rows, changed)
        self.rows, self.data = rows, RankingData(counts, labels_by_task, hidden)


def make_board(
    suite: str,
    records: Sequence[ScoredRecord],
    published: Iterable[PublishedRow],
    label_version: str | None,
    references: Sequence[BoardRow] = (),
    labels_by_task: Mapping[str, Sequence[Sequence[int]]] | None = None,
    cache: BoardCache | None = None,
) -> Board:
    """The board of records and published rows under a label version.

    Order: precision, then recall, then the earlier submission. A judge is ranked by its best submission for
    each label; its others are kept without a rank. Self-reported and reference rows have none either.
    Records of another label version are left out, as they wait for a new score, or say so in their ``note``
    (``keeps_version``). ``references`` are rows made elsewhere (`leaderboard.labels.quality`); one takes the
    place of the published row of its id. ``labels_by_task`` (`leaderboard.report.labels_by_task` of this
    label version) lets rows with verdicts be compared paired by other metrics than precision. ``cache`` is
    that of the board before: what was made of the same objects is taken from it; the board is the same.
    """
    sources: dict[str, ScoredRecord | PublishedRow | BoardRow] = {record.id: record for record in records}
    sources |= {row.row_id: row for row in published} | {row.id: row for row in references}
    (cache := cache or BoardCache()).update(sources, label_version, labels_by_task or {})
    rows, data, ranker = cache.rows, cache.data, cache.ranker
    ranks = {label: ranker.ranks(rows, label, "precision", data, cache.changes) for label in LABELS}
    order = cache.order
    if data.hidden:  # where a row stands by a half that is not shown follows from the others
        by_place = (
            order_within(row, "success", "precision", ranks["success"].get(row_id))
            for row_id, row in rows.items()
        )
        order = sorted(by_place)
    plain = tuple(rows[each[-1]] for each in order)
    cache.columns = Columns(plain, cache.columns)
    return Board(suite, label_version, RankedRows(plain, ranks, cache.columns), data, ranker)
