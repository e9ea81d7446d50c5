"""A score report as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.console import coefficient, interval, percent, text_table
from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("trajectories", "precision", "95 %", "recall", "95 %", "F1", "kappa", "TP/FP/FN/TN", "no verdict")


def print_report(report: dict[str, Any], file_name: str, console: Console) -> None:
    """Print every label of the report: overall, by benchmark, by agent; percentages with one decimal."""
    console.print(
        f"{file_name} on {report['suite']} {report['split']}, labels {report['label_version']}, "
        f"policy {report['policy']}, coverage {percent(report['coverage'])} %"
    )
    for label, found in report["labels"].items():
        if found is None:
            console.print(f"{LABEL_TITLES[label]}: the file has no such verdicts")
            continue
        table = text_table(LABEL_TITLES[label], figures=COLUMNS)
        table.add_row("overall", *_cells(found["overall"]))
        for key, titles in (("by_benchmark", BENCHMARK_TITLES), ("by_agent", AGENT_TITLES)):
            table.add_section()
            for name, cell in found[key].items():
                table.add_row(titles.get(name, name), *_cells(cell))
        console.print(table)


def _cells(cell: dict[str, Any]) -> list[str]:
    return [
        f"{cell['n']:,}",
        percent(cell["precision"]),
        interval(cell["precision_ci"]),
        percent(cell["recall"]),
        interval(cell["recall_ci"]),
        percent(cell["f1"]),
        coefficient(cell["kappa"]),
        f"{cell['tp']}/{cell['fp']}/{cell['fn']}/{cell['tn']}",
        f"{cell['no_verdict']:,}",
    ]
