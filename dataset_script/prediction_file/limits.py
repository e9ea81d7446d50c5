"""How much of a prediction file is taken in before it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Bounds on one file; each is checked before the work it bounds is done."""

    max_bytes: int = 5_000_000
    max_rows: int = 50_000
    max_columns: int = 100
    max_cell_chars: int = 200_000
    max_unpacked_bytes: int = 50_000_000
    """Parquet only: what the columns that are read may take once decompressed."""

    keep_reasoning: bool = False
    """Whether the texts of `reasoning` are kept; whoever checks or scores a file has no use for them."""
