"""The interface of a source of recorded runs, and helpers that several sources use.

A source lists its runs and reads one at a time. `released` reads the layout of the release, `published` our
own Parquet, and `agentlab` the results of AgentLab and browsergym-experiments. Each other module reads the
format it is named after. Targets and judgements are ignored. So are scores and rewards, except the rule-based
reward of benchmarks; `TrajectorySource.scores` has them for a user who asks for them.
"""

import base64
import binascii
import hashlib
import json
import math
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, ClassVar, Final, Literal, TypeVar

from arb.core.replies import Verdict
from arb.core.trajectory import Recording, Step


class SourceError(ValueError):
    """Raised for a folder that is not a usable source of runs; the message says what was expected."""


class UnusableFileError(ValueError):
    """Raised for a file without a usable run; ``code`` is one of `build.report.LEFT_OUT`."""

    def __init__(self, code: str, detail: str = ""):
        super().__init__(code, detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on something odd in a file that is used anyway; ``code`` is one of `build.report.NOTES`."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A run of a source: its path, its name inside the source, and its id."""

    path: Path
    name: str
    trajectory_id: str

    @property
    def size(self) -> int:
        """The approximate number of bytes that have to be read for this run."""
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
    """The kinds of observations that at least one step of a run has; ``texts`` are observations in words."""

    urls: bool
    axtrees: bool
    screenshots: bool
    texts: bool

    @property
    def is_web(self) -> bool:
        """Whether anything of a web page was recorded."""
        return self.urls or self.axtrees or self.screenshots


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The runs of a source, sorted by name, and the names of other files found where runs are expected.

    ``files`` may be a collection that lists the runs again on each iteration, so that a million runs need no
    memory. ``notes`` are about the source as a whole. ``links_out`` names the links that lead out of it,
    which are not followed. ``facts`` are the names of the facts that may name an agent (`--agent-from`).
    """

    files: Collection[SourceFile]
    others: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    links_out: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many files a source has, and from how many of them runs were read. The others are named."""

    found: int
    read: int

    @property
    def named(self) -> int:
        return self.found - self.read

    def to_json(self) -> dict[str, int]:
        return {"found": self.found, "read": self.read, "named": self.named}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudgment(Verdict):
    """A published judge's verdict on a run, and the raw reply it was read from.

    ``has_screenshot`` and ``has_axtree`` say what the judge was shown, or are None if that is not recorded.
    """

    judge: str
    model: str | None
    has_screenshot: bool | None
    has_axtree: bool | None
    reply: str | None


MOST_JSON_BYTES: Final = 1_000_000_000
"""The largest JSON file that is read. It is limited because the whole file is read into memory."""

MOST_IMAGE_BYTES: Final = 50_000_000
"""The largest picture in a log that is read."""

_DATA_IMAGE: Final = re.compile(r"data:image/[^,]{0,80};base64,")
_NOT_IN_IDS: Final = re.compile(r"[/\s\x00-\x1f\x7f]+")


def valid_text(value: Any) -> str | None:
    """Return a text that UTF-8 can encode (with U+FFFD for lone surrogates), or None if it is not a text."""
    if not isinstance(value, str):
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return the value if it is a JSON array, else an empty array."""
    return value if isinstance(value, list) else ()


def finite(value: Any) -> float | None:
    """Return a JSON number or boolean as a float, or None if it is anything else, infinite or too large."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def add_up(values: Iterable[Any]) -> float | None:
    """Return the sum of the numbers of at least 0 among the values, or None if there is none."""
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
    """Return the text of a JSON string literal, or an empty text if it is anything else."""
    try:
        value = json.loads(literal)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a JSON array, without its other elements."""
    return [each for each in sequence(value) if isinstance(each, dict)]


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


def released_folders(place: Path, source: Path) -> frozenset[str]:
    """Return the folders of the released layout in a place, which only its own reader searches."""
    is_released = place in (source, source / "trajectories") and (place / "cleaned").is_dir()
    return frozenset({"cleaned", "judgments", "screenshots"} if is_released else ())


def content_of(path: Path, size: int = -1) -> bytes:
    """Return a file's bytes, or its first ``size`` bytes; empty if it is too large or cannot be read."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode) or (size < 0 and state.st_size > MOST_JSON_BYTES):
            return b""  # reading a pipe would block
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a source's folder after following all links, even broken ones."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(_boundary(folder))
    except (OSError, ValueError):  # a name that is too long, or has a null character
        return False


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
        f"{folder}: {problem}" + "".join(f"; {name} is a link out of the source" for name in links)
    )


