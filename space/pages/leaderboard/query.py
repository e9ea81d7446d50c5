"""The reader's choice on the leaderboard, read from the URL: which rows of the board, in which order."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Final

from arb.core.suite import OFFICIAL
from arb.core.suites.targets import Target, default_targets, main_target, scored
from arb.core.vocabulary import AGENT_TITLES, LOWER_IS_BETTER
from leaderboard.board.board import Board, BoardRow, Ranks
from leaderboard.board.rows import parts_of
from leaderboard.score import Cell, metric_of
from space.pages.leaderboard.columns import column_titles, metric_titles, usual_columns
from space.pages.rows import overall_of
from space.web.query import QueryParam, choices_in, link_to

PROVENANCES: Final[Mapping[str, str]] = {
    "scored": "scored here",
    "published": "paper",
    "self-reported": "self-reported",
    "reference": "labels",
}
NO_HARD_SUBSET: Final = (
    "The Hard subset is ignored, because it exists only for {target}. Choose {target} to see it."
)
NO_SUBSET_OF_AGENT: Final = (
    "The agent is ignored, because no metrics of one agent on a subset are known. To see the agent, choose "
    "all {nouns} instead of the subset."
)
LONGEST_SEARCH: Final = 80
PAGE_ROWS: Final = 100
"""The number of rows that the page shows at first and that each further step adds."""
MOST_ROWS: Final = 1_000
"""The maximum number of rows at one address. All rows of a large board would be megabytes of HTML."""


@dataclass(frozen=True)
class LeaderboardQuery:
    """The reader's choice on the leaderboard. An empty value means no filter."""

    label: str = ""
    """The name of a target; empty means the main target."""
    figure: str = ""
    """The name of a metric; empty means the target's main metric."""
    search: str = ""
    kinds: Collection[str] = ()
    provenances: Collection[str] = ()
    every_submission: bool = False
    agent: str = ""
    inputs: Collection[str] = ()
    sort: str = ""
    """The column to sort by, with ``-`` in front for descending order; empty means best ``figure`` first."""
    subset: str = ""
    """``hard`` for the Hard subset, a subset of the suite such as ``difficulty=hard``, or empty."""
    rows: tuple[int, int] = (1, PAGE_ROWS)
    """The numbers of the first and the last row to show."""
    columns: tuple[str, ...] = ()
    """The columns to show; empty means those that appear by default (`usual_columns`)."""
    note: str = ""
    """A sentence that says which choice is ignored because it conflicts with another one."""
    targets: tuple[Target, ...] = field(default_factory=lambda: scored(default_targets()), repr=False)
    """The targets that judges are scored on."""

    @property
    def target(self) -> Target:
        chosen = (target for target in self.targets if target.name == self.label)
        return next(chosen, main_target(self.targets))

    @property
    def has_part(self) -> bool:
        """Whether a subset of the suite is chosen."""
        return self.subset not in ("", "hard")

    @property
    def leaves_out_judges(self) -> bool:
        return bool(self.search.strip() or self.kinds or self.inputs or self.provenances)

    @property
    def metric(self) -> str:
        return self.figure or self.target.main_metric


PARAMETERS: Final = {
    "label": "label", "figure": "figure", "agent": "agent", "kind": "kinds", "inputs": "inputs",
    "from": "provenances", "q": "search", "every": "every_submission", "sort": "sort", "subset": "subset",
    "columns": "columns",
}  # fmt: skip
"""The attributes of a choice, keyed by their names in the URL, in the order of the URL's parameters."""
Options = dict[str, dict[str, str]]
"""The titles of the values that a board offers, keyed by query parameter and value."""


def options_of(board: Board, has_hard_subset: bool = False) -> Options:
    """Return the values by which a board can be filtered and sorted. Values that no row has are left out."""
    judges = [row for row in board.rows if row.provenance != "reference"]
    inputs = sorted({row.inputs for row in judges} - {""})
    provenances = {"scored", *(row.provenance for row in judges)}
    targets = scored(board.targets)
    labels = {target.name: target.title for target in targets}
    agents = part_names(board.rows, labels, "by_agent")
    if board.suite == OFFICIAL:
        agents |= AGENT_TITLES.keys()
    benchmarks = part_names(board.rows, labels, "by_benchmark")
    subsets = sorted(part_names(board.rows, labels, "by_subset"))
    titles = column_titles(benchmarks, targets)
    metrics = metric_titles(targets)
    columns = ("rank", "figure", *metrics, *SORT_KEYS, *sorted(benchmarks | agents))
    return {
        "columns": titles,
        "usual_columns": dict.fromkeys(usual_columns(board, titles), ""),
        "label": labels,
        "figure": metrics,
        "agent": {agent: AGENT_TITLES.get(agent, agent) for agent in sorted(agents)},
        "kind": {kind: kind for kind in sorted({row.kind for row in judges})},
        "inputs": {name: name for name in inputs},
        "subset": {
            **({"hard": "Hard subset"} if has_hard_subset else {}),
            **{name: name.replace("=", ": ") for name in subsets},
        },
        "from": {name: title for name, title in PROVENANCES.items() if name in provenances},
        "sort": {sign + name: name for name in columns for sign in ("", "-")},
    }


