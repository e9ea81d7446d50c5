"""Runs that are JSON values in a file: a whole file, the elements of an array, or the lines of JSON Lines."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dataset_script.sources.base import JsonPlace, SourceFile, content_of, files_in

LINES: Final = frozenset({".jsonl", ".ndjson"})
_SPACE: Final = re.compile(r"[\s,]*")
_NOWHERE: Final = JsonPlace(0, 0, 0)
_UTF8_MARK: Final = "\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class PlacedRun(SourceFile):
    """A run at a place in a file, or the code and detail of why it cannot be read.

    If ``is_lines``, the run is all the values of a file.
    """

    place: JsonPlace = _NOWHERE
    is_lines: bool = False
    problem: tuple[str, str] | None = None

    @property
    def size(self) -> int:
        return self.place.size


def json_files(source: Path) -> Iterator[Path]:
    """Yield the JSON and JSON Lines files under a folder, or the file itself."""
    suffixes = (".json", *LINES)
    return (path for path in files_in(source) if path == source or path.suffix.lower() in suffixes)


def json_values(path: Path) -> Iterator[tuple[Any, JsonPlace]]:
    """Yield each JSON value of a file with its place: the elements of a single array, else value by value.

    Texts are decoded as Latin-1, so that text offsets are file offsets (see `as_utf8`). In place of a value
    that cannot be read, yields the ValueError or RecursionError that says why. JSON Lines are read on after
    that line, other files are not.
    """
    text, is_lines = content_of(path).decode("latin-1"), path.suffix.lower() in LINES
    at, end = _skip(text, len(_UTF8_MARK) if text.startswith(_UTF8_MARK) else 0), len(text)
    if text.startswith("[", at) and not is_lines:
        at, end = _skip(text, at + 1), len(text.rstrip().removesuffix("]"))
    decode = json.JSONDecoder().raw_decode
    while at < end:
        try:
            value, after = decode(text, at)
        except (ValueError, RecursionError) as error:
            line_end = text.find("\n", at, end) if is_lines else end
            value, after = error, line_end if line_end >= 0 else end
        yield value, JsonPlace(at, after - at, after - at)
        at = _skip(text, after)


def as_utf8(text: str) -> str:
    """Return a text that was decoded as Latin-1 as the UTF-8 that it is."""
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