def _boundary(folder: Path) -> Path:
    """Return the folder that links must not leave. In the Hub's cache, snapshots link to ``blobs``."""
    place = Path(os.path.realpath(folder))
    repository = place.parent.parent
    return repository if place.parent.name == "snapshots" and (repository / "blobs").is_dir() else place


def numbered_ids(runs: Sequence[tuple[str, Any]]) -> list[str]:
    """Return the ids of runs, in the order given. Repeats of an id get ``~2``, ``~3`` and so on.

    ``runs`` are pairs of ``<benchmark>/<agent>/<task_id>`` and the key that sorts its repeats.
    """
    ids, times = [""] * len(runs), Counter[str]()
    for place in sorted(range(len(runs)), key=lambda place: (runs[place][1], place)):
        task = runs[place][0]
        times[task] += 1
        ids[place] = task if times[task] == 1 else f"{task}~{times[task]}"
    return ids


@dataclass(frozen=True, slots=True)
class TrajectorySource:
    """Recorded runs of one kind. It must be small and picklable, since worker processes get a copy per file.

    ``folder`` is a folder, or a file if the runs are in one log. ``kind`` is one word for the manifest, such
    as ``released``. Subclasses implement `recognises`, `list_runs`, `read` and `identity`, and the methods
    for judgments if the format has any.
    """

    folder: Path
    agent_from: tuple[str, ...] = field(default=(), kw_only=True)
    kind: ClassVar[str]

    @staticmethod
    def recognises(folder: Path) -> bool:
        """Return whether a folder or log file holds runs of this kind. This must be cheap."""
        raise NotImplementedError

    @classmethod
    def open(cls, folder: Path, also_allowed: tuple[str, ...]) -> "TrajectorySource":
        """Return the source of a folder; ``also_allowed`` are classes that its pickles may contain."""
        return cls(folder)

    def list_runs(self) -> SourceListing:
        """List the runs without reading them. Raises SourceError if there are no runs of this kind."""
        raise NotImplementedError

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no trajectory."""
        raise NotImplementedError

    def kind_of(self, file: SourceFile) -> str:
        """Return the kind of a run. It depends on the run only in a folder with several formats."""
        return self.kind

    def files_of(self, file: SourceFile) -> Iterable[Path]:
        """Return the files that belong to a run: by default, its file, or all files of its folder."""
        return files_in(file.path)

    def own_files(self) -> Iterable[Path]:
        """Return the files that are read or meant to be there, although they belong to no run."""
        return ()

    def list_all(self) -> SourceListing:
        """List the runs as `list_runs` does, and every file that belongs to none of them.

        Raises SourceError if there is no run, or if no run has a fact that ``agent_from`` names.
        """
        listing = self.list_runs()
        self.check_agent_from(listing.facts)
        taken = {path for file in listing.files for path in self.files_of(file)} | {*self.own_files()}
        named = {*listing.others, *listing.links_out}
        rest: dict[str, None] = {}
        for path in files_in(self.folder, whole=True):
            if path not in taken:
                name = PurePosixPath(self.name_of(path))
                # A hidden folder, such as one of version control, is named once.
                hidden = (each for each in reversed(name.parents) if each.name.startswith("."))
                if named.isdisjoint(map(str, (name, *name.parents))):
                    rest[str(next(hidden, name))] = None
        return replace(listing, others=(*listing.others, *rest))

    def check_agent_from(self, facts: Collection[str]) -> None:
        """Raise SourceError if ``agent_from`` names something that is not one of these facts."""
        if unknown := [name for name in self.agent_from if name not in facts]:
            known = ", ".join(sorted(facts)) or "nothing, because the ids of this format are fixed"
            raise SourceError(f"--agent-from {unknown[0]}: no run records this; choose from: {known}")

    def count_files(self, listing: SourceListing, left_out: Collection[str]) -> FileCounts | None:
        """Count the source's files, or return None if the format does not store runs in files of their own.

        ``left_out`` has the names of the runs that could not be used.
        """
        found = {*files_in(self.folder, whole=True)} | {self.root / name for name in listing.links_out}
        unused: set[Path] = set()
        read: set[Path] = set()
        for file in listing.files:
            (unused if file.name in left_out else read).update(self.files_of(file))
        own = (path for path in self.own_files() if path not in unused)
        read.update(path for path in own if self.name_of(path) not in left_out)
        return FileCounts(len(found), len(found & read))

    def read_parts(
        self, file: SourceFile, axtrees: Amount = "all", screenshots: Amount = "all", goal_images: bool = True
    ) -> Recording:
        """Read one run. A source may leave out trees and pictures that are not requested."""
        return self.read(file)[0]

    def reward(self, file: SourceFile) -> float | None:
        """Return a run's reward, or None if none was recorded. Raises UnusableFileError as `read` does."""
        return self.read(file)[0].cum_reward

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        """Return the scores in a run's log by name, for `arb data rewards`. Nothing else reads them."""
        reward = finite(self.reward(file))
        return {} if reward is None else {"reward": reward}

    def observed(self) -> Mapping[str, Observed]:
        """Return each run's kinds of observations by id. Empty if they are not known without reading it."""
        return {}

    def data_hash(self, files: Iterable[SourceFile]) -> str:
        """Return a SHA-256 that changes if the recorded runs may have changed."""
        digest = hashlib.sha256()
        for file in files:
            digest.update(f"{file.name}\n{self.identity(file)}\n".encode())
        return digest.hexdigest()

    def identity(self, file: SourceFile) -> str:
        """Return a text that changes if the run may have changed. It must be cheap: names, sizes, times."""
        raise NotImplementedError

    def list_judgments(self) -> SourceListing:
        """List the judgment files; a trajectory may have several. By default, there are none."""
        return SourceListing((), ())

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        """Read one judgment. Raises UnusableFileError if the file has no judgment."""
        raise NotImplementedError

    def origin(self) -> dict[str, str]:
        """Return where the runs came from, such as repository and commit, for the manifest."""
        return {}

    @property
    def root(self) -> Path:
        """The folder that contains all pictures, and that links must not leave."""
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
        facts: Iterable[str] = (),
    ) -> SourceListing:
        """Return the listing of ``runs``: by path, each run's id and the key that sorts its repeats.

        Raises SourceError with the message ``problem`` if ``runs`` is empty.
        """
        names = link_names(links, self.root)
        if not runs:
            raise no_runs(self.folder, problem, names)
        ids = zip(runs, numbered_ids(list(runs.values())), strict=True)
        files = tuple(SourceFile(path, self.name_of(path), each) for path, each in ids)
        return SourceListing(files, tuple(map(self.name_of, others)), notes, names, frozenset(facts))