def part_names(rows: Iterable[BoardRow], labels: Iterable[str], group: str) -> set[str]:
    """Return the names of all cells of the rows in a group (see `parts_of`)."""
    return {name for label in labels for row in rows for name in parts_of(row, label, group)}


def choice_in(
    query: str, options: Options, n_rows: int, targets: Sequence[Target] | None = None
) -> tuple[LeaderboardQuery, list[str]]:
    """Return the choice encoded in a query string, and the names of parameters with invalid values.

    ``targets`` are those of the board, by default AgentRewardBench's. If the chosen target lacks the chosen
    metric, its main metric is used.
    """
    known = scored(targets or default_targets())
    controls = [
        QueryParam("label", "one", "", tuple(options["label"])),
        QueryParam("figure", "one", "", tuple(options["figure"])),
        QueryParam("agent", "one", "", ("", *options["agent"])),
        *(QueryParam(name, "many", [], tuple(options[name])) for name in ("kind", "inputs", "from")),
        QueryParam("q", "text", "", max_length=LONGEST_SEARCH),
        QueryParam("every", "flag", False),
        QueryParam("sort", "one", "", ("", *options["sort"])),
        QueryParam("subset", "one", "", ("", *options["subset"])),
        QueryParam("rows", "range", (1, PAGE_ROWS)),
        QueryParam("columns", "many", [], tuple(options["columns"])),
    ]
    values, refused = choices_in(query, controls)
    label = "" if values["label"] == main_target(known).name else values["label"]
    target = LeaderboardQuery(label, targets=known).target
    has_metric = values["figure"] in target.metrics and values["figure"] != target.main_metric
    note = ""
    if values["subset"] == "hard" and label:  # of other targets, no families are known
        values["subset"] = ""
        note = NO_HARD_SUBSET.format(target=main_target(known).title)
    if values["subset"] not in ("", "hard") and values["agent"]:  # no figures of both are known
        values["agent"] = ""
        note = NO_SUBSET_OF_AGENT.format(nouns=target.nouns)
    columns = tuple(name for name in options["columns"] if name in values["columns"])
    values |= {name: tuple(sorted(values[name])) for name in ("kind", "inputs", "from")}
    values |= {
        "label": label,
        "figure": values["figure"] if has_metric else "",
        "rows": widen(values["rows"], n_rows),
        "columns": () if columns == tuple(options["usual_columns"]) else columns,
        "note": note,
    }
    chosen = {PARAMETERS.get(name, name): value for name, value in values.items()}
    return LeaderboardQuery(**chosen, targets=known), refused


def widen(rows: tuple[int, int], n_rows: int) -> tuple[int, int]:
    """Return a range of rows, widened to whole steps of ``PAGE_ROWS`` and limited to ``MOST_ROWS`` rows.

    Whole steps limit the number of cached pages. A range beyond ``n_rows`` becomes the last step.
    """
    first, last = (max(1, min(number, n_rows)) for number in rows)
    first = (first - 1) // PAGE_ROWS * PAGE_ROWS + 1
    return first, min(ceil(last / PAGE_ROWS) * PAGE_ROWS, first + MOST_ROWS - 1)


def address_of_choice(choice: LeaderboardQuery, path: str = "/", **changes: Any) -> str:
    """Return the URL of the board for a choice with some changes; defaults are left out.

    The rows are not kept, since a new choice begins with its first rows; ``changes`` may set them, as
    ``rows=(first, last)``.
    """
    values = {name: getattr(choice, attribute) for name, attribute in PARAMETERS.items()} | changes
    first, last = values.pop("rows", (1, PAGE_ROWS))
    rows = "" if (first, last) == (1, PAGE_ROWS) else f"{first}-{last}"
    return link_to(path, **values, rows=rows)


def cell_of(row: BoardRow, choice: LeaderboardQuery) -> Cell | None:
    """Return the row's cell for the chosen agent or subset (by default for all runs), or None if unknown."""
    if choice.has_part:
        return parts_of(row, choice.target.name, "by_subset").get(choice.subset)
    if choice.agent:
        return parts_of(row, choice.target.name, "by_agent").get(choice.agent)
    return overall_of(row, choice.target.name)


def figure_of(row: BoardRow, choice: LeaderboardQuery, figure: str) -> float | None:
    """Return a metric of the row's cell for the choice, or None if it is not known."""
    return metric_of(cell_of(row, choice) or {}, figure)


