"""What a reader of the leaderboard chose, by its address: which rows of the board, in which order. Pure."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Any, Final

from arb.core.suite import OFFICIAL
from arb.core.vocabulary import AGENT_TITLES, LABEL_TITLES, LABELS, METRIC_TITLES
from leaderboard.board.board import Board, BoardRow, Ranks
from leaderboard.board.rows import parts_of
from leaderboard.score import Cell
from space.web.query import QueryParam, choices_in, link_to

PROVENANCES: Final = MappingProxyType(
    {"scored": "scored here", "published": "paper", "self-reported": "self-reported", "reference": "labels"}
)
LONGEST_SEARCH: Final = 80
PAGE_ROWS: Final = 100
"""Rows that the page opens with, and that each further step adds."""
MOST_ROWS: Final = 1_000
"""Rows that one address shows at most: all submissions of a large board would be megabytes of HTML."""


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
    """A column to sort by, with ``-`` before it from the highest down; empty: best first by ``figure``."""
    rows: tuple[int, int] = (1, PAGE_ROWS)
    """The numbers of the first and the last row to show."""


def figure_name(figure: str) -> str:
    """A figure within a sentence: ``precision``, ``F1``."""
    title = METRIC_TITLES[figure]
    return title if title.isupper() else title.lower()


Options = dict[str, dict[str, str]]
"""What can be chosen on a board by parameter of the address: values with their titles."""


def options_of(board: Board) -> Options:
    """Return what the rows of this board can be chosen and sorted by: only what some row has."""
    judges = [row for row in board.rows if row.provenance != "reference"]
    inputs = sorted({row.inputs for row in judges} - {""})
    provenances = {"scored", *(row.provenance for row in judges)}
    agents = part_names(board.rows, LABELS, "by_agent")
    if board.suite == OFFICIAL:
        agents |= AGENT_TITLES.keys()
    parts = sorted(part_names(board.rows, LABELS, "by_benchmark") | agents)
    columns = ("rank", "judge", "figure", *METRIC_TITLES, "cost", "submissions", "date", *parts)
    return {
        "label": dict(LABEL_TITLES),
        "figure": dict(METRIC_TITLES),
        "agent": {agent: AGENT_TITLES.get(agent, agent) for agent in sorted(agents)},
        "kind": {kind: kind for kind in sorted({row.kind for row in judges})},
        "inputs": {name: name for name in inputs},
        "from": {name: title for name, title in PROVENANCES.items() if name in provenances},
        "sort": {sign + name: name for name in columns for sign in ("", "-")},
    }


def part_names(rows: Iterable[BoardRow], labels: Iterable[str], group: str) -> set[str]:
    """Return the names of all cells that rows have of a group, ``by_benchmark`` or ``by_agent``."""
    return {name for label in labels for row in rows for name in parts_of(row, label, group)}


def choice_in(query: str, options: Options, n_rows: int) -> tuple[LeaderboardQuery, list[str]]:
    """Return the choice that a query string makes, and the names that it sets to no valid value."""
    controls = [
        QueryParam("label", "one", "success", tuple(options["label"])),
        QueryParam("figure", "one", "precision", tuple(options["figure"])),
        QueryParam("agent", "one", "", ("", *options["agent"])),
        *(QueryParam(name, "many", [], tuple(options[name])) for name in ("kind", "inputs", "from")),
        QueryParam("q", "text", "", max_length=LONGEST_SEARCH),
        QueryParam("every", "flag", False),
        QueryParam("sort", "one", "", ("", *options["sort"])),
        QueryParam("rows", "range", (1, PAGE_ROWS)),
    ]
    values, refused = choices_in(query, controls)
    choice = LeaderboardQuery(
        label=values["label"],
        figure=values["figure"],
        search=values["q"],
        kinds=tuple(sorted(values["kind"])),
        provenances=tuple(sorted(values["from"])),
        every_submission=values["every"],
        agent=values["agent"],
        inputs=tuple(sorted(values["inputs"])),
        sort=values["sort"],
        rows=widen(values["rows"], n_rows),
    )
    return choice, refused


def widen(rows: tuple[int, int], n_rows: int) -> tuple[int, int]:
    """The rows that an address asks for, in whole steps of ``PAGE_ROWS``, at most ``MOST_ROWS``.

    There are few such ranges, and a page is made once for each. Beyond ``n_rows`` lies the last step.
    """
    first, last = (max(1, min(number, n_rows)) for number in rows)
    first = (first - 1) // PAGE_ROWS * PAGE_ROWS + 1
    return first, min(ceil(last / PAGE_ROWS) * PAGE_ROWS, first + MOST_ROWS - 1)


def address_of_choice(choice: LeaderboardQuery, path: str = "/", **changes: Any) -> str:
    """The address that shows the board at a choice, with some of it changed; defaults are left out.

    ``rows`` are those of ``changes``, (first, last): another choice begins with its first rows.
    """
    values = {
        "label": "" if choice.label == "success" else choice.label,
        "figure": "" if choice.figure == "precision" else choice.figure,
        "agent": choice.agent,
        "kind": choice.kinds,
        "inputs": choice.inputs,
        "from": choice.provenances,
        "q": choice.search,
        "every": choice.every_submission,
        "sort": choice.sort,
        **changes,
    }
    first, last = values.pop("rows", (1, PAGE_ROWS))
    rows = "" if (first, last) == (1, PAGE_ROWS) else f"{first}-{last}"
    return link_to(path, **values, rows=rows)


# Which rows, in which order


def cell_of(row: BoardRow, choice: LeaderboardQuery) -> Cell | None:
    """The cell that the row stands on the board with: over all agents, or the chosen one's, if known."""
    found = row.labels[choice.label]
    return found["by_agent"].get(choice.agent) if choice.agent else found["overall"]


