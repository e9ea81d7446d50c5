"""What a row of the board is called where several of them stand together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from leaderboard.board import Board, BoardRow

ORIGINS: Final = MappingProxyType(
    {"published": "paper", "self-reported": "self-reported", "reference": "reference"}
)


def short_name(row: BoardRow) -> str:
    """The judge and what it sees: ``GPT-4o (tree)``."""
    return f"{row.judge} ({row.inputs})" if row.inputs else row.judge


def origin(row: BoardRow) -> str:
    """Where a row comes from, in two words at most: who submitted it, or ``paper``."""
    return f"by {row.account}" if row.provenance == "scored" else ORIGINS[row.provenance]


def distinct_names(rows: Sequence[BoardRow]) -> tuple[str, ...]:
    """A name for each row that no other of them has: as short as may be, by id where nothing else differs."""
    spellings = [
        [short_name(row), f"{short_name(row)}, {origin(row)}",
         f"{short_name(row)}, {origin(row)}, {row.date[:10]}", f"{short_name(row)}, {row.id}"]
        for row in rows
    ]  # fmt: skip
    counts = [Counter(spelled) for spelled in zip(*spellings, strict=True)]
    return tuple(
        next((name for name, seen in zip(spelled, counts, strict=True) if seen[name] == 1), spelled[-1])
        for spelled in spellings
    )


def choices_of(board: Board) -> list[tuple[str, str]]:
    """Every row for a list to choose from, as (words, id), in the order of the success ranking.

    The words tell the judge, what it sees, where it comes from, and the day where it was sent more than once.
    """
    tries = Counter((row.account, row.judge) for row in board.rows if row.provenance == "scored")
    found = []
    for row in board.rows:
        words = f"{short_name(row)} · {origin(row)}"
        if tries[row.account, row.judge] > 1:
            words += f" · {row.date[:10]} · {row.id[:6]}"
        found.append((words, row.id))
    return found


def rows_by_id(board: Board) -> Mapping[str, BoardRow]:
    """The rows of a board by their ids."""
    return MappingProxyType({row.id: row for row in board.rows})
