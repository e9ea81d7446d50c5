"""The typed columns of a prediction file, and what the cells mean that they are made of.

A table holds whole columns, small codes, nothing of the file's spelling. The words that people write for a
verdict, a grade, a number, a state are understood whole, in any case, with space around them or not. Every
function of a cell takes its value (text, bool, number, None, MISSING) and gives its meaning, or the Problem
that says why it has none. A column has one finding for each kind of bad cell.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arb.core.predictions.findings import Finding, quoted, row_finding
from arb.core.predictions.raw import Missing, RawTable, ReadingLimits
from arb.core.suite import Trajectory
from arb.core.vocabulary import LABELS, NO_VERDICT, PREDICTION_COLUMNS, STATES, ColumnKind

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


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a cell has no meaning: the finding's code and what the message calls it."""

    code: str
    says: str


NAN: Final = Problem("nan", "NaN")
INFINITE: Final = Problem("infinite", "infinity")
OUT_OF_RANGE: Final = Problem("out_of_range", "a value out of range")
WRONG_TYPE: Final = Problem("wrong_type", "a value of the wrong type")
UNKNOWN_WORD: Final = Problem("unknown_word", "a word that is not understood")
NOT_UTF8: Final = Problem("wrong_encoding", "text that is not UTF-8")
TOO_LONG: Final = Problem("cell_too_long", "a text that is too long")
EMPTY_ID: Final = Problem("empty_id", "no id")
ABSENT: Final = Problem("missing_key", "no such key")

NO_GRADE: Final = 0
NO_NUMBER: Final = math.nan

_EMPTY_WORDS: Final = frozenset({"", "null", "none", "n/a", "na"})
_VERDICT_WORDS: Final[Mapping[str, int]] = MappingProxyType(
    {"true": 1, "false": 0, "yes": 1, "no": 0, "unsure": NO_VERDICT} | dict.fromkeys(_EMPTY_WORDS, NO_VERDICT)
)
_SUCCESS_WORDS: Final[Mapping[str, int]] = MappingProxyType(
    {**_VERDICT_WORDS, "successful": 1, "unsuccessful": 0, "success": 1, "failure": 0}
)
_GRADES: Final = ("complete failure", "suboptimal", "somewhat optimal", "completely optimal")
_GRADE_WORDS: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys([*_EMPTY_WORDS, "unsure"], NO_GRADE)
    | {word: grade for grade, word in enumerate(_GRADES, 1)}
    | {f"{grade}. {word}": grade for grade, word in enumerate(_GRADES, 1)}
)
# A digit can be matched in one way only: else a cell of 400 digits and a letter takes milliseconds.
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE: Final[Mapping[str, Problem]] = MappingProxyType(
    {"nan": NAN} | dict.fromkeys(("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"), INFINITE)
)
_LONGEST_WORD: Final = 400
_LARGEST_WHOLE: Final = 2.0**53
"""Up to here a float64 holds every whole number exactly."""


def success(value: object) -> int | Problem:
    """1, 0 or -1; besides the words of `verdict` those of the annotations: Successful, Unsuccessful.

    It may be null but it must be written: MISSING is a Problem.
    """
    if isinstance(value, Missing):
        return ABSENT
    return _coded(value, _SUCCESS_WORDS, {0.0: 0, 1.0: 1}, NO_VERDICT)


def verdict(value: object) -> int | Problem:
    """1 for true, 1, yes; 0 for false, 0, no; -1 for null, an empty cell, n/a, unsure."""
    return _coded(value, _VERDICT_WORDS, {0.0: 0, 1.0: 1}, NO_VERDICT)


def optimality(value: object) -> int | Problem:
    """1 to 4, also as `4. Completely Optimal`; 0 for none."""
    if isinstance(value, bool):
        return WRONG_TYPE
    return _coded(value, _GRADE_WORDS, {1.0: 1, 2.0: 2, 3.0: 3, 4.0: 4}, NO_GRADE)


def probability(value: object) -> float | Problem:
    """A number from 0 to 1; nan for none."""
    return _bounded(value, 1.0)


def amount(value: object) -> float | Problem:
    """A finite number of at least 0 (US dollars, seconds); nan for none."""
    return _bounded(value, math.inf)


def tokens(value: object) -> float | Problem:
    """A whole number of at least 0; nan for none."""
    number = _bounded(value, _LARGEST_WHOLE)
    if isinstance(number, Problem) or math.isnan(number) or number.is_integer():
        return number
    return OUT_OF_RANGE


def state(value: object) -> str | Problem | None:
    """One of the vocabulary's states; None for none."""
    word = _word(value)
    if word is None or isinstance(word, Problem):
        return word
    if not isinstance(word, str):
        return WRONG_TYPE
    return None if word in _EMPTY_WORDS else word if word in STATES else UNKNOWN_WORD


def trajectory_id(value: object) -> str | Problem:
    """The id's text as written; whether it names a trajectory is the check's business."""
    if isinstance(value, Missing):
        return ABSENT
    text = free_text(value)
    return EMPTY_ID if text is None else text


def free_text(value: object) -> str | Problem | None:
    """Text as it is; None for none, or for nothing but space."""
    match value:
        case str():
            return value if value.strip() else None
        case None | Missing():
            return None
        case bytes():
            return NOT_UTF8
        case _:
            return WRONG_TYPE


