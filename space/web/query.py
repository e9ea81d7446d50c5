"""The address of a page holds every choice: what it may say, how it is read, links in one spelling.

Forms are sent by GET; ``static/forms.js`` leaves defaults out, as `link_to` does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qs, quote

LONGEST_TEXT: Final = 300
"""Characters of a text that an address may bring where its control sets no limit of its own."""

LONGEST_LIST: Final = 50
LONGEST_QUERY, MOST_FIELDS = 8_000, 100
"""Of an address, what is read: browsers and proxies take little more."""

_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
PLAIN: Final = "/:,-_.~"
"""Characters that stay as they are in an address."""


@dataclass(frozen=True)
class QueryParam:
    """What an address may say of one control; ``choices`` of None means any text of ``max_length``.

    A ``range`` is two whole numbers from 1 on, the second not below the first: ``rows=101-200``.
    """

    name: str
    shape: Literal["one", "many", "flag", "text", "number", "range"]
    default: Any
    choices: tuple[Any, ...] | None = None
    max_length: int = LONGEST_TEXT
    low: float | None = None
    high: float | None = None

    def read(self, text: str) -> Any:
        """The value that an address gives; raises ValueError where the control has no such value."""
        if self.shape == "flag":
            return {"1": True, "0": False}[text] if text in ("0", "1") else self._refuse()
        if self.shape == "number":
            value = float(text)  # raises ValueError itself
            within = (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
            return (int(value) if value.is_integer() else value) if within else self._refuse()
        if self.shape == "range":
            found = _RANGE.fullmatch(text)
            first, last = (int(found[1]), int(found[2])) if found else (0, 0)
            return (first, last) if 1 <= first <= last else self._refuse()
        if self.shape == "many":
            items = [_item(part) for part in text.split(",") if part]
            if len(items) > LONGEST_LIST:
                self._refuse()
            return [self._one(item) for item in dict.fromkeys(items)]
        return self._one(text)

    def _one(self, text: str) -> Any:
        if self.choices is None:
            return text if len(text) <= self.max_length else self._refuse()
        found = next((choice for choice in self.choices if str(choice) == text), None)
        return self._refuse() if found is None else found

    def _refuse(self) -> Any:
        raise ValueError(f"{self.name} has no such value")


def link_to(path: str, **choices: Any) -> str:
    """The address of a page with these choices: ``link_to("/judge", id="paper/aer-c")``.

    Lists are joined by commas, True is 1; None, False, empty texts and empty lists are left out.
    """
    parts = [f"{quote(name)}={quote(_text(value), safe=PLAIN)}" for name, value in choices.items() if value]
    return f"{path}?{'&'.join(parts)}" if parts else path


def choices_in(query: str, controls: Sequence[QueryParam]) -> tuple[dict[str, Any], list[str]]:
    """The value of every control as a query string sets it, and the names that it sets to no valid value."""
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
        # A comma within an item is not one between items.
        return ",".join(str(item).replace("%", "%25").replace(",", "%2C") for item in value)
    return str(value)


def _item(part: str) -> str:
    return part.replace("%2C", ",").replace("%25", "%")
