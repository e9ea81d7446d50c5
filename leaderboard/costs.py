"""Costs of a judge, from the dollars, tokens and seconds in its file. An unknown cost is None, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import TypedDict  # comes with pydantic, which needs it before Python 3.12

from arb.core.predictions.table import Predictions


class Cost(TypedDict):
    """Dollars per 1,000 trajectories. The cost of ``rows`` of the ``of`` trajectories is known."""

    usd_per_1000: float
    rows: int
    of: int
    is_at_least: NotRequired[bool]
    basis: NotRequired[str]


def cost_of(cost_usd: ArrayLike | None) -> Cost | None:
    """Return the mean cost of 1,000 rows, from the rows whose cost is known (not NaN).

    It is None if no cost is known, because unknown does not mean free.
    """
    if cost_usd is None:
        return None
    costs = np.asarray(cost_usd, dtype=float)
    known = costs[np.isfinite(costs)]
    if not len(known):
        return None
    per_1000 = round(1_000 * float(known.mean()), 6)
    return {"usd_per_1000": per_1000, "rows": len(known), "of": len(costs)}


def with_cost(report: Mapping[str, Any], cost_usd: ArrayLike | None) -> dict[str, Any]:
    """Return a copy of a score report, with the key ``cost`` if any cost is known."""
    cost = cost_of(cost_usd)
    return {**report, "cost": cost} if cost else dict(report)


@dataclass(frozen=True, slots=True)
class RunningCosts:
    """A judge's average costs, each over the trajectories whose value is known, or None without any.

    ``usd_per_1000`` is the cost of 1,000 trajectories in dollars, from the ``priced`` of ``n`` trajectories
    whose cost is known. Tokens are means per trajectory. ``median_seconds`` is the median latency.
    """

    n: int
    priced: int
    usd_per_1000: float | None
    input_tokens: float | None
    output_tokens: float | None
    median_seconds: float | None

    @property
    def are_known(self) -> bool:
        """Whether at least one of the averages is known."""
        known = (self.usd_per_1000, self.input_tokens, self.output_tokens, self.median_seconds)
        return any(value is not None for value in known)


def running_costs(expenses: Predictions, n: int) -> RunningCosts:
    """Return the costs of a judge that gave verdicts on ``n`` trajectories."""
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
    """Return the values that are not NaN, or an empty array if there is no column."""
    return np.empty(0) if column is None else column[~np.isnan(column)]
