"""Read result folders of Online-Mind2Web in its leaderboard's format (OSU-NLP-Group/Online-Mind2Web).

    <anything>/<agent>/<task_id>/
        result.json
        trajectory/0000.png, 0001.png, …    (or <step>_full_screenshot_<ms>.png; .jpg, .jpeg, .webp)

Version 2 (its data/schema_v2, ``schema_version: online-mind2web-v2``) has one object per step, with its
picture, address and thought. Version 1 has a list of actions, a list of thoughts, and pictures ordered by
number; a note says if the three disagree. In both, ``TASK_COMPLETE`` as the last action is not an action but
the end of the run, and its text is the answer. A result does not name the agent, so the agent is named after
the folder above the task's. What WebJudge adds to a result (``predicted_label``, ``evaluation_details``, …),
the reference length and the agent's own verdict (``result_status``) are not read.

The result.json of a Harbor trial has no ``action_history``, so it is not mistaken for such a result.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, Step
from dataset_script.sources.agents import AgentFacts
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource
from dataset_script.sources.files import content_of, file_inside, files_in, read_json_object
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.steps import in_order, missing_screenshots
from dataset_script.sources.values import id_part, sequence, valid_text

RESULT: Final = "result.json"
PICTURES: Final = "trajectory"
VERSION_2: Final = "online-mind2web-v2"

_HEAD_BYTES: Final = 65_536
_HISTORY: Final = re.compile(rb'(?<!\\)"action_history"\s*:|"schema_version"\s*:\s*"online-mind2web')
_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_COMPLETE: Final = re.compile(r"TASK_COMPLETE\b(?:\s*->\s*ANSWER:\s*(.*))?", re.DOTALL)
_NAVIGATED: Final = re.compile(r"\bURL: \S+ -> (\S+)")
"""The address that version 1 writes into an action."""


@dataclass(frozen=True, slots=True)
class OnlineMind2WebSource(TrajectorySource):
    """The runs under a folder, or the single run of a result.json."""

    kind: ClassVar[str] = "online-mind2web"
    expected: ClassVar[str] = (
        f"contains no {RESULT} of Online-Mind2Web; name the folder with <agent>/<task_id>/{RESULT}"
    )

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return any(map(_is_result, cls.candidates(folder)))

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        return (path for path in files_in(folder) if path.name == RESULT)

    @staticmethod
    def holds_runs(path: Path) -> bool:
        """Return whether a file is a result. A broken one next to a ``trajectory/`` is reported when read."""
        return (path.parent / PICTURES).is_dir() or _is_result(path)

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        run = path.parent.resolve()  # because a folder may be given as ``.`` or ``..``
        agent = AgentFacts(run.parent.name, {"folder": run.parent.parent.name})
        yield FoundRun(self.file(path), self.kind, agent, run.name, _by_number(self.name_of(path)))

    def read(self, file: SourceFile) -> tuple[Recording, list[Note]]:
        content = read_json_object(file_inside(file.path.name, file.path.parent, self.root))
        history = content.get("action_history")
        if not isinstance(history, list):
            raise UnusableFileError("not_a_trajectory", "has no list action_history")
        if not history:
            raise UnusableFileError("no_steps")
        notes: list[Note] = []
        is_version_2 = content.get("schema_version") == VERSION_2 or isinstance(history[0], dict)
        read_written = self._written_in_version_2 if is_version_2 else self._written_in_version_1
        steps, last_action = _steps(read_written(file.path.parent, content, notes), notes)
        complete = _COMPLETE.match(last_action or "")
        written = "agent_final_answer" if is_version_2 else "final_result_response"
        task_id = valid_text(content.get("task_id"))
        folder = id_part(file.path.parent.resolve().name)
        if task_id is not None and id_part(task_id.removeprefix("tasks/")) != folder:
            notes.append(Note("other_names", f"task_id {task_id[:80]!r}"))
        notes += missing_screenshots(steps)
        recording = Recording(
            trajectory_id=file.trajectory_id,
            goal=valid_text(content.get("task")) or "",
            steps=steps,
            answer=valid_text(content.get(written)) or (complete[1] if complete else None) or None,
            state="TASK_COMPLETE" if complete else None,
        )
        return recording, notes

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        yield file.path
        yield from _pictures(file.path.parent)

    def _written_in_version_2(
        self, run: Path, content: Mapping[str, Any], notes: list[Note]
    ) -> Iterator[Step]:
        for place, step in enumerate(content["action_history"]):
            if not isinstance(step, dict):
                raise UnusableFileError("not_a_trajectory", f"action_history[{place}] is not an object")
        history, changed = in_order(content["action_history"], lambda step: step.get("step"))
        notes += changed
        for place, step in enumerate(history):
            yield Step(
                num=place,
                url=valid_text(step.get("url")) or None,
                action=valid_text(step.get("action")),
                reasoning=valid_text(step.get("thought")) or None,
                screenshot=self._picture(run, step.get("screenshot"), notes),
            )
        numbers = [step.get("step") for step in history]
        if numbers != list(range(len(numbers))):
            notes.append(Note("renumbered", f"written: {str(numbers)[:80]}"))

    def _written_in_version_1(
        self, run: Path, content: Mapping[str, Any], notes: list[Note]
    ) -> Iterator[Step]:
        """Yield the steps. Pictures are matched to actions by position, or by number if some are missing."""
        actions = [valid_text(action) for action in content["action_history"]]
        thoughts = [valid_text(thought) for thought in sequence(content.get("thoughts"))]
        found = (self._picture(run, each.name, notes) for each in _pictures(run))
        pictures = [path for path in found if path is not None]
        ends = bool(_COMPLETE.match(actions[-1] or ""))
        expected = {len(actions)} if ends else {len(actions), len(actions) + 1}
        if len(pictures) in expected or not pictures:
            by_place = dict(enumerate(pictures))
        else:
            by_place = _placed(pictures, len(actions))
        if any(each and len(each) not in expected for each in (thoughts, pictures)):
            counts = f"{len(actions)} actions, {len(thoughts)} thoughts, {len(pictures)} pictures"
            notes.append(Note("unequal_lists", counts))
        thoughts += [None] * (len(actions) + 1)
        last_picture = pictures[-1] if pictures else None
        for place, action in enumerate(actions):
            went = _NAVIGATED.search(action or "")
            picture = last_picture if ends and place == len(actions) - 1 else by_place.get(place)
            url = went[1] if went else None
            yield Step(place, url, action, thoughts[place] or None, screenshot=picture)
        if not ends:
            if len(pictures) == len(actions):
                notes.append(Note("final_page", f"that of step {len(actions) - 1}"))
            thought = thoughts[len(actions)] or None
            yield Step(len(actions), reasoning=thought, screenshot=last_picture)

    def _picture(self, run: Path, name: Any, notes: list[Note]) -> Path | None:
        """Return a picture's path, or None. Add a note if it is missing or outside of the source."""
        if not isinstance(name, str) or not name:
            return None
        try:
            return file_inside(name, run / PICTURES, self.root)
        except UnusableFileError as error:
            notes.append(Note("missing_reference", str(error)))
            return None


