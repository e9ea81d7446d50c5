"""The judges on the board as data: who they are, their best row, its figures. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dataset_script.vocabulary import LABELS
from leaderboard.board import Board, BoardRow

FIGURES: Final = ("n", "precision", "precision_ci", "recall", "recall_ci", "f1", "f1_ci", "kappa")
"""The fields of a label's overall cell that are given; the board has the others."""


def judges_answer(board: Board) -> dict[str, Any]:
    """What ``GET /api/judges`` gives: judges in the order of the board, without its reference rows."""
    rows = [row for row in board.rows if row.provenance != "reference"]
    return {
        "suite": board.suite,
        "label_version": board.label_version,
        "board_digest": board.digest,
        "judges": [_judge(found) for found in _by_judge(rows)],
    }


def _by_judge(rows: Iterable[BoardRow]) -> Iterable[Sequence[BoardRow]]:
    """The rows of each judge; one of a paper stands for itself."""
    found: dict[tuple[str, str], list[BoardRow]] = {}
    for row in rows:
        key = (row.account, row.judge) if row.provenance == "scored" else ("", row.id)
        found.setdefault(key, []).append(row)
    return found.values()


def _judge(rows: Sequence[BoardRow]) -> dict[str, Any]:
    best = _best(rows, "success") or rows[0]
    return {
        "judge": best.judge,
        "account": best.account,
        "kind": best.kind,
        "inputs": best.inputs,
        "model": best.model,
        "provenance": best.provenance,
        "best_row": best.id,
        "rows": [row.id for row in rows],
        "figures": {label: _figures(_best(rows, label), label) for label in LABELS},
    }


def _best(rows: Sequence[BoardRow], label: str) -> BoardRow | None:
    return next((row for row in rows if (row.labels.get(label) or {}).get("best")), None)


def _figures(row: BoardRow | None, label: str) -> Mapping[str, Any] | None:
    if row is None:
        return None
    cell = row.labels[label]
    overall = cell.get("overall") or {}
    found = {"row": row.id, "rank": cell.get("rank"), **{name: overall.get(name) for name in FIGURES}}
    return {**found, "noise": overall["noise"]} if "noise" in overall else found
