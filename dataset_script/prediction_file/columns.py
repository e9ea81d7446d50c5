"""A raw table's columns to typed ones: each cell's meaning, and a finding for each kind of bad cell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dataset_script.prediction_file import cells
from dataset_script.prediction_file.cells import Problem
from dataset_script.prediction_file.findings import Finding, row_finding, shown
from dataset_script.prediction_file.limits import ReadingLimits
from dataset_script.prediction_file.raw import RawTable
from dataset_script.prediction_file.table import Predictions
from dataset_script.vocabulary import STATES


@dataclass(frozen=True, slots=True)
class _Column:
    meaning: Callable[[object], Any]
    empty: Any
    dtype: type | None
    """The numpy type of the column; None keeps Python values."""
    advice: str


_VERDICT_ADVICE: Final = "Write true, false or null (also 1/0, Yes/No)."
_COLUMNS: Final[Mapping[str, _Column]] = MappingProxyType(
    {
        "trajectory_id": _Column(
            cells.trajectory_id, "", None, "Write the released id as text: <benchmark>/<agent>/<task_id>."
        ),
        "success": _Column(
            cells.success,
            cells.NO_VERDICT,
            np.int8,
            "Write true, false or null (also 1/0, Yes/No, Successful/Unsuccessful).",
        ),
        "side_effect": _Column(cells.verdict, cells.NO_VERDICT, np.int8, _VERDICT_ADVICE),
        "repetition": _Column(cells.verdict, cells.NO_VERDICT, np.int8, _VERDICT_ADVICE),
        "optimality": _Column(cells.optimality, cells.NO_GRADE, np.int8, "Write 1, 2, 3, 4 or null."),
        "score": _Column(
            cells.probability,
            cells.NO_NUMBER,
            np.float64,
            "Write a number from 0 to 1, with a point, or null.",
        ),
        "state": _Column(cells.state, None, None, f"Write one of {', '.join(STATES)}, or null."),
        "reasoning": _Column(cells.free_text, None, None, "Write text of a reasonable length, or null."),
        "cost_usd": _Column(
            cells.amount, cells.NO_NUMBER, np.float64, "Write dollars as a number of at least 0, or null."
        ),
        "input_tokens": _Column(
            cells.tokens, cells.NO_NUMBER, np.float64, "Write a whole number of at least 0, or null."
        ),
        "output_tokens": _Column(
            cells.tokens, cells.NO_NUMBER, np.float64, "Write a whole number of at least 0, or null."
        ),
        "latency_s": _Column(
            cells.amount, cells.NO_NUMBER, np.float64, "Write seconds as a number of at least 0, or null."
        ),
    }
)
_DROPPED: Final = "reasoning"
_NOTHING_TO_SHOW: Final = (cells.ABSENT, cells.EMPTY_ID)


def to_table(raw: RawTable, limits: ReadingLimits) -> tuple[Predictions | None, list[Finding]]:
    """Every column's meaning and every bad cell; None only where the file has no ids."""
    findings: list[Finding] = []
    typed: dict[str, Any] = {}
    for name, column in _COLUMNS.items():
        if name in raw.columns:
            values, found = _read_column(name, column, raw, limits)
            typed[name] = values
            findings += found
    if not limits.keep_reasoning:
        typed.pop(_DROPPED, None)
    findings += _state_findings(typed, raw)
    ids = typed.pop("trajectory_id", None)
    if ids is None:
        return None, findings
    numbers = np.asarray(raw.row_numbers, dtype=np.int64)
    return Predictions(ids, **typed, row_numbers=numbers, complete=raw.complete), findings


def _read_column(
    name: str, column: _Column, raw: RawTable, limits: ReadingLimits
) -> tuple[Any, list[Finding]]:
    values = raw.columns[name]
    meanings = _meanings(values, column.meaning)
    bad: dict[Problem, list[int]] = {}
    for position, meaning in enumerate(meanings):
        if meaning.__class__ is Problem:
            bad.setdefault(meaning, []).append(position)
            meanings[position] = column.empty
    if column.dtype is None:  # in the others a long text is no word anyway
        long = [i for i, v in enumerate(values) if v.__class__ is str and len(v) > limits.max_cell_chars]
        if long:
            bad[cells.TOO_LONG] = long
    findings = [
        row_finding(
            "error",
            problem.code,
            problem.says,
            [raw.row_numbers[position] for position in positions],
            column.advice,
            column=name,
            show=None if problem in _NOTHING_TO_SHOW else lambda i, at=positions: shown(values[at[i]]),
        )
        for problem, positions in bad.items()
    ]
    return (tuple(meanings) if column.dtype is None else np.array(meanings, dtype=column.dtype)), findings


def _meanings(values: Sequence[object], meaning: Callable[[object], Any]) -> list[Any]:
    """Each distinct value is looked up once; True, 1 and 1.0 are equal, so the type is part of the key."""
    known: dict[tuple[type, object], Any] = {}
    meanings = []
    for value in values:
        key = (value.__class__, value)
        try:
            found = known[key]
        except KeyError:
            found = known[key] = meaning(value)
        except TypeError:  # a list or an object
            found = meaning(value)
        meanings.append(found)
    return meanings


def _state_findings(typed: Mapping[str, Any], raw: RawTable) -> list[Finding]:
    """Only `ok` carries true or false (vocabulary); a state that was not given says nothing."""
    states, success = typed.get("state"), typed.get("success")
    if states is None or success is None:
        return []
    is_ok = np.array([state == "ok" for state in states], dtype=bool)
    is_other = np.array([state is not None and state != "ok" for state in states], dtype=bool)
    contradicting = np.flatnonzero(is_other & (success != cells.NO_VERDICT))
    # A cell that is wrong also reads as no verdict, and has its own finding.
    silent = [
        i
        for i in np.flatnonzero(is_ok & (success == cells.NO_VERDICT))
        if cells.success(raw.columns["success"][i]) == cells.NO_VERDICT
    ]
    findings = []
    if contradicting.size:
        findings.append(
            row_finding(
                "error",
                "state_contradicts_verdict",
                "a true or false success beside a state other than ok",
                [raw.row_numbers[i] for i in contradicting],
                "Write null for success, or ok for the state.",
                column="state",
                show=lambda i: shown(states[contradicting[i]]),
            )
        )
    if silent:
        findings.append(
            row_finding(
                "warning",
                "state_without_verdict",
                "the state ok beside no success verdict",
                [raw.row_numbers[i] for i in silent],
                "Write the verdict, or the state that explains why there is none.",
                column="state",
            )
        )
    return findings
