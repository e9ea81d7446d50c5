"""Which trajectory each row names, and what is wrong with the ids of a file."""

import difflib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dataset_script.prediction_file.findings import (
    MAX_EXAMPLES,
    UNREAD_ROW_CODES,
    Finding,
    counted,
    error,
    row_finding,
    shown,
    shown_id,
)
from dataset_script.prediction_file.table import Predictions
from dataset_script.suite import Suite, Trajectory
from dataset_script.trajectory_ids import TrajectoryId, reading_key

_SUGGESTIONS: Final = 3
_LONGEST_SUGGESTED_FOR: Final = 200
NOWHERE: Final = -1


def positions_in(table: Predictions, trajectories: Sequence[Trajectory]) -> NDArray[np.int64]:
    """For each row of the table, where its trajectory stands among `trajectories`; -1 for nowhere.

    Every spelling of an id counts.
    """
    position_of = {reading_key(t.trajectory_id): i for i, t in enumerate(trajectories)}
    # In Parquet every row may hold the same text of a megabyte: each is looked at once.
    found = {text: position_of.get(reading_key(text), NOWHERE) for text in set(table.trajectory_ids)}
    return np.fromiter((found[text] for text in table.trajectory_ids), dtype=np.int64, count=table.rows)


def id_findings(
    table: Predictions, positions: NDArray[np.int64], suite: Suite, split: str, earlier: Sequence[Finding]
) -> list[Finding]:
    """Malformed, unknown, other-split, duplicate and missing ids; `earlier` are the reader's findings."""
    expected = suite.split(split)
    malformed, unknown, elsewhere = [], [], []
    kinds = {"": []}  # no text at all: the reader has named it
    for row in np.flatnonzero(positions == NOWHERE):
        spelled = table.trajectory_ids[row]
        if spelled not in kinds:
            is_known = suite.find(spelled) is not None
            kinds[spelled] = elsewhere if is_known else malformed if _is_malformed(spelled) else unknown
        kinds[spelled].append(row)
    findings = _malformed(table, malformed) + _unknown(table, unknown, suite, split, expected)
    findings += _elsewhere(table, elsewhere, suite, split) + _duplicates(table, positions, len(expected))
    if table.complete:
        findings += _missing(positions, expected, split, earlier)
    return findings


def _is_malformed(spelled: str) -> bool:
    try:
        TrajectoryId.parse(spelled)
    except ValueError:
        return True
    return False


def _numbers(table: Predictions, rows: Sequence[int]) -> list[int]:
    return table.row_numbers[rows].tolist()


def _malformed(table: Predictions, rows: Sequence[int]) -> list[Finding]:
    if not rows:
        return []
    return [
        row_finding(
            "error",
            "malformed_id",
            "not of the form <benchmark>/<agent>/<task_id>",
            _numbers(table, rows),
            "Write the id as released.",
            column="trajectory_id",
            show=lambda i: shown_id(table.trajectory_ids[rows[i]]),
        )
    ]


def _unknown(
    table: Predictions, rows: Sequence[int], suite: Suite, split: str, expected: Sequence[Trajectory]
) -> list[Finding]:
    if not rows:
        return []
    ids = [t.trajectory_id for t in expected]

    def show(i: int) -> str:
        spelled = table.trajectory_ids[rows[i]]
        close = _closest(spelled, ids) if i < _SUGGESTIONS else None
        return f"{shown_id(spelled)} (did you mean {shown_id(close)}?)" if close else shown_id(spelled)

    return [
        row_finding(
            "error",
            "unknown_id",
            f"an id that the suite {shown(suite.name)} does not have",
            _numbers(table, rows),
            f"Correct the id or remove the row; `python -m submissions template --split {split}` lists them.",
            column="trajectory_id",
            show=show,
        )
    ]


def _closest(spelled: str, ids: Sequence[str]) -> str | None:
    if len(spelled) > _LONGEST_SUGGESTED_FOR:
        return None
    close = difflib.get_close_matches(spelled.strip(), ids, n=1, cutoff=0.8)
    return close[0] if close else None


def _elsewhere(table: Predictions, rows: Sequence[int], suite: Suite, split: str) -> list[Finding]:
    if not rows:
        return []
    other = suite.find(table.trajectory_ids[rows[0]]).split
    advice = f"Remove these rows, or check the file with --split {other}."
    return [
        row_finding(
            "error",
            "wrong_split",
            f"a trajectory of the {other} split, not of {split},",
            _numbers(table, rows),
            advice,
            column="trajectory_id",
            show=lambda i: shown_id(table.trajectory_ids[rows[i]]),
        )
    ]


def _duplicates(table: Predictions, positions: NDArray[np.int64], expected: int) -> list[Finding]:
    times = np.bincount(positions[positions >= 0], minlength=expected)
    doubled = np.flatnonzero((positions >= 0) & (times[positions] > 1))
    if not doubled.size:
        return []
    # Rows of one trajectory are shown side by side, in the order of its first row.
    first = {}
    for row in doubled.tolist():
        first.setdefault(positions[row], row)
    by_trajectory = sorted(doubled.tolist(), key=lambda row: (first[positions[row]], row))
    found = row_finding(
        "error",
        "duplicate_id",
        "a trajectory named more than once",
        _numbers(table, by_trajectory),
        "Keep one row for each; ids with and without .resized or .improved name the same trajectory.",
        column="trajectory_id",
        show=lambda i: shown_id(table.trajectory_ids[by_trajectory[i]]),
    )
    return [found]


def _missing(
    positions: NDArray[np.int64], expected: Sequence[Trajectory], split: str, earlier: Sequence[Finding]
) -> list[Finding]:
    present = np.bincount(positions[positions >= 0], minlength=len(expected)) > 0
    absent = np.flatnonzero(~present)
    if not absent.size:
        return []
    named = [shown_id(expected[i].trajectory_id) for i in absent[:MAX_EXAMPLES]]
    if absent.size > MAX_EXAMPLES:
        named.append(f"and {absent.size - MAX_EXAMPLES:,} more")
    unread = sum(finding.count for finding in earlier if finding.code in UNREAD_ROW_CODES)
    maybe = f" {counted(unread, 'row')} could not be read and may hold some of them." if unread else ""
    said = (
        f"trajectory_id: {absent.size:,} of {len(expected):,} trajectories of {split} have no row "
        f"({'; '.join(named)}).{maybe} Write a row for each, with success null where there is no verdict."
    )
    return [error("missing_id", said, count=int(absent.size), column="trajectory_id")]
