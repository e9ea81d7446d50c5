"""The leaderboard as a page shows it: which rows, which figures, in words and numbers. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from types import MappingProxyType
from typing import Any, Final

from core.suite import OFFICIAL
from core.vocabulary import AGENT_TITLES, BENCHMARK_SHORT_TITLES, BENCHMARK_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from space.web.cells import Cell, cost_cell, metric_cell, noise_on_board

FIGURES: Final = MappingProxyType(
    {
        "precision": "Precision",
        "recall": "Recall",
        "f1": "F1",
        "kappa": "Kappa",
        "accuracy": "Accuracy",
        "npv": "NPV",
        "tnr": "TNR",
    }
)
PROVENANCES: Final = MappingProxyType(
    {"scored": "scored here", "published": "paper", "self-reported": "self-reported", "reference": "labels"}
)
ULPS: Final = 1e-9
"""The ends of an axis are rounded to tens of percent; a value on them may differ in its last digits."""


@dataclass(frozen=True)
class LeaderboardQuery:
    """What the reader chose to see; empty means all of them."""

    label: str = "success"
    figure: str = "precision"
    search: str = ""
    kinds: Collection[str] = ()
    provenances: Collection[str] = ()
    every_submission: bool = False
    agent: str = ""
    inputs: Collection[str] = ()
    sort: str = ""
    """A column to sort by, with ``-`` before it from the highest down; empty: in the order of the board."""


@dataclass(frozen=True)
class Column:
    """A column that sorts: its name in the address, its title, a hint, and classes for its look.

    ``direction`` is what ``aria-sort`` says now, empty where the table is sorted by another column; ``next``
    is the ``sort`` of the address that its heading leads to.
    """

    name: str
    title: str
    classes: str
    hint: str
    direction: str
    next: str


@dataclass(frozen=True)
class Interval:
    """An interval on the common axis; percentages of its width."""

    left: float
    width: float
    dot: float
    is_off_axis: bool


@dataclass(frozen=True)
class ViewRow:
    """One line of the table."""

    row: BoardRow
    rank_text: str
    rank_value: int | None
    rank_hover: str
    main: Cell
    interval: Interval | None
    others: tuple[Cell, ...]
    benchmarks: tuple[Cell, ...]
    cost: Cell
    provenance: str


@dataclass(frozen=True)
class BoardView:
    """The table: headings, rows, reference rows, axis, the human reference on it.

    ``benchmarks`` are the columns of parts, short and long titles: benchmarks, or where the reader chose one
    agent, agents. ``has_costs`` and ``has_attempts`` say which other columns are not empty.
    """

    choice: LeaderboardQuery
    figure_title: str
    other_figures: tuple[str, ...]
    benchmarks: tuple[tuple[str, str], ...]
    rows: tuple[ViewRow, ...]
    references: tuple[ViewRow, ...]
    axis: tuple[float, float]
    human: float | None
    has_costs: bool = False
    has_attempts: bool = False
    is_filtered: bool = False
    noise: str = ""
    before_axis: tuple[Column, ...] = ()
    after_axis: tuple[Column, ...] = ()


def view_board(board: Board, choice: LeaderboardQuery) -> BoardView:
    """The rows that fit the choice, in the board's order, with every figure formatted."""
    chosen = [row for row in board.ranking(choice.label) if is_chosen(row, choice)]
    judges = [row for row in chosen if row.provenance != "reference"]
    axis = _axis([cell_of(row, choice) or {} for row in judges], choice.figure)
    others = tuple(name for name in ("precision", "recall", "f1") if name != choice.figure)
    parts = _parts(chosen, choice)
    views = [_view_row(row, choice, others, tuple(parts), axis) for row in chosen]
    if choice.agent:  # rows of papers have no figures by agent: after those that do
        views.sort(key=lambda view: view.main.value is None)
    views = _sorted(views, choice, others, tuple(parts))
    human = next((view.interval for view in views if view.row.id == SECOND_ANNOTATOR), None)
    has_costs, has_attempts = any(row.cost for row in judges), any(row.attempts for row in judges)
    return BoardView(
        choice=choice,
        figure_title=FIGURES[choice.figure],
        other_figures=tuple(FIGURES[name] for name in others),
        benchmarks=tuple(parts.values()),
        rows=tuple(view for view in views if view.row.provenance != "reference"),
        references=tuple(view for view in views if view.row.provenance == "reference"),
        axis=axis,
        human=human.dot if human and not human.is_off_axis else None,
        has_costs=has_costs,
        has_attempts=has_attempts,
        noise=noise_on_board(judges, choice.label),
        is_filtered=bool(choice.search.strip() or choice.kinds or choice.inputs or choice.provenances),
        before_axis=tuple(_columns(choice, _FIRST_COLUMNS)),
        after_axis=tuple(_columns(choice, _other_columns(choice, others, parts, has_costs, has_attempts))),
    )


