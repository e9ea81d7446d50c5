"""Read histories of browser-use, as ``AgentHistoryList.save_to_file`` writes them from version 0.1.40 on.

    <anything>/<agent>/<task_id>.json    or    <anything>/<agent>/<task_id>/AgentHistory.json (history.json)

A file has one item per step: the browser's state that the agent saw, the model's output, and the results of
its actions. Versions differ in what they record:

    0.1.40    screenshots as base64, thoughts in ``current_state``, no task
    0.3.3     thoughts next to the actions
    0.5.9     screenshots as absolute paths (``screenshot_path``)
    0.7.11    ``state_message``, as the model saw it: the task in ``<user_request>``, the page's elements in
              ``<browser_state>``; null in flash mode

The files name neither agent nor model, so the folder names the agent. If a file has no task, ``tasks.json``
in a folder above it may have it: an object of task ids and goals. Pictures are searched for at the recorded
path and, since folders may have been moved, in ``browser_use_agent_…/screenshots`` next to the history or in
a folder above it, and in the run's own folder. One place outside of the source is searched, too: the
temporary folder of the system, where browser-use leaves ``browser_use_agent_…/screenshots``.
``judgement`` (a judge's verdict) and ``success`` (the agent's own) are not read.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, RunUsage, Step
from dataset_script.sources.agents import AgentFacts
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource
from dataset_script.sources.files import (
    content_of,
    file_inside,
    files_in,
    first_inside,
    read_json_object,
    texts_in,
)
from dataset_script.sources.problems import Note, SourceError, UnusableFileError
from dataset_script.sources.steps import in_order, missing_screenshots
from dataset_script.sources.values import add_up, call_text, data_image, mapping, sequence, valid_text

TASKS: Final = "tasks.json"
"""The file with goals by task id, for runs that record no task."""

_HEAD_BYTES: Final = 512
_TAIL_BYTES: Final = 262_144
_ITEM: Final = rb'\{\s*"(?:model_output|result|state|metadata|state_message)"\s*:'
_HISTORY: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"history"\s*:\s*\[\s*(?:\]|(' + _ITEM + rb"))")
_ENDED: Final = re.compile(rb'(?<!\\)"step_end_time"\s*:\s*(\d{1,12}(?:\.\d{1,9})?)')
_SCREENSHOT_PATH: Final = re.compile(rb'(?<!\\)"screenshot_path"\s*:\s*("(?:[^"\\]|\\.){0,4096}")')
_OWN_FOLDER: Final = frozenset({"agenthistory", "agenthistorylist", "history"})
"""Usual names of history files. The folder of such a file is named after the task."""

_THOUGHTS: Final = {
    "thinking": "Thinking",
    "evaluation_previous_goal": "Evaluation of the previous goal",
    "memory": "Memory",
    "next_goal": "Next goal",
}
_FOLLOW_UP_TAGS: Final = re.compile(r"</?(?:initial|follow_up)_user_request>")


@dataclass(frozen=True, slots=True)
class BrowserUseSource(TrajectorySource):
    """The histories under a folder, or a single history file."""

    kind: ClassVar[str] = "browser-use"
    expected: ClassVar[str] = (
        "contains no history of browser-use; name the folder of the files that save_to_file wrote"
    )

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        beginnings = map(_begins, cls.candidates(folder))
        return any(found is not None and found[1] for found in beginnings)

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        files = (path for path in files_in(folder) if path == folder or path.name.lower().endswith(".json"))
        return (path for path in files if path.name != TASKS)

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return _begins(path) is not None

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        goals_of(goals_file(path, self.root))  # report one that cannot be read before any run is read
        task = _task_folder(path)
        agent = AgentFacts(task.parent.name, {"folder": task.parent.parent.name})
        yield FoundRun(self.file(path), self.kind, agent, task.name, (_ended(path), path))

    def read(self, file: SourceFile) -> tuple[Recording, list[Note]]:
        """Read one run. Raises UnusableFileError, or SourceError if tasks.json cannot be read."""
        content = read_json_object(file_inside(file.path.name, file.path.parent, self.root))
        items = content.get("history")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UnusableFileError("not_a_trajectory", "has no list of objects called history")
        if not items:
            raise UnusableFileError("no_steps")
        items, notes = in_order(items, lambda item: mapping(item.get("metadata")).get("step_number"))
        goals = goals_of(goals_file(file.path, self.root))
        goal = _goal(items) or goals.get(_task_folder(file.path).name, "")
        if not goal:
            notes.append(Note("no_goal", f"add {TASKS} with task ids and goals to the source's folder"))
        steps = self._steps(file.path, items, notes)
        notes += missing_screenshots(steps)
        recording = Recording(
            trajectory_id=file.trajectory_id,
            goal=goal,
            steps=steps,
            answer=_answer(items[-1]),
            state=_state(items[-1]),
            usage=_usage(items, mapping(content.get("usage"))),
        )
        return recording, notes

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Yield the history, the file with its goal, and its pictures."""
        yield file.path
        yield goals_file(file.path, self.root)
        names = sorted(texts_in(file.path, _SCREENSHOT_PATH))
        yield from filter(None, (self._find_picture(file.path, name) for name in names))

    def _steps(self, path: Path, items: Sequence[Mapping[str, Any]], notes: list[Note]) -> tuple[Step, ...]:
        """Return a step for each state that the agent saw, and a final one after its last actions.

        The final step is added only if the last item has actions other than ``done``. It repeats the page of
        the step before, because only text is recorded about the results of these actions.
        """
        seen = list(items)
        while len(seen) > 1 and _is_empty(seen[-1]):  # such an item only says that no steps were left
            seen.pop()
        steps = [
            self._step(path, num, item, seen[num - 1] if num else {}, notes) for num, item in enumerate(seen)
        ]
        last = replace(steps[-1], action=_calls(seen[-1], without_done=True))
        if last.action is None:
            return (*steps[:-1], last)
        notes.append(Note("final_page", f"that of step {last.num}"))
        after = _results(seen[-1])
        error = _errors(seen[-1])
        final = replace(
            last, num=len(steps), action=None, reasoning=None, box=None, text=after, last_action_error=error
        )
        return (*steps[:-1], last, final)

    def _step(
        self, path: Path, num: int, item: Mapping[str, Any], before: Mapping[str, Any], notes: list[Note]
    ) -> Step:
        state, message = mapping(item.get("state")), item.get("state_message")
        title = valid_text(state.get("title"))
        elements = filter(None, map(_element, sequence(state.get("interacted_element"))))
        observed = [
            _results(before),
            f"Page title: {title}" if title else None,
            *(f"Acted on: {text}" for text in elements),
        ]
        return Step(
            num=num,
            url=valid_text(state.get("url")) or None,
            action=_calls(item),
            reasoning=_reasoning(item),
            last_action_error=_errors(before),
            axtree=_between(message, "</agent_state>\n<browser_state>", "</browser_state>"),
            screenshot=self._screenshot(path, num, state, notes),
            text="\n".join(part for part in observed if part) or None,
        )

    def _screenshot(
        self, path: Path, num: int, state: Mapping[str, Any], notes: list[Note]
    ) -> bytes | Path | None:
        name, inline = state.get("screenshot_path"), state.get("screenshot")
        if isinstance(name, str) and name:
            if (found := self._find_picture(path, name)) is not None:
                return found
            picture = re.split(r"[/\\]", name)[-1][:80]
            advice = ""
            if (agent := _temporary_folder(name)) is not None:
                picture = f"{agent.name}/screenshots/{picture}"
                advice = ", nor in the temporary folder; copy it from that of the recording machine"
            notes.append(Note("missing_reference", f"step {num}: {picture} is not in the source{advice}"))
        elif isinstance(inline, str) and inline:
            image = data_image(inline if inline.startswith("data:") else f"data:image/png;base64,{inline}")
            if image is None:
                notes.append(
                    Note("broken_image", f"the screenshot of step {num} is not base64, or is too large")
                )
            return image
        return None

    def _find_picture(self, path: Path, name: str) -> Path | None:
        """Return the path of a picture that a history names, as recorded or where it was moved, or None."""
        *parts, picture = re.split(r"[/\\]", name)
        names = [part for part in parts if part]
        own = path.parent if _task_folder(path) == path.parent.resolve() else path.with_suffix("")
        folders = [path.parent / name[: len(name) - len(picture)], own.joinpath(*names[-1:]), own]
        if len(names) > 1:  # the agent's folder has a unique name, so it may be anywhere above
            above = (folder for folder in path.parents if folder.is_relative_to(self.root))
            folders += [folder.joinpath(*names[-2:]) for folder in above]
        if found := first_inside(((folder, picture) for folder in folders), self.root):
            return found
        agent = _temporary_folder(name)
        if agent is not None:
            with suppress(UnusableFileError, OSError):
                found = file_inside(picture, agent / "screenshots", agent)
                return found if agent.lstat().st_uid == os.getuid() else None
        return None


