"""What a reader of the leaderboard chose, by its address: which rows of the board, in which order. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.suite import OFFICIAL
from arb.core.vocabulary import AGENT_TITLES, LABEL_TITLES, LABELS, METRIC_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank, Ranks
from leaderboard.board.rows import parts_of
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


@dataclass(frozen=True)
class Options:
    """What can be chosen on a board: values with their titles, in the order of the menus."""

    labels: dict[str, str]
    figures: dict[str, str]
    agents: dict[str, str]
    kinds: dict[str, str]
    inputs: dict[str, str]
    provenances: dict[str, str]
    sorts: tuple[str, ...]
    n_rows: int


def options_of(board: Board) -> Options:
    """What the rows of this board can be chosen by."""
    return Options(
        labels=dict(LABEL_TITLES),
        figures=dict(METRIC_TITLES),
        agents=agents_of(board),
        kinds={kind: kind for kind in kinds_of(board)},
        inputs={inputs: inputs for inputs in inputs_of(board)},
        provenances=provenances_of(board),
        sorts=sorts_of(board),
        n_rows=len(board.rows),
    )


def provenances_of(board: Board) -> dict[str, str]:
    """Where the rows on the board come from: from papers and reports on the official suite alone."""
    found = {"scored", *board.columns.get(getattr, "provenance")} - {"reference"}
    return {name: title for name, title in PROVENANCES.items() if name in found}


def kinds_of(board: Board) -> list[str]:
    """The kinds of judges on the board, in order."""
    return sorted(set(board.columns.get(getattr, "kind")[~are_references(board)]))


def agents_of(board: Board) -> dict[str, str]:
    """The agents whose runs the board has figures of, with their titles."""
    found = _parts(board, "by_agent")
    official = AGENT_TITLES if board.suite == OFFICIAL else ()
    return {agent: AGENT_TITLES.get(agent, agent) for agent in sorted({*official, *found})}


def _parts(board: Board, group: str) -> set[str]:
    columns = (board.columns.get(parts_of, label, group) for label in LABELS)
    return {name for column in columns for names in set(column) for name in names}


def are_references(board: Board) -> np.ndarray:
    """Whether each row is a reference and no judge: bool of shape (rows,)."""
    return board.columns.get(getattr, "provenance") == "reference"


def inputs_of(board: Board) -> list[str]:
    """What the judges on the board look at, in order."""
    return sorted({*board.columns.get(getattr, "inputs")[~are_references(board)]} - {""})


def sorts_of(board: Board) -> tuple[str, ...]:
    """Every column of a board that an address may sort by, both ways."""
    found = _parts(board, "by_benchmark") | _parts(board, "by_agent")
    names = ("rank", "judge", "figure", *METRIC_TITLES, "cost", "submissions", "date", *sorted(found))
    return tuple(sign + name for name in names for sign in ("", "-"))


def controls(options: Options) -> list[QueryParam]:
    """The names and values that the address may hold."""
    return [
        QueryParam("label", "one", "success", tuple(options.labels)),
        QueryParam("figure", "one", "precision", tuple(options.figures)),
        QueryParam("agent", "one", "", ("", *options.agents)),
        QueryParam("kind", "many", [], tuple(options.kinds)),
        QueryParam("inputs", "many", [], tuple(options.inputs)),
        QueryParam("from", "many", [], tuple(options.provenances)),
        QueryParam("q", "text", "", max_length=LONGEST_SEARCH),
        QueryParam("every", "flag", False),
        QueryParam("sort", "one", "", ("", *options.sorts)),
        QueryParam("rows", "range", (1, PAGE_ROWS)),
    ]


def choice_in(query: str, options: Options) -> tuple[LeaderboardQuery, list[str]]:
    """The choice that a query string makes, and the names that it sets to no valid value."""
    values, refused = choices_in(query, controls(options))
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
        rows=widen(values["rows"], options.n_rows),
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


def cell_of(row: BoardRow, choice: LeaderboardQuery) -> Mapping[str, Any] | None:
    """The cell that the row stands on the board with: over all agents, or the chosen one's, if known."""
    found = row.labels[choice.label]
    return found["by_agent"].get(choice.agent) if choice.agent else found["overall"]


