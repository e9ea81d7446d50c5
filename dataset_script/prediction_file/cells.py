"""One cell's meaning: the words people write for a verdict, a grade, a number, a state.

Words are understood whole, in any case, with space around them or not. Every function takes a cell's value
(text, bool, number, None, MISSING) and gives its meaning, or the Problem that says why it has none.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dataset_script.prediction_file.raw import Missing
from dataset_script.vocabulary import NO_VERDICT, STATES


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
    match value:
        case str():
            return value if value.strip() else EMPTY_ID
        case bytes():
            return NOT_UTF8
        case None:
            return EMPTY_ID
        case Missing():
            return ABSENT
        case _:
            return WRONG_TYPE


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
