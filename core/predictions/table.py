"""The typed columns of a prediction file: whole columns, small codes, nothing of the file's spelling left."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.suite import Trajectory
from core.vocabulary import LABELS, NO_VERDICT

Codes = NDArray[np.int8]
Numbers = NDArray[np.float64]

_NO_COLUMNS: Final = ("complete",)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The rows that could be read, in the file's order or in that of a split; an absent column is None.

    Verdicts (`success`, `side_effect`, `repetition`): 1 true, 0 false, -1 no verdict. `optimality`: 1 to 4,
    0 none. `score` (a probability), `cost_usd`, `input_tokens`, `output_tokens`, `latency_s` (seconds): nan
    where there is none. A cell with an error reads as none. `trajectory_ids` are as written ("" stands for an
    id that was no text, which a finding has named), and after `align` the released spellings. `complete` is
    False when the end of the file was not read. `reasoning` is there only where the limits asked to keep it.
    """

    trajectory_ids: tuple[str, ...]
    success: Codes | None = None
    side_effect: Codes | None = None
    repetition: Codes | None = None
    optimality: Codes | None = None
    score: Numbers | None = None
    state: tuple[str | None, ...] | None = None
    cost_usd: Numbers | None = None
    input_tokens: Numbers | None = None
    output_tokens: Numbers | None = None
    latency_s: Numbers | None = None
    reasoning: tuple[str | None, ...] | None = None
    row_numbers: NDArray[np.int64] | None = None
    complete: bool = True

    @property
    def rows(self) -> int:
        return len(self.trajectory_ids)

    def take(self, rows: NDArray[np.int64]) -> "Predictions":
        """Some of the rows, by their indexes, with every column that the file has."""
        changes = {}
        for name in (field.name for field in fields(self) if field.name not in _NO_COLUMNS):
            column = getattr(self, name)
            if isinstance(column, tuple):
                changes[name] = tuple(column[row] for row in rows)
            elif column is not None:
                changes[name] = column[rows]
        return replace(self, **changes)

    def align(self, positions: NDArray[np.int64], trajectories: Sequence[Trajectory]) -> "Predictions":
        """In the order of the trajectories, each named by one row; `positions` is where each row goes."""
        row_of = np.empty(len(trajectories), dtype=np.int64)
        row_of[positions] = np.arange(self.rows)
        return replace(self.take(row_of), trajectory_ids=tuple(t.trajectory_id for t in trajectories))

    def content_hash(self) -> str:
        """SHA-256 (hex) of which verdict each trajectory got, for every label, once the rows are aligned.

        The same for every order of rows, spelling of ids and words, file format, and whatever else the file
        carries (scores, costs, reasoning). A label that is absent hashes as one without a verdict.
        """
        digest = hashlib.sha256("\n".join(self.trajectory_ids).encode())
        for label in LABELS:
            verdicts = getattr(self, label)
            if verdicts is None:
                verdicts = np.full(self.rows, NO_VERDICT, dtype=np.int8)
            digest.update(f"\n{label}\n".encode())
            digest.update(verdicts.astype(np.int8).tobytes())
        return digest.hexdigest()
