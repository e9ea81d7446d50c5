"""What the words of an answer say: yes, no, unsure, a grade, a number. Words count whole, never in part."""

import re
from enum import Enum
from typing import Final


class Said(Enum):
    """What an answer comes to."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"
    CHOICES = "choices"
    """The choices themselves, repeated: no answer at all."""
    NOTHING = "nothing"
    """Words that answer something else, or answer by halves."""


_YES: Final = re.compile("success|successful|successfully|succeed(?:s|ed)|yes|true|pass(?:ed)?")
_NO: Final = re.compile("unsuccessful(?:ly)?|fail(?:s|ed|ure)?|no|false|incomplete")
_NOT: Final = re.compile("not|never|non|without|no|(?:did|was|is|has)n't")
_FILLER: Final = re.compile(
    "a|an|the|its?|this|that|and|or|either|was|is|are|be|been|has|have|did|does|do|in|of|at|to|so|thus"
    "|therefore|then|overall|my|final|answer|verdict|status|choice|option|result|outcome|task|trajectory|agent"
    "|sequence|actions|goal|achieving|complet(?:e|ed|ing|ely)|fully|entirely|b|i|em|strong|code"
)
_BY_HALVES: Final = re.compile(r"\b(partial|partially|partly|mostly|largely|somewhat|nearly|almost|half)\b")
_DECIDE: Final = r"(?:determine|tell|say|decide|verif|judge|assess|evaluate|know|confirm|conclude|answer)"
UNDECIDED: Final = re.compile(
    r"\b(?:unsure|uncertain|unclear|unknown|undetermined|undecided|indeterminate|inconclusive|n/a"
    r"|not (?:sure|clear|certain|known|enough|determinable)|insufficient (?:information|evidence)"
    rf"|(?:can ?not|can't|could not|couldn't|unable to|not possible to|impossible to)(?: be)? {_DECIDE})",
)
_STANDS_FIRST: Final = re.compile("(?:un)?successful|succeeded|failure|failed")
"""Words that answer as the first of a clause, whatever follows ("success" may be that of something else)."""

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CLAUSE: Final = re.compile(
    r"[.,;:!?()\[\]{}|\n\u2013\u2014\u2026]|\s-+\s"
    r"|\b(?:because|since|as|but|although|though|while|with|given|due)\b"
)
_NUMBER: Final = re.compile(
    r"[^\w\-.]*+(?>(?:(?:a|an|is|of|the|rating|score|reward|level)[^\w\-.]++)*)"
    r"(?P<number>\d++(?>(?:\.\d++)?)|one|two|three|four|five)(?![\w%])"
    r"(?>(?P<range>[\s*_]*+(?:-|\u2013|to\b|or\b)[\s*_]*+\d)?)"
    r"(?>(?:[\s*_]*+(?:/|out of|of)[\s*_]*+(?P<best>\d++(?>(?:\.0++)?)))?)"
)
"""Groups are atomic, ``(?>(…)*)``, and not possessive: Python before 3.11.5 matches ``(…)*+`` wrongly."""

_NUMBERS: Final = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
_GRADES: Final = {"complete failure": 1, "suboptimal": 2, "somewhat optimal": 3, "completely optimal": 4}
_GRADE: Final = re.compile(rf"\b(?:{'|'.join(_GRADES)})\b")


def success_said(text: str) -> Said:
    """Whether an answer to "was it successful?" says so. Its first clause decides."""
    plain = _plain(text)
    words = _WORD.findall(plain)
    if len(_polarities(words)) == 2 and _are_only(words, _YES, _NO, _FILLER):
        return Said.CHOICES
    clause = _first_clause(plain)
    if UNDECIDED.search(clause):
        return Said.UNSURE
    words = _WORD.findall(clause)
    found = _polarities(words)
    if len(found) != 1 or _BY_HALVES.search(clause):
        return Said.NOTHING
    is_plain = _are_only(words, _YES, _NO, _NOT, _FILLER) or _STANDS_FIRST.fullmatch(words[0])
    return found.pop() if is_plain else Said.NOTHING


def yes_or_no(text: str) -> bool | None:
    """A plain yes or no at the beginning; None for anything else."""
    words = _WORD.findall(_first_clause(_plain(text)))
    return {"yes": True, "true": True, "no": False, "false": False}.get(words[0]) if words else None


def grade_said(text: str) -> int | None:
    """The optimality, 1 to 4, by its number or its words; None when the two differ, or for neither."""
    plain = _plain(text)
    number = re.match(r"[\W_]*+(?>(?:(?:option|choice|answer)[\W_]*+)?)([1-4])(?![\d])", plain)
    by_words = {_GRADES[found] for found in _GRADE.findall(plain)}
    grades = by_words | ({int(number[1])} if number else set())
    return grades.pop() if len(grades) == 1 else None


def number_said(text: str, low: float = 1, high: float = 5) -> float | Said:
    """A rating between ``low`` and ``high``: ``4``, ``4/5``, ``4 out of 5``, ``four``.

    Another scale, a range, or a number that is out of bounds is NOTHING; the whole scale repeated is CHOICES.
    """
    plain = _plain(text)
    found = _NUMBER.match(plain)
    if found is None:
        return Said.UNSURE if UNDECIDED.search(_first_clause(plain)) else Said.NOTHING
    number = _NUMBERS.get(found["number"]) or float(found["number"])
    if found["range"] is not None:
        is_scale = number == low and found["range"].endswith(f"{high:g}")
        return Said.CHOICES if is_scale else Said.NOTHING
    if not low <= number <= high or (found["best"] is not None and float(found["best"]) != high):
        return Said.NOTHING
    return number


def _plain(text: str) -> str:
    return text.casefold().replace("\u2019", "'").strip()


def _first_clause(plain: str) -> str:
    """The first part that has a letter in it."""
    clauses = _CLAUSE.split(plain)
    return next((clause.strip() for clause in clauses if re.search(r"[^\W\d_]", clause)), "")


def _polarities(words: list[str]) -> set[Said]:
    """What the words say for and against; a "not" turns the word that it stands before."""
    found: set[Said] = set()
    is_negated = False
    for place, word in enumerate(words):
        is_yes = _YES.fullmatch(word) is not None
        if _NOT.fullmatch(word) and (word != "no" or any(map(_succeeds, words[place + 1 : place + 4]))):
            is_negated = True
        elif is_yes or _NO.fullmatch(word):
            found.add(Said.YES if is_yes != is_negated else Said.NO)
            is_negated = False
    return found


def _succeeds(word: str) -> bool:
    return word.startswith("succe")


def _are_only(words: list[str], *kinds: re.Pattern[str]) -> bool:
    return all(any(kind.fullmatch(word) for kind in kinds) for word in words)