def ranks_of(board: Board, choice: LeaderboardQuery) -> Ranks:
    """The ranks by the chosen figure, by row id: of rows that stand for their judge, None where undefined."""
    return board.ranks(choice.label, choice.figure)


def chosen_places(board: Board, choice: LeaderboardQuery) -> np.ndarray:
    """The rows that fit the choice by their places on the board: as sorted, else best first by the figure.

    Of a judge's submissions that one is shown which stands for it by the chosen figure. References come last,
    and stay whatever is filtered. For one agent the order is still that over all agents, as ranks are; rows
    of papers, which have no figures by agent, come after the others.
    """
    columns, ranks = board.columns, ranks_of(board, choice)
    places = board.order(choice.label, choice.figure)
    references = are_references(board)
    places = places[(_fit(board, choice, ranks) | references)[places]]
    if choice.agent:
        known = columns.figures(choice.label, choice.agent, choice.figure)[places, 0]
        places = _last(places, np.isnan(known))
    if choice.sort:
        key = _sort_key(choice, ranks)
        keys = {place: key(board.plain_rows[place]) for place in places.tolist()}
        known = [place for place, value in keys.items() if value is not None]
        known.sort(key=keys.__getitem__, reverse=choice.sort.startswith("-"))
        unknown = [place for place, value in keys.items() if value is None]  # these stay last
        places = np.array(known + unknown, dtype=np.int64)
    return _last(places, references[places])


def _last(places: np.ndarray, are_last: np.ndarray) -> np.ndarray:
    """The same with some of them after the others."""
    return np.concatenate([places[~are_last], places[are_last]])


def _fit(board: Board, choice: LeaderboardQuery, ranks: Collection[str]) -> np.ndarray:
    """Whether the reader wants to see each row: bool of shape (rows,)."""
    columns = board.columns
    provenance = columns.get(getattr, "provenance")
    fit = np.ones(len(provenance), dtype=bool)
    if not choice.every_submission:
        stand_for_judge = map(ranks.__contains__, columns.get(getattr, "id"))
        fit &= (provenance != "scored") | np.fromiter(stand_for_judge, bool, len(fit))
    wanted = {"kind": choice.kinds, "inputs": choice.inputs, "provenance": choice.provenances}
    for name, values in wanted.items():
        if values:
            fit &= np.fromiter((value in values for value in columns.get(getattr, name)), bool, len(fit))
    if words := choice.search.lower().split():
        texts = columns.get(_searched)
        fit &= np.fromiter((all(word in text for word in words) for text in texts), bool, len(fit))
    return fit


def _searched(row: BoardRow) -> str:
    """The text that a search looks at."""
    return " ".join((row.judge, row.model, row.account, row.authors, row.inputs, row.kind)).lower()


def _sort_key(choice: LeaderboardQuery, ranks: Mapping[str, Rank | None]) -> Callable[[BoardRow], Any]:
    """What the column that the address names sorts a row by; None where the row has no such value."""
    name = choice.sort.removeprefix("-")
    figure = choice.figure if name == "figure" else name
    by_part = "by_agent" if choice.agent else "by_benchmark"
    if figure in METRIC_TITLES:
        return lambda row: (cell_of(row, choice) or {}).get(figure)
    return {
        "rank": lambda row: rank.place if (rank := ranks.get(row.id)) else None,
        "judge": lambda row: row.judge.casefold(),
        "cost": lambda row: row.cost["usd_per_1000"] if row.cost else None,
        "submissions": lambda row: row.attempts or None,
        "date": lambda row: None if row.provenance == "reference" else row.date,
    }.get(name, lambda row: (row.labels[choice.label][by_part].get(name) or {}).get(choice.figure))
