"""What the board says, in sentences made from its numbers."""

from collections import Counter

from dataset_script.vocabulary import BENCHMARK_TITLES
from leaderboard.board import Board, BoardRow
from leaderboard.report_tables import percent
from space.board_figures import CALLED
from space.board_view import SECOND_ANNOTATOR

POSITIVES = {"success": "successes", "side_effect": "side effects", "repetition": "repetitions"}


def sentences(board: Board, label: str) -> list[str]:
    """Two to four sentences on ties, the first row, the smallest benchmark and the human reference."""
    ranked = [row for row in board.ranking(label) if row.labels[label]["rank"]]
    if not ranked:
        return ["No judge is ranked on this label yet."]
    found = [_tie(ranked, label), _first(ranked[0], label), _smallest_benchmark(ranked, label)]
    found.append(_human(board, label))
    return [sentence for sentence in found if sentence]


def _name(row: BoardRow) -> str:
    return f"{row.judge} ({row.inputs})" if row.inputs else row.judge


def _tie(ranked: list[BoardRow], label: str) -> str:
    """What the ranges of places say: the largest group that shares one, or that some overlap, or none."""
    ranges = [(row.labels[label]["rank"]["low"], row.labels[label]["rank"]["high"]) for row in ranked]
    if len(ranked) < 2:
        return ""
    if all(low == high for low, high in ranges):
        return "Every judge here is separated from its neighbours."
    (low, high), size = max(Counter(ranges).items(), key=lambda item: (item[1], -item[0][0]))
    if size < 2:
        open_places = sum(low < high for low, high in ranges)
        return f"The test set leaves the ranks of {open_places} of {len(ranked)} judges open."
    tied = [row for row, found in zip(ranked, ranges, strict=True) if found == (low, high)]
    first, last = (row.labels[label]["overall"]["precision"] for row in (tied[0], tied[-1]))
    return (
        f"From {_name(tied[0])} to {_name(tied[-1])}, {size} judges lie within {100 * (first - last):.1f} "
        "points of precision, and the test set cannot order them: the rank of each may be anything from "
        f"{low} to {high}."
    )


def _first(row: BoardRow, label: str) -> str:
    cell = row.labels[label]["overall"]
    if cell["recall"] is None:
        return ""
    return (
        f"{_name(row)} leads: of 100 trajectories {CALLED[label]}, {round(100 * cell['precision'])} are; "
        f"it misses {round(100 * (1 - cell['recall']))} of 100 {POSITIVES[label]}."
    )


def _smallest_benchmark(ranked: list[BoardRow], label: str) -> str:
    cells = {
        name: cell
        for row in reversed(ranked)
        for name, cell in row.labels[label]["by_benchmark"].items()
        if cell["n"]
    }
    if not cells:
        return ""
    name, cell = min(cells.items(), key=lambda item: item[1]["positives"])
    title = BENCHMARK_TITLES.get(name, name)
    return (
        f"{title} has {cell['positives']} {POSITIVES[label]} in {cell['n']} trajectories: read its column as "
        "counts, which every cell shows on hover."
    )


def _human(board: Board, label: str) -> str:
    human = next((row for row in board.rows if row.id == SECOND_ANNOTATOR), None)
    if human is None or not human.labels[label]:
        return ""
    cell = human.labels[label]["overall"]
    return (
        f"A second expert, scored as a judge of the first on {cell['n']} trajectories, reaches a precision "
        f"of {percent(cell['precision'])}: about there labels end and noise begins."
    )
