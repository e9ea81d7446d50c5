"""Find the runs in files of chat messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource, value_of
from dataset_script.sources.chat.messages import has_messages, is_message, read_run
from dataset_script.sources.files import LINES, content_of, file_inside, json_files, texts_in
from dataset_script.sources.json_values import as_utf8, json_values
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.values import mapping

_HEAD_BYTES: Final = 65_536
_LIKE_CHAT: Final = re.compile(
    rb'"role"\s*:\s*"(?:user|system|developer|assistant|tool)"|"messages"\s*:\s*\['
    rb'|"type"\s*:\s*"(?:message|function_call|reasoning)"'
)
_NOT_CHAT: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"status|history)"')
"""Matches the beginning of a log of Inspect or of browser-use, which is not read here and may be large."""
_OWN_FOLDER: Final = frozenset({"chat", "conversation", "history", "interact_messages", "log", "messages"})
"""Usual names of files in a folder of their own. The folder of such a file is named after the task."""
_PICTURE: Final = re.compile(rb'("(?:file://)?[^":\\]{1,300}\.(?:png|jpe?g|webp|gif)")', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatSource(TrajectorySource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "chat"
    expected: ClassVar[str] = (
        "contains no chat messages; name the folder of files with messages (roles and contents)"
    )
    candidates = staticmethod(json_files)

    @staticmethod
    def holds_runs(path: Path) -> bool:
        """Return whether a file begins with chat messages. Its first bytes rule out most other files."""
        head = content_of(path, _HEAD_BYTES)
        if not _LIKE_CHAT.search(head) or _NOT_CHAT.match(head):
            return False
        first = next((value for value, _ in json_values(path)), None)
        return is_message(first) or has_messages(first)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no message of the agent."""
        value = value_of(file)
        record = value if isinstance(value, dict) else {"messages": value}
        return read_run(record, file.trajectory_id, file.path.parent, self.root)

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the file of a run and the pictures that it names."""
        yield file.path
        for name in sorted(texts_in(file.path, _PICTURE)):
            with suppress(UnusableFileError):
                yield file_inside(name.removeprefix("file://"), file.path.parent, self.root)

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        values = list(json_values(path))
        own = path.parent.resolve() / path.stem
        own = own.parent if path.stem.lower() in _OWN_FOLDER else own
        if any(is_message(value) for value, _ in values[:1]):
            yield FoundRun(self.file(path), self.kind, own.parent.name, own.name, (path, 0))
            return
        is_one = len(values) == 1 and path.suffix.lower() not in LINES
        agent, task = (own.parent.name, own.name) if is_one else (path.stem, "")
        for number, (value, place) in enumerate(values, start=1):
            record, problem = mapping(value), None
            if isinstance(value, Exception):
                problem = "not_json", str(value)[:200]
            elif not has_messages(value):
                problem = "not_a_trajectory", "has no messages with roles under messages, input or traj"
            member = "" if is_one else f"#{number}"
            yield FoundRun(
                self.file(path, member, place=place, problem=problem),
                _named(record, ("benchmark",)) or self.kind,
                _named(record, ("agent", "agent_name")) or agent,
                _named(record, ("task_id", "id", "custom_id")) or task or str(number),
                (path, number),
            )


def _named(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of these fields that has a name, or None. A response's ``id`` is not a name."""
    for key in keys:
        value = record.get(key)
        if key == "id" and "object" in record:
            continue
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return as_utf8(str(value))
    return None