def _temporary_folder(name: str) -> Path | None:
    """Return the folder in the system's temporary folder in which browser-use kept a picture, or None."""
    *_, agent, place, _picture = ("", "", *re.split(r"[/\\]", name))
    is_own = place == "screenshots" and re.fullmatch(r"browser_use_agent_[\w.-]{1,100}", agent)
    return Path(tempfile.gettempdir(), agent) if is_own else None


def _usage(items: Sequence[Mapping[str, Any]], total: Mapping[str, Any]) -> RunUsage | None:
    """Return the recorded totals, or else the sums over the steps."""
    steps = [mapping(item.get("metadata")) for item in items]
    times = [[add_up([step.get(f"step_{each}_time")]) for each in ("start", "end")] for step in steps]
    return RunUsage.of(
        input_tokens=add_up([total.get("total_prompt_tokens")])
        or add_up(step.get("input_tokens") for step in steps),
        output_tokens=add_up([total.get("total_completion_tokens")]),
        cost_usd=add_up([total.get("total_cost")]),
        seconds=add_up(end - start for start, end in times if start is not None and end is not None),
    )


def _texts(values: Iterator[Any]) -> str | None:
    return "\n".join(filter(None, map(valid_text, values))) or None


def _result_list(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping(result) for result in sequence(item.get("result"))]


