"""Read result folders of AgentLab and browsergym-experiments, without importing them or running a pickle.

    <study>/<date>_<agent>_on_<task>_<seed>/
        exp_args.pkl  goal_object.pkl.gz  summary_info.json  step_<n>.pkl.gz  screenshot_step_<n>.png

A folder with exp_args.pkl is a run. If its name begins with ``_`` or ``.``, AgentLab moved it aside when it
repeated the run, so it is not listed as a run. A run without summary_info.json was cut off. The goal is a
list of text and image parts, as in chat messages. If there are several runs of an agent on a task, the first
by seed and time has the id ``benchmark/agent/task`` and the others ``…~2``, ``…~3`` and so on. Runs that were
cut off come last.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, Step
from dataset_script.sources.agents import AgentFacts, settings_in
from dataset_script.sources.axtree import acted_on, axtree_text, box_of
from dataset_script.sources.base import FoundRun, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.files import (
    file_stamp,
    files_in,
    find_links_out,
    is_behind,
    is_inside,
    json_problems,
)
from dataset_script.sources.pickle_values import field
from dataset_script.sources.pickles import read_pickle
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.released_files import state_in, usage_in
from dataset_script.sources.steps import missing_screenshots
from dataset_script.sources.values import data_image, mapping, valid_text


def goal_text(goal: Any) -> str:
    """Return a goal as text, with one line per text part as in the release. A string is not changed."""
    if isinstance(goal, str):
        return goal
    return "".join(f"{text}\n" for text in _parts(goal, "text") if isinstance(text, str))


def goal_images(goal: Any) -> tuple[bytes, ...]:
    """Return the images that a goal contains as ``data:`` URLs. Web addresses are ignored."""
    images = []
    for part in _parts(goal, "image_url"):
        image = data_image(part if isinstance(part, str) else field(part, "url"))
        if image is not None:
            images.append(image)
    return tuple(images)


def _parts(goal: Any, kind: str) -> Iterator[Any]:
    for part in goal if isinstance(goal, list | tuple) else ():
        if field(part, "type") == kind:
            yield field(part, kind)


ARGUMENTS: Final = "exp_args.pkl"
SUMMARY: Final = "summary_info.json"
PICTURES: Final = (".png", ".jpg")
_FOLDER_NAME: Final = re.compile(r"[\d-]{10}_[\d-]{8}_(?P<agent>.+)_on_(?P<task>.+?)_\d+(?:_\d+)?")
_STEP_FILE: Final = re.compile(r"step_(\d{1,6})\.pkl\.gz")


@dataclass(frozen=True, slots=True)
class AgentLabSource(TrajectorySource):
    """The runs under a folder. ``also_allowed`` names classes (``module.class``) that pickles may contain."""

    also_allowed: tuple[str, ...] = ()
    kind: ClassVar[str] = "agentlab"
    expected: ClassVar[str] = f"contains no folder with {ARGUMENTS}; name AgentLab's results folder"

    @classmethod
    def open(cls, folder: Path, also_allowed: tuple[str, ...]) -> "AgentLabSource":
        return cls(folder, also_allowed)

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return folder.is_dir() and any(path.name == ARGUMENTS for path in files_in(folder))

    def list_runs(self) -> SourceListing:
        """List the runs by name. Reads only each run's small exp_args.pkl, for its id.

        A run with a link that leads out of the source is left out, unless the link is a picture. Then only
        the picture is left out. Raises SourceError if there is no run.
        """
        links = find_links_out(self.folder)
        incomplete = {link.parent for link in links if link.suffix not in PICTURES}
        runs = sorted(path.parent for path in files_in(self.folder) if path.name == ARGUMENTS)
        runs = [run for run in runs if run not in incomplete and not is_behind(run, links)]
        aside = [run for run in runs if any(part[0] in "_." for part in run.relative_to(self.folder).parts)]
        found = [self._found(run) for run in runs if run not in aside]
        return self.listing(found, links, aside)

    def read(self, file: SourceFile) -> tuple[Recording, list[Note]]:
        """Read one run, a step at a time. Raises UnusableFileError if the run cannot be used."""
        arguments = read_pickle(file.path / ARGUMENTS, self.also_allowed)
        _agent_and_task(arguments)  # raises if one is missing
        summary = _summary(file.path)
        found = (_STEP_FILE.fullmatch(path.name) for path in file.path.iterdir())
        numbers = sorted(int(each[1]) for each in found if each)
        if not numbers:
            raise UnusableFileError(
                "crashed" if summary.get("err_msg") else "no_steps", state_in(summary) or ""
            )
        steps = tuple(self._step(file.path, number) for number in numbers)
        goal = self._goal(file.path)
        model = valid_text(field(arguments, "agent_args", "chat_model_args", "model_name"))
        reward = summary.get("cum_reward")
        recording = Recording(
            trajectory_id=file.trajectory_id,
            model=model,
            goal=valid_text(goal_text(goal)) or "",
            goal_images=goal_images(goal),
            cum_reward=float(reward) if isinstance(reward, int | float) else None,
            steps=steps,
            state=state_in(summary),
            usage=usage_in(summary),
        )
        return recording, missing_screenshots(steps)

    def identity(self, file: SourceFile) -> str:
        files = (path for path in sorted(file.path.iterdir()) if path.is_file())
        return "\n".join((*map(file_stamp, files), *self.also_allowed))

    def _found(self, run: Path) -> FoundRun:
        """Return a run with the agent and task from its arguments, or else from its folder's name."""
        seed = None
        facts = {"folder": run.absolute().parent.name}
        try:
            arguments = read_pickle(run / ARGUMENTS, self.also_allowed)
            name, task = _agent_and_task(arguments)
            seed = field(arguments, "env_args", "task_seed")
            settings = dict(settings_in(field(arguments, "agent_args")))
            settings |= settings_in({"max_steps": field(arguments, "env_args", "max_steps")})
            if model := settings.pop("chat_model_args.model_name", None):
                facts["model"] = model
            settings.pop("agent_name", None)
            # AgentLab adapts the other arguments to the benchmark.
            of_task = {key for key in settings if not key.startswith("chat_model_args.")}
            agent = AgentFacts(name, facts, settings, frozenset(of_task))
        except UnusableFileError:
            found = _FOLDER_NAME.fullmatch(run.name)
            name, task = (found["agent"], found["task"]) if found else ("unknown", run.name)
            agent = AgentFacts(name, facts)
        order = not _has_ended(run), seed if type(seed) is int else 0, run.name
        return FoundRun(self.file(run), task.split(".")[0], agent, task, order)

    def _step(self, run: Path, number: int) -> Step:
        recorded = read_pickle(run / f"step_{number}.pkl.gz", self.also_allowed)
        seen, agent_info = field(recorded, "obs"), field(recorded, "agent_info")
        properties = field(seen, "extra_element_properties")
        action = valid_text(field(recorded, "action"))
        pictures = (run / f"screenshot_step_{number}{ending}" for ending in PICTURES)
        inside = (path for path in pictures if path.is_file() and is_inside(path, self.folder))
        full, pruned = _trees(seen, properties, run / f"step_{number}.pkl.gz")
        return Step(
            num=number,
            url=valid_text(field(seen, "url")),
            action=action,
            reasoning=valid_text(field(agent_info, "think")),
            last_action_error=valid_text(field(seen, "last_action_error")),
            focused_element=valid_text(field(seen, "focused_element_bid")),
            axtree=full,
            axtree_pruned=pruned,
            box=box_of(acted_on(action), properties),
            screenshot=next(inside, None),
        )

    def _goal(self, run: Path) -> Any:
        if (run / "goal_object.pkl.gz").is_file():
            return read_pickle(run / "goal_object.pkl.gz", self.also_allowed)
        first = run / "step_0.pkl.gz"
        seen = field(read_pickle(first, self.also_allowed), "obs") if first.is_file() else None
        return field(seen, "goal_object") or field(seen, "goal")


