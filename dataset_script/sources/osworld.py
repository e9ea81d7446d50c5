"""Read result folders of OSWorld and of benchmarks that run its loop (WindowsAgentArena, macOSArena).

    <anything>/<agent>/<domain>/<task_id>/
        traj.jsonl      an action per line, with the model's response and a picture's name
        step_1….png     the screen after the action with this number (step_0….png: before the first)
        result.txt      the evaluation's score, from 0 to 1
        runtime.log     may have the instruction

The goal is the ``instruction`` of a line, else the one in runtime.log, else that of ``tasks.json`` in the
source's folder (an object of task ids and goals). The score is the run's reward, which judges do not see.
``DONE`` and ``FAIL`` end a run and are not actions. A line ``{"Error": …}`` says why a run was cut off.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, Step
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource
from dataset_script.sources.browser_use import TASKS, goals_file, goals_of
from dataset_script.sources.files import content_of, file_inside, files_in, first_inside
from dataset_script.sources.json_values import json_values, read_json_at
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.values import call_text, finite, mapping, valid_text

TRAJECTORY: Final = "traj.jsonl"
_LINE: Final = re.compile(rb'"(?:step_num|action_timestamp|screenshot_file)"\s*:')
_INSTRUCTION: Final = re.compile(
    r"Instruction\]?:[ \t]*\n?(.+?)(?:\n(?:Model Output|Response):|\n\n|$)", re.DOTALL
)
_FIRST: Final = re.compile(r"step_0(?!\d)")
_ENDS: Final = frozenset({"DONE", "FAIL"})
_LOG_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class OSWorldSource(TrajectorySource):
    """The runs under a folder, or the single run of a traj.jsonl."""

    kind: ClassVar[str] = "osworld"
    expected: ClassVar[str] = (
        f"contains no {TRAJECTORY} of OSWorld; name the folder with <agent>/<domain>/<task_id>"
    )

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        return (path for path in files_in(folder) if path.name == TRAJECTORY)

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return _LINE.search(content_of(path, 1 << 16)) is not None

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        goals_of(goals_file(path, self.root))  # report one that cannot be read before any run is read
        task = path.parent.resolve()
        yield FoundRun(self.file(path), self.kind, task.parent.parent.name, task.name, self.name_of(path))

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no step, or a line that is not JSON."""
        folder, notes = file.path.parent, list[Note]()
        path = file_inside(file.path.name, folder, self.root)
        lines = [mapping(read_json_at(path, place)) for _, place in json_values(path)]
        errors = [valid_text(line[key]) for line in lines for key in ("Error", "error") if line.get(key)]
        lines = [line for line in lines if "action" in line]
        if not lines:
            raise UnusableFileError("no_steps", next(filter(None, errors), ""))
        steps = [
            Step(num, action=_action(line), reasoning=_reasoning(line, before))
            for num, (line, before) in enumerate(zip(lines, ({}, *lines), strict=False))
        ]
        ended = steps[-1].action if steps[-1].action in _ENDS else None
        if ended:
            steps[-1] = replace(steps[-1], action=None)
        else:
            steps.append(Step(len(steps)))
        first = next((path for path in sorted(folder.glob("step_0*.png")) if _FIRST.match(path.name)), None)
        names = [first and first.name, *(line.get("screenshot_file") for line in lines)]
        steps = [
            replace(step, screenshot=first_inside([(folder, name)], self.root))
            for step, name in zip(steps, names, strict=False)
        ]
        missing = [str(step.num) for step in steps[first is None :] if step.screenshot is None]
        if missing:
            notes.append(Note("missing_screenshot", f"steps {', '.join(missing)} of {len(steps)}"))
        numbers = [line.get("step_num") for line in lines]
        if numbers != sorted(numbers, key=lambda number: number if isinstance(number, int) else 0):
            notes.append(Note("renumbered", f"written: {str(numbers)[:80]}"))
        goal = self._goal(folder, lines)
        if not goal:
            notes.append(Note("no_goal", f"add {TASKS} with task ids and goals to the source's folder"))
        recording = Recording(
            trajectory_id=file.trajectory_id,
            goal=goal,
            cum_reward=_score(folder / "result.txt"),
            steps=tuple(steps),
            state=f"error: {errors[0]}"[:200] if errors else ended,
        )
        return recording, notes

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the files of a run's folder, and the file with its goal."""
        yield goals_file(file.path, self.root)
        yield from files_in(file.path.parent)

    def _goal(self, folder: Path, lines: Sequence[Mapping[str, Any]]) -> str:
        for line in lines:
            if goal := valid_text(line.get("instruction")):
                return goal
        log = content_of(folder / "runtime.log", _LOG_BYTES).decode("utf-8", "replace")
        found = _INSTRUCTION.search(log)
        own = found[1].strip() if found else ""
        return own or goals_of(goals_file(folder / TRAJECTORY, self.root)).get(folder.resolve().name, "")


def _literal(value: Any) -> Any:
    """Return the value of a string that is written like a Python dict. Return other values as they are."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return value
    return value


def _action(line: Mapping[str, Any]) -> str | None:
    """Return a line's action. Code is not changed; a tool call becomes its name with the arguments."""
    action = _literal(line["action"])
    if not isinstance(action, dict):
        return valid_text(action)
    arguments = action.get("input")
    name = valid_text(action.get("name")) or valid_text(action.get("action_type")) or "unknown"
    if isinstance(arguments, dict):
        return call_text(name, arguments)
    return valid_text(action.get("command")) or call_text(
        name, {k: v for k, v in action.items() if k != "name"}
    )


def _reasoning(line: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    """Return what the model wrote with a line's action; None if the line before has the same response."""
    if line.get("response") == before.get("response") and line.get("step_num") == before.get("step_num"):
        return None
    response = _literal(line.get("response"))
    if isinstance(response, dict):
        found = [valid_text(response.get(key)) for key in ("reasoning_content", "content", "plan")]
    else:
        found = [valid_text(response)]
    return "\n\n".join(text.strip() for text in found if text) or None


def _score(path: Path) -> float | None:
    try:
        return finite(float(content_of(path, 100)))
    except ValueError:
        return None
