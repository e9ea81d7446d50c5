"""The rows of a board: what each holds, its bytes, where it stands, and columns of what follows from each.

Rows that were scored have intervals over tasks. Of published rows only counts are known, worked out from the
printed figures: their intervals are approximate.
"""

import json
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from math import inf, nan
from typing import Any, Final, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike

from arb.core.judge_info import JudgeInfo
from arb.core.vocabulary import EVIDENCE, LABELS, LOWER_IS_BETTER
from leaderboard.board.ranks import Rank, Ranks
from leaderboard.paper.published import SPLIT_TITLES, PublishedRow, published_label
from leaderboard.paper.published_files import INFERRED
from leaderboard.report import complete_labels

T = TypeVar("T", bound=tuple)
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


_RANK_IN_JSON: Final = re.compile(rb'"\\u0000(\w+)\.(best|rank)"')
"""What stands for a rank in a row that is encoded once; no text of a row has such a character."""


@dataclass(frozen=True, kw_only=True)
class BoardRow(JudgeInfo):
    """A row of the board, without anything that is not public.

    ``labels`` maps a label to ``{"rank": {"place", "low", "high"} or None, "best": bool, "overall": CELL,
    "by_benchmark": {…}, "by_agent": {…}, "intervals": "tasks" | "approximate" | None, "note": str}``, or to
    None where the judge gives no such verdicts. ``best`` marks the row that stands for its judge. How the
    figures came about: ``protocol``, ``split`` (test, test (inferred), dev and test) and ``n``, empty or None
    where the source does not say, and ``evidence``, a key of `arb.core.vocabulary.EVIDENCE`. ``cost`` is
    that of `leaderboard.report.cost_of`, None where the file gives none.
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
    labels: Mapping[str, Any]
    cost: Mapping[str, float | int] | None = None
    marks: tuple[str, ...] = ()
    """What maintainers found: ``verified`` (run again by others), ``labels exposed`` (test labels got in)."""

    def encoded(self, ranks: Mapping[str, Ranks] | None = None) -> bytes:
        """The row as canonical JSON, under ``ranks`` by label where given. All but ranks is encoded once."""
        first, *others = self.__dict__.get("_pieces") or self._encode()
        found = [first]
        for label, name, text in others:
            if ranks is None:
                found += (canonical(self.labels[label][name]), text)
            elif name == "best":
                found += (b"true" if self.id in ranks[label] else b"false", text)
            elif (rank := ranks[label].get(self.id)) is None:
                found += (b"null", text)
            else:
                found += (b'{"high":%d,"low":%d,"place":%d}' % (rank.high, rank.low, rank.place), text)
        return b"".join(found)

    def _encode(self) -> list[Any]:
        """The bytes before the first rank, then label and name of each of its values and the bytes after."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        labels = {
            label: found and {**found, "best": f"\0{label}.best", "rank": f"\0{label}.rank"}
            for label, found in self.labels.items()
        }
        first, *others = _RANK_IN_JSON.split(canonical({**values, "labels": labels}))
        ends = iter(others)
        ranks = [
            (label.decode(), name.decode(), text) for label, name, text in zip(ends, ends, ends, strict=True)
        ]
        self.__dict__["_pieces"] = [first, *ranks]
        return self.__dict__["_pieces"]

    def with_ranks(self, ranks: Mapping[str, Ranks]) -> "BoardRow":
        """The row with its own ranks of these: it is the best one of its judge where it has one."""
        labels = {
            label: found
            and {
                **found,
                "best": self.id in ranks[label],
                "rank": (rank := ranks[label].get(self.id)) and dict(vars(rank)),
            }
            for label, found in self.labels.items()
        }
        row = object.__new__(type(self))  # `replace` would take all fields one by one
        row.__dict__.update(self.__dict__, labels=labels)
        return row

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
            for label, found in complete_labels(record.report).items()
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


def ranking_order(row: BoardRow, cell: Mapping[str, Any], metric: str = "precision") -> tuple:
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


def figures_of(row: BoardRow, label: str, agent: str, figure: str) -> tuple[float, float, float]:
    """A figure and the ends of its interval, over all agents or those of one; NaN where unknown."""
    found = row.labels.get(label) or {}
    cell = (found.get("by_agent", {}).get(agent) if agent else found.get("overall")) or {}
    ends = cell.get(f"{figure}_ci") or (None, None)
    return tuple(nan if value is None else value for value in (cell.get(figure), *ends))


def parts_of(row: BoardRow, label: str, group: str, measured: bool = False) -> frozenset[str]:
    """The parts (``by_benchmark``, ``by_agent``) that the row has cells of; with ``measured`` those where it
    says on how many trajectories. One object for the same ones: thousands of rows have the same."""
    cells = (row.labels.get(label) or {}).get(group, {})
    return _same(frozenset(name for name, cell in cells.items() if not measured or cell["n"]))


