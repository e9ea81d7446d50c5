"""Read values from logs. Any program may have written them, so a value may be absent or of another type."""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

MOST_IMAGE_BYTES: Final = 50_000_000
"""The size of the largest picture that is read from a log."""

_DATA_IMAGE: Final = re.compile(r"data:image/[^,]{0,80};base64,")

_NOT_IN_IDS: Final = re.compile(r"[/\s\x00-\x1f\x7f]+")


def valid_text(value: Any) -> str | None:
    """Return a string that UTF-8 can encode, with U+FFFD for lone surrogates. Other values give None."""
    if not isinstance(value, str):
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return the value if it is a JSON array, else an empty array."""
    return value if isinstance(value, list) else ()


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a JSON array, without its other elements."""
    return [each for each in sequence(value) if isinstance(each, dict)]


def finite(value: Any) -> float | None:
    """Return a finite JSON number or a boolean as a float, or None for any other value."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def add_up(values: Iterable[Any]) -> float | None:
    """Return the sum of the non-negative numbers among the values, or None if there is none."""
    numbers = [
        value
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    ]
    return sum(numbers) if numbers else None


def id_part(name: str) -> str:
    """Return a name as a part of a trajectory id: without slashes, spaces and control characters."""
    return _NOT_IN_IDS.sub("_", (valid_text(name) or "").strip()).strip("_") or "unknown"


def call_text(name: str, arguments: Any) -> str:
    """Return a tool call as ``name(key=value, …)``, with values in JSON."""
    if isinstance(arguments, dict):
        written = ", ".join(f"{key}={_json_text(value)}" for key, value in arguments.items())
    else:
        written = "" if arguments is None else _json_text(arguments)
    return valid_text(f"{name}({written})") or ""


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # nested almost too deep to be read
        return "…"


def text_of_literal(literal: bytes) -> str:
    """Return the text of a JSON string literal, or an empty string if it is anything else."""
    try:
        value = json.loads(literal)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def data_image(address: Any) -> bytes | None:
    """Return the picture in a ``data:`` URL as bytes, or None if it is too large or something else."""
    found = _DATA_IMAGE.match(address) if isinstance(address, str) else None
    if found is None or 3 * (len(address) - found.end()) / 4 > MOST_IMAGE_BYTES:
        return None
    try:
        return base64.b64decode(address[found.end() :], validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters beyond ASCII
        return None
