"""What a judge's verdicts cost, from the columns that its prediction file gives."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leaderboard.costs import cost_of


class Expenses(Protocol):
    """Columns of a prediction file, float64 of shape (n,) with NaN for none; None for no such column."""

    @property
    def cost_usd(self) -> np.ndarray | None:
        """Dollars a trajectory."""

    @property
    def input_tokens(self) -> np.ndarray | None:
        """Tokens read."""

    @property
    def output_tokens(self) -> np.ndarray | None:
        """Tokens written."""

    @property
    def latency_s(self) -> np.ndarray | None:
        """Seconds from question to answer."""


@dataclass(frozen=True, slots=True)
class RunningCosts:
    """Means over the trajectories that give a number; None where none does, never a silent 0.

    ``usd_per_1000`` is dollars for 1,000 trajectories; ``priced`` of ``n`` trajectories have a cost. Tokens
    are a mean for one trajectory, ``median_seconds`` the median latency.
    """

    n: int
    priced: int
    usd_per_1000: float | None
    input_tokens: float | None
    output_tokens: float | None
    median_seconds: float | None

    @property
    def are_known(self) -> bool:
        """Whether the file says anything about costs."""
        known = (self.usd_per_1000, self.input_tokens, self.output_tokens, self.median_seconds)
        return any(value is not None for value in known)


def running_costs(expenses: Expenses, n: int) -> RunningCosts:
    """The costs of a judge that gave verdicts on ``n`` trajectories."""
    cost = cost_of(expenses.cost_usd)
    seconds = _known(expenses.latency_s)
    tokens = [_known(column) for column in (expenses.input_tokens, expenses.output_tokens)]
    return RunningCosts(
        n=n,
        priced=int(cost["rows"]) if cost else 0,
        usd_per_1000=float(cost["usd_per_1000"]) if cost else None,
        input_tokens=float(tokens[0].mean()) if len(tokens[0]) else None,
        output_tokens=float(tokens[1].mean()) if len(tokens[1]) else None,
        median_seconds=float(np.median(seconds)) if len(seconds) else None,
    )


def _known(column: np.ndarray | None) -> np.ndarray:
    """Without the rows that have no number."""
    return np.empty(0) if column is None else column[~np.isnan(column)]
