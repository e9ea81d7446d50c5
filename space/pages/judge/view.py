"""What a judge's page shows for a label: cells of the board in their order, on common axes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import Cell, Score
from space.web.cells import Axis

Section = tuple[str, tuple[tuple[str, Cell, Mapping[str, str]], ...]]
"""A heading, and under it (title, cell, the filter of the errors page that gives its trajectories)."""

ON_AN_AXIS: Final = ("precision", "recall")
BY_BENCHMARK: Final = "By benchmark"
BY_AGENT: Final = "By agent"
_GROUPS: Final = (
    ("benchmark", BY_BENCHMARK, BENCHMARK_TITLES),
    ("agent", BY_AGENT, AGENT_TITLES),
)


@dataclass(frozen=True)
class JudgeView:
    """A row under one label; ``human`` is the second annotator's overall cell, where there is one."""

    row: BoardRow
    label: str
    sections: tuple[Section, ...]
    axes: Mapping[str, Axis]
    human: Cell | None
    n_ranked: int
    submissions: tuple[BoardRow, ...]

    @property
    def found(self) -> Score:
        """What the board holds of the row under the label."""
        return self.row.labels[self.label]

    @property
    def overall(self) -> Cell:
        """The cell over all trajectories."""
        return self.found["overall"]

    @property
    def yes_shares(self) -> tuple[float, float] | None:
        """How often the judge and the experts say yes; None where the counts are not known."""
        cell = self.overall
        if cell["tp"] is None or not cell["n"]:
            return None
        return (cell["tp"] + cell["fp"]) / cell["n"], cell["positives"] / cell["n"]


def view_judge(board: Board, row: BoardRow, label: str) -> JudgeView | None:
    """The page of a row for a label; None where the judge gives no verdicts on it."""
    found = row.labels.get(label)
    if not found:
        return None
    human = next((other.labels.get(label) for other in board.rows if other.id == SECOND_ANNOTATOR), None)
    reference = human["overall"] if human else None
    sections: list[Section] = [("", (("All trajectories", found["overall"], {}),))]
    for group, heading, titles in _GROUPS:
        cells = found[f"by_{group}"]
        names = [*(name for name in titles if name in cells), *sorted(set(cells) - set(titles))]
        if names:
            lines = ((titles.get(name, name), cells[name], {group: name}) for name in names)
            sections.append((heading, tuple(lines)))
    return JudgeView(
        row=row,
        label=label,
        sections=tuple(sections),
        axes={metric: _axis(found, reference, metric) for metric in ON_AN_AXIS},
        human=reference,
        n_ranked=sum(1 for other in board.rows if (other.labels.get(label) or {}).get("rank")),
        submissions=_submissions(board, row),
    )


def _axis(found: Score, human: Cell | None, metric: str) -> Axis:
    """One that holds every value; intervals of benchmarks and agents may run off it."""
    cells = [found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values()]
    values = [cell[metric] for cell in cells]
    values += found["overall"].get(f"{metric}_ci") or ()
    values += [human[metric]] if human else []
    return Axis.around(values)


def _submissions(board: Board, row: BoardRow) -> tuple[BoardRow, ...]:
    """Every submission of the same judge by the same account, the newest first."""
    if row.provenance != "scored":
        return ()
    same = [
        other
        for other in board.rows
        if other.provenance == "scored" and (other.account, other.judge) == (row.account, row.judge)
    ]
    return tuple(sorted(same, key=lambda other: (other.date, other.id), reverse=True))
