"""What a file says in each cell, apart from any label: a digest of its positives, and its own counts.

The noise of a figure is drawn from the digest. A figure rests on which trajectories of its cell are called
positive and on nothing else, so the digest does too: order of rows, spelling of ids, further columns, the
other labels' columns, and whether a "no" is written false or null change neither digest nor noise. Sending
the same verdicts again in another dress shows the same figures again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from dataset_script.suite import Trajectory
from dataset_script.vocabulary import LABELS
from leaderboard.report import Verdicts, verdicts_of

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
