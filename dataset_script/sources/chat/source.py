"""Find the runs in files of chat messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording
from dataset_script.sources.base import (
    JsonPlace,
    Note,
    SourceFile,
    SourceListing,
    TrajectorySource,
    UnusableFileError,
    content_of,
    file_inside,
    file_stamp,
    find_links_out,
    id_part,
    link_names,
    mapping,
    no_runs,
    numbered_ids,
    read_json_at,
    valid_text,
)
from dataset_script.sources.chat.messages import Conversation, has_messages, is_message, messages_of
from dataset_script.sources.json_values import LINES, PlacedRun, as_utf8, json_files, json_values

BENCHMARK: Final = "chat"
_HEAD_BYTES: Final = 65_536
_LIKE_CHAT: Final = re.compile(
    rb'"role"\s*:\s*"(?:user|system|developer|assistant|tool)"|"type"\s*:\s*"(?:message|function_call|reasoning)"'
)
_NOT_CHAT: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"status|history)"')
"""The beginning of a log of Inspect or of browser-use, which may be large."""
_PICTURE: Final = re.compile(rb'"(?:file://)?([^":\\]{1,300}\.(?:png|jpe?g|webp|gif))"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatSource(TrajectorySource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "chat"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return any(_holds_chat(path) for path in json_files(folder))

    def list_runs(self) -> SourceListing:
        """List the runs, from the names beside each run's messages. Raises SourceError if there is no run."""
        links = find_links_out(self.folder)
        names = link_names(links, self.root)
        found: list[PlacedRun] = []
        others = []
        for path in sorted(set(json_files(self.folder)) - links):
            if _holds_chat(path):
                found += self._runs_in(path)
            else:
                others.append(self.name_of(path))
        if not any(run.problem is None for run in found):
            problem = "contains no chat messages; name the folder of files with messages (roles and contents)"
            raise no_runs(self.folder, problem, names)
        ids = numbered_ids([(run.trajectory_id, place) for place, run in enumerate(found)])
        files = tuple(replace(run, trajectory_id=own) for run, own in zip(found, ids, strict=True))
        return SourceListing(files, tuple(others), (), names)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no message of the agent."""
        record = self._record(file)
        run = Conversation(file.path.parent, self.root)
        for message in messages_of(record):
            run.add(message)
        goal, reward = valid_text(record.get("goal")), record.get("reward")
        steps, answer = run.finish()
        if not steps:
            raise UnusableFileError("no_steps", "has no message of the agent (role assistant)")
        recording = Recording(
            trajectory_id=file.trajectory_id,
            model=valid_text(record.get("model")) or valid_text(mapping(record.get("response")).get("model")),
            goal=goal or "\n\n".join(run.goal),
            goal_images=tuple(run.goal_images),
            cum_reward=float(reward) if isinstance(reward, int | float) else None,
            steps=tuple(steps),
            answer=answer,
        )
        return recording, run.notes

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the file of a run and the pictures that it names."""
        yield file.path
        state = file.path.stat()
        for name in _pictures_in(file.path, state.st_mtime_ns, state.st_size):
            with suppress(UnusableFileError):
                yield file_inside(name, file.path.parent, self.root)

    def identity(self, file: SourceFile) -> str:
        return "\n".join((file.name, *map(file_stamp, self.files_of(file))))

    def _record(self, file: SourceFile) -> Mapping[str, Any]:
        if not isinstance(file, PlacedRun):
            raise UnusableFileError("not_a_trajectory", "was not listed from a file of chat messages")
        if file.problem:
            raise UnusableFileError(*file.problem)
        if file.is_lines:
            places = (place for _, place in json_values(file.path))
            return {"messages": [read_json_at(file.path, place) for place in places]}
        record = read_json_at(file.path, file.place)
        return record if isinstance(record, dict) else {"messages": record}

    def _runs_in(self, path: Path) -> Iterator[PlacedRun]:
        """Yield the runs of a file, and a run with a problem for each value that is none."""
        name, values = self.name_of(path), list(json_values(path))
        folder = path.parent.resolve()
        of_file = f"{BENCHMARK}/{id_part(folder.name)}/{id_part(path.stem)}"
        if not values or any(is_message(value) for value, _ in values[:1]):
            size = path.stat().st_size
            problem = None if values else ("not_json", "is larger than 1 GB; split it into several files")
            is_lines = path.suffix.lower() in LINES
            yield PlacedRun(path, name, of_file, JsonPlace(0, size, size), is_lines, problem)
            return
        is_one = len(values) == 1 and path.suffix.lower() not in LINES
        agent, task = (folder.name, path.stem) if is_one else (path.stem, "")
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
