"""Find and read the files of a source. Links that lead out of it are not followed, and pipes are not read."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, Final

from dataset_script.sources.problems import SourceError, UnusableFileError
from dataset_script.sources.values import text_of_literal

MOST_JSON_BYTES: Final = 1_000_000_000
"""The size limit of JSON files. It is needed because the whole file is read into memory."""

MOST_CHECKED_BYTES: Final = 20_000_000
"""The size limit of JSON files that are parsed only to say what is wrong with them."""

LINES: Final = frozenset({".jsonl", ".ndjson"})
"""The file name endings of JSON Lines files."""


def files_in(source: Path, *, whole: bool = False) -> Iterator[Path]:
    """Yield every file under a folder, in order, or the file itself. Links to folders are not followed.

    The folders of the released layout are left out, unless ``whole`` is set.
    """
    if source.is_file():
        yield source
        return
    for place, folders, names in os.walk(source):
        skipped = frozenset() if whole else released_folders(Path(place), source)
        folders[:] = sorted(set(folders) - skipped)
        yield from (Path(place, name) for name in sorted(names))


def json_files(folder: Path) -> Iterator[Path]:
    """Yield the JSON and JSON Lines files under a folder, or the file itself."""
    suffixes = (".json", *LINES)
    return (path for path in files_in(folder) if path == folder or path.suffix.lower() in suffixes)


def released_folders(place: Path, source: Path) -> frozenset[str]:
    """Return the folders of the released layout in ``place``, which readers of other formats skip."""
    is_released = place in (source, source / "trajectories") and (place / "cleaned").is_dir()
    return frozenset({"cleaned", "judgments", "screenshots"} if is_released else ())


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a source's folder after following all links, even broken ones."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(_boundary(folder))
    except (OSError, ValueError):  # a name that is too long, or has a null character
        return False


def _boundary(folder: Path) -> Path:
    """Return the folder that links must not leave. In the Hub's cache, snapshots link to ``blobs``."""
    place = Path(os.path.realpath(folder))
    repository = place.parent.parent
    return repository if place.parent.name == "snapshots" and (repository / "blobs").is_dir() else place


def find_links_out(folder: Path) -> frozenset[Path]:
    """Return the links under a source's folder that lead out of it."""
    found = []
    for place, folders, names in os.walk(folder):
        paths = (Path(place, name) for name in (*folders, *names))
        found += [path for path in paths if path.is_symlink() and not is_inside(path, folder)]
    return frozenset(found)


def is_behind(path: Path, links: frozenset[Path]) -> bool:
    """Return whether a path is one of the links, or goes through one."""
    return bool(links) and not links.isdisjoint((path, *path.parents))


def link_names(links: Iterable[Path], folder: Path) -> tuple[str, ...]:
    return tuple(sorted(link.relative_to(folder).as_posix() for link in links))


def no_runs(folder: Path, problem: str, links: Iterable[str]) -> SourceError:
    """Return the error for a source without runs. It names the links, since the runs may be behind them."""
    return SourceError(
        f"{folder} {problem}" + "".join(f"; {name} is a link out of the source" for name in links)
    )


def file_inside(name: str, folder: Path, root: Path) -> Path:
    """Return the file that a log in ``folder`` names. Raises UnusableFileError unless it is inside ``root``.

    Addresses, absolute paths, paths with ``..`` and links that leave the source are refused.
    """
    shortened = name[:200]
    if "://" in name[:30] or name.startswith("data:"):
        raise UnusableFileError("unreadable", f"{shortened} is an address, not a file of the source")
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or re.match(r"[A-Za-z]:", name):
        raise UnusableFileError("unreadable", f"{shortened} is outside the source")
    path = folder.joinpath(*pure.parts)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a name too long for the system
        is_file = False
    if not is_file:
        raise UnusableFileError("unreadable", f"{shortened} is missing")
    if not is_inside(path, root):
        raise UnusableFileError("unreadable", f"{shortened} is a link that leaves the source")
    return path


def first_inside(places: Iterable[tuple[Path, Any]], root: Path) -> Path | None:
    """Return the first file inside ``root`` among the (folder, name) pairs, or None."""
    for folder, name in places:
        if isinstance(name, str) and name:
            with suppress(UnusableFileError):
                return file_inside(name, folder, root)
    return None


def file_stamp(path: Path) -> str:
    """Return a file's name, size and time of change, which show whether it has changed."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return f"{path.name} absent"
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"


def check_size(size: int) -> None:
    """Raise UnusableFileError if a JSON text of this many bytes is too large to be read."""
    if size > MOST_JSON_BYTES:
        raise UnusableFileError("not_json", f"is larger than {MOST_JSON_BYTES / 1e9:g} GB")


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises UnusableFileError if it is too large or cannot be read."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode):  # reading a pipe would block
            raise UnusableFileError("unreadable", "is not a regular file")
        check_size(state.st_size)
        return path.read_bytes()
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or str(error)) from error


def content_of(path: Path, size: int | None = None) -> bytes:
    """Return a file's bytes, or its first ``size`` bytes; empty if it is too large or cannot be read."""
    try:
        if size is None:
            return read_bytes(path)
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def texts_in(path: Path, pattern: re.Pattern[bytes]) -> tuple[str, ...]:
    """Return the JSON strings that a pattern finds in a file, without repeats. The results are cached."""
    return _texts_in(path, pattern, file_stamp(path))


@lru_cache(maxsize=10_000)
def _texts_in(path: Path, pattern: re.Pattern[bytes], _stamp: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(text_of_literal, pattern.findall(content_of(path)))))


@contextmanager
def json_problems() -> Iterator[None]:
    """Raise UnusableFileError if the block cannot read or decode JSON."""
    try:
        yield
    except UnusableFileError:
        raise
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or str(error)) from error
    except (ValueError, RecursionError, OverflowError) as error:
        raise UnusableFileError("not_json", str(error)[:200]) from error


def read_json_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file. Raises UnusableFileError for anything else."""
    with json_problems():
        content = json.loads(read_bytes(path))
    if not isinstance(content, dict):
        raise UnusableFileError("not_a_trajectory", "is not a JSON object")
    return content


def json_fault(path: Path) -> str:
    """Return why a file is not valid JSON, with the position; empty if it is valid, unreadable or large."""
    try:
        if path.is_file() and path.stat().st_size <= MOST_CHECKED_BYTES:
            read_json_object(path)
    except UnusableFileError as problem:
        return f"is not valid JSON: {problem}" if problem.code == "not_json" else ""
    return ""
