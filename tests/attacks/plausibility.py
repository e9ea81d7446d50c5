"""What was seen, told of a label: whether its opposite fits too, and how much less likely it is."""

from collections.abc import Mapping, Sequence
from math import erfc, inf, log, sqrt
from typing import Any

import numpy as np

from submissions.privacy.disclosure import LARGEST_DRAW
from tests.attacks.world import World

Shown = Sequence[tuple[np.ndarray, Mapping[str, Any]]]


def _cells(world: World, shown: Shown):
    """(rows, exact count, shown count, sd, least, most) of each distinct noisy cell, the finest of each."""
    found: dict[tuple[str, bytes], tuple] = {}
    benchmarks = world.benchmark_rows()
    for verdicts, report in shown:
        told = report["labels"]["success"]
        for name, cell in (("overall", told["overall"]), *told["by_benchmark"].items()):
            rows = (verdicts == 1) & benchmarks.get(name, True)
            predicted, sd = int(rows.sum()), cell["noise"]["tp_sd"]
            least = max(0, predicted + cell["positives"] - cell["n"])
            most = min(predicted, cell["positives"])
            key = (name, rows.tobytes())
            if key not in found or sd < found[key][3]:
                found[key] = (rows, int(world.truth[rows].sum()), cell["tp"], sd, least, most)
    return found.values()


def flips_that_do_not_fit(world: World, shown: Shown) -> list[int]:
    """Places of labels whose flip (with the true others) could not have led to what was shown.

    A flip moves the exact count of each cell with the trajectory by one, up for a negative. What is shown
    fits if a draw of the noise within its reach rounds and clamps to it; a clamped count fits whatever lies
    beyond the bound.
    """
    impossible = np.zeros(len(world.truth), dtype=bool)
    for rows, exact, count, sd, least, most in _cells(world, shown):
        for flipped, moved in ((world.truth == 0, 1), (world.truth == 1, -1)):
            reach = LARGEST_DRAW * sd
            low = -inf if count == least else count - 0.5
            high = inf if count == most else count + 0.5
            if exact + moved + reach < low or exact + moved - reach > high:
                impossible |= rows & flipped
    return np.flatnonzero(impossible).tolist()


def log_odds_against_flip(world: World, shown: Shown) -> np.ndarray:
    """ln of how much likelier what was shown is under the truth than with each label flipped: shape (n,)."""
    against = np.zeros(len(world.truth))
    for rows, exact, count, sd, least, most in _cells(world, shown):
        as_it_is = _log_chance(count, exact, sd, least, most)
        for flipped, moved in ((world.truth == 0, 1), (world.truth == 1, -1)):
            against[rows & flipped] += as_it_is - _log_chance(count, exact + moved, sd, least, most)
    return against


def _log_chance(count: int, exact: int, sd: float, least: int, most: int) -> float:
    """ln of the chance that ``exact`` plus normal noise is shown as ``count``."""
    low = -inf if count <= least else (count - 0.5 - exact) / sd
    high = inf if count >= most else (count + 0.5 - exact) / sd
    if low > 0:  # the far tail of the side where digits are left
        low, high = -high, -low
    return log((erfc(-high / sqrt(2)) - erfc(-low / sqrt(2))) / 2)