@lru_cache(maxsize=1024)
def _same(names: frozenset[str]) -> frozenset[str]:
    return names


def judge_of(row: BoardRow) -> tuple[str, str]:
    """What is ranked as one: the name of an account's judge, or a published row."""
    return (row.account, row.judge) if row.provenance == "scored" else ("", row.id)


def is_ranked_by_half(row: BoardRow, label: str) -> bool:
    """Whether it is ranked by figures that are not shown."""
    return "ranked_by" in (row.labels.get(label) or {})


def order_on_board(row: BoardRow) -> tuple:
    """Where a row stands on the board: rows are in the order of these."""
    rank = (row.labels.get("success") or {}).get("rank")
    return order_within(row, "success", "precision", rank and Rank(**rank))


def order_within(row: BoardRow, label: str, metric: str, rank: Rank | None = None) -> tuple:
    """By rank where that comes from figures that are not shown, else by the figures; the comparable first."""
    found = row.labels.get(label) or {}
    first = (rank.place if rank else inf) if metric == "precision" and is_ranked_by_half(row, label) else 0
    figures_order = ranking_order(row, found.get("overall") or {}, metric)
    return (row.provenance == "reference", not row.is_comparable, first, *figures_order)


def in_order(ordered: list[T], gone: Sequence[T], new: Sequence[T]) -> list[T]:
    """A sorted list of different tuples without some of them and with others."""
    found = ordered.copy()
    for each in gone:
        del found[bisect_left(found, each)]
    if len(new) > _FEW:
        found += new
        found.sort()
    else:
        for each in new:
            insort(found, each)
    return found


_FEW: Final = 64
"""So many are put in their places faster than all are sorted."""


def canonical(value: Any) -> bytes:
    """JSON in one form: the same value, the same bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


class RankedRows(Sequence[BoardRow]):
    """Rows with their ranks, each made when it is asked for: one new row moves the ranks of thousands.

    ``plain`` are the rows without ranks, in the same order, and ``columns`` those of them.
    """

    def __init__(self, plain: Sequence[BoardRow], ranks: Mapping[str, Ranks], columns: "Columns") -> None:
        self.plain, self.ranks, self.columns = plain, ranks, columns
        self._made: list[BoardRow | None] = [None] * len(plain)

    def __len__(self) -> int:
        return len(self.plain)

    @overload
    def __getitem__(self, place: int) -> BoardRow: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[BoardRow]: ...
    def __getitem__(self, place: int | slice) -> BoardRow | Sequence[BoardRow]:
        if isinstance(place, slice):
            return tuple(self[number] for number in range(len(self))[place])
        if (row := self._made[place]) is None:
            row = self._made[place] = self.plain[place].with_ranks(self.ranks)
        return row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None

    def encoded(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Each row of a slice as canonical JSON."""
        return (row.encoded(self.ranks) for row in self.plain[start:stop])


class Columns:
    """What follows from each row alone, in the order of a board's rows; worked out once for a row.

    A column is what a pure function gives of every row. The columns that were asked for last come along from
    the board ``before``, so that a new row costs what it is itself.
    """

    def __init__(self, rows: Sequence[BoardRow], before: "Columns | None" = None) -> None:
        self._rows = rows
        self._arrays: dict[tuple[Any, ...], np.ndarray] = {}
        known = [] if before is None else list(before._arrays.items())[-_COLUMNS_KEPT:]
        if not known:
            return
        places = {id(row): place for place, row in enumerate(before._rows)}
        sources = np.fromiter((places.get(id(row), -1) for row in rows), dtype=np.int64, count=len(rows))
        new = np.flatnonzero(sources < 0)
        if len(new) > len(rows) // 2:
            return
        for key, array in known:
            self._arrays[key] = array[sources]
            for place in new:
                self._arrays[key][place] = key[0](rows[place], *key[2:])

    def get(self, of: Callable[..., Any], *arguments: Any, dtype: DTypeLike = object) -> np.ndarray:
        """``of(row, *arguments)`` of every row. Not to be changed."""
        key = (of, dtype, *arguments)
        array = self._arrays.pop(key, None)
        if array is None:
            values = (of(row, *arguments) for row in self._rows)
            array = np.fromiter(values, dtype=dtype, count=len(self._rows))
        self._arrays[key] = array  # the last ones asked for are at the end
        return array

    def figures(self, label: str, agent: str, figure: str) -> np.ndarray:
        """A figure and the ends of its interval, (rows, 3): see `figures_of`."""
        return self.get(figures_of, label, agent, figure, dtype=_THREE)


_THREE: Final = np.dtype((np.float64, 3))
_COLUMNS_KEPT: Final = 64
"""Of 10,000 rows 80 or 240 kB each."""