def _results(item: Mapping[str, Any]) -> str | None:
    """Return the results of a step's actions, without the answer of the run."""
    results = (result for result in _result_list(item) if result.get("is_done") is not True)
    return _texts(result.get("extracted_content") or result.get("long_term_memory") for result in results)


def _errors(item: Mapping[str, Any]) -> str | None:
    return _texts(result.get("error") for result in _result_list(item))


def _actions(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, arguments) for each call in a step. Names whose value is null are skipped."""
    for action in sequence(mapping(item.get("model_output")).get("action")):
        yield from (call for call in mapping(action).items() if call[1] is not None)


def _calls(item: Mapping[str, Any], without_done: bool = False) -> str | None:
    calls = (call_text(*each) for each in _actions(item) if not (without_done and each[0] == "done"))
    return "\n".join(calls) or None


def _reasoning(item: Mapping[str, Any]) -> str | None:
    output = mapping(item.get("model_output"))
    recorded = {**mapping(output.get("current_state")), **output}
    thoughts = ((label, valid_text(recorded.get(name))) for name, label in _THOUGHTS.items())
    return "\n".join(f"{label}: {text}" for label, text in thoughts if text) or None


def _element(element: Any) -> str | None:
    """Return an element that was acted on, as its HTML tag and accessible name, or None if it has no tag."""
    values = mapping(element)
    tag = valid_text(values.get("tag_name") or values.get("node_name"))
    if not tag:
        return None
    attributes = [pair for pair in mapping(values.get("attributes")).items() if isinstance(pair[1], str)]
    short = {key: value if len(value) <= 100 else f"{value[:100]}…" for key, value in attributes}
    written = "".join(f" {key}={json.dumps(value, ensure_ascii=False)}" for key, value in short.items())
    return f"<{tag.lower()}{valid_text(written)}> {valid_text(values.get('ax_name')) or ''}".rstrip()


def _answer(item: Mapping[str, Any]) -> str | None:
    """Return the run's answer: the result of ``done`` with any files it showed, else its argument or None."""
    for result in reversed(_result_list(item)):
        if result.get("is_done") is True and (text := valid_text(result.get("extracted_content"))):
            return text
    ends = [mapping(arguments) for name, arguments in _actions(item) if name == "done"]
    return valid_text(ends[-1].get("text")) or None if ends else None


