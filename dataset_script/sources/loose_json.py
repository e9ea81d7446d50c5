"""JSON as Python's own writer makes it, put right in place: NaN, Infinity, halves of surrogate pairs.

A strict reader refuses such a file. Python's reader takes several times the file's size in memory, so the few
offending tokens are found here, outside of strings or inside them as the case is, and replaced.
"""

import re
from typing import Final

_STRING_OR_NUMBER_WORD: Final = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|(-?(?:NaN|Infinity))',
    re.DOTALL,
)
"""A string, to the end where it is never closed, or a word that is no JSON. Without possessive quantifiers:
Python 3.11 before 3.11.5 (Debian 12 has 3.11.2) matches them wrongly, https://github.com/python/cpython/issues/106052"""

_HEX: Final = rb"[0-9a-fA-F]{2}"
_ESCAPE_OR_HALF: Final = re.compile(
    rb"\\(?:u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|u[dD][89a-fA-F]" + _HEX + rb"()|.)",
    re.DOTALL,
)
"""An escape with what it escapes; the empty group marks half a pair."""

_REPLACEMENT: Final = rb"\ufffd"


def repair_json(data: bytes) -> bytearray:
    """The same document with null for NaN and infinities, and U+FFFD for half a surrogate pair.

    Takes the document's size once more in memory. What is broken otherwise stays as it is.
    """
    mended = _without_number_words(data)
    _mend_halves(mended)
    return mended


def _without_number_words(data: bytes) -> bytearray:
    if b"NaN" not in data and b"Infinity" not in data:
        return bytearray(data)
    pieces, place = [], 0
    view = memoryview(data)
    for found in _STRING_OR_NUMBER_WORD.finditer(data):
        if found[1] is not None:
            pieces += (view[place : found.start()], b"null")
            place = found.end()
    return bytearray().join([*pieces, view[place:]])


def _mend_halves(document: bytearray) -> None:
    """In place: the escape of U+FFFD is as long as that of any half."""
    if b"\\ud" not in document and b"\\uD" not in document:
        return
    for found in _ESCAPE_OR_HALF.finditer(document):
        if found[1] is not None:
            document[found.start() : found.end()] = _REPLACEMENT
