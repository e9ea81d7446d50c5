"""What is said of a row besides its figures: maintainers' marks, and the noise its counts carry. Pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from leaderboard.board import BoardRow

MARKS: Final = MappingProxyType(
    {
        "verified": "a maintainer ran it again, or saw it run, and found the same",
        "labels exposed": "a maintainer found that test labels got into how it was made",
    }
)


def describe_marks(row: BoardRow) -> str:
    """The marks of a row, each with what it means; empty where it has none."""
    return "; ".join(f"{mark}: {MARKS.get(mark, 'set by a maintainer')}" for mark in row.marks)


def noise_of(found: Mapping[str, Any] | None) -> float | None:
    """The standard deviation of the noise on the overall true positives of a label; None where exact."""
    noise = found and found["overall"].get("noise")
    return noise["tp_sd"] if noise else None


def describe_noise(found: Mapping[str, Any] | None) -> str:
    """How noisy the counts of a label of a row are, and what ranks come from; empty where they are exact."""
    overall = noise_of(found)
    if found is None or overall is None:
        return ""
    parts = {cell["noise"]["tp_sd"] for cell in found["by_benchmark"].values() if "noise" in cell}
    apart = f", ± {max(parts):g} in each benchmark" if parts else ""
    ranks = found.get("ranked_by") or "the same noisy figures and their intervals"
    return (
        f"The labels of this suite are private: counts carry noise of ± {overall:g} true positives{apart} "
        f"(standard deviations), which intervals hold too; ranks come from {ranks}."
    )


def noise_on_board(rows: Iterable[BoardRow], label: str) -> str:
    """The same for a table of rows, from the first that is noisy."""
    return next((told for row in rows if (told := describe_noise(row.labels.get(label)))), "")
