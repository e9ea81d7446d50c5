"""95 % intervals of a cell whose counts carry noise: from the noisy counts alone.

The ends of the bootstrap over tasks move with the exact counts, so they cannot be shown beside noisy ones.
"""

from math import hypot

from leaderboard.board_cells import DESIGN_EFFECTS
from leaderboard.judge_precision.intervals import approximate_interval

_NORMAL_QUANTILE = 1.959963984540054


def noisy_intervals(tp: int, fp: int, fn: int, tp_sd: float) -> dict[str, list[float] | None]:
    """``precision_ci``, ``recall_ci`` and ``f1_ci`` of noisy counts, as [low, high], None where undefined.

    Two errors that know nothing of each other are added in squares on either side: that of the sample of
    tasks (Wilson's interval with the design effects of published rows) and that of the noise, whose standard
    deviation is ``tp_sd`` true positives. TP + FP and TP + FN are not noisy, so on precision = TP / (TP + FP)
    the noise is tp_sd / (TP + FP), on recall tp_sd / (TP + FN), on F1 = 2 TP / (2 TP + FP + FN) it is
    2 tp_sd / (2 TP + FP + FN).
    """
    predicted, positives, either = tp + fp, tp + fn, tp + fp + fn
    shares = {"precision": (tp, predicted), "recall": (tp, positives), "f1": (tp, either)}
    found: dict[str, list[float] | None] = {}
    for figure, (hits, total) in shares.items():
        interval = approximate_interval(hits, total, DESIGN_EFFECTS[figure])
        if interval is None:
            found[f"{figure}_ci"] = None
            continue
        value, noise = hits / total, tp_sd / total
        if figure == "f1":  # F1 = 2 J / (1 + J) of the share J = TP / (TP + FP + FN)
            value, *interval = (2 * end / (1 + end) for end in (value, *interval))
            noise = 2 * tp_sd / (predicted + positives)
        found[f"{figure}_ci"] = _widened(value, interval, noise)
    return found


def _widened(value: float, interval: list[float], noise: float) -> list[float]:
    low, high = interval
    margin = _NORMAL_QUANTILE * noise
    return [max(0.0, value - hypot(value - low, margin)), min(1.0, value + hypot(high - value, margin))]
