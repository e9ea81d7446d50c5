"""The leaderboard's table: its columns, and its rows with every metric formatted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arb.core.suites.targets import scored
from arb.core.vocabulary import AGENT_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import TESTED_TOGETHER, Rank
from leaderboard.board.rows import parts_of, why_not_ranked
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import metric_of
from space.pages.leaderboard.columns import FACTS, column_titles, metric_titles, usual_columns
from space.pages.leaderboard.query import (
    MOST_ROWS,
    PAGE_ROWS,
    LeaderboardQuery,
    cell_of,
    chosen_rows,
    figure_of,
    part_names,
    precision_recall_front,
    widen,
)
from space.pages.rows import metric_titles_of
from space.web.cells import Axis, Span, TableCell, cost_cell, distinct_names, metric_cell, noise_on_board

RANK_WIDTH = "ranked"
"""The longest word in "not ranked". The rank column is wide enough for it."""


@dataclass(frozen=True)
class ViewRow:
    """A row of the table with its metrics formatted.

    ``apart`` has the indexes in `BoardView.ranked` of the rows from which this row is separated, as `spans`
    writes them. ``why_not_ranked`` is empty if the row has a rank.
    """

    row: BoardRow
    rank: Rank | None
    apart: str
    why_not_ranked: str
    main: TableCell
    interval: Span | None
    others: tuple[TableCell, ...]
    benchmarks: tuple[TableCell, ...]


@dataclass(frozen=True)
class BoardView:
    """The table of the leaderboard.

    ``parts`` maps each benchmark, or each agent if the reader chose one, to the title of its column, and
    ``facts`` has the titles of the columns that follow. ``front`` has the ids of the judges on the
    precision-recall front. ``row_range`` has the numbers of the first and the last row shown, out of
    ``n_rows`` that fit the choice. ``human`` is the place of the second annotator on the axis. ``ranked`` has
    the names of the ranked judges by rank, or is empty if the board does not list which judges are separated.
    """

    choice: LeaderboardQuery
    other_figures: tuple[str, ...]
    parts: Mapping[str, str]
    facts: Mapping[str, str]
    front: frozenset[str]
    rows: tuple[ViewRow, ...]
    row_range: tuple[int, int]
    n_rows: int
    references: tuple[ViewRow, ...]
    axis: Axis
    human: float | None
    widths: Mapping[str, float]
    """The widths, in rem, of columns whose longest text may be in a row that is not shown yet."""
    n_ranked: int = 0
    ranked: tuple[str, ...] = ()
    has_attempts: bool = False
    noise: str = ""

    @property
    def count(self) -> str:
        """A text that says which judges are shown, such as ``101 to 200 of 250 judges``."""
        one, many = ("submission", "submissions") if self.choice.every_submission else ("judge", "judges")
        first, last = self.row_range
        if first == 1 and last == self.n_rows:
            return f"{self.n_rows:,} {one if self.n_rows == 1 else many}"
        numbers = f"{last:,}" if first == 1 else f"{first:,} to {last:,}"
        return f"{numbers} of {self.n_rows:,} {many}"

    @property
    def is_tested_by_steps(self) -> bool:
        """Whether the ranks come from the step-down test, which is too slow for large boards."""
        return self.n_ranked <= TESTED_TOGETHER

    @property
    def sortable(self) -> dict[str, str]:
        """The titles of the columns that can sort the table, keyed by their names in the URL."""
        metrics = metric_titles_of(self.choice.target)
        fixed = {"rank": "Rank", "judge": "Judge", "figure": metrics[self.choice.metric]}
        others = {name: metrics[name] for name in self.other_figures}
        facts = {"date" if name == "source" else name: title for name, title in self.facts.items()}
        return {**fixed, **others, **self.parts, **facts, **({"date": "Date"} if "date" in facts else {})}

    @property
    def before(self) -> tuple[int, int] | None:
        """The previous range of rows, or None if the first row is shown."""
        first, _ = self.row_range
        return (first - PAGE_ROWS, first - 1) if first > 1 else None

    @property
    def after(self) -> tuple[int, int] | None:
        """The next range of rows, or None if the last row is shown."""
        _, last = self.row_range
        return (last + 1, min(last + PAGE_ROWS, self.n_rows)) if last < self.n_rows else None

    @property
    def with_after(self) -> tuple[int, int]:
        """The range of rows that are shown once the next step is loaded."""
        first, last = self.row_range
        return max(first, last + PAGE_ROWS - MOST_ROWS + 1), last + PAGE_ROWS

    @property
    def all_rows(self) -> tuple[int, int] | None:
        """The range of all rows, or None if they are all shown or too many for one address."""
        is_all = self.row_range == (1, self.n_rows)
        return (1, self.n_rows) if not is_all and 0 < self.n_rows <= MOST_ROWS else None


def view_board(board: Board, choice: LeaderboardQuery, after: int = 0) -> BoardView:
    """Return the table of the rows that fit the choice, with every metric formatted.

    Rows up to number ``after`` are left out because the reader already has them. They still count as shown.
    """
    ranks, chosen = board.ranks(choice.target.name, choice.metric), chosen_rows(board, choice)
    judges = [row for row in chosen if row.provenance != "reference"]
    label, metric = choice.target.name, choice.metric
    cells = {row.id: cell_of(row, choice) for row in chosen}
    values: list[float | None] = []
    for row in judges:
        values += [figure_of(row, choice, metric), *(row.interval(cells[row.id], metric) or ())]
    axis = Axis.around(values)
    targets = scored(board.targets)
    names = part_names(board.rows, [target.name for target in targets], "by_benchmark")
    titles = column_titles(names, targets)
    columns = choice.columns or usual_columns(board, titles)
    metrics = metric_titles_of(choice.target)
    others = tuple(name for name in metrics if name in columns and name != choice.metric)
    parts = _parts(chosen, choice, {name: title for name, title in titles.items() if name in columns})
    first, last = widen(choice.rows, len(judges))
    last = min(last, len(judges))

    by_rank = sorted((rank.place, row_id) for row_id, rank in ranks.items() if rank)
    numbers = {row_id: number for number, (_, row_id) in enumerate(by_rank)}
    are_listed = any(rank.separated_from is not None for rank in ranks.values() if rank)

    def view(row: BoardRow) -> ViewRow:
        main, rank = cells[row.id], ranks.get(row.id)
        by_part = parts_of(row, label, "by_agent" if choice.agent else "by_benchmark")
        return ViewRow(
            row=row,
            rank=rank,
            apart=spans([numbers[other] for other in (rank and rank.separated_from) or ()]),
            why_not_ranked="" if rank else why_not_ranked(row, label, metric, row.id in ranks),
            main=metric_cell(main, metric),
            interval=axis.span(metric_of(main, metric), row.interval(main, metric)) if main else None,
            others=tuple(metric_cell(main, name) for name in others),
            benchmarks=tuple(metric_cell(by_part.get(name), metric) for name in parts),
        )

    references = tuple(map(view, chosen[len(judges) :]))
    longest_rank = max(map(len, (*(rank.range_text("–") for rank in ranks.values() if rank), RANK_WIDTH)))
    longest_cost = max((len(cost_cell(row.cost).text) for row in judges), default=0)
    human = next((line.interval for line in references if line.row.id == SECOND_ANNOTATOR), None)
    return BoardView(
        choice=choice,
        other_figures=others,
        parts=parts,
        facts={name: title for name, title in FACTS.items() if name in columns},
        front=precision_recall_front(board, choice),
        rows=tuple(map(view, judges[max(first - 1, after) : last])),
        row_range=(first, last),
        n_rows=len(judges),
        references=references,
        axis=axis,
        human=human.dot if human and not human.off else None,
        # For their longest text, at about half a rem per character.
        widths={"rank": round(1.6 + 0.55 * longest_rank, 2), "cost": round(0.9 + 0.51 * longest_cost, 2)},
        n_ranked=len(by_rank),
        ranked=distinct_names([board.rows[board.places[row_id]] for row_id in numbers]) if are_listed else (),
        has_attempts=any(row.attempts for row in judges),
        noise=noise_on_board(judges, label),
    )


def _parts(
    rows: Sequence[BoardRow], choice: LeaderboardQuery, columns: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the title of each column for a benchmark or an agent, keyed by name.

    ``columns`` are the columns to show. All agents are shown if the reader chose one of them.
    """
    if choice.agent:
        return {
            name: AGENT_TITLES.get(name, name)
            for name in sorted(part_names(rows, [choice.target.name], "by_agent"))
        }
    found = part_names(rows, [choice.target.name], "by_benchmark") if not choice.columns else columns
    return {
        name: title
        for name, title in columns.items()
        if name in found and name not in metric_titles(choice.targets) and name not in FACTS
    }


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers in a short form: ``0-3 7`` for 0, 1, 2, 3 and 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)