def chosen_rows(board: Board, choice: LeaderboardQuery) -> list[BoardRow]:
    """Return the rows that fit the choice, as sorted, else best first by the figure.

    Of a judge's submissions only the one is shown that stands for it by the chosen figure. References come
    last, and stay whatever is filtered. For one agent the order is still that over all agents, as ranks are;
    rows of papers, which have no figures by agent, come after the others.
    """
    ranks = board.ranks(choice.label, choice.figure)
    rows = [
        row
        for row in board.ranking(choice.label, choice.figure)
        if row.provenance == "reference" or _fits(row, choice, ranks)
    ]
    if choice.agent:
        rows.sort(key=lambda row: (cell_of(row, choice) or {}).get(choice.figure) is None)
    if choice.sort:
        key = _sort_key(choice, ranks)
        known = [row for row in rows if key(row) is not None]
        unknown = [row for row in rows if key(row) is None]  # these stay last
        known.sort(key=key, reverse=choice.sort.startswith("-"))
        rows = known + unknown
    return sorted(rows, key=lambda row: row.provenance == "reference")


def _fits(row: BoardRow, choice: LeaderboardQuery, ranks: Ranks) -> bool:
    """Whether the reader wants to see a row."""
    if row.provenance == "scored" and not choice.every_submission and row.id not in ranks:
        return False
    wanted = ((row.kind, choice.kinds), (row.inputs, choice.inputs), (row.provenance, choice.provenances))
    if any(values and value not in values for value, values in wanted):
        return False
    searched = (row.judge, row.model, row.account, row.authors, row.inputs, row.kind)
    text = " ".join(searched).lower()
    return all(word in text for word in choice.search.lower().split())


def _sort_key(choice: LeaderboardQuery, ranks: Ranks) -> Callable[[BoardRow], Any]:
    """What the column that the address names sorts a row by; None where the row has no such value."""
    name = choice.sort.removeprefix("-")
    figure = choice.figure if name == "figure" else name
    group = "by_agent" if choice.agent else "by_benchmark"
    if figure in METRIC_TITLES:
        return lambda row: (cell_of(row, choice) or {}).get(figure)
    return {
        "rank": lambda row: rank.place if (rank := ranks.get(row.id)) else None,
        "judge": lambda row: row.judge.casefold(),
        "cost": lambda row: row.cost["usd_per_1000"] if row.cost else None,
        "submissions": lambda row: row.attempts or None,
        "date": lambda row: None if row.provenance == "reference" else row.date,
    }.get(name, lambda row: parts_of(row, choice.label, group).get(name, {}).get(choice.figure))
