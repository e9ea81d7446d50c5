"""A check's result for a terminal: the findings as a table, then the file in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.console import percent, text_table
from dataset_script.vocabulary import BENCHMARK_TITLES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dataset_script.prediction_file.check import CheckResult
    from dataset_script.prediction_file.findings import Finding

_ROWS_LISTED = 6
_WIDE = 110
_STYLES = {"error": "bold red", "warning": "yellow"}


def print_report(result: CheckResult, console: Console) -> None:
    """Print the findings (if any), the rows by benchmark, and the verdict on the file.

    Everything goes in as Text, so that brackets in a user's file are brackets and no markup.
    """
    from rich.text import Text

    if result.findings:
        is_wide = console.width >= _WIDE
        console.print(_findings_table(result.findings) if is_wide else _narrow_table(result.findings))
    console.print(_summary_table(result))
    console.print(Text(_conclusion(result), style="bold green" if result.acceptable else "bold red"))


def _findings_table(findings: Sequence[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for heading in ("level", "code", "column", "rows"):
        table.add_column(heading, overflow="fold")
    table.add_column("message", overflow="fold", ratio=1, min_width=30)
    for finding in findings:
        table.add_row(
            Text(finding.level, style=_STYLES[finding.level]),
            Text(finding.code),
            Text(finding.column or ""),
            Text(_rows(finding)),
            Text(finding.message),
        )
    return table


def _narrow_table(findings: Sequence[Finding]) -> Table:
    """The same with everything but the message in one column, so that the message keeps its width."""
    from rich.table import Table
    from rich.text import Text

    table = Table("finding", show_lines=True)
    table.add_column("message", overflow="fold", ratio=1)
    for finding in findings:
        parts = (finding.code, finding.column, f"row {_rows(finding)}" if finding.rows else None)
        about = Text(finding.level, style=_STYLES[finding.level])
        about.append("".join(f"\n{part}" for part in parts if part), style="default")
        table.add_row(about, Text(finding.message))
    return table


def _rows(finding: Finding) -> str:
    listed = ", ".join(map(str, finding.rows[:_ROWS_LISTED]))
    more = finding.count - _ROWS_LISTED
    return f"{listed} and {more:,} more" if finding.rows and more > 0 else listed


def _summary_table(result: CheckResult) -> Table:
    from rich.text import Text

    table = text_table("benchmark", figures=("expected", "rows", "coverage", "success"))
    for name, part in result.by_benchmark.items():
        cells = (
            f"{part.expected:,}",
            f"{part.rows:,}",
            percent(part.coverage, "%"),
            percent(part.success_share, "%"),
        )
        table.add_row(Text(BENCHMARK_TITLES.get(name, name)), *cells)
    table.add_section()
    expected = sum(part.expected for part in result.by_benchmark.values())
    table.add_row(
        "all",
        f"{expected:,}",
        f"{result.rows:,}",
        percent(result.coverage, "%"),
        percent(result.success_share, "%"),
    )
    return table


def _conclusion(result: CheckResult) -> str:
    levels = Counter(finding.level for finding in result.findings)
    said = [f"{n} {level}{'' if n == 1 else 's'}" for level, n in sorted(levels.items())]
    verdict = "acceptable" if result.acceptable else "not acceptable"
    counts = f" ({', '.join(said)})" if said else ""
    return f"{result.file_name or 'the file'} is {verdict} for {result.suite}, {result.split}{counts}"
