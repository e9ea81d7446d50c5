"""Read results of AndroidWorld in JSON Lines, a run per line.

    {"task_name", "goal", "save_dir", "task_success", "trajectory": [{"step", "screenshot_path", "thought",
     "action", "tool_call"}, …]}

The agent is named after the first folder of ``save_dir``, or else after the file. A step's picture shows the
screen before the action. Its path is relative to the file's folder or to a folder above it. ``action`` is a
summary in words if there is a ``tool_call``. ``answer`` and ``terminate`` end a run and are not actions.
``task_success`` is the run's reward, which judges do not see.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, Step
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource, value_of
from dataset_script.sources.files import content_of, first_inside, json_files
from dataset_script.sources.json_values import as_utf8, json_values
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.steps import missing_screenshots
from dataset_script.sources.values import call_text, finite, mapping, objects, valid_text

_LINE: Final = re.compile(
    rb'\s*\[?\s*\{(?=[^\[]*"(?:task_name|task_template)"\s*:)[^\[]*"trajectory"\s*:\s*\['
)
_ENDS: Final = frozenset({"answer", "terminate", "status"})


@dataclass(frozen=True, slots=True)
class AndroidWorldSource(TrajectorySource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "androidworld"
    expected: ClassVar[str] = "contains no results of AndroidWorld in JSON Lines"
    candidates = staticmethod(json_files)

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return _LINE.match(content_of(path, 1 << 16)) is not None

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no step."""
        record = mapping(value_of(file))
        written = objects(record.get("trajectory"))
        if not written:
            raise UnusableFileError("no_steps")
        steps = [self._step(num, each, file.path) for num, each in enumerate(written)]
        notes, (name, arguments) = missing_screenshots(steps), _call(written[-1])
        kind = arguments.get("action", name)
        answer = None
        if kind in _ENDS:
            steps[-1] = replace(steps[-1], action=None)
            answer = valid_text(arguments.get("text")) or valid_text(arguments.get("answer"))
        else:
            notes.append(Note("final_page", f"that of step {len(steps) - 1}"))
            steps.append(Step(len(steps), screenshot=steps[-1].screenshot))
        success = record.get("task_success", record.get("is_successful"))
        recording = Recording(
            trajectory_id=file.trajectory_id,
            goal=valid_text(record.get("goal")) or "",
            cum_reward=finite(success),
            steps=tuple(steps),
            answer=answer,
        )
        return recording, notes

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        yield file.path
        with suppress(UnusableFileError):
            for each in objects(mapping(value_of(file)).get("trajectory")):
                if (picture := self._picture(each.get("screenshot_path"), file.path)) is not None:
                    yield picture

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        for number, (value, place) in enumerate(json_values(path), start=1):
            record, problem = mapping(value), None
            if isinstance(value, Exception):
                problem = "not_json", str(value)[:200]
            elif not isinstance(record.get("trajectory"), list):
                problem = "not_a_trajectory", "has no list trajectory"
            folder = as_utf8(str(record.get("save_dir") or "")).replace("\\", "/").strip("/")
            agent = folder.partition("/")[0] or path.stem
            task = as_utf8(str(record.get("task_name") or record.get("task_template") or number))
            file = self.file(path, f"#{number}", place=place, problem=problem)
            yield FoundRun(file, self.kind, agent, task, (path, number))

    def _step(self, num: int, written: Mapping[str, Any], path: Path) -> Step:
        name, arguments = _call(written)
        action = call_text(name, arguments) if name else valid_text(written.get("action"))
        summary = valid_text(written.get("action")) if name else None
        thoughts = filter(None, (valid_text(written.get("thought")), summary))
        picture = self._picture(written.get("screenshot_path"), path)
        return Step(num, action=action, reasoning="\n\n".join(thoughts) or None, screenshot=picture)

    def _picture(self, name: Any, path: Path) -> Path | None:
        """Return the path of a picture in the file's folder or in a folder above it, or None."""
        above = (folder for folder in path.parents if folder.is_relative_to(self.root))
        return first_inside(((folder, name) for folder in above), self.root)


def _call(written: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name and arguments of a step's tool call. The name is empty if there is no call."""
    call = written.get("tool_call")
    with suppress(ValueError, TypeError, RecursionError):
        call = json.loads(call) if isinstance(call, str) else call
    arguments = mapping(call).get("arguments")
    return valid_text(mapping(call).get("name")) or "", mapping(arguments)
