"""Files whose form alone says that they are no judge's: held for a maintainer. No label is read for it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dataset_script.suite import Trajectory
from leaderboard.report import Verdicts


class FormRules(Protocol):
    """The part of a suite's rules that the form checks need."""

    @property
    def fewest_positives(self) -> int:
        """A file that calls fewer trajectories successful waits for a maintainer."""


def reasons_to_hold(
    verdicts: Verdicts, trajectories: Sequence[Trajectory], rules: FormRules
) -> tuple[str, ...]:
    """Why a file waits for a maintainer, each reason a sentence; empty for most files.

    ``trajectories`` are those of the split, in the order of the columns. Only ``success`` is looked at: side
    effects are rare, and an honest judge may well see few of them, or see them on one benchmark; there the
    noise alone has to do. A block of likely negatives, spread and large enough, passes: without labels its
    shape is that of a careful judge.
    """
    called = np.asarray(verdicts.success) == 1
    count = int(called.sum())
    if not count:
        return ("It calls no trajectory successful, so it says the same of every one.",)
    if count == len(called):
        return ("It calls every trajectory successful, so it says the same of every one.",)
    reasons = []
    if count < rules.fewest_positives:
        reasons.append(
            f"It calls {count} of {len(called)} trajectories successful; with fewer than "
            f"{rules.fewest_positives} a figure would speak of single trajectories."
        )
    where = {trajectories[row].benchmark for row in np.flatnonzero(called)}
    if len(where) == 1 and len({trajectory.benchmark for trajectory in trajectories}) > 1:
        reasons.append(
            f"All that it calls successful is in one benchmark, {where.pop()}; a judge of the suite answers "
            "for all of them."
        )
    return tuple(reasons)
