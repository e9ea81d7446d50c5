"""Recorded runs in one neutral form, whatever they come from, and what a source of them gives.

A source lists its runs and reads one at a time: `released` and `published` are the layouts of the release and
of our own Parquet, `agentlab` is what AgentLab and browsergym-experiments leave behind, the others are the
logs of their names. Whatever a format says of scores, rewards, targets and judgements is not read, but for
the rule-based reward of the web benchmarks.
"""

import base64
import binascii
import hashlib
import json
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, ClassVar, Final, Literal

from arb.core.replies import Verdict
from arb.core.trajectory import Recording, Step


class SourceError(ValueError):
    """A folder that is no source of runs; the message says what was expected."""


class UnusableFileError(ValueError):
    """A file that gives no row: ``code`` as in `build.report.LEFT_OUT`, and the detail as its text."""

    def __init__(self, code: str, detail: str = ""):
        super().__init__(code, detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class Note:
    """Something odd in a file that was used all the same: a code of `build.report.NOTES`, and a detail."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A run of the source: where it lies, its name inside the source, the id that its place spells."""

    path: Path
    name: str
    trajectory_id: str

    @property
    def size(self) -> int:
        """About how many bytes are read for this run at once."""
        try:
            if self.path.is_dir():
                return sum(path.stat().st_size for path in self.path.iterdir())
            return self.path.stat().st_size
        except OSError:
            return 0


Amount = Literal["none", "last", "all"]
"""The steps whose trees or screenshots are read."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The parts that at least one step of a run has; ``texts`` are observations in words."""

    urls: bool
    axtrees: bool
    screenshots: bool
    texts: bool

    @property
    def is_web(self) -> bool:
        """Whether anything was recorded of a web page."""
        return self.urls or self.axtrees or self.screenshots


@dataclass(frozen=True, slots=True)
class SourceListing:
    """What a source holds: its runs, by name, and the names of whatever else lies where runs are expected.

    ``files`` may be listed anew each time that they are iterated, so that a million are never held. ``notes``
    are about the source as a whole; ``links_out`` are the names of links that lead out of it. Nothing behind
    those is read.
    """

    files: Collection[SourceFile]
    others: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    links_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudgment(Verdict):
    """A published judge's verdict on a run and the raw reply it was read from; no prompt and no reward.

    ``has_screenshot`` and ``has_axtree`` are what the judge was shown; None where it is not recorded.
    """

    judge: str
    model: str | None
    has_screenshot: bool | None
    has_axtree: bool | None
    reply: str | None


MOST_JSON_BYTES: Final = 1_000_000_000
"""A larger JSON file is refused: it is read whole."""

MOST_IMAGE_BYTES: Final = 50_000_000
"""A larger picture inside a log is not read."""

_DATA_IMAGE: Final = re.compile(r"data:image/[^,]{0,80};base64,")
_NOT_IN_IDS: Final = re.compile(r"[/\s\x00-\x1f\x7f]+")


def valid_text(value: Any) -> str | None:
    """Text fit for UTF-8 (half of a surrogate pair becomes U+FFFD); None for anything that is no text."""
    if not isinstance(value, str):
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return a JSON array as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else ()


def id_part(name: str) -> str:
    """A name as a part of a trajectory id: no slash, white space or control character; never empty."""
    return _NOT_IN_IDS.sub("_", (valid_text(name) or "").strip()).strip("_") or "unknown"


def call_text(name: str, arguments: Any) -> str:
    """A tool call: ``name(key=value, …)`` with values in JSON; arguments that are no object stand alone."""
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


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON array; anything else in it is left out."""
    return [each for each in sequence(value) if isinstance(each, dict)]


def files_in(source: Path) -> Iterator[Path]:
    """Every file under a folder, in order, or the file that is named. Links to folders are not followed."""
    if source.is_file():
        yield source
        return
    for place, folders, names in os.walk(source):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names))


def content_of(path: Path, size: int = -1) -> bytes:
    """A file's bytes, or the first ``size``; none of what is too large, cannot be read or is no file."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode) or (size < 0 and state.st_size > MOST_JSON_BYTES):
            return b""  # a pipe would be waited for
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads into a source's folder once every link on it is followed, those to nowhere too."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(_boundary(folder))
    except (OSError, ValueError):  # too long a name, a null character
        return False


def find_links_out(folder: Path) -> frozenset[Path]:
    """Return the links under a source's folder that lead out of it."""
    found = []
    for place, folders, names in os.walk(folder):
        paths = (Path(place, name) for name in (*folders, *names))
        found += [path for path in paths if path.is_symlink() and not is_inside(path, folder)]
    return frozenset(found)


def is_behind(path: Path, links: frozenset[Path]) -> bool:
    """Whether a path is one of the links, or is reached through one."""
    return bool(links) and not links.isdisjoint((path, *path.parents))


def link_names(links: Iterable[Path], folder: Path) -> tuple[str, ...]:
    """The links as a listing names them: inside the source's folder, in order."""
    return tuple(sorted(link.relative_to(folder).as_posix() for link in links))


def no_runs(folder: Path, problem: str, links: Iterable[str]) -> SourceError:
    """What is raised where a source holds no run: it may be that they lie behind the links that are named."""
    return SourceError(f"{folder}: {problem}" + "".join(f"; {name} is a link out of it" for name in links))


def _boundary(folder: Path) -> Path:
    """The folder itself. The Hub's cache keeps the files of a snapshot beside it, in ``blobs`` of the
    repository, and links to them from the snapshot; there the repository is the boundary."""
    place = Path(os.path.realpath(folder))
    repository = place.parent.parent
    return repository if place.parent.name == "snapshots" and (repository / "blobs").is_dir() else place


def numbered_ids(runs: Sequence[tuple[str, Any]]) -> list[str]:
    """The ids of runs, in the order given. Repeats of one id get ``~2``, ``~3``, … by their sort keys.

    ``runs`` are pairs of ``<benchmark>/<agent>/<task_id>`` and what orders its repeats: seed, then time.
    """
    ids, times = [""] * len(runs), Counter[Hashable]()
    for place in sorted(range(len(runs)), key=lambda place: (runs[place][1], place)):
        task = runs[place][0]
        times[task] += 1
        ids[place] = task if times[task] == 1 else f"{task}~{times[task]}"
    return ids


@dataclass(frozen=True, slots=True)
class TrajectorySource:
    """Recorded runs of one kind. Small and picklable: worker processes get a copy with every file.

    ``folder`` is what was named: a folder, or for logs that are one file that file. ``kind`` is one word for
    the manifest, such as ``released``. Subclasses have the first three methods, and those for judgments if
    the source also holds what published judges said.
    """

    folder: Path
    kind: ClassVar[str]

    def list_runs(self) -> SourceListing:
        """List the runs without reading them. Raises SourceError when the folder is no such source."""
        raise NotImplementedError

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError when it gives no trajectory."""
        raise NotImplementedError

    def read_parts(
        self, file: SourceFile, axtrees: Amount = "all", screenshots: Amount = "all", goal_images: bool = True
    ) -> Recording:
        """Read one run; a source that can skip trees and pictures reads only those asked for."""
        return self.read(file)[0]

    def reward(self, file: SourceFile) -> float | None:
        """Return a run's reward, or None if none was recorded. Raises UnusableFileError."""
        return self.read(file)[0].cum_reward

    def observed(self) -> Mapping[str, Observed]:
        """Return the recorded parts of each run by id; empty if only reading all runs would tell."""
        return {}

    def data_hash(self, files: Iterable[SourceFile]) -> str:
        """Return a SHA-256 that changes if the recorded runs may have changed."""
        digest = hashlib.sha256()
        for file in files:
            digest.update(f"{file.name}\n{self.identity(file)}\n".encode())
        return digest.hexdigest()

    def identity(self, file: SourceFile) -> str:
        """A text that changes when what ``read`` gives may have changed: names, sizes, times; cheap."""
        raise NotImplementedError

    def list_judgments(self) -> SourceListing:
        """List the judgment files; several may speak of one trajectory."""
        return SourceListing((), ())

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        """Read one judgment. Raises UnusableFileError when it gives none."""
        raise NotImplementedError

    def origin(self) -> dict[str, str]:
        """Return what the manifest is to say of where the runs came from."""
        return {}

    @property
    def root(self) -> Path:
        """The folder that no picture and no link of the source may lead out of."""
        return self.folder.parent if self.folder.is_file() else self.folder

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def listing(
        self,
        runs: Mapping[Path, tuple[str, Any]],
        links: Iterable[Path],
        problem: str,
        others: Iterable[Path] = (),
        notes: tuple[Note, ...] = (),
    ) -> SourceListing:
        """List runs by their paths, each with its id and the sort key of repeats.

        Raises:
            SourceError: There is no run; the message is ``problem``.
        """
        names = link_names(links, self.root)
        if not runs:
            raise no_runs(self.folder, problem, names)
        ids = zip(runs, numbered_ids(list(runs.values())), strict=True)
        files = tuple(SourceFile(path, self.name_of(path), each) for path, each in ids)
        return SourceListing(files, tuple(map(self.name_of, others)), notes, names)


def missing_screenshots(steps: Sequence[Step]) -> list[Note]:
    """Return a note that names the steps without a screenshot, or nothing if all have one."""
    missing = [str(step.num) for step in steps if step.screenshot is None]
    return [Note("missing_screenshot", f"steps {', '.join(missing)} of {len(steps)}")] if missing else []


def file_inside(name: str, folder: Path, root: Path) -> Path:
    """The file that a log in ``folder`` names. Raises UnusableFileError unless it lies inside ``root``.

    Addresses, absolute and climbing paths are refused, and links that leave the source.
    """
    shortened = name[:200]
    if "://" in name[:30] or name.startswith("data:"):
        raise UnusableFileError("unreadable", f"{shortened} is an address, not a file of the source")
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or re.match(r"[A-Za-z]:", name):
        raise UnusableFileError("unreadable", f"{shortened} lies outside of the source")
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


def file_stamp(path: Path) -> str:
    """A file's name, size and time, for `TrajectorySource.identity`."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return f"{path.name} absent"
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"


def data_image(address: Any) -> bytes | None:
    """The picture in a ``data:`` address, unchecked; None for any other address, bad base64 and huge ones."""
    found = _DATA_IMAGE.match(address) if isinstance(address, str) else None
    if found is None or 3 * (len(address) - found.end()) / 4 > MOST_IMAGE_BYTES:
        return None
    try:
        return base64.b64decode(address[found.end() :], validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters beyond ASCII
        return None


def read_json_object(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file. Raises UnusableFileError for anything else."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode):  # a pipe would be waited for
            raise UnusableFileError("unreadable", "is no regular file")
        if state.st_size > MOST_JSON_BYTES:
            raise UnusableFileError("not_json", f"has more than {MOST_JSON_BYTES / 1e9:g} GB")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UnusableFileError("not_json", str(error)[:200]) from error
    if not isinstance(content, dict):
        raise UnusableFileError("not_a_trajectory", "is no JSON object")
    return content


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """Where a JSON text lies in a file: bytes from ``start`` on; of a member of a zip file, from its head on.

    ``method`` is how the zip file packs it (0, 8, 93: stored, deflated, Zstandard); None in any other file.
    """

    start: int
    stored: int
    size: int
    method: int | None = None
    crc: int = 0


def read_json_at(path: Path, place: JsonPlace) -> Any:
    """The JSON value at a place. Raises UnusableFileError, also for one that is larger than it may be."""
    if max(place.size, place.stored) > MOST_JSON_BYTES:
        raise UnusableFileError("not_json", f"has more than {MOST_JSON_BYTES / 1e9:g} GB")
    try:
        with path.open("rb") as file:
            file.seek(place.start)
            if place.method is not None:
                head = file.read(30)
                if not head.startswith(b"PK\x03\x04") or len(head) < 30:
                    raise ValueError("its place in the zip file is wrong")
                file.seek(sum(struct.unpack("<HH", head[26:])), os.SEEK_CUR)
            packed = file.read(min(place.stored, os.fstat(file.fileno()).st_size))
        return json.loads(packed if place.method is None else _unpacked(packed, place))
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or str(error)) from error
    except (ValueError, RecursionError, OverflowError) as error:
        raise UnusableFileError("not_json", str(error)[:200]) from error


_SPACE: Final = re.compile(r"[ \t\r\n]*")


def json_parts(path: Path, array: str) -> Iterator[tuple[str, Any, JsonPlace]]:
    """The values of the JSON object in a file, with keys and places; of the array ``array`` each element.

    Only one value is held at a time. Text in them is UTF-8 read as Latin-1, in which a character is a byte:
    places in the text are places in the file, and `read_json_at` gives the value as it is. Raises OSError,
    and ValueError or RecursionError where it is no whole JSON object, after what comes before the fault.
    """
    if path.stat().st_size > MOST_JSON_BYTES:
        raise ValueError(f"has more than {MOST_JSON_BYTES / 1e9:g} GB")
    text = path.read_bytes().decode("latin-1")
    decode = json.JSONDecoder().raw_decode
    at = _after(text, 0, "{")
    while not text.startswith("}", at):
        key, at = decode(text, at)
        at = _after(text, at, ":")
        if key == array and text.startswith("[", at):
            at = _after(text, at, "[")
            while not text.startswith("]", at):
                value, end = decode(text, at)
                yield key, value, JsonPlace(at, end - at, end - at)
                at = _comma(text, end)
            at += 1
        else:
            value, end = decode(text, at)
            yield key, value, JsonPlace(at, end - at, end - at)
            at = end
        at = _comma(text, at)


def _after(text: str, at: int, mark: str) -> int:
    """The place of what follows a mark and blanks. Raises ValueError when it does not stand there."""
    at = _SPACE.match(text, at).end()
    if not text.startswith(mark, at):
        raise ValueError(f"byte {at}: {mark!r} is missing")
    return _SPACE.match(text, at + len(mark)).end()


def _comma(text: str, at: int) -> int:
    """The place of what follows a comma, or of what stands there in place of one."""
    at = _SPACE.match(text, at).end()
    return _after(text, at, ",") if text.startswith(",", at) else at


def _unpacked(packed: bytes, place: JsonPlace) -> bytes:
    """A member's content, of the size and checksum that the zip file's directory has. Raises ValueError.

    Python's own zipfile reads Zstandard from 3.14 on.
    """
    try:
        match place.method:
            case 0:
                content = packed
            case 8:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, place.size + 1)
            case 93:
                import pyarrow as pa

                content = pa.Codec("zstd").decompress(packed, decompressed_size=place.size, asbytes=True)
            case _:
                raise ValueError(f"is packed by a method that cannot be read ({place.method})")
    except (zlib.error, OSError) as error:
        raise ValueError(f"cannot be unpacked ({error})") from error
    if len(content) != place.size or zlib.crc32(content) != place.crc:
        raise ValueError("is damaged: size or checksum differ from the zip file's directory")
    return content
