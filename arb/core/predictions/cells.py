"""Parse the cells of a prediction file.

Every function takes a cell's value (text, bool, number, None or MISSING) and returns the parsed value, or a
Problem if the cell is invalid. Case and surrounding spaces are ignored.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from arb.core.predictions.columns import ColumnKind, PredictionColumn
from arb.core.predictions.raw import Missing
from arb.core.suites.targets import NO_ANSWER, Target
from arb.core.vocabulary import STATES


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a cell is invalid, with the code and the words for the finding about it."""

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
# Each digit can match in only one way. Otherwise a cell of 400 digits and a letter would take milliseconds.
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE: Final[Mapping[str, Problem]] = MappingProxyType(
    {"nan": NAN} | dict.fromkeys(("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"), INFINITE)
)
_LONGEST_WORD: Final = 400
_LARGEST_WHOLE: Final = 2.0**53
"""A float64 can represent every integer exactly up to this one."""


def target_code(value: object, target: Target) -> int | Problem:
    """Return the number that stands for an answer. Null, empty and "unsure" all mean no answer."""
    if isinstance(value, bool) and not (target.type == "binary" and target.words.keys() >= {"0", "1"}):
        return WRONG_TYPE
    word = _word(value)
    if word is None or word in _NO_ANSWER_WORDS:
        return NO_ANSWER
    if isinstance(word, str):
        if word in target.words:
            return target.words[word]
        word = _number_of(word, UNKNOWN_WORD)
    if isinstance(word, Problem):
        return word
    spelled = str(int(word)) if word.is_integer() else repr(word)
    return target.words.get(spelled, OUT_OF_RANGE)


def probability(value: object) -> float | Problem:
    """Return the cell's number from 0 to 1, or nan if the cell is empty."""
    return _bounded(value, 1.0)


def amount(value: object) -> float | Problem:
    """Return the cell's finite number of at least 0 (US dollars, seconds), or nan if the cell is empty."""
    return _bounded(value, math.inf)


def number(value: object) -> float | Problem:
    """Return the cell's finite number, or nan if the cell is empty."""
    return _bounded(value, math.inf, -math.inf)


def tokens(value: object) -> float | Problem:
    """Return the cell's integer of at least 0, or nan if the cell is empty."""
    number = _bounded(value, _LARGEST_WHOLE)
    if isinstance(number, Problem) or math.isnan(number) or number.is_integer():
        return number
    return OUT_OF_RANGE


def state(value: object) -> str | Problem | None:
    """Return one of `STATES`, or None if the cell is empty."""
    word = _word(value)
    if word is None or isinstance(word, Problem):
        return word
    if not isinstance(word, str):
        return WRONG_TYPE
    if word in _EMPTY_WORDS:
        return None
    return word if word in STATES else UNKNOWN_WORD


def trajectory_id(value: object) -> str | Problem:
    """Return an id as written. `check.check` compares it with the suite."""
    if isinstance(value, Missing):
        return ABSENT
    text = free_text(value)
    return EMPTY_ID if text is None else text


def free_text(value: object) -> str | Problem | None:
    """Return text as it is, or None if the cell is empty or contains only spaces."""
    match value:
        case str():
            return value if value.strip() else None
        case None | Missing():
            return None
        case bytes():
            return NOT_UTF8
        case _:
            return WRONG_TYPE


def part(value: object) -> str | Problem | None:
    """Return the number or name of a part of a run as text, or None for the whole run."""
    if isinstance(value, bool):
        return WRONG_TYPE
    if isinstance(value, int | float):
        number = _finite(value)
        if isinstance(number, Problem):
            return number
        return str(int(number)) if number.is_integer() else repr(number)
    text = free_text(value)
    return text.strip() if isinstance(text, str) else text


def _word(value: object) -> str | float | Problem | None:
    """Return a cell's text in lower case, its number or bool as a float, or None if it is empty."""
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
    except OverflowError:  # a whole number that is too large for a float
        return OUT_OF_RANGE
    if math.isnan(number):
        return NAN
    return INFINITE if math.isinf(number) else number


def _bounded(value: object, largest: float, smallest: float = 0.0) -> float | Problem:
    if isinstance(value, bool):
        return WRONG_TYPE
    word = _word(value)
    if word is None or word in _EMPTY_WORDS:
        return NO_NUMBER
    number = _number_of(word, WRONG_TYPE) if isinstance(word, str) else word
    if isinstance(number, Problem):
        return WRONG_TYPE if number is UNKNOWN_WORD else number
    return number if smallest <= number <= largest else OUT_OF_RANGE


def _number_of(word: str, otherwise: Problem) -> float | Problem:
    if _NUMBER.fullmatch(word):
        return _finite(float(word))
    return _NOT_FINITE.get(word, otherwise)


_MEANINGS: Final[Mapping[ColumnKind, tuple[Callable[[object], Any], Any]]] = MappingProxyType(
    {
        "id": (trajectory_id, ""),
        "part": (part, None),
        "probability": (probability, NO_NUMBER),
        "state": (state, None),
        "text": (free_text, None),
        "amount": (amount, NO_NUMBER),
        "tokens": (tokens, NO_NUMBER),
    }
)
"""For each kind of column: the function that parses a cell, and the value of an empty cell."""


def meaning_of(column: PredictionColumn) -> tuple[Callable[[object], Any], Any]:
    """Return the function that parses the cells of a column, and the value of an empty cell."""
    if column.target is None:
        return _MEANINGS[column.kind]
    if column.target.type == "score":
        return number, NO_NUMBER
    return partial(_answer, column=column), NO_ANSWER


def _answer(value: object, column: PredictionColumn) -> int | Problem:
    assert column.target is not None
    if column.is_required and isinstance(value, Missing):
        return ABSENT
    return target_code(value, column.target)
