"""The typed columns of a prediction file, and what their cells mean.

The words that people write for an answer, a number or a state are understood in any case, with or without
space around them. Every function of a cell takes its value (text, bool, number, None, MISSING) and returns
its meaning, or the Problem that says why it has none. A column has one finding for each kind of bad cell.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arb.core.ids import Trajectory
from arb.core.predictions.findings import Finding, quoted, row_finding
from arb.core.predictions.raw import Missing, RawTable, ReadingLimits
from arb.core.vocabulary import LABELS, NO_VERDICT, PREDICTION_COLUMNS, STATES, TARGETS, ColumnKind, Target

Codes = NDArray[np.int8]
Numbers = NDArray[np.float64]

NUMBER_COLUMNS: Final[Mapping[str, type]] = MappingProxyType(
    dict.fromkeys(("score", "cost_usd", "input_tokens", "output_tokens", "latency_s"), np.float64)
    | {"row_numbers": np.int64}
)
TEXT_COLUMNS: Final = ("trajectory_ids", "state", "reasoning")


@dataclass(frozen=True, eq=False)
class Predictions:
    """The rows that could be read, in the file's order or in that of a split; an absent column is None.

    A row is about an item: a trajectory. `targets` has a column for each target that the file answers, with
    the numbers that `Target` describes. `score` (a probability), `cost_usd`, `input_tokens`, `output_tokens`,
    `latency_s` (seconds): nan if there is none. A cell with an error reads as none. `trajectory_ids` are as
    written ("" stands for an id that was no text, which a finding has named), and after `align` the released
    spellings. `reasoning` is there only if the limits asked to keep it.
    """

    trajectory_ids: tuple[str, ...]
    targets: Mapping[str, Codes] = field(default_factory=dict)
    score: Numbers | None = None
    state: tuple[str | None, ...] | None = None
    cost_usd: Numbers | None = None
    input_tokens: Numbers | None = None
    output_tokens: Numbers | None = None
    latency_s: Numbers | None = None
    reasoning: tuple[str | None, ...] | None = None
    row_numbers: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        return len(self.trajectory_ids)

    @property
    def success(self) -> Codes | None:
        return self.targets.get("success")

    @property
    def side_effect(self) -> Codes | None:
        return self.targets.get("side_effect")

    @property
    def repetition(self) -> Codes | None:
        return self.targets.get("repetition")

    def numbers_of(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers that rows, by their indexes, have in the file; they count from 1 if unknown."""
        return [row + 1 for row in rows] if self.row_numbers is None else self.row_numbers[rows].tolist()

    def codes(self, target: str) -> Codes:
        """Return the answers for a target; without its column every row has no answer."""
        absent = np.full(self.rows, TARGETS[target].no_answer, dtype=np.int8)
        return self.targets.get(target, absent)

    def take(self, rows: NDArray[np.int64]) -> "Predictions":
        """Return some of the rows, by their indexes, with every column that the file has."""
        changes: dict[str, Any] = {
            "targets": {name: codes[rows] for name, codes in self.targets.items()},
        }
        for name in TEXT_COLUMNS:
            if (texts := getattr(self, name)) is not None:
                changes[name] = tuple(texts[row] for row in rows)
        for name in NUMBER_COLUMNS:
            if (numbers := getattr(self, name)) is not None:
                changes[name] = numbers[rows]
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
            digest.update(f"\n{label}\n".encode())
            digest.update(self.codes(label).tobytes())
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

NO_NUMBER: Final = math.nan

_EMPTY_WORDS: Final = frozenset({"", "null", "none", "n/a", "na"})
_NO_ANSWER_WORDS: Final = _EMPTY_WORDS | {"unsure"}
# A digit can be matched in one way only: else a cell of 400 digits and a letter takes milliseconds.
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE: Final[Mapping[str, Problem]] = MappingProxyType(
    {"nan": NAN} | dict.fromkeys(("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"), INFINITE)
)
_LONGEST_WORD: Final = 400
_LARGEST_WHOLE: Final = 2.0**53
"""Up to here a float64 holds every whole number exactly."""