def missing_screenshots(steps: Sequence[Step]) -> list[Note]:
    """Return a list with a note that names the steps without a screenshot; empty if all have one."""
    missing = [str(step.num) for step in steps if step.screenshot is None]
    return [Note("missing_screenshot", f"steps {', '.join(missing)} of {len(steps)}")] if missing else []


Item = TypeVar("Item")


def in_order(items: Sequence[Item], number: Callable[[Item], Any]) -> tuple[Sequence[Item], list[Note]]:
    """Return the items in the order of their numbers, without repeats, and notes on what changed.

    An item that equals the one before with the same number is a repeat. If items with the same number differ,
    or if some have no number, all remain in their recorded order.
    """
    numbers = [number(item) for item in items]
    if not all(type(each) is int for each in numbers) or numbers == sorted({*numbers}):
        return items, []
    kept: dict[int, list[Item]] = {}
    for each, item in zip(numbers, items, strict=True):
        if item not in kept.setdefault(each, []):
            kept[each].append(item)
    repeats = sorted({each for each in numbers if numbers.count(each) > len(kept[each])})
    notes = [Note("repeated_steps", ", ".join(map(str, repeats))[:80])] if repeats else []
    if any(len(group) > 1 for group in kept.values()):
        twice = [each for each, group in kept.items() if len(group) > 1]
        return items, [Note("unordered_steps", ", ".join(map(str, twice))[:80])]
    left = [item for (item,) in kept.values()]
    ordered = [item for _, (item,) in sorted(kept.items())]
    if ordered != left:
        notes.append(Note("reordered", str(numbers)[:80]))
    return ordered, notes


def ordered_steps(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], list[Note]]:
    """Return the steps with increasing numbers, and notes on what changed.

    Steps whose numbers cannot order them are numbered from 0 in their recorded order.
    """
    ordered, notes = in_order(steps, lambda step: step.num)
    numbers = [step.num for step in ordered]
    if numbers != sorted({*numbers}):
        notes.append(Note("renumbered", f"written: {str(numbers)[:80]}"))
        ordered = [replace(step, num=num) for num, step in enumerate(ordered)]
    return tuple(ordered), notes


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


