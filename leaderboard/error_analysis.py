"""Where a judge is wrong, as a queue for people to read, and the kinds of errors that the paper names.

A queue tells labels. It is made for dev, and for test only where the suite's labels are public.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from dataset_script.suite import Suite
from leaderboard.labels import LabelSet

Kind = Literal["false positive", "false negative"]


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of error: its name for people, and what to look for."""

    title: str
    description: str


CATEGORIES: Final = MappingProxyType(
    {
        "grounding_mismatch": Category(
            "Grounding mismatch",
            "What the agent says it sees is not what the page shows, and the judge takes its word for it.",
        ),
        "misleading_reasoning": Category(
            "Misleading agent reasoning",
            "The agent claims a step or a success that did not happen, and the judge repeats the claim.",
        ),
        "missed_instruction": Category(
            "Missed instruction details",
            "Part of the goal was left undone or done differently, and the judge does not notice.",
        ),
        "misunderstood_action": Category(
            "Misunderstood action intent",
            "An action does something else than the judge thinks, such as giving up in place of an answer.",
        ),
    }
)
"""The paper's categories (section 6) in our words; people may tag with others of their own."""


class ErrorsHidden(Exception):
    """Errors of a split whose labels are hidden: which ones they are would tell the labels."""


@dataclass(frozen=True, slots=True, repr=False)
class JudgeError:
    """A verdict that the label contradicts.

    ``priority`` in [0, 1] is the share of the other judges with a verdict here that say otherwise: the
    higher, the surer that there is something to see. ``others_right`` of ``others`` do.
    """

    trajectory_id: str
    benchmark: str
    agent: str
    kind: Kind
    priority: float
    others_right: int
    others: int

    def __repr__(self) -> str:
        return f"JudgeError({self.trajectory_id!r})"  # without its kind, which is the label turned round


def may_see_errors(suite: Suite, split: str) -> bool:
    """Whether single errors of a split may be shown: on dev, and on test where the labels are public."""
    return split == "dev" or suite.labels_are_public


def error_queue(
    suite: Suite,
    labels: LabelSet,
    label: str,
    verdicts: np.ndarray,
    others: Sequence[np.ndarray] = (),
    kind: Kind | None = None,
) -> tuple[JudgeError, ...]:
    """A judge's errors on one label, the most telling first, then by id; of one ``kind`` where it is given.

    ``verdicts`` and each of ``others`` are int8 of shape (n,) in the order of the labels: 1, 0, -1. Rows
    without a verdict are no errors here: there is no reasoning to read. Without other judges every priority
    is 0. Raises ErrorsHidden where the labels may not be seen, ValueError for a column of another length.
    """
    if not may_see_errors(suite, labels.split):
        raise ErrorsHidden(
            f"the test labels of {labels.suite} are hidden, and a list of errors would tell them; use dev"
        )
    truth = labels.primary[label]
    if wrong_length := [len(column) for column in (verdicts, *others) if len(column) != len(truth)]:
        raise ValueError(f"verdicts: {wrong_length} rows; {labels.split} has {len(truth)}")
    is_error = (truth >= 0) & (verdicts >= 0) & (verdicts != truth)
    answers = np.stack(others) if others else np.empty((0, len(truth)), dtype=np.int8)
    given = (answers >= 0).sum(axis=0)
    right = (answers == truth).sum(axis=0)
    found = []
    for place in np.flatnonzero(is_error):
        run = labels.trajectories[place]
        this_kind: Kind = "false positive" if verdicts[place] == 1 else "false negative"
        if kind in (None, this_kind):
            n, n_right = int(given[place]), int(right[place])
            share = n_right / n if n else 0.0
            found.append(
                JudgeError(run.trajectory_id, run.benchmark, run.agent, this_kind, share, n_right, n)
            )
    return tuple(sorted(found, key=lambda error: (-error.priority, -error.others, error.trajectory_id)))
