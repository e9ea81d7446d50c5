"""Counts of a label set as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.console import coefficient, text_table
from dataset_script.vocabulary import BENCHMARK_TITLES, LABEL_TITLES, LABELS

if TYPE_CHECKING:
    from rich.console import Console


def print_summaries(summaries: list[dict[str, Any]], console: Console) -> None:
    """Print the summaries as tables for a terminal."""
    for summary in summaries:
        version = f"labels {summary['label_version']} ({summary['source']})"
        title = f"{summary['suite']} · {summary['split']} · {version}"
        figures = ("trajectories", *LABEL_TITLES.values())
        table = text_table("benchmark", figures=figures, title=title, title_justify="left")
        for name, counts in summary["by_benchmark"].items():
            table.add_row(BENCHMARK_TITLES.get(name, name), *_cells(counts))
        table.add_section()
        table.add_row(f"overall, {summary['tasks']} tasks", *_cells(summary["overall"]))
        table.add_row(
            "second annotator agrees", "", *(_percent(summary["agreement"][name]) for name in LABELS)
        )
        console.print(table)


def _cells(counts: dict[str, Any]) -> list[str]:
    cells = [f"{counts[label]['positives']:,} of {counts[label]['n']:,}" for label in LABELS]
    return [f"{counts['trajectories']:,}", *cells]


def _percent(agreement: dict[str, Any]) -> str:
    if agreement["percent"] is None:
        return "no doubles"
    return f"{agreement['percent']:.1%} of {agreement['pairs']}, kappa {coefficient(agreement['kappa'])}"
