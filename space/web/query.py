"""Reads, checks and writes the query strings of pages, which contain every choice of the reader.

Forms are sent with GET. ``static/forms.js`` leaves out defaults.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qs, quote

LONGEST_TEXT: Final = 300
"""By default, a text parameter may have at most this many characters."""

LONGEST_LIST: Final = 50
LONGEST_QUERY, MOST_FIELDS = 8_000, 100
"""At most this many characters and fields of a query string are read; the rest is ignored."""

_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
PLAIN: Final = "/:,-_.~"
"""Characters that are not percent-encoded."""


@dataclass(frozen=True)
class QueryParam:
    """A query parameter: its name, its shape and its valid values.

    If ``choices`` is None, any string of at most ``max_length`` characters is valid. A ``range`` is written
    as two positive integers in ascending order, such as ``rows=101-200``.
    """

    name: str
    shape: Literal["one", "many", "flag", "text", "number", "range"]
    default: Any
    choices: tuple[Any, ...] | None = None
    max_length: int = LONGEST_TEXT
    low: float | None = None
    high: float | None = None

    def read(self, text: str) -> Any:
        """Return the value that the text of a parameter stands for. Raises ValueError if it is not valid."""
        match self.shape:
            case "flag" if text in ("0", "1"):
                return text == "1"
            case "number":
                value = float(text)  # raises ValueError itself
                if (self.low is None or value >= self.low) and (self.high is None or value <= self.high):
                    return int(value) if value.is_integer() else value
            case "range":
                found = _RANGE.fullmatch(text)
                if found and 1 <= int(found[1]) <= int(found[2]):
                    return int(found[1]), int(found[2])
            case "many":
                parts = [part for part in text.split(",") if part]
                items = [part.replace("%2C", ",").replace("%25", "%") for part in parts]
                if len(items) <= LONGEST_LIST:
                    return [self._one(item) for item in dict.fromkeys(items)]
            case "one" | "text":
                return self._one(text)
        raise ValueError(f"{self.name} has no such value")

    def _one(self, text: str) -> Any:
        if self.choices is None and len(text) <= self.max_length:
            return text
        for choice in self.choices or ():
            if str(choice) == text:
                return choice
        raise ValueError(f"{self.name} has no such value")


def link_to(path: str, **choices: Any) -> str:
    """Return the address of a page with these choices: ``link_to("/judge", id="paper/aer-c")``.

    Lists are joined with commas and True is written as 1. None, False, empty strings and empty lists are
    left out.
    """
    parts = [f"{quote(name)}={quote(_text(value), safe=PLAIN)}" for name, value in choices.items() if value]
    return f"{path}?{'&'.join(parts)}" if parts else path


def choices_in(query: str, controls: Sequence[QueryParam]) -> tuple[dict[str, Any], list[str]]:
    """Return the value or default of each parameter, keyed by name, and the names of invalid parameters."""
    fields = parse_qs("&".join(query[:LONGEST_QUERY].split("&")[:MOST_FIELDS]), keep_blank_values=True)
    values, refused = {}, []
    for control in controls:
        values[control.name] = control.default
        if control.name in fields:
            try:
                texts = fields[control.name] if control.shape == "many" else fields[control.name][:1]
                values[control.name] = control.read(",".join(texts))
            except ValueError:
                refused.append(control.name)
    return values, refused


def _text(value: Any) -> str:
    if value is True:
        return "1"
    if isinstance(value, (list, tuple, set, frozenset)):
        # A comma within an item must not look like one between items.
        return ",".join(str(item).replace("%", "%25").replace(",", "%2C") for item in value)
    return str(value)
