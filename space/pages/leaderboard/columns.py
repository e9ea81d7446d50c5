"""The columns of the leaderboard that the reader can choose, and those that appear by default."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from arb.core.suites.targets import Target, scored
from arb.core.vocabulary import BENCHMARK_TITLES, METRIC_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import parts_of
from space.pages.rows import in_order, metric_titles_of

FACTS: Final[Mapping[str, str]] = {
    "cost": "Cost, $ per 1,000",
    "model": "Model",
    "maker": "Maker",
    "weights": "Weights",
    "licence": "Licence",
    "submissions": "Submissions",
    "source": "Source",
}
"""The titles of columns that are neither a metric nor a benchmark, keyed by their names in the URL."""
UNUSUAL: Final = METRIC_TITLES.keys() - {"precision", "recall", "f1"} | {
    "model", "maker", "weights", "licence",
}  # fmt: skip
"""The columns that appear only if the reader chooses them."""


def metric_titles(targets: Iterable[Target]) -> dict[str, str]:
    """Return the titles of the metrics of all targets, keyed by name."""
    return {name: title for target in targets for name, title in metric_titles_of(target).items()}


def column_titles(benchmarks: Iterable[str], targets: Iterable[Target]) -> dict[str, str]:
    """Return the titles of all columns that can be chosen, keyed by name, in table order."""
    parts = {name: BENCHMARK_TITLES.get(name, name) for name in in_order(set(benchmarks), BENCHMARK_TITLES)}
    return {**metric_titles(targets), **parts, **FACTS}


def usual_columns(board: Board, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that appear unless the reader chooses others.

    A benchmark's column, or one in `FACTS`, appears if at least two rows have a value in it (or one row, if
    the board has only one). A suite's only benchmark gets no column, since its figures are those of the whole
    suite. The numbers of submissions appear if any judge has more than one.
    """
    judges = [row for row in board.rows if row.provenance != "reference"]
    least = min(2, len(judges))
    targets = scored(board.targets)
    always = {"source", *metric_titles(targets)}
    benchmarks = [name for name in columns if name not in always and name not in FACTS]
    labels = [target.name for target in targets]
    return tuple(
        name
        for name in columns
        if name not in UNUSUAL
        and (name in always or _is_filled(judges, labels, name, least))
        and (name not in benchmarks or len(benchmarks) > 1)
        and (name != "submissions" or any((row.attempts or 0) > 1 for row in judges))
    )


def _is_filled(judges: Sequence[BoardRow], labels: Sequence[str], name: str, least: int) -> bool:
    filled = 0
    for row in judges:
        value = {"cost": row.cost, "submissions": row.attempts}.get(name)
        filled += bool(value) or any(name in parts_of(row, label, "by_benchmark") for label in labels)
        if filled >= least:
            return True
    return False