def file_stamp(path: Path) -> str:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return f"{path.name} absent"
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"


def texts_in(path: Path, pattern: re.Pattern[bytes]) -> tuple[str, ...]:
    """Return the JSON texts that a pattern finds in a file, without repeats. A file is read only once."""
    return _texts_in(path, pattern, file_stamp(path))


@lru_cache(maxsize=10_000)
def _texts_in(path: Path, pattern: re.Pattern[bytes], _stamp: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(text_of_literal, pattern.findall(content_of(path)))))


def data_image(address: Any) -> bytes | None:
    """Return the picture in a ``data:`` URL as bytes, or None if it is too large or something else."""
    found = _DATA_IMAGE.match(address) if isinstance(address, str) else None
    if found is None or 3 * (len(address) - found.end()) / 4 > MOST_IMAGE_BYTES:
        return None
    try:
        return base64.b64decode(address[found.end() :], validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters beyond ASCII
        return None


def read_json_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file. Raises UnusableFileError for anything else."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode):  # reading a pipe would block
            raise UnusableFileError("unreadable", "is not a regular file")
        if state.st_size > MOST_JSON_BYTES:
            raise UnusableFileError("not_json", f"is larger than {MOST_JSON_BYTES / 1e9:g} GB")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UnusableFileError("not_json", str(error)[:200]) from error
    if not isinstance(content, dict):
        raise UnusableFileError("not_a_trajectory", "is not a JSON object")
    return content


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """The place of a JSON text in a file: ``stored`` bytes from ``start`` on.

    In a zip file it starts at the member's header, ``method`` is the compression (0: none, 8: Deflate, 93:
    Zstandard), and ``size`` and ``crc`` are those of the unpacked text. In other files ``method`` is None.
    """

    start: int
    stored: int
    size: int
    method: int | None = None
    crc: int = 0


def read_json_at(path: Path, place: JsonPlace) -> Any:
    """Return the JSON value at a place. Raises UnusableFileError if it is too large or cannot be read."""
    if max(place.size, place.stored) > MOST_JSON_BYTES:
        raise UnusableFileError("not_json", f"is larger than {MOST_JSON_BYTES / 1e9:g} GB")
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
    """Yield (key, value, place) for the values of the JSON object in a file, one at a time.

    The array with the key ``array`` is yielded as one item per element. Texts are decoded as Latin-1, in
    which each character is one byte, so text offsets are file offsets. Use `read_json_at` to decode a value
    properly. Raises OSError. If the object is incomplete, yields the values before the fault and then raises
    ValueError or RecursionError.
    """
    if path.stat().st_size > MOST_JSON_BYTES:
        raise ValueError(f"is larger than {MOST_JSON_BYTES / 1e9:g} GB")
    text = path.read_bytes().decode("latin-1")
    decode = json.JSONDecoder().raw_decode
    at = _after(text, 3 if text.startswith("\xef\xbb\xbf") else 0, "{")
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
    """Return the place after a mark and spaces. Raises ValueError if the mark is missing."""
    at = _skip_space(text, at)
    if not text.startswith(mark, at):
        raise ValueError(f"byte {at}: {mark!r} is missing")
    return _skip_space(text, at + len(mark))


def _comma(text: str, at: int) -> int:
    """Return the place after a comma, or after spaces if the comma is missing."""
    at = _skip_space(text, at)
    return _after(text, at, ",") if text.startswith(",", at) else at


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _unpacked(packed: bytes, place: JsonPlace) -> bytes:
    """Return a member's content. Raises ValueError unless its size and checksum are as recorded."""
    try:
        match place.method:
            case 0:
                content = packed
            case 8:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, place.size + 1)
            case 93:  # Zstandard, which Python's own zipfile reads only from 3.14 on
                import pyarrow as pa  # noqa: PLC0415 - heavy, only for Zstandard

                content = pa.Codec("zstd").decompress(packed, decompressed_size=place.size, asbytes=True)
            case _:
                raise ValueError(f"uses an unsupported compression (method {place.method})")
    except (zlib.error, OSError) as error:
        raise ValueError(f"cannot be unpacked ({error})") from error
    if len(content) != place.size or zlib.crc32(content) != place.crc:
        raise ValueError("is damaged: its size or checksum differs from the zip file's directory")
    return content
