"""Names that look alike: a judge may not pass for another account's by letters that only look the same.

Characters are replaced by what stands for all that look like them, from Unicode's table of confusables
(Unicode Technical Standard 39; the package `confusable_homoglyphs` carries it). What is left out besides:
what cannot be seen, and spaces, dashes, underscores and quotation marks, but for a dash between digits
(`v1-1` is not `v11`).
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Selectors of a variant, joiners and fillers: categories of letters and marks, but nothing is seen of them.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[\s_\-\u00ad]+(?=\d)")
_SEPARATORS: Final = re.compile(r"[\s_'\"`´‘’“”«»]+")
_DASHES: Final = re.compile("[-\u00ad\u058a\u05be\u2010-\u2015\u2043\u2212\u30fc\ufe58\ufe63\uff0d]")
_KEPT_DASH: Final = "\x00"
"""Stands for a dash between digits while the other dashes are taken out; no name holds it."""


def skeletons_of(name: str) -> frozenset[str]:
    """What a name looks like, as written and in small letters: two names are alike when they share one.

    Capitals make no difference, nor do `I`, `l`, `1` and `|`, `O` and `0`, `rn` and `m`, or letters of other
    scripts and styles with the same shape.
    """
    plain = _without_unseen(unicodedata.normalize("NFKC", _without_unseen(name)))
    plain = _BETWEEN_DIGITS.sub(_KEPT_DASH, _DASHES.sub("-", plain))
    plain = _SEPARATORS.sub("", plain.replace("-", ""))
    # An I looks like an l and an i does not, so neither of the two alone tells both.
    return frozenset((_prototypes(_prototypes(plain).casefold()), _prototypes(plain.casefold())))


def _without_unseen(text: str) -> str:
    return "".join(mark for mark in _UNSEEN.sub("", text) if unicodedata.category(mark) not in ("Cf", "Cc"))


def _prototypes(text: str) -> str:
    return "".join(_prototype(character) for character in text)


@lru_cache(maxsize=10_000)
def _prototype(character: str) -> str:
    """What stands for all characters that look like this one; a character that none looks like, itself."""
    from confusable_homoglyphs.confusables import confusables_data

    # Each group is a star in the table: every member names its middle, and the middle all of them. Several
    # characters are a middle always (`rn` for m); of a pair of single ones either may be.
    alike = [_bare(found["c"]) for found in confusables_data.get(character, ())]
    middles = [found for found in alike if len(found) > 1]
    if middles:
        return min(middles)
    if len(alike) != 1:
        return character
    (other,) = alike
    is_pair = len(confusables_data.get(other, ())) == 1
    return min(character, other) if is_pair else other


def _bare(text: str) -> str:
    """The characters of an entry, without the direction marks that stand around those of Arabic."""
    return text.strip("\u200e\u200f")
