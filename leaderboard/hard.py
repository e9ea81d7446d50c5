"""The Hard subset: the trajectories that judges of several kinds get wrong.

Judges of one family make similar errors, so each family has one vote: the majority of its judges, where a tie
or no verdict counts as no. A trajectory is hard for a judge if at least `LEAST_WRONG` families other than the
judge's own are wrong about it. Precision is no measure here: on trajectories that were chosen because others
fail, a judge that always says yes would lead.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np

from arb.core.suites.targets import NO_ANSWER
from leaderboard.compare import vote
from leaderboard.judge_precision.confusion import confusion_counts, figures
from leaderboard.score import Cell

FAMILIES: Final = ("AER-C", "NNetNav", "Rule-based", "WebJudge")
"""The families that vote. A judge belongs to a family if its name begins with that of the family."""
FEWEST_FAMILIES: Final = 3
"""The Hard subset needs this many families, so that `LEAST_WRONG` others remain for each judge."""
LEAST_WRONG: Final = 2


def family_of(judge: str) -> str:
    """Return the family that a judge's name begins with, or an empty string. Ignores case and punctuation."""
    return next((family for family in FAMILIES if _plain(judge).startswith(_plain(family))), "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def family_votes(members: Mapping[str, Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
    """Return one vote per family, int8 of shape (n,), from the verdicts of its judges."""
    return {family: vote(verdicts, len(verdicts) // 2 + 1) for family, verdicts in members.items()}


def hard_for(family: str, votes: Mapping[str, np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Return which trajectories are hard for a judge of ``family`` ("" for none), bool of shape (n,).

    A trajectory without a label is not hard.
    """
    wrong = np.zeros(len(truth), dtype=np.int64)
    for name, voted in votes.items():
        if name != family:
            wrong += (voted == 1) != (truth == 1)
    return (wrong >= LEAST_WRONG) & (truth >= 0)


def score_on(verdicts: np.ndarray, truth: np.ndarray, subset: np.ndarray) -> Cell:
    """Score verdicts on a subset (bool of shape (n,)). As on the whole split, a missing verdict counts as no.

    Judges are ordered by the balanced accuracy, the mean of the recalls on successes and on failures.
    """
    one_group = np.zeros(len(truth), dtype=np.int64)
    counts = confusion_counts(verdicts, np.where(subset, truth, NO_ANSWER), one_group, 1)[0]
    return cast(Cell, figures(*counts))
