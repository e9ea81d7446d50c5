"""The leaderboard's two plots: precision against recall with lines of equal F1, and the chosen figure against
what judges cost with the Pareto front."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log
from typing import Any, Final

import numpy as np

from arb.core.console import interval, percent
from arb.core.vocabulary import LOWER_IS_BETTER, METRIC_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from space.pages.leaderboard.plot import (
    CROWD,
    MOST_TICKS,
    WIDTH,
    Box,
    IsoLine,
    PlotView,
    draw_marks,
    round_ticks,
    to_pixels,
)
from space.pages.leaderboard.query import (
    LeaderboardQuery,
    are_references,
    cell_of,
    figure_name,
)
from space.pages.leaderboard.table import usd_per_1000

ISO_F1: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
STEPS: Final = 40
"""Pieces of a line of equal F1."""
MARGIN: Final = 0.04
"""Room below the lowest and above the highest value of an axis, as a fraction."""
FREE_SHARE: Final = 0.12
"""The part of the axis of costs, which is logarithmic, that stands apart for judges that cost nothing."""

Cell = Mapping[str, Any]


def precision_recall_plot(
    board: Board, chosen: np.ndarray, choice: LeaderboardQuery, every_point: bool = False
) -> PlotView:
    """Precision against recall of the judges that the choice shows (`chosen_places`), with 95 % intervals.

    Judges that cannot be compared are left out: a point would stand among points that it is not one of. So
    are the constant references; the human one stands for itself. With ``every_point`` also the judges of a
    crowd lead to their pages.
    """
    columns = board.columns
    precision, recall = (
        columns.figures(choice.label, choice.agent, figure)[chosen] for figure in ("precision", "recall")
    )
    is_drawn = columns.get(getattr, "is_comparable", dtype=bool)[chosen]
    is_drawn &= ~np.isnan(precision[:, 0] + recall[:, 0])
    is_drawn &= ~are_references(board)[chosen] | (columns.get(getattr, "id")[chosen] == SECOND_ANNOTATOR)
    precision, recall, drawn = precision[is_drawn], recall[is_drawn], chosen[is_drawn]
    values = np.column_stack([recall[:, 0], precision[:, 0], _ends(precision)])
    plain = board.plain_rows
    rows = [plain[place] for place in drawn.tolist()]
    provenance = columns.get(getattr, "provenance")[drawn]
    order = np.where(provenance == "reference", 0, np.where(provenance == "scored", 1, 2))
    left = max(0.0, float(values[:, 0].min(initial=1.0 if len(rows) else 0.0)) - 2 * MARGIN)
    bottom = max(0.0, float(values[:, 2].min(initial=1.0 if len(rows) else 0.0)) - MARGIN)
    window = (left, bottom)
    marks, cloud = draw_marks(
        rows, values, order, _namer(rows), lambda row: _hover(row, cell_of(row, choice)), window, every_point
    )
    return PlotView(
        name="precision-recall",
        titles=("Recall, %", "Precision, %"),
        marks=marks,
        cloud=cloud,
        x_ticks=tuple((to_pixels(tick, 1, window)[0], f"{100 * tick:.0f}") for tick in round_ticks(left)),
        y_ticks=tuple((to_pixels(1, tick, window)[1], f"{100 * tick:.0f}") for tick in round_ticks(bottom)),
        lines=tuple(line for value in ISO_F1 if (line := _iso_line(value, window))),
        n_drawn=len(rows),
    )


def _ends(figures: np.ndarray) -> np.ndarray:
    """The ends of intervals, (n, 2), of no width where none is known; ``figures`` as of `figures_of`."""
    return np.where(np.isnan(figures[:, 1:]), figures[:, :1], figures[:, 1:])


def _namer(rows: Sequence[BoardRow]) -> Callable[[int], str]:
    """The names of points by their numbers: with what the judge sees, where several share a name."""
    counts = Counter(row.judge for row in rows)

    def name(number: int) -> str:
        row = rows[number]
        return f"{row.judge} ({row.inputs})" if counts[row.judge] > 1 and row.inputs else row.judge

    return name


def _hover(row: BoardRow, cell: Cell, figures: Sequence[str] = ("precision", "recall", "f1")) -> str:
    """What hovering tells of a judge: its name and figures, the first with its interval."""
    lines = [f"{row.judge} · {row.inputs}" if row.inputs else row.judge]
    for number, figure in enumerate(figures):
        ends = cell.get(f"{figure}_ci") if number == 0 else None
        bounds = f" ({interval(ends)})" if ends else ""
        lines.append(f"{figure_name(figure)} {percent(cell[figure])}{bounds}")
    return "\n".join(lines)


def _iso_line(value: float, window: tuple[float, float]) -> IsoLine | None:
    """The line precision = F1 * recall / (2 * recall - F1), as far as it lies within the window."""
    first = max(value / (2 - value), window[0])  # the recall at which the precision is 1
    points = []
    for step in range(STEPS + 1):
        recall = first + (1 - first) * step / STEPS
        precision = value * recall / (2 * recall - value) if 2 * recall > value else 2.0
        if window[1] <= precision <= 1 + 1e-9:
            points.append(to_pixels(recall, min(precision, 1.0), window))
    if len(points) < 2:
        return None
    path = "M" + "L".join(f"{x:g},{y:g}" for x, y in points)
    return IsoLine(value, path, points[-1])


# Quality against cost


def cost_plot(
    board: Board, chosen: np.ndarray, choice: LeaderboardQuery, every_point: bool = False
) -> PlotView | None:
    """The chosen figure against dollars for 1,000 trajectories; None where fewer than two judges have both.

    The Pareto front joins the judges that no other one beats at the same cost or less.
    """
    judges, figure = chosen[~are_references(board)[chosen]], choice.figure
    figures = board.columns.figures(choice.label, choice.agent, figure)[judges]
    costs = board.columns.get(usd_per_1000, dtype=float)[judges]
    is_drawn = ~np.isnan(costs + figures[:, 0])
    if is_drawn.sum() < 2:
        return None
    figures, costs = figures[is_drawn], costs[is_drawn]
    plain = board.plain_rows
    rows = [plain[place] for place in judges[is_drawn].tolist()]
    ends = _ends(figures)
    least, most = float(ends.min()), float(ends.max())
    low, high = max(least - MARGIN, min(0.0, least)), min(most + MARGIN, 1.0)
    scale = _CostScale.around(costs.tolist())
    front = _pareto_front(costs, figures[:, 0], figure in LOWER_IS_BETTER)
    on_front, name = set(front), _namer(rows)

    def share(value: Any) -> Any:
        return (value - low) / (high - low)

    across = [scale.share(cost) for cost in costs.tolist()]
    values = np.column_stack([across, share(figures[:, 0]), share(ends)])
    order = np.ones(len(rows), dtype=np.int64)
    order[front] = 0

    def name_in_crowd(number: int) -> str:
        is_named = number in on_front or len(rows) <= CROWD  # of a crowd those worth their price
        return name(number) if is_named else ""

    def hover(row: BoardRow) -> str:
        name, *figures = _hover(row, cell_of(row, choice), (figure,)).split("\n")
        dollars = f"${row.cost['usd_per_1000']:,.2f} for 1,000 trajectories"
        return "\n".join((name, dollars, *figures))

    window = (0.0, 0.0)
    steps = [to_pixels(*values[number, :2].tolist(), window) for number in front]
    marks, cloud = draw_marks(rows, values, order, name_in_crowd, hover, window, every_point, _along(steps))
    path = f"M{steps[0][0]:g},{steps[0][1]:g}" + "".join(f"H{x:g}V{y:g}" for x, y in steps[1:])
    return PlotView(
        name="cost-quality",
        titles=("US dollars for 1,000 trajectories", f"{METRIC_TITLES[figure]}, %"),
        marks=marks,
        cloud=cloud,
        x_ticks=tuple((to_pixels(scale.share(cost), 0, window)[0], f"{cost:g}") for cost in scale.ticks()),
        y_ticks=tuple(
            (to_pixels(0, share(tick), window)[1], f"{100 * tick:.0f}") for tick in round_ticks(low, high)
        ),
        front=f"{path}H{WIDTH}",
        figure=figure_name(figure),
        n_drawn=len(rows),
        n_left_out=len(judges) - len(rows),
    )


def _along(steps: Sequence[tuple[float, float]]) -> list[Box]:
    """The room that the steps of the front take, so that no name lies on it."""
    ends = [*(x for x, _ in steps[1:]), float(WIDTH)]
    across = [Box(x, y - 2, end, y + 2) for (x, y), end in zip(steps, ends, strict=True)]
    return across + [Box(x - 2, y, x + 2, before) for (_, before), (x, y) in pairwise(steps)]


def _pareto_front(costs: np.ndarray, figures: np.ndarray, is_lower_better: bool) -> list[int]:
    """The numbers of those that none at the same cost or less beats, from the cheapest on."""
    better = -figures if is_lower_better else figures
    order = np.lexsort((-better, costs))
    best = np.maximum.accumulate(better[order])
    is_on_front = np.ones(len(order), dtype=bool)
    is_on_front[1:] = better[order][1:] > best[:-1]
    return order[is_on_front].tolist()


@dataclass(frozen=True)
class _CostScale:
    """Dollars on a logarithmic axis; what costs nothing stands at its left end."""

    low: float
    high: float
    has_free: bool

    @classmethod
    def around(cls, costs: Sequence[float]) -> "_CostScale":
        """An axis with room for all of them, a tenth to spare at each end."""
        paid = [cost for cost in costs if cost > 0]
        low, high = (min(paid) / 1.5, max(paid) * 1.5) if paid else (1.0, 10.0)
        return cls(low, high, len(paid) < len(costs))

    def share(self, cost: float) -> float:
        """Where a cost stands, as a fraction of the axis."""
        if cost <= 0:
            return FREE_SHARE / 4
        begin = FREE_SHARE if self.has_free else 0.0
        return begin + (1 - begin) * log(cost / self.low) / log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Round amounts within the axis, a few of them; 0 where a judge costs nothing."""
        powers = range(floor(log(self.low, 10)), ceil(log(self.high, 10)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [cost for cost in found if self.low <= cost <= self.high]
            if len(found) <= MOST_TICKS:
                break
        return [0.0, *found] if self.has_free else found
