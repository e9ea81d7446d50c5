"""Key findings of the board as sentences."""

from collections import Counter
from collections.abc import Sequence

from arb.core.console import percent
from arb.core.vocabulary import BENCHMARK_TITLES, metric_name
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank
from leaderboard.board.rows import parts_of
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import metric_of
from space.pages.rows import overall_of, ranked_rows
from space.web.cells import CALLED, short_name

POSITIVES = {"success": "successes", "side_effect": "side effects", "repetition": "repetitions"}


def sentences(board: Board, label: str, figure: str = "precision") -> list[str]:
    """Return up to four sentences: on ties, the first row, the smallest benchmark and the human reference."""
    ranked = ranked_rows(board, label, figure)
    if not ranked:
        return ["No judge has a rank for this label yet."]
    found = [
        _tie(ranked, label, figure),
        _first(ranked[0][0], label, figure),
        _smallest_benchmark([row for row, _ in ranked], label),
        _human(board, label),
    ]
    return [sentence for sentence in found if sentence]


def _tie(ranked: Sequence[tuple[BoardRow, Rank]], label: str, figure: str) -> str:
    """Return a sentence on the largest group of tied judges, or on how many ranks are not settled."""
    if len(ranked) < 2:
        return ""
    ranges = Counter((rank.low, rank.high) for _, rank in ranked)
    if all(low == high for low, high in ranges):
        return "No two judges here are tied."
    (low, high), size = max(ranges.items(), key=lambda item: (item[1], -item[0][0]))
    if size < 2:
        open_places = sum(low < high for low, high in ranges)
        return f"{open_places} of {len(ranked)} judges are tied with other judges."
    group = [row for row, rank in ranked if (rank.low, rank.high) == (low, high)]
    # A row with a rank has the metric that it is ranked by.
    first, last = (metric_of(overall_of(row, label) or {}, figure) or 0.0 for row in (group[0], group[-1]))
    within = f"{100 * abs(first - last):.1f} points of {metric_name(figure)}"
    return (
        f"{size} judges, from {short_name(group[0])} to {short_name(group[-1])}, are within {within} of "
        f"each other. The test set cannot rank them: each could be anywhere from rank {low} to {high}."
    )


def _first(row: BoardRow, label: str, figure: str) -> str:
    cell = overall_of(row, label)
    if figure != "precision":
        return f"{short_name(row)} leads with {metric_name(figure)} {percent(metric_of(cell or {}, figure))}."
    if cell is None or cell["precision"] is None or cell["recall"] is None:
        return ""
    return (
        f"{short_name(row)} leads: it is right about {round(100 * cell['precision'])} of 100 trajectories "
        f"{CALLED[label]}, and misses {round(100 * (1 - cell['recall']))} of 100 {POSITIVES[label]}."
    )


def _smallest_benchmark(ranked: Sequence[BoardRow], label: str) -> str:
    sizes: dict[str, tuple[int, int]] = {}
    for row in ranked:
        for name, cell in parts_of(row, label, "by_benchmark").items():
            n, positives = cell["n"], cell["positives"]
            if name not in sizes and n and positives is not None:
                sizes[name] = (positives, n)
    if not sizes:
        return ""
    name, (positives, n) = min(sizes.items(), key=lambda item: item[1][0])
    title = BENCHMARK_TITLES.get(name, name)
    return (
        f"{title} has only {positives} {POSITIVES[label]} in {n} trajectories, so its percentages are "
        "coarse. Hover over a cell for its counts."
    )


def _human(board: Board, label: str) -> str:
    human = board.row(SECOND_ANNOTATOR)
    cell = overall_of(human, label) if human else None
    if cell is None:
        return ""
    return (
        f"A second expert, scored like a judge against the first on {cell['n']} trajectories, reaches a "
        f"precision of {percent(cell['precision'])} %: even people do not agree more than that."
    )
