"""An accepted file's verdicts in the order of the suite's split: what the scorer takes."""

import hashlib
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dataset_script.prediction_file.cells import NO_VERDICT
from dataset_script.prediction_file.table import Codes, Numbers, PredictionTable
from dataset_script.suite import Trajectory
from dataset_script.vocabulary import LABELS


@dataclass(frozen=True, eq=False)
class AlignedPredictions:
    """Columns of length `len(suite.split(split))`, in that order; codes as in PredictionTable.

    `trajectory_ids` are the released spellings.
    """

    trajectory_ids: tuple[str, ...]
    success: Codes
    side_effect: Codes | None
    repetition: Codes | None
    optimality: Codes | None
    score: Numbers | None
    state: tuple[str | None, ...] | None
    cost_usd: Numbers | None
    input_tokens: Numbers | None
    output_tokens: Numbers | None
    latency_s: Numbers | None
    reasoning: tuple[str | None, ...] | None

    def content_hash(self) -> str:
        """SHA-256 (hex) of which verdict each trajectory got, for every label.

        The same for every order of rows, spelling of ids and words, file format, and whatever else the file
        carries (scores, costs, reasoning). A label that is absent hashes as one without a verdict.
        """
        digest = hashlib.sha256("\n".join(self.trajectory_ids).encode())
        for label in LABELS:
            verdicts = getattr(self, label)
            if verdicts is None:
                verdicts = np.full(len(self.trajectory_ids), NO_VERDICT, dtype=np.int8)
            digest.update(f"\n{label}\n".encode())
            digest.update(verdicts.astype(np.int8).tobytes())
        return digest.hexdigest()


def align(
    table: PredictionTable, positions: NDArray[np.int64], trajectories: tuple[Trajectory, ...]
) -> AlignedPredictions:
    """Reorder a table whose rows name each of the trajectories once; `positions` is where each row goes."""
    row_of = np.empty(len(trajectories), dtype=np.int64)
    row_of[positions] = np.arange(table.rows)
    columns = {}
    for field in fields(AlignedPredictions):
        if field.name == "trajectory_ids":
            continue
        column = getattr(table, field.name)
        if isinstance(column, tuple):
            columns[field.name] = tuple(column[row] for row in row_of)
        else:
            columns[field.name] = None if column is None else column[row_of]
    return AlignedPredictions(tuple(t.trajectory_id for t in trajectories), **columns)