def target_code(value: object, target: Target) -> int | Problem:
    """Return the number to store for an answer: `target.no_answer` for null, an empty cell or unsure."""
    if isinstance(value, bool) and target.type != "binary":
        return WRONG_TYPE
    word = _word(value)
    if word is None or word in _NO_ANSWER_WORDS:
        return target.no_answer
    if isinstance(word, str):
        if word in target.words:
            return target.words[word]
        word = _number_of(word, UNKNOWN_WORD)
    if isinstance(word, Problem):
        return word
    return int(word) if word in target.words.values() else OUT_OF_RANGE


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


_MEANINGS: Final[Mapping[ColumnKind, tuple[Callable[[object], Any], Any]]] = MappingProxyType(
    {
        "id": (trajectory_id, ""),
        "probability": (probability, NO_NUMBER),
        "state": (state, None),
        "text": (free_text, None),
        "amount": (amount, NO_NUMBER),
        "tokens": (tokens, NO_NUMBER),
    }
)
"""By kind of a column other than a target's: what a cell means, and what an empty one is."""


def _answer(value: object, name: str) -> int | Problem:
    """Return the answer in a cell of a target's column."""
    is_required = PREDICTION_COLUMNS[name].required
    return ABSENT if is_required and isinstance(value, Missing) else target_code(value, TARGETS[name])


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
    targets = {name: typed.pop(name) for name in TARGETS if name in typed}
    numbers = np.asarray(raw.row_numbers, dtype=np.int64)
    return Predictions(ids, targets, **typed, row_numbers=numbers), findings


def _read_column(name: str, raw: RawTable, limits: ReadingLimits) -> tuple[Any, list[Finding]]:
    """Return the column's meanings and its findings: an array of answers or numbers, else a tuple."""
    column, values = PREDICTION_COLUMNS[name], raw.columns[name]
    meaning: Callable[[object], Any]
    if column.kind == "target":
        meaning, empty = partial(_answer, name=name), TARGETS[name].no_answer
    else:
        meaning, empty = _MEANINGS[column.kind]
    meanings = _meanings(values, meaning)
    bad: dict[Problem, list[int]] = {}
    for position, found in enumerate(meanings):
        if found.__class__ is Problem:
            bad.setdefault(found, []).append(position)
            meanings[position] = empty
    is_text = name in TEXT_COLUMNS or column.kind == "id"
    if is_text:  # in the others a long text is no word anyway
        long = [i for i, v in enumerate(values) if v.__class__ is str and len(v) > limits.max_cell_chars]
        if long:
            bad[TOO_LONG] = long
    findings = [_bad_cells(problem, name, raw, positions) for problem, positions in bad.items()]
    if is_text:
        return tuple(meanings), findings
    return np.array(meanings, dtype=NUMBER_COLUMNS.get(name, np.int8)), findings


def _bad_cells(problem: Problem, name: str, raw: RawTable, positions: Sequence[int]) -> Finding:
    """Return the error for the cells of a column that have the same problem."""

    def show(i: int) -> str:
        return quoted(raw.columns[name][positions[i]])

    return row_finding(
        "error",
        problem.code,
        problem.says,
        [raw.row_numbers[position] for position in positions],
        PREDICTION_COLUMNS[name].advice,
        column=name,
        show=None if problem in _NOTHING_TO_SHOW else show,
    )


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
    contradicting = np.flatnonzero(is_other & (verdicts != NO_VERDICT)).tolist()
    # A cell that is wrong also reads as no verdict, and has its own finding.
    silent = [
        i
        for i in np.flatnonzero(is_ok & (verdicts == NO_VERDICT)).tolist()
        if target_code(raw.columns["success"][i], TARGETS["success"]) == NO_VERDICT
    ]
    findings = []
    if contradicting:
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
