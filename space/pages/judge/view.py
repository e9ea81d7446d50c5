"""The values of a judge's page for one label: its metrics by group, on common axes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from arb.core.suites.targets import Target
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank
from leaderboard.board.rows import parts_of, why_not_ranked
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import Cell, Score, interval_of, metric_of
from space.pages.rows import in_order, overall_of
from space.web.cells import Axis

Section = tuple[str, tuple[tuple[str, Cell, Mapping[str, str]], ...]]
"""A heading, and its lines: (title, cell, the filter that shows the cell's errors on the errors page)."""

BY_BENCHMARK: Final = "By benchmark"
BY_AGENT: Final = "By agent"
_GROUPS: Final = (("benchmark", BY_BENCHMARK, BENCHMARK_TITLES), ("agent", BY_AGENT, AGENT_TITLES))


@dataclass(frozen=True)
class JudgeView:
    """A judge's row on its page, for one target. ``human`` is the second annotator's overall cell.

    ``is_main`` says whether the target is the board's main one. ``axes`` has the metrics that are drawn with
    their intervals, and ``others`` has the rest. ``better`` and ``worse`` are the rows above and below that
    are separated from this row, if the board lists them.
    """

    row: BoardRow
    target: Target
    is_main: bool
    found: Score
    sections: tuple[Section, ...]
    axes: Mapping[str, Axis]
    others: tuple[str, ...]
    human: Cell | None
    n_ranked: int
    rank: Rank | None
    better: tuple[BoardRow, ...]
    worse: tuple[BoardRow, ...]
    why_not_ranked: str
    submissions: tuple[BoardRow, ...]

    @property
    def overall(self) -> Cell:
        return self.found["overall"]

    @property
    def yes_shares(self) -> tuple[float, float] | None:
        """The fractions of runs to which the judge and the experts say yes, or None if counts are missing."""
        n, positives, tp, fp = (metric_of(self.overall, name) for name in ("n", "positives", "tp", "fp"))
        if not n or positives is None or tp is None or fp is None:
            return None
        return (tp + fp) / n, positives / n


def view_judge(board: Board, row: BoardRow, label: str) -> JudgeView | None:
    """Return the view of a row for a label, or None if the judge gives no verdicts on it."""
    found = row.labels.get(label)
    if not found:
        return None
    target = board.target(label)
    drawn, others = _metrics(target)
    ranks = board.ranks(label)
    rank = ranks.get(row.id)
    places = {row_id: other.place for row_id, other in ranks.items() if other}
    apart = [board.rows[board.places[other]] for other in (rank and rank.separated_from) or ()]
    human = board.row(SECOND_ANNOTATOR)
    reference = overall_of(human, label) if human else None
    sections: list[Section] = [("", ((f"All {target.nouns}", found["overall"], {}),))]
    for group, heading, titles in _GROUPS:
        cells = parts_of(row, label, f"by_{group}")
        lines = ((titles.get(name, name), cells[name], {group: name}) for name in in_order(cells, titles))
        if cells:
            sections.append((heading, tuple(lines)))
    return JudgeView(
        row=row,
        target=target,
        is_main=target is board.main,
        found=found,
        sections=tuple(sections),
        axes={metric: _axis(found, reference, metric) for metric in drawn},
        others=others,
        human=reference,
        n_ranked=len(places),
        rank=rank,
        better=tuple(other for other in apart if rank and places[other.id] < rank.place),
        worse=tuple(other for other in apart if rank and places[other.id] > rank.place),
        why_not_ranked="" if rank else why_not_ranked(row, label, target.main_metric, row.id in ranks),
        submissions=_submissions(board, row),
    )


def _metrics(target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the metrics that are drawn, and the other metrics of the table."""
    if target.type != "binary":
        return target.metrics[:1], target.metrics[1:]
    drawn, others = ("precision", "recall"), ("f1", "kappa", "accuracy")
    main = target.main_metric
    return drawn, others if main in (*drawn, *others) else (main, *others)


def _axis(found: Score, human: Cell | None, metric: str) -> Axis:
    """Return an axis that fits every value and the overall interval, but not the intervals of groups."""
    cells = [found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values()]
    if human:
        cells.append(human)
    values = [metric_of(cell, metric) for cell in cells]
    return Axis.around([*values, *(interval_of(found["overall"], metric) or ())])


def _submissions(board: Board, row: BoardRow) -> tuple[BoardRow, ...]:
    """Return every submission of the same judge by the same account, newest first."""
    if row.provenance != "scored":
        return ()
    same = [
        other
        for other in board.rows
        if other.provenance == "scored" and (other.account, other.judge) == (row.account, row.judge)
    ]
    return tuple(sorted(same, key=lambda other: (other.date, other.id), reverse=True))
