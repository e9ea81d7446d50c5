"""Key findings of the board as sentences."""

from collections import Counter
from collections.abc import Sequence

from arb.core.suites.targets import Target
from arb.core.vocabulary import BENCHMARK_TITLES, metric_name
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank
from leaderboard.board.rows import parts_of
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import metric_of
from space.pages.rows import overall_of, ranked_rows
from space.web.cells import metric_text, short_name, unit_of

MANY_POSITIVES = 100
"""With at least this many positives, one run changes a recall by at most one point."""


def sentences(board: Board, label: str, figure: str | None = None) -> list[str]:
    """Return up to five sentences: on ranks, the first row, the smallest benchmark and the reference."""
    target = board.target(label)
    ranked = ranked_rows(board, label, figure)
    if not ranked:
        return ["No judge has a rank for this label yet."]
    found = [
        _separated([rank for _, rank in ranked]),
        _open_ranks(ranked),
        _first(ranked[0][0], target, figure or target.main_metric),
        _smallest_benchmark([row for row, _ in ranked], label),
        _human(board, target),
    ]
    return [sentence for sentence in found if sentence]


def _separated(ranks: Sequence[Rank]) -> str:
    """Return a sentence on how many pairs of judges are separated."""
    n = len(ranks)
    if n < 2:
        return ""
    pairs, separated = n * (n - 1) // 2, sum(rank.n_separated for rank in ranks) // 2
    if separated == pairs:
        return f"The test set separates {'the two' if n == 2 else f'all {n:,}'} judges from each other."
    if not separated:
        return f"The test set separates no two of the {n:,} judges."
    return f"The test set separates {separated:,} of the {pairs:,} pairs of judges."


def _open_ranks(ranked: Sequence[tuple[BoardRow, Rank]]) -> str:
    """Return a sentence on the most common range of ranks; empty if no two judges have the same range."""
    ranges = Counter((rank.low, rank.high) for _, rank in ranked)
    (low, high), size = max(ranges.items(), key=lambda item: (item[1], -item[0][0]))
    if size < 2:
        return ""
    first = next(row for row, rank in ranked if (rank.low, rank.high) == (low, high))
    return (
        f"{size:,} judges, {short_name(first)} among them, could each have any rank from {low:,} to {high:,}."
    )


def _first(row: BoardRow, target: Target, figure: str) -> str:
    cell = overall_of(row, target.name)
    if figure != "precision":
        value = metric_text(metric_of(cell or {}, figure), figure)
        return f"{short_name(row)} leads with {metric_name(figure)} {value}."
    if cell is None or cell["precision"] is None or cell["recall"] is None:
        return ""
    return (
        f"{short_name(row)} leads on {target.title.lower()}: when it says yes, it is right about "
        f"{round(100 * cell['precision'])} of 100 {target.nouns}, and it misses "
        f"{round(100 * (1 - cell['recall']))} of 100 positives."
    )


def _smallest_benchmark(ranked: Sequence[BoardRow], label: str) -> str:
    """Return a sentence on the benchmark with the fewest positives, or "" if it has many."""
    sizes: dict[str, tuple[int, int]] = {}
    for row in ranked:
        for name, cell in parts_of(row, label, "by_benchmark").items():
            n, positives = cell["n"], cell.get("positives")
            if name not in sizes and n and positives is not None:
                sizes[name] = (positives, n)
    if not sizes:
        return ""
    name, (positives, n) = min(sizes.items(), key=lambda item: item[1][0])
    if positives >= MANY_POSITIVES:
        return ""
    title = BENCHMARK_TITLES.get(name, name)
    return (
        f"{title} has only {positives} positives among {n} labels, so its percentages are "
        "coarse. Hover over a cell for its counts."
    )


def _human(board: Board, target: Target) -> str:
    human = board.row(SECOND_ANNOTATOR)
    cell = overall_of(human, target.name) if human else None
    if cell is None:
        return ""
    metric = target.main_metric
    value = metric_text(metric_of(cell, metric), metric)
    return (
        f"A second expert, scored like a judge against the first on {cell['n']} {target.nouns}, reaches a "
        f"{metric_name(metric)} of {value}{' %' if unit_of(metric) == 100 else ''}: even people do not agree "
        "more than that."
    )
