"""What several judges would score as one: at least one says yes, a majority does, all of them do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leaderboard.judge_precision.confusion import confusion_counts, figures
from leaderboard.judge_precision.intervals import N_RESAMPLES, cluster_intervals
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.labels import LabelSet
from leaderboard.report import SEED, task_names


@dataclass(frozen=True)
class Vote:
    """The judges as one that says yes when at least ``needed`` of ``n_judges`` do; ``cells`` is its score.

    ``cells`` is ``{"overall": CELL, "by_benchmark": {…}}``.
    """

    needed: int
    n_judges: int
    cells: Mapping[str, Any]

    @property
    def is_unanimous(self) -> bool:
        """Whether every judge has to say yes."""
        return self.needed == self.n_judges

    @property
    def is_majority(self) -> bool:
        """Whether it takes the fewest that are more than half."""
        return self.needed == self.n_judges // 2 + 1


def vote(judges: Sequence[np.ndarray], needed: int) -> np.ndarray:
    """The verdicts of a vote, int8 of shape (n,): 1 where at least ``needed`` judges say yes, else 0.

    A missing verdict is no yes. Where no judge has a verdict the vote has none either (-1). Raises ValueError
    for a vote that nobody, or nothing, could win.
    """
    if not 1 <= needed <= len(judges):
        raise ValueError(f"needed: {needed} of {len(judges)} judges; give 1 to {len(judges)}")
    answers = np.stack(judges)
    verdicts = ((answers == 1).sum(axis=0) >= needed).astype(np.int8)
    verdicts[(answers < 0).all(axis=0)] = -1
    return verdicts


def score_votes(
    judges: Sequence[np.ndarray], labels: LabelSet, label: str, n_resamples: int = N_RESAMPLES
) -> tuple[Vote, ...]:
    """Every vote of the judges, from one yes to all of them, scored as a judge of its own would be."""
    truth = labels.primary[label]
    names, benchmarks = np.unique([t.benchmark for t in labels.trajectories], return_inverse=True)
    tasks, n_tasks = cluster_codes(task_names(labels), len(truth))
    groupings = ((np.zeros(len(truth), dtype=np.int64), 1), (benchmarks.astype(np.int64), len(names)))
    by_task, cells = [], []
    for needed in range(1, len(judges) + 1):
        verdicts = vote(judges, needed)
        for groups, n_groups in groupings:
            cells += [figures(*row) for row in confusion_counts(verdicts, truth, groups, n_groups)]
            counts = confusion_counts(verdicts, truth, tasks * n_groups + groups, n_tasks * n_groups)
            by_task.append(counts[:, :3].reshape(n_tasks, n_groups, 3))
    # One set of resamples serves all votes: drawing them is what takes the time.
    intervals = cluster_intervals(np.concatenate(by_task, axis=1), n_resamples, SEED)
    scored = [{**cell, **found} for cell, found in zip(cells, intervals, strict=True)]
    size = 1 + len(names)
    found = []
    for needed, start in enumerate(range(0, len(scored), size), start=1):
        overall, *others = scored[start : start + size]
        by_benchmark = dict(zip(names.tolist(), others, strict=True))
        found.append(Vote(needed, len(judges), {"overall": overall, "by_benchmark": by_benchmark}))
    return tuple(found)