def _state(item: Mapping[str, Any]) -> str | None:
    if any(result.get("is_done") is True for result in _result_list(item)):
        return "done"
    error = _errors(item)
    return f"error: {error.splitlines()[0][:200]}" if error and error.strip() else None


def _is_empty(item: Mapping[str, Any]) -> bool:
    """Return whether an item has neither state nor output. Newer versions append one after an error."""
    state = mapping(item.get("state"))
    recorded = (state.get("url"), state.get("screenshot_path"), state.get("screenshot"))
    return not item.get("model_output") and not any(recorded)


def _goal(items: Sequence[Mapping[str, Any]]) -> str:
    """Return the first task that the model was shown, or the last one if it has follow-up requests.

    The last one is used only if it contains the first, since a page may also say ``<user_request>``.
    """
    requests = [text for text in (_request(item.get("state_message")) for item in items) if text]
    if not requests:
        return ""
    if "<follow_up_user_request>" not in requests[-1] or requests[0] not in requests[-1]:
        return requests[0]
    lines = _FOLLOW_UP_TAGS.sub("\n", requests[-1]).splitlines()
    return "\n".join(filter(None, map(str.strip, lines)))


def _request(message: Any) -> str | None:
    """Return the task in a message, or None. Versions before 0.12 have it in ``<agent_state>``."""
    if isinstance(message, str) and message.startswith("<user_request>"):
        return _between(message, "<user_request>", "</user_request>")
    return _between(message, "<agent_state>\n<user_request>", "</user_request>")


def _between(message: Any, start: str, end: str) -> str | None:
    """Return the text between the first ``start`` in a message and the ``end`` after it, or None."""
    _, begins, rest = message.partition(start) if isinstance(message, str) else ("", "", "")
    text, ends, _ = rest.partition(end)
    return valid_text(text.strip()) or None if begins and ends else None


def goals_file(history: Path, root: Path) -> Path:
    """Return the path of the nearest tasks.json above a history, or where the source would have it."""
    above = [folder / TASKS for folder in history.parents if folder.is_relative_to(root)]
    return next((path for path in above if path.is_file()), root / TASKS)


def goals_of(path: Path) -> Mapping[str, str]:
    """Return the goals in a tasks.json, keyed by task id. Raises SourceError if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return {}
    return _read_goals(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _read_goals(path: Path, *_version: int) -> Mapping[str, str]:
    try:
        content = read_json_object(file_inside(path.name, path.parent, path.parent))
    except UnusableFileError as error:
        raise SourceError(
            f"{path.name} cannot be read ({error}); write a JSON object that maps task ids to goals"
        ) from error
    goals = ((task, valid_text(goal)) for task, goal in content.items())
    return {task: goal for task, goal in goals if goal}


def _task_folder(path: Path) -> Path:
    """Return a path named after the task: the file without its ending, or its folder (see `_OWN_FOLDER`)."""
    place = path.parent.resolve() / path.stem
    return place.parent if re.sub(r"[^a-z]", "", path.stem.lower()) in _OWN_FOLDER else place


def _begins(path: Path) -> re.Match[bytes] | None:
    """Match the beginning of a history; group 1 is the beginning of the first item, or None."""
    return _HISTORY.match(content_of(path, _HEAD_BYTES))


def _ended(path: Path) -> float:
    """Return when the last step ended, in seconds, or 0 if the end of the file does not say."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            times = _ENDED.findall(file.read(_TAIL_BYTES))
    except OSError:
        return 0.0
    return float(times[-1]) if times else 0.0
