"""What a judge costs: dollars for 1,000 trajectories, from the cost that its file gives for each row."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

TRAJECTORIES: Final = 1_000


def cost_of(cost_usd: ArrayLike | None) -> Mapping[str, float | int] | None:
    """The mean cost of a row, for 1,000 of them, over the rows whose cost is known.

    ``cost_usd`` has shape (n,), dollars, NaN where a row gives none. Gives ``{"usd_per_1000", "rows",
    "of"}``: how many rows of how many gave a cost. None where no row did: unknown is not free.
    """
    if cost_usd is None:
        return None
    costs = np.asarray(cost_usd, dtype=float)
    known = costs[np.isfinite(costs)]
    if not len(known):
        return None
    per_1000 = round(TRAJECTORIES * float(known.mean()), 6)
    return {"usd_per_1000": per_1000, "rows": len(known), "of": len(costs)}


def with_cost(report: Mapping[str, Any], cost_usd: ArrayLike | None) -> dict[str, Any]:
    """A score report with ``cost`` beside its labels where the file gives costs, else as it is."""
    cost = cost_of(cost_usd)
    return {**report, "cost": cost} if cost else dict(report)
