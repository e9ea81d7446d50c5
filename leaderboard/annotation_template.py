"""What an annotator who works without the page fills in: a released file with the answers left open."""

import hashlib
from collections.abc import Sequence

from dataset_script.suite import Trajectory
from leaderboard.annotations import Annotation
from leaderboard.released_annotations import write_open


def drawn_share(trajectories: Sequence[Trajectory], share: float, seed: int) -> tuple[Trajectory, ...]:
    """A share of the trajectories, rounded and at least one, drawn by a hash of the seed and the id.

    In their own order. Raises ValueError for a share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share is above 0 and at most 1, such as 0.2, not {share}")
    number = max(1, int(share * len(trajectories) + 0.5))
    ranked = sorted(trajectories, key=lambda t: hashlib.sha256(f"{seed}/{t.trajectory_id}".encode()).digest())
    drawn = {trajectory.trajectory_id for trajectory in ranked[:number]}
    return tuple(trajectory for trajectory in trajectories if trajectory.trajectory_id in drawn)


def template(trajectories: Sequence[Trajectory], annotator: str) -> str:
    """A released file with a row a trajectory, the runs on one task together, and every answer open."""
    by_task = sorted(trajectories, key=lambda t: (t.benchmark, t.task, t.agent))
    return write_open([Annotation(t.trajectory_id, annotator) for t in by_task])
