"""A judge's scores evaluated against labels, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.console import coefficient, interval, percent, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from leaderboard.calibration import Calibration


def print_calibration(found: Calibration, file_name: str, console: Console) -> None:
    """Print what the score is worth, its reliability by bin, and the sweep of thresholds; percentages."""
    console.print(
        f"{file_name}: {found.n:,} trajectories with a score, {found.without_score:,} without; Brier "
        f"{found.brier:.3f} (one score for all: {found.brier_of_base_rate:.3f}), calibration error "
        f"{percent(found.error)}, AUC {coefficient(found.auc)}"
    )
    bins = text_table("score", figures=("trajectories", "mean score", "successful", "95 %"))
    for b in found.bins:
        if b.n:
            within = interval(list(b.interval)) if b.interval else ""
            bins.add_row(
                f"{b.low:g} to {b.high:g}", f"{b.n:,}", percent(b.mean_score), percent(b.share), within
            )
    sweep = text_table("threshold", figures=("precision", "recall", "F1", "TP/FP/FN/TN"))
    best = found.best()
    for t in found.thresholds:
        mark = " (highest F1)" if t is best else ""
        sweep.add_row(
            f"{t.at:.2f}{mark}", percent(t.precision), percent(t.recall), percent(t.f1),
            f"{t.tp}/{t.fp}/{t.fn}/{t.tn}",
        )  # fmt: skip
    for table in (bins, sweep):
        console.print(table)
