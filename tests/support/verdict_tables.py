"""Tables of verdicts, as they are after a prediction file was read and aligned."""

import numpy as np

from arb.core.predictions.table import Predictions


def verdict_table(**targets) -> Predictions:
    """Return a table with a column of codes (1, 0, -1) for each target that is not None."""
    columns = {name: np.array(codes, dtype=np.int8) for name, codes in targets.items() if codes is not None}
    rows = len(next(iter(columns.values())))
    return Predictions(tuple(str(row) for row in range(rows)), columns)