def _word(value: object) -> str | float | Problem | None:
    """A cell as a lower-case word, a float (bool included), None, or what is wrong with it."""
    match value:
        case str():
            return " ".join(value.split()).casefold() if len(value) <= _LONGEST_WORD else UNKNOWN_WORD
        case bool() | int() | float():
            return _finite(value)
        case None | Missing():
            return None
        case bytes():
            return NOT_UTF8
        case _:
            return WRONG_TYPE


def _finite(value: float) -> float | Problem:
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond a float's reach
        return OUT_OF_RANGE
    if math.isnan(number):
        return NAN
    return INFINITE if math.isinf(number) else number


def _coded(
    value: object, words: Mapping[str, int], numbers: Mapping[float, int], empty: int
) -> int | Problem:
    word = _word(value)
    if word is None:
        return empty
    if isinstance(word, str):
        if word in words:
            return words[word]
        word = _number_of(word, UNKNOWN_WORD)
    return word if isinstance(word, Problem) else numbers.get(word, OUT_OF_RANGE)


def _bounded(value: object, largest: float) -> float | Problem:
    if isinstance(value, bool):
        return WRONG_TYPE
    word = _word(value)
    if word is None or word in _EMPTY_WORDS:
        return NO_NUMBER
    number = _number_of(word, WRONG_TYPE) if isinstance(word, str) else word
    if isinstance(number, Problem):
        return WRONG_TYPE if number is UNKNOWN_WORD else number
    return number if 0.0 <= number <= largest else OUT_OF_RANGE


def _number_of(word: str, otherwise: Problem) -> float | Problem:
    if _NUMBER.fullmatch(word):
        return _finite(float(word))
    return _NOT_FINITE.get(word, otherwise)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of column is read: what a cell means, what an empty one is, and the numpy type.

    Without a type the values stay Python's.
    """

    meaning: Callable[[object], Any]
    empty: Any
    dtype: type | None


_KINDS: Final[Mapping[ColumnKind, _Kind]] = MappingProxyType(
    {
        "id": _Kind(trajectory_id, "", None),
        "success": _Kind(success, NO_VERDICT, np.int8),
        "verdict": _Kind(verdict, NO_VERDICT, np.int8),
        "grade": _Kind(optimality, NO_GRADE, np.int8),
        "probability": _Kind(probability, NO_NUMBER, np.float64),
        "state": _Kind(state, None, None),
        "text": _Kind(free_text, None, None),
        "amount": _Kind(amount, NO_NUMBER, np.float64),
        "tokens": _Kind(tokens, NO_NUMBER, np.float64),
    }
)
_NOTHING_TO_SHOW: Final = (ABSENT, EMPTY_ID)


def to_table(raw: RawTable, limits: ReadingLimits) -> tuple[Predictions | None, list[Finding]]:
    """Every column's meaning and every bad cell; None only where the file has no ids."""
    findings: list[Finding] = []
    typed: dict[str, Any] = {}
    for name in PREDICTION_COLUMNS:
        if name in raw.columns:
            typed[name], found = _read_column(name, raw, limits)
            findings += found
    if not limits.keep_reasoning:
        typed.pop("reasoning", None)
    findings += _state_findings(typed, raw)
    ids = typed.pop("trajectory_id", None)
    if ids is None:
        return None, findings
    numbers = np.asarray(raw.row_numbers, dtype=np.int64)
    return Predictions(ids, **typed, row_numbers=numbers, complete=raw.complete), findings


def _read_column(name: str, raw: RawTable, limits: ReadingLimits) -> tuple[Any, list[Finding]]:
    column, values = PREDICTION_COLUMNS[name], raw.columns[name]
    kind = _KINDS[column.kind]
    meanings = _meanings(values, kind.meaning)
    bad: dict[Problem, list[int]] = {}
    for position, meaning in enumerate(meanings):
        if meaning.__class__ is Problem:
            bad.setdefault(meaning, []).append(position)
            meanings[position] = kind.empty
    if kind.dtype is None:  # in the others a long text is no word anyway
        long = [i for i, v in enumerate(values) if v.__class__ is str and len(v) > limits.max_cell_chars]
        if long:
            bad[TOO_LONG] = long
    findings = [
        row_finding(
            "error",
            problem.code,
            problem.says,
            [raw.row_numbers[position] for position in positions],
            column.advice,
            column=name,
            show=None if problem in _NOTHING_TO_SHOW else lambda i, at=positions: quoted(values[at[i]]),
        )
        for problem, positions in bad.items()
    ]
    return (tuple(meanings) if kind.dtype is None else np.array(meanings, dtype=kind.dtype)), findings


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
    states, verdicts = typed.get("state"), typed.get("success")
    if states is None or verdicts is None:
        return []
    is_ok = np.array([each == "ok" for each in states], dtype=bool)
    is_other = np.array([each not in (None, "ok") for each in states], dtype=bool)
    contradicting = np.flatnonzero(is_other & (verdicts != NO_VERDICT))
    # A cell that is wrong also reads as no verdict, and has its own finding.
    silent = [
        i
        for i in np.flatnonzero(is_ok & (verdicts == NO_VERDICT))
        if success(raw.columns["success"][i]) == NO_VERDICT
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
                show=lambda i: quoted(states[contradicting[i]]),
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
