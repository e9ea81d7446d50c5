"""Runs that are JSON values in a file: a whole file, the elements of an array, or the lines of JSON Lines."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from dataset_script.sources.base import (
    JsonPlace,
    SourceFile,
    SourceListing,
    TrajectorySource,
    UnusableFileError,
    content_of,
    file_stamp,
    files_in,
    find_links_out,
    link_names,
    no_runs,
    numbered_ids,
    read_json_at,
)

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


@dataclass(frozen=True, slots=True)
class JsonSource(TrajectorySource):
    """Runs that are JSON values. A subclass says which files hold them, and yields the runs of a file."""

    expected: ClassVar[str]
    """What the source contains, for the error if it does not."""

    def runs_in(self, path: Path) -> Iterator[PlacedRun]:
        """Yield the runs of a file, and an unusable run for each other value."""
        raise NotImplementedError

    def list_runs(self) -> SourceListing:
        """List the runs, repeats in the order of the files. Raises SourceError if there is no run."""
        links = find_links_out(self.folder)
        names, found, others = link_names(links, self.root), list[PlacedRun](), []
        for path in sorted(set(json_files(self.folder)) - links):
            if self.recognises(path):
                found += self.runs_in(path)
            else:
                others.append(self.name_of(path))
        if not any(run.problem is None for run in found):
            raise no_runs(self.folder, f"contains no {self.expected}", names)
        ids = numbered_ids([(run.trajectory_id, place) for place, run in enumerate(found)])
        files = tuple(replace(run, trajectory_id=own) for run, own in zip(found, ids, strict=True))
        return SourceListing(files, tuple(others), (), names)

    def value_of(self, file: SourceFile) -> Any:
        """Return the JSON value of a run. Raises UnusableFileError if it cannot be read."""
        if not isinstance(file, PlacedRun):
            raise UnusableFileError("not_a_trajectory", "was not listed from this source")
        if file.problem:
            raise UnusableFileError(*file.problem)
        if file.is_lines:
            return [read_json_at(file.path, place) for _, place in json_values(file.path)]
        return read_json_at(file.path, file.place)

    def identity(self, file: SourceFile) -> str:
        return "\n".join((file.name, *map(file_stamp, self.files_of(file))))

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the file of a run and its pictures."""
        raise NotImplementedError


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
