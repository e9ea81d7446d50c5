"""Find the runs in files of chat messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording
from dataset_script.sources.base import (
    JsonPlace,
    Note,
    SourceFile,
    UnusableFileError,
    content_of,
    file_inside,
    id_part,
    mapping,
)
from dataset_script.sources.chat.messages import has_messages, is_message, read_run
from dataset_script.sources.json_values import LINES, JsonSource, PlacedRun, as_utf8, json_files, json_values

BENCHMARK: Final = "chat"
_HEAD_BYTES: Final = 65_536
_LIKE_CHAT: Final = re.compile(
    rb'"role"\s*:\s*"(?:user|system|developer|assistant|tool)"|"messages"\s*:\s*\['
    rb'|"type"\s*:\s*"(?:message|function_call|reasoning)"'
)
_NOT_CHAT: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"status|history)"')
"""The beginning of a log of Inspect or of browser-use, which may be large."""
_OWN_FOLDER: Final = frozenset({"chat", "conversation", "history", "interact_messages", "log", "messages"})
"""Usual names of files in a folder of their own. The folder of such a file is named after the task."""
_PICTURE: Final = re.compile(rb'"(?:file://)?([^":\\]{1,300}\.(?:png|jpe?g|webp|gif))"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatSource(JsonSource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "chat"
    expected: ClassVar[str] = "chat messages; name the folder of files with messages (roles and contents)"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return any(_holds_chat(path) for path in json_files(folder))

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no message of the agent."""
        value = self.value_of(file)
        record = value if isinstance(value, dict) else {"messages": value}
        return read_run(record, file.trajectory_id, file.path.parent, self.root)

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the file of a run and the pictures that it names."""
        yield file.path
        state = file.path.stat()
        for name in _pictures_in(file.path, state.st_mtime_ns, state.st_size):
            with suppress(UnusableFileError):
                yield file_inside(name, file.path.parent, self.root)

    def runs_in(self, path: Path) -> Iterator[PlacedRun]:
        name, values = self.name_of(path), list(json_values(path))
        own = path.parent.resolve() / path.stem
        own = own.parent if path.stem.lower() in _OWN_FOLDER else own
        of_file = f"{BENCHMARK}/{id_part(own.parent.name)}/{id_part(own.name)}"
        if not values or any(is_message(value) for value, _ in values[:1]):
            size = path.stat().st_size
            problem = None if values else ("not_json", "is larger than 1 GB; split it into several files")
            is_lines = path.suffix.lower() in LINES
            yield PlacedRun(path, name, of_file, JsonPlace(0, size, size), is_lines, problem)
            return
        is_one = len(values) == 1 and path.suffix.lower() not in LINES
        agent, task = (own.parent.name, own.name) if is_one else (path.stem, "")
        for number, (value, place) in enumerate(values, start=1):
            record, problem = mapping(value), None
            if isinstance(value, Exception):
                problem = "not_json", str(value)[:200]
            elif not has_messages(value):
                problem = "not_a_trajectory", "has no messages with roles under messages, input or traj"
            parts = (
                _named(record, ("benchmark",)) or BENCHMARK,
                _named(record, ("agent", "agent_name")) or agent,
                _named(record, ("task_id", "id", "custom_id")) or task or str(number),
            )
            named = name if is_one else f"{name}#{number}"
            yield PlacedRun(path, named, "/".join(map(id_part, parts)), place, problem=problem)


def _holds_chat(path: Path) -> bool:
    """Return whether a file begins with chat messages. Most other files are told apart by their beginning."""
    head = content_of(path, _HEAD_BYTES)
    if not _LIKE_CHAT.search(head) or _NOT_CHAT.match(head):
        return False
    first = next((value for value, _ in json_values(path)), None)
    return is_message(first) or has_messages(first)


@lru_cache(maxsize=8)
def _pictures_in(path: Path, *_version: int) -> tuple[str, ...]:
    """Return the texts in a file that are the names of pictures."""
    return tuple(sorted({name.decode("utf-8", "replace") for name in _PICTURE.findall(content_of(path))}))


def _named(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of a record's fields that is a name. The ``id`` of a response does not name a task."""
    for key in keys:
        value = record.get(key)
        if key == "id" and "object" in record:
            continue
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return as_utf8(str(value))
    return None
