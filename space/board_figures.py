"""Cells of a table of figures: what is shown, what it sorts by, what hovering tells. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from leaderboard.report_tables import percent

FEW: Final = 20
"""Cells whose metric rests on fewer trajectories than this are marked."""

CALLED: Final = MappingProxyType(
    {
        "success": "called successful",
        "side_effect": "said to have a side effect",
        "repetition": "said to repeat",
    }
)


@dataclass(frozen=True)
class Cell:
    """A metric as a table shows it: text, number to sort by, words on hover, whether it rests on little."""

    text: str
    value: float | None
    hover: str = ""
    is_few: bool = False


def metric_cell(cell: Mapping[str, Any] | None, figure: str, label: str) -> Cell:
    """One figure, with the counts it rests on as hover text."""
    if cell is None or cell.get(figure) is None:
        return Cell("–", None, _hover(cell, label) or "not known")
    value = cell[figure]
    return Cell(percent(value), value, _hover(cell, label), _rests_on(cell, figure) < FEW)


def _hover(cell: Mapping[str, Any] | None, label: str) -> str:
    if cell is None:
        return ""
    positives = f"{cell['positives']:,} positives in {cell['n']:,} trajectories"
    if cell["tp"] is None:
        return f"{positives}; {cell.get('note') or 'counts not known'}"
    hover = f"{cell['tp']} of {cell['tp'] + cell['fp']} {CALLED[label]} are; {positives}"
    if "noise" in cell:
        hover += f"; ± {cell['noise']['tp_sd']:g} true positives of noise"
    if cell["no_verdict"]:
        hover += f"; {cell['no_verdict']} without a verdict"
    return f"{hover}; {cell['note']}" if cell.get("note") else hover


def _rests_on(cell: Mapping[str, Any], figure: str) -> int:
    """How many trajectories the metric's denominator has; for F1 and kappa the smaller of their parts."""
    if figure == "accuracy":
        return cell["n"]
    if cell["tp"] is None:  # printed figures without counts
        return cell["positives"]
    tp, fp, fn, tn = (cell[name] for name in ("tp", "fp", "fn", "tn"))
    return {
        "precision": tp + fp,
        "recall": tp + fn,
        "f1": min(tp + fp, tp + fn),
        "kappa": min(tp + fn, fp + tn),
        "npv": tn + fn,
        "tnr": tn + fp,
    }[figure]


def cost_cell(cost: Mapping[str, float | int] | None) -> Cell:
    """Dollars for 1,000 trajectories, where the judge's file gave what its rows cost."""
    if not cost:
        return Cell("", None)
    dollars, rows, of = (cost[name] for name in ("usd_per_1000", "rows", "of"))
    known = "every row" if rows == of else f"{rows:,} of {of:,} rows"
    return Cell(f"{dollars:,.2f}", dollars, f"US dollars for 1,000 trajectories, from {known} of its file")
