"""Detection of look-alike names, so that nobody can imitate the judge of another account.

A name is reduced to its skeleton: each character is replaced by one that stands for all characters that look
like it, from Unicode's table of confusables (Unicode Technical Standard 39, in the package
`confusable_homoglyphs`). Invisible characters, spaces, dashes, underscores and quotation marks are removed,
except for a dash between digits (`v1-1` is not `v11`).
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from confusable_homoglyphs.confusables import confusables_data

# Variant selectors, joiners and fillers. Their Unicode category is letter or mark, but they are invisible.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[\s_\-\u00ad]+(?=\d)")
_SEPARATORS: Final = re.compile(r"[\s_'\"`´‘’“”«»]+")
_DASHES: Final = re.compile("[-\u00ad\u058a\u05be\u2010-\u2015\u2043\u2212\u30fc\ufe58\ufe63\uff0d]")
_DIRECTION_MARKS: Final = "\u200e\u200f"
"""Direction marks around Arabic characters in the table of confusables."""
_KEPT_DASH: Final = "\x00"
"""A placeholder for a dash between digits while other dashes are removed; no name contains it."""


def skeletons_of(name: str) -> frozenset[str]:
    """Return the skeletons of a name as written and in lower case. Names that share a skeleton look alike.

    Upper and lower case are alike, and so are `I`, `l`, `1` and `|`, `O` and `0`, `rn` and `m`, and letters
    of the same shape in other scripts and styles.
    """
    plain = _without_unseen(unicodedata.normalize("NFKC", _without_unseen(name)))
    plain = _BETWEEN_DIGITS.sub(_KEPT_DASH, _DASHES.sub("-", plain))
    plain = _SEPARATORS.sub("", plain.replace("-", ""))
    # An I looks like an l but an i does not, so both skeletons are needed.
    return frozenset((_prototypes(_prototypes(plain).casefold()), _prototypes(plain.casefold())))


def _without_unseen(text: str) -> str:
    return "".join(mark for mark in _UNSEEN.sub("", text) if unicodedata.category(mark) not in ("Cf", "Cc"))


def _prototypes(text: str) -> str:
    return "".join(_prototype(character) for character in text)


@lru_cache(maxsize=10_000)
def _prototype(character: str) -> str:
    """Return the character, or sequence of characters, that stands for all that look like this one."""
    # In the table, a group of look-alikes is a star: each member lists the middle, which lists all members. A
    # sequence of characters (`rn` for m) is always a middle. In a group of two, either may be the middle.
    alike = [found["c"].strip(_DIRECTION_MARKS) for found in confusables_data.get(character, ())]
    middles = [found for found in alike if len(found) > 1]
    if middles:
        return min(middles)
    if len(alike) != 1:
        return character
    (other,) = alike
    is_pair = len(confusables_data.get(other, ())) == 1
    return min(character, other) if is_pair else other