def _steps(written: Iterator[Step], notes: list[Note]) -> tuple[tuple[Step, ...], str | None]:
    """Return the steps, of which the last has no action, and the text of the run's last action.

    If a run does not end with TASK_COMPLETE, a final step is added that repeats the last picture.
    """
    steps = list(written)
    last_action = next((step.action for step in reversed(steps) if step.action), None)
    last = steps[-1]
    if last.action is not None and not _COMPLETE.match(last.action):
        if last.screenshot:
            notes.append(Note("final_page", f"that of step {last.num}"))
        steps.append(Step(len(steps), screenshot=last.screenshot))
    steps[-1] = replace(steps[-1], action=None)
    return tuple(steps), last_action


def _placed(pictures: Sequence[Path], actions: int) -> dict[int, Path]:
    """Return each action's picture, by the numbers in the names if all of them fit, else by position."""
    numbers = [number for number in map(_number, pictures) if number is not None]
    if len(set(numbers)) == len(pictures):
        first = min(numbers[0], 1)
        if max(numbers) - first <= actions:
            return {number - first: path for number, path in zip(numbers, pictures, strict=True)}
    return dict(enumerate(pictures))


def _pictures(run: Path) -> list[Path]:
    """Return the pictures of a run, ordered by the numbers in their names as in WebJudge."""
    try:
        with os.scandir(run / PICTURES) as entries:
            names = [entry.name for entry in entries if Path(entry.name).suffix.lower() in _SUFFIXES]
    except OSError:
        return []
    return [run / PICTURES / name for name in sorted(names, key=_by_number)]


def _number(path: Path) -> int | None:
    found = re.search(r"\d{1,9}", path.name)
    return int(found[0]) if found else None


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key in which run-10 comes after run-9."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part), "") if part.isdecimal() and part.isascii() else (-1, part) for part in parts if part]


def _is_result(path: Path) -> bool:
    """Return whether a file begins with a result's keys. Keys quoted in a text do not count."""
    return _HISTORY.search(content_of(path, _HEAD_BYTES)) is not None