def chosen_rows(board: Board, choice: LeaderboardQuery) -> list[BoardRow]:
    """Return the rows that fit the choice, in the chosen order or best first by the chosen metric.

    Unless every submission is wanted, each judge has only its best row. References come last and are never
    filtered out. If an agent is chosen, rows are still ordered over all agents, like the ranks, but rows
    without a metric for the agent come after the other judges.
    """
    label, metric = choice.target.name, choice.metric
    ranks = board.ranks(label, metric)
    rows = [
        row
        for row in board.ranking(label, metric)
        if row.provenance == "reference" or _fits(row, choice, ranks)
    ]
    if choice.agent or choice.has_part:
        rows.sort(key=lambda row: figure_of(row, choice, metric) is None)
    if choice.sort:
        key = _sort_key(choice, ranks)
        known = [row for row in rows if key(row) is not None]
        unknown = [row for row in rows if key(row) is None]  # these stay last
        known.sort(key=key, reverse=choice.sort.startswith("-"))
        rows = known + unknown
    return sorted(rows, key=lambda row: row.provenance == "reference")


def precision_recall_front(board: Board, choice: LeaderboardQuery) -> frozenset[str]:
    """Return the ids of the judges on the precision-recall front, regardless of the reader's filters.

    A judge is on the front if no other comparable judge has at least the same precision and recall, and is
    better in one of them. If a target lacks these metrics, the front is empty.
    """
    everything = replace(choice, search="", kinds=(), inputs=(), provenances=(), sort="")
    found = []
    for row in chosen_rows(board, everything):
        precision, recall = (figure_of(row, choice, figure) for figure in ("precision", "recall"))
        if (
            row.provenance != "reference"
            and row.is_comparable
            and precision is not None
            and recall is not None
        ):
            found.append((precision, recall, row.id))
    front, best = set(), (-1.0, -1.0)  # the highest recall so far, and the precision that it came with
    for precision, recall, row_id in sorted(found, reverse=True):
        if recall > best[0] or (recall, precision) == best:
            best = (recall, precision)
            front.add(row_id)
    return frozenset(front)


def _fits(row: BoardRow, choice: LeaderboardQuery, ranks: Ranks) -> bool:
    if row.provenance == "scored" and not choice.every_submission and row.id not in ranks:
        return False
    wanted = ((row.kind, choice.kinds), (row.inputs, choice.inputs), (row.provenance, choice.provenances))
    if any(values and value not in values for value, values in wanted):
        return False
    searched = (row.judge, row.model, row.account, row.authors, row.inputs, row.kind)
    text = " ".join(searched).lower()
    return all(word in text for word in choice.search.lower().split())


def _text_key(name: str) -> Callable[[BoardRow], Any]:
    return lambda row: getattr(row, name).casefold() or None


SORT_KEYS: Final[Mapping[str, Callable[[BoardRow], Any]]] = {
    "judge": lambda row: row.judge.casefold(),
    "cost": lambda row: row.cost["usd_per_1000"] if row.cost else None,
    "date": lambda row: row.date or None,
    "submissions": lambda row: row.attempts or None,
    **{name: _text_key(name) for name in ("model", "maker", "weights", "licence")},
}
"""The sort keys of columns that show a value of the row itself, keyed by the column's name in the URL."""
LOWEST_FIRST: Final = frozenset({"rank", "judge", "date", "cost", "model", "maker", "weights", "licence"})


def usual_order(name: str, choice: LeaderboardQuery) -> str:
    """Return the value of ``sort`` that a first click on a column sets.

    The best value of a metric then comes first. In the columns in `LOWEST_FIRST`, the lowest value or the
    first in the alphabet does.
    """
    metric = choice.metric if name == "figure" else name
    return name if name in LOWEST_FIRST or metric in LOWER_IS_BETTER else f"-{name}"


def other_order(order: str) -> str:
    """Return the value of ``sort`` for the reverse order of a column."""
    return order[1:] if order.startswith("-") else f"-{order}"


def _sort_key(choice: LeaderboardQuery, ranks: Ranks) -> Callable[[BoardRow], Any]:
    """Return the sort key for the chosen column; the key of a row without a value is None."""
    name = choice.sort.removeprefix("-")
    figure = choice.metric if name == "figure" else name
    group = "by_agent" if choice.agent else "by_benchmark"
    if figure in metric_titles(choice.targets):
        return lambda row: figure_of(row, choice, figure)
    if name == "rank":
        places = {row_id: rank.place for row_id, rank in ranks.items() if rank}
        return lambda row: places.get(row.id)

    def of_part(row: BoardRow) -> float | None:
        return metric_of(parts_of(row, choice.target.name, group).get(name) or {}, choice.metric)

    return SORT_KEYS.get(name, of_part)
