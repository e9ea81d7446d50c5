"""The typed table of a prediction file: whole columns, small codes, nothing of the file's spelling left."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int8]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """The rows that could be read, in the file's order; a column the file does not have is None.

    Verdicts (`success`, `side_effect`, `repetition`): 1 true, 0 false, -1 no verdict. `optimality`: 1 to 4,
    0 none. `score` (a probability), `cost_usd`, `input_tokens`, `output_tokens`, `latency_s` (seconds): nan
    where there is none. A cell with an error reads as none. `trajectory_ids` are as written; "" stands for an
    id that was no text, which a finding has named. `complete` is False when the end of the file was not read.
    `reasoning` is there only where the limits asked to keep it.
    """

    rows: int
    trajectory_ids: tuple[str, ...]
    row_numbers: NDArray[np.int64]
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
    complete: bool = True
