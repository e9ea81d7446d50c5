"""The paper's ablation (Table 2): the simplified judge with tree, screenshot, both or neither. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.console import interval, percent, text_table
from dataset_script.vocabulary import LABEL_TITLES

PAPERS_MODEL: Final = "gpt-4o-mini-2024-07-18"
VARIANTS: Final = (
    ("simplified-both", True, True),
    ("simplified-axtree", True, False),
    ("simplified-screenshot", False, True),
    ("simplified-neither", False, False),
)
"""Families of the registry with whether they see the tree and the screenshot, in the order of Table 2."""

FIGURES: Final = ("precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class Variant:
    """One row: what the judge saw, and its score report."""

    family: str
    has_axtree: bool
    has_screenshot: bool
    report: Mapping[str, Any]


def ablation_table(variants: list[Variant], printed: Mapping[tuple[str, str, str], tuple[float, ...]]):
    """Precision, recall and F1 of each label as a table for a terminal, percentages with 95 % intervals.

    ``printed`` has the paper's figures by (tree, screenshot, label), to stand beside; empty for other models.
    """
    table = text_table("tree", "screenshot", "label", title_justify="left")
    for figure in ("precision", "recall", "F1"):
        table.add_column(figure, justify="right")
        table.add_column("95 %", justify="right")
        if printed:
            table.add_column("paper", justify="right")
    for variant in variants:
        for label, found in variant.report["labels"].items():
            if found is not None:
                table.add_row(*_row(variant, label, found["overall"], printed))
        table.add_section()
    return table


def _row(variant: Variant, label: str, cell: Mapping[str, Any], printed) -> list[str]:
    seen = [_yes(variant.has_axtree), _yes(variant.has_screenshot)]
    row = [*seen, LABEL_TITLES[label]]
    for place, figure in enumerate(FIGURES):
        row += [percent(cell[figure]), interval(cell[f"{figure}_ci"])]
        if printed:
            row.append(percent(printed[seen[0], seen[1], label][place]))
    return row


def _yes(value: bool) -> str:
    return "yes" if value else "no"
