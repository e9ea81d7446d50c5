"""A hidden half of the tasks that ranks, and digests of verdicts from which the noise of a figure is drawn.

The half is for suites that expect many accounts that nobody vetted: whatever figures say of the half that is
shown, the ranking gains nothing from it. Its price is the interval, wider by sqrt(2).

A figure rests on which trajectories of its cell are called positive and on nothing else, so the digest does
too: order of rows, spelling of ids, further columns, the other labels' columns, and whether a "no" is
written false or null change neither digest nor noise. Sending the same verdicts again in another form shows
the same figures again.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict

import numpy as np

from core.predictions.table import Predictions
from core.suite import Trajectory
from core.vocabulary import LABELS
from leaderboard.labels.labels import LabelSet
from leaderboard.report import Verdicts, verdicts_of


@dataclass(frozen=True, eq=False)
class Halves:
    """Which rows of the split belong to each half: bool of shape (n,), every row in one of them."""

    ranked: np.ndarray
    shown: np.ndarray


def halves(trajectories: Sequence[Trajectory], key: bytes) -> Halves:
    """The halves of a split: of each benchmark's tasks half are hidden, with all runs of a task together.

    Tasks are ordered by HMAC-SHA256 under ``key`` (the server's for "ranking-half") of benchmark and task,
    and every second one is hidden; of an odd number the larger part is, so that a benchmark of one task is
    ranked. The label version has no part in it: halves drawn anew after a correction would rank by tasks
    whose figures had been shown.
    """
    tasks = sorted({(trajectory.benchmark, trajectory.task) for trajectory in trajectories})
    drawn = sorted(tasks, key=lambda task: (task[0], _place(key, *task)))
    hidden = set()
    for benchmark in {benchmark for benchmark, _ in tasks}:
        hidden.update([task for task in drawn if task[0] == benchmark][::2])
    ranked = np.array([(t.benchmark, t.task) in hidden for t in trajectories], dtype=bool)
    return Halves(ranked, ~ranked)


def _place(key: bytes, benchmark: str, task: str) -> bytes:
    return hmac.new(key, json.dumps([benchmark, task]).encode(), hashlib.sha256).digest()


def labels_of(labels: LabelSet, rows: np.ndarray) -> LabelSet:
    """The label set of some rows (bool of shape (n,)), under the same version: for `score_report`."""
    return replace(
        labels,
        trajectories=trajectories_of(labels.trajectories, rows),
        primary={name: column[rows] for name, column in labels.primary.items()},
        second={name: column[rows] for name, column in labels.second.items()},
        annotated_twice=labels.annotated_twice[rows],
    )


def trajectories_of(trajectories: Sequence[Trajectory], rows: np.ndarray) -> tuple[Trajectory, ...]:
    """The trajectories of some rows, in their order: for `digests_of`."""
    return tuple(trajectory for trajectory, inside in zip(trajectories, rows, strict=True) if inside)


def predictions_of(aligned: Predictions, rows: np.ndarray) -> Predictions:
    """The aligned predictions of some rows, with every column that the file has."""
    return aligned.take(np.flatnonzero(rows))


OVERALL: Final = "overall"


class CellDigest(TypedDict):
    """One cell of one label. Everything in it is known to whoever has the file.

    ``digest`` is the SHA-256 (hex) of the ids of the positives; ``rows``, ``positives`` (called positive by
    the file) and ``no_verdict`` count the cell's trajectories, those with an unsure label too.
    """

    digest: str
    rows: int
    positives: int
    no_verdict: int


Digests = Mapping[str, Mapping[str, CellDigest]]
"""Label, then cell name (see `benchmark_cell`); a label that the file does not answer is not there."""


def benchmark_cell(benchmark: str) -> str:
    """The name of a benchmark's cell; OVERALL is that of the whole split."""
    return f"benchmark/{benchmark}"


def digests_of(verdicts: Verdicts, trajectories: Sequence[Trajectory]) -> dict[str, dict[str, CellDigest]]:
    """The cells of every label that the file answers: plain dicts, ready for the records.

    ``trajectories`` are those of the split, in the order of the verdicts' columns. Raises ValueError where
    their number differs.
    """
    benchmarks = sorted({trajectory.benchmark for trajectory in trajectories})
    found = {}
    for label in LABELS:
        column = verdicts_of(verdicts, label)
        if column is None:
            continue
        if len(column) != len(trajectories):
            raise ValueError(f"{label}: {len(column)} verdicts for {len(trajectories)} trajectories")
        rows: dict[str, list[tuple[str, int]]] = {benchmark: [] for benchmark in benchmarks}
        for trajectory, verdict in zip(trajectories, column.tolist(), strict=True):
            rows[trajectory.benchmark].append((trajectory.trajectory_id, verdict))
        found[label] = {OVERALL: _cell([row for inside in rows.values() for row in inside])}
        found[label] |= {benchmark_cell(benchmark): _cell(inside) for benchmark, inside in rows.items()}
    return found


def _cell(rows: Sequence[tuple[str, int]]) -> CellDigest:
    """The cell of (trajectory id, verdict) pairs."""
    positives = sorted(trajectory_id for trajectory_id, verdict in rows if verdict == 1)
    return {
        "digest": hashlib.sha256("\n".join(positives).encode()).hexdigest(),
        "rows": len(rows),
        "positives": len(positives),
        "no_verdict": sum(verdict < 0 for _, verdict in rows),
    }
