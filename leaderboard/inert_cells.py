"""Text that a spreadsheet shows and does not run: for every CSV that holds what people wrote."""

import re
from typing import Any, Final

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_AT_START: Final = re.compile(rf"\s*[{re.escape(''.join(FORMULA_SIGNS))}]|[\t\r\n]")
_IN_NEW_CELL: Final = re.compile(rf"(;[\s\"]*)(?=[{re.escape(''.join(FORMULA_SIGNS))}])")


def inert(value: Any) -> Any:
    """The value; a text that a spreadsheet would take for a formula gets an apostrophe before the sign.

    The signs count also after blanks and in the wide form that East Asian keyboards write; a control
    character at the start hides one from the eye. Where the comma is the decimal mark, spreadsheets split a
    line at semicolons, whatever quotes stand around: a sign after one begins a cell there.
    """
    if not isinstance(value, str):
        return value
    value = _IN_NEW_CELL.sub(r"\1'", value)
    return f"'{value}" if _AT_START.match(value) else value