_Heading = tuple[str, str, str, str]
_FIRST_COLUMNS: Final[tuple[_Heading, ...]] = (
    ("rank", "Rank", "number", "by precision; a range where the intervals leave the order open"),
    ("judge", "Judge", "judge", ""),
    ("figure", "", "number main", ""),
)
_LOWEST_FIRST: Final = ("rank", "judge", "cost", "date")
"""Columns whose first click sorts from the lowest; all others from the highest."""


def sorts_of(board: Board) -> tuple[str, ...]:
    """Every column of a board that an address may sort by, both ways."""
    found = {
        name
        for row in board.rows
        for label in row.labels.values()
        if label
        for name in (*label["by_benchmark"], *label["by_agent"])
    }
    names = ("rank", "judge", "figure", *FIGURES, "cost", "submissions", "date", *sorted(found))
    return tuple(sign + name for name in names for sign in ("", "-"))


def _other_columns(
    choice: LeaderboardQuery, others, parts, has_costs: bool, has_attempts: bool
) -> list[_Heading]:
    found = [(name, FIGURES[name], "number other", "") for name in others]
    shown = FIGURES[choice.figure].lower()
    found += [(name, short, "number part", f"{title}: {shown}") for name, (short, title) in parts.items()]
    if has_costs:
        hint = "US dollars for 1,000 trajectories, where the file says what its rows cost"
        found.append(("cost", "$/1k", "number cost", hint))
    if has_attempts:
        hint = "submissions of the judge that were scored; its best one is ranked"
        found.append(("submissions", "Submissions", "number tries", hint))
    return [*found, ("date", "Source", "from", "sorts by date")]


def _columns(choice: LeaderboardQuery, headings: Sequence[_Heading]):
    for name, title, classes, hint in headings:
        is_lowest_first = name in _LOWEST_FIRST
        first, second = (name, f"-{name}") if is_lowest_first else (f"-{name}", name)
        direction = {name: "ascending", f"-{name}": "descending"}.get(choice.sort, "")
        following = second if choice.sort == first else first
        yield Column(name, title or FIGURES[choice.figure], classes, hint, direction, following)


def _sorted(views: list["ViewRow"], choice: LeaderboardQuery, others, parts) -> list["ViewRow"]:
    """The rows by the column that the address names; what is not known stays last."""
    name = choice.sort.removeprefix("-")

    def key(view: ViewRow) -> Any:
        if name in others:
            return view.others[others.index(name)].value
        if name in parts:
            return view.benchmarks[parts.index(name)].value
        values = {
            "rank": view.rank_value,
            "judge": view.row.judge.casefold(),
            "cost": view.cost.value,
            "submissions": view.row.attempts or None,
            "date": None if view.row.provenance == "reference" else view.row.date,
        }
        return values.get(name, view.main.value if name in ("figure", choice.figure) else None)

    if not choice.sort:
        return views
    known = [view for view in views if key(view) is not None]
    known.sort(key=key, reverse=choice.sort.startswith("-"))
    return known + [view for view in views if key(view) is None]


def kinds_of(board: Board) -> list[str]:
    """The kinds of judges on the board, in order."""
    return sorted({row.kind for row in board.rows if row.provenance != "reference"})


def agents_of(board: Board) -> dict[str, str]:
    """The agents whose runs the board has figures of, with their titles."""
    found = {
        agent for row in board.rows for label in row.labels.values() if label for agent in label["by_agent"]
    }
    official = AGENT_TITLES if board.suite == OFFICIAL else ()
    return {agent: AGENT_TITLES.get(agent, agent) for agent in sorted({*official, *found})}


def inputs_of(board: Board) -> list[str]:
    """What the judges on the board look at, in order."""
    return sorted({row.inputs for row in board.rows if row.provenance != "reference" and row.inputs})