def _has_ended(run: Path) -> bool:
    summary = run / SUMMARY
    return summary.is_file() and summary.stat().st_size > 0


def _agent_and_task(arguments: Any) -> tuple[str, str]:
    agent = valid_text(field(arguments, "agent_args", "agent_name"))
    task = valid_text(field(arguments, "env_args", "task_name"))
    if not agent or not task:
        raise UnusableFileError("not_a_trajectory", f"{ARGUMENTS} does not name an agent and a task")
    return agent.replace("/", "_"), task.removeprefix("browsergym/").replace("/", "_")


def _summary(run: Path) -> Mapping[str, Any]:
    """Return the content of summary_info.json. Raises UnusableFileError if the run was cut off."""
    if not _has_ended(run):
        raise UnusableFileError("crashed", "summary_info.json is missing, so the run was cut off")
    try:
        with json_problems():
            return mapping(json.loads((run / SUMMARY).read_bytes()))
    except UnusableFileError as error:
        raise UnusableFileError("not_json", f"{SUMMARY}: {error}"[:200]) from error


def _trees(seen: Any, properties: Any, path: Path) -> tuple[str | None, str | None]:
    """Return the full and the pruned tree as text, each None if missing. A recorded text is preferred."""
    full, tree = valid_text(field(seen, "axtree_txt")), field(seen, "axtree_object")
    if tree is None or not isinstance(properties, dict):
        return full, None
    try:
        made = axtree_text(tree, properties) if full is None else full
        return valid_text(made), valid_text(axtree_text(tree, properties, pruned=True))
    except ValueError as error:
        raise UnusableFileError("not_a_trajectory", f"{path.name}: {error}") from error
