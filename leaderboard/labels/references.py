"""Reference rows of trivial judges, computed from the labels of a suite: what a judge has to beat.

They reveal how often each answer is right, so they exist only if the labels are public.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from arb.core.suites.targets import NO_ANSWER, Target, scored
from leaderboard.board.rows import BoardRow, on_board
from leaderboard.labels.labels import LabelSet
from leaderboard.report import score_verdicts
from leaderboard.score import Score

ALWAYS_YES: Final = "reference/always-yes"


def trivial_rows(labels: LabelSet, date: str) -> tuple[BoardRow, ...]:
    """Return a row for each trivial judge that can answer one of the targets.

    ``date`` is the ISO date of the labels.
    """
    found = []
    for row_id, (judge, note, answers) in _JUDGES.items():
        scores: dict[str, Score | None] = {}
        for target in scored(labels.targets):
            column = answers(labels, target)
            scores[target.name] = None
            if column is not None and (labels.primary[target.name] != NO_ANSWER).any():
                scores[target.name] = on_board(score_verdicts(column, labels, target.name))
        if any(scores.values()):
            row = BoardRow(
                id=row_id, judge=judge, kind="Rule-based", date=date, provenance="reference",
                source=f"the labels of {labels.suite}", note=note, protocol="computed from the labels",
                split=labels.split, n=len(labels.trajectories), labels=scores,
            )  # fmt: skip
            found.append(row)
    return tuple(found)


def _always_yes(labels: LabelSet, target: Target) -> np.ndarray | None:
    if target.type != "binary":
        return None
    return np.where(_asked(labels, target), 1, NO_ANSWER).astype(np.int8)


def _most_frequent(labels: LabelSet, target: Target) -> np.ndarray | None:
    codes = labels.primary[target.name]
    if target.type == "score" or not (codes != NO_ANSWER).any():
        return None
    usual = int(np.bincount(codes[codes != NO_ANSWER]).argmax())
    return np.where(_asked(labels, target), usual, NO_ANSWER).astype(np.int8)


def _step_at(place: int, labels: LabelSet, target: Target) -> np.ndarray | None:
    """Return verdicts that call each run's step at ``place`` wrong, or None if no answer means wrong."""
    if target.level != "step" or not target.errors:
        return None
    codes = labels.primary[target.name]
    wrong = [target.code(value) for value in target.errors]
    right = codes[(codes != NO_ANSWER) & ~np.isin(codes, wrong)]
    steps: dict[str, list[int]] = {}
    for number in np.flatnonzero(_asked(labels, target)).tolist():
        steps.setdefault(labels.trajectories[number].trajectory_id, []).append(number)
    column = np.full(len(codes), NO_ANSWER, dtype=np.int8)
    usual = int(np.bincount(right).argmax()) if len(right) else NO_ANSWER
    for numbers in steps.values():
        column[numbers] = usual
        column[numbers[place]] = wrong[0]
    return column


def _asked(labels: LabelSet, target: Target) -> np.ndarray:
    return np.array([item.level == target.level for item in labels.trajectories], dtype=bool)


_JUDGES: Final[dict[str, tuple[str, str, Callable[[LabelSet, Target], np.ndarray | None]]]] = {
    ALWAYS_YES: ("Always yes", "Says yes to everything", _always_yes),
    "reference/most-frequent": ("Most frequent answer", "Gives the most frequent label", _most_frequent),
    "reference/first-step": (
        "First step",
        "Says that the first step of each run is wrong",
        partial(_step_at, 0),
    ),
    "reference/last-step": (
        "Last step",
        "Says that the last step of each run is wrong",
        partial(_step_at, -1),
    ),
}
"""The name, the note and the answers of each trivial judge, keyed by the id of its row."""