def is_chosen(row: BoardRow, choice: LeaderboardQuery) -> bool:
    """Whether the reader wants to see the row; references stay whatever is filtered."""
    if row.provenance == "reference":
        return True
    if row.provenance == "scored" and not (row.labels[choice.label]["best"] or choice.every_submission):
        return False
    if choice.kinds and row.kind not in choice.kinds:
        return False
    if choice.inputs and row.inputs not in choice.inputs:
        return False
    if choice.provenances and row.provenance not in choice.provenances:
        return False
    searched = " ".join((row.judge, row.model, row.account, row.authors, row.inputs, row.kind)).lower()
    return all(word in searched for word in choice.search.lower().split())


def cell_of(row: BoardRow, choice: LeaderboardQuery) -> Mapping[str, Any] | None:
    """The cell that the row stands on the board with: over all agents, or the chosen one's, if known."""
    found = row.labels[choice.label]
    return found["by_agent"].get(choice.agent) if choice.agent else found["overall"]


def _parts(rows: Sequence[BoardRow], choice: LeaderboardQuery) -> dict[str, tuple[str, str]]:
    """The columns beside the overall figures: name, short title, title."""
    if choice.agent:
        agents = {name for row in rows for name in row.labels[choice.label]["by_agent"]}
        return {name: (AGENT_TITLES.get(name, name), AGENT_TITLES.get(name, name)) for name in sorted(agents)}
    found = {name for row in rows for name in row.labels[choice.label]["by_benchmark"]}
    known = [name for name in BENCHMARK_TITLES if name in found]
    names = (*known, *sorted(found - set(known)))
    return {
        name: (BENCHMARK_SHORT_TITLES.get(name, name), BENCHMARK_TITLES.get(name, name)) for name in names
    }


def _axis(cells: Sequence[Mapping[str, Any]], figure: str) -> tuple[float, float]:
    """A range in whole tens of percent that holds every interval; the whole range when there is none."""
    ends = [end for cell in cells for end in cell.get(f"{figure}_ci") or () if end is not None]
    ends += [cell[figure] for cell in cells if cell.get(figure) is not None]
    if not ends:
        return 0.0, 1.0
    low, high = floor(min(ends) * 10), ceil(max(ends) * 10)
    if low == high:  # every row has one and the same value: room below it, at 0 above
        low, high = (low - 1, high) if low > 0 else (low, high + 1)
    return low / 10, high / 10


def _view_row(row: BoardRow, choice: LeaderboardQuery, others, parts, axis) -> ViewRow:
    found, main = row.labels[choice.label], cell_of(row, choice)
    rank, by_part = found["rank"], found["by_agent" if choice.agent else "by_benchmark"]
    return ViewRow(
        row=row,
        rank_text=_rank_text(rank),
        rank_value=rank["place"] if rank else None,
        rank_hover=_rank_hover(rank, row),
        main=metric_cell(main, choice.figure, choice.label),
        interval=_interval(main or {}, choice.figure, axis),
        others=tuple(metric_cell(main, name, choice.label) for name in others),
        benchmarks=tuple(metric_cell(by_part.get(name), choice.figure, choice.label) for name in parts),
        cost=cost_cell(row.cost),
        provenance=PROVENANCES[row.provenance],
    )


def _rank_text(rank: Mapping[str, int] | None) -> str:
    if rank is None:
        return ""
    return str(rank["low"]) if rank["low"] == rank["high"] else f"{rank['low']}–{rank['high']}"


def _rank_hover(rank: Mapping[str, int] | None, row: BoardRow) -> str:
    if rank is None:
        return "self-reported metrics are shown, not ranked" if row.provenance == "self-reported" else ""
    if rank["low"] == rank["high"]:
        return f"rank {rank['place']} by precision, separated from its neighbours"
    return f"rank {rank['place']} by precision; tied for any rank from {rank['low']} to {rank['high']}"


def _interval(cell: Mapping[str, Any], figure: str, axis: tuple[float, float]) -> Interval | None:
    value, ends = cell.get(figure), cell.get(f"{figure}_ci")
    if value is None:
        return None
    low, high = ends or (value, value)
    left, right, dot = (_on_axis(end, axis) for end in (low, high, value))
    return Interval(left, round(right - left, 2), dot, not axis[0] - ULPS <= value <= axis[1] + ULPS)


def _on_axis(value: float, axis: tuple[float, float]) -> float:
    share = (value - axis[0]) / (axis[1] - axis[0])
    return round(100 * min(1.0, max(0.0, share)), 2)
