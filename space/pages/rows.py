"""Helpers for pages that show rows of a board: metrics, ranks, names and their order."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank
from leaderboard.score import Cell

INPUTS: Final[Mapping[str, str]] = {
    "tree": "the accessibility tree of the last page",
    "screenshot": "the screenshot of the last page",
    "tree and screenshot": "the accessibility tree and the screenshot of the last page",
    "all screenshots": "the screenshots of all steps",
    "steps only": "the agent's steps, without any page",
    "changes": "descriptions of what each action changed on the page",
    "caption": "a description of the last screenshot that another model wrote",
    "reward": "the benchmark's own check of the result, as a reward of 0 or 1",
    "other": "something else; see the judge's page",
}
"""What a judge sees, by its declared inputs."""


def overall_of(row: BoardRow, label: str) -> Cell | None:
    """Return the cell over all trajectories, or None if the judge gives no verdicts on the label."""
    score = row.labels.get(label)
    return score["overall"] if score else None


def is_best(row: BoardRow, label: str) -> bool:
    """Return whether the row is its judge's best submission for the label."""
    score = row.labels.get(label)
    return bool(score and score.get("best"))


def ranked_rows(board: Board, label: str, figure: str = "precision") -> list[tuple[BoardRow, Rank]]:
    """Return (row, rank) pairs of the rows that have a rank by a metric, best first."""
    ranks = board.ranks(label, figure)
    found = []
    for row in board.ranking(label, figure):
        rank = ranks.get(row.id)
        if rank:
            found.append((row, rank))
    return found


def in_order(names: Collection[str], titles: Iterable[str]) -> list[str]:
    """Return the names that have a title in the order of the titles, then the remaining names sorted."""
    known = [name for name in titles if name in names]
    return [*known, *sorted(set(names) - set(known))]
