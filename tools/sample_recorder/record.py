"""Record the sample: every agent on every task, in a real browser, into a folder in the released layout."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from arb.core.files import atomic_write
from tools.sample_recorder.agents import (
    CHARACTERS,
    Character,
    ScriptedAgent,
    ScriptError,
    Task,
    is_unchanged,
    load_tasks,
)
from tools.sample_recorder.browser import (
    BrowserFailed,
    closing,
    find_browser,
    first_line,
    open_environment,
    tree_texts,
)
from tools.sample_recorder.rewards import reward
from tools.sample_recorder.sites import PLACES
from tools.sample_recorder.sites.base import Stage, serve_sites

MOST_STEPS: Final = 20
"""The maximum number of steps in a run. A longer run has a mistake in its script."""


ATTEMPTS: Final = 5


class SlowMachine(RuntimeError):
    """Raised for an action that worked but took so long that the browser reported it as failed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One agent on one task."""

    task: Task
    character: Character

    @property
    def trajectory_id(self) -> str:
        return self.task.trajectory_id(self.character)


def runs(pattern: str = "*") -> tuple[Run, ...]:
    """Return the runs whose trajectory id matches a pattern with ``*``, in the order of the tasks."""
    every = (Run(task, character) for task in load_tasks() for character in CHARACTERS)
    return tuple(run for run in every if fnmatchcase(run.trajectory_id, pattern))


def record(
    out: Path, pattern: str, cache: Path, progress: Callable[[int, int, str], None]
) -> tuple[int, int]:
    """Record the runs that ``out`` lacks. Return how many were recorded, and how many existed before.

    A run starts again if the machine was too slow for it, so the recording does not depend on speed. Raises
    BrowserMissing, BrowserFailed, ServingError, SlowMachine, or ScriptError if a page is not as a script
    expects.
    """
    chosen = runs(pattern)
    absent = [run for run in chosen if not json_place(out, run.task, run.character).is_file()]
    if absent:
        find_browser(cache)
        with serve_sites(PLACES) as stages:
            for number, run in enumerate(absent):
                progress(number, len(absent), run.trajectory_id)
                _record_patiently(run, stages[run.task.benchmark], out)
            progress(len(absent), len(absent), "")
    return len(absent), len(chosen) - len(absent)


def _record_patiently(run: Run, stage: Stage, out: Path) -> None:
    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            return _record_one(run, stage, out)
        except SlowMachine:
            if not attempts_left:
                raise
        except (BrowserFailed, ScriptError) as problem:
            raise type(problem)(f"{run.trajectory_id}: {problem}") from problem


def _record_one(run: Run, stage: Stage, out: Path) -> None:
    task, character = run.task, run.character
    place = PLACES[task.benchmark]
    site = place.make(**task.state)
    stage.app = site.app()
    environment = open_environment(
        place.url + task.path, task.goal, lambda said: reward(task.task_id, site, said)
    )
    steps, pictures, earned = [], [], 0.0
    agent = ScriptedAgent(character, task.moves[character.name], task.reads, place.url)
    with closing(environment):
        for num, (seen, action) in enumerate(_episode(environment)):
            trees = tree_texts(seen)
            error = first_line(seen["last_action_error"])
            if error and not is_unchanged(steps[-1]["axtree"], trees[0]):
                raise SlowMachine(f"{run.trajectory_id}, step {num}: {error}")
            step = step_record(picture_name(task, character, num), num, seen, trees, error)
            if action.is_wanted:
                decision = agent.act(trees[0])
                decide(step, decision.action, decision.reasoning)
                action.text = decision.action
            steps.append(step)
            pictures.append(picture_bytes(seen["screenshot"]))
            earned = action.reward
    versions = "\n".join(f"{name}=={version(name)}" for name in ("browsergym-core", "playwright"))
    write_run(out, task, character, trajectory_record(task, character, steps, earned, versions), pictures)


@dataclass
class _Wanted:
    """A slot for the agent's next action. After the last action, it has the reward instead."""

    is_wanted: bool = True
    text: str = ""
    reward: float = 0.0


def _episode(environment: Any) -> Iterator[tuple[dict[str, Any], _Wanted]]:
    """Yield each observation with a slot that the caller fills with an action, except for the last one."""
    seen, _ = environment.reset(seed=0)
    wanted = _Wanted()
    for _ in range(MOST_STEPS):
        yield seen, wanted
        seen, earned, is_over, _, _ = environment.step(wanted.text)
        if is_over:
            yield seen, _Wanted(is_wanted=False, reward=earned)
            return
    raise ScriptError(f"the run did not end after {MOST_STEPS} actions")


NO_COSTS: Final = {"n_retry": 0.0, "busted_retry": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}

BROWSER_IDS: Final = ("nodeId", "parentId", "childIds", "backendDOMNodeId", "frameId")
"""Keys of a raw tree whose values differ in every run of the browser."""


def json_place(out: Path, task: Task, character: Character) -> Path:
    """Return the path of a run's JSON file below ``out``."""
    experiment = f"{character.agent}_on_{task.benchmark}"
    return out / "cleaned" / task.benchmark / character.agent / experiment / f"{task.task_id}.json"


def picture_name(task: Task, character: Character, num: int) -> str:
    """Return the path of a step's picture below ``out``."""
    return f"screenshots/{task.benchmark}/{character.agent}/{task.task_id}/screenshot_step_{num}.webp"


def picture_bytes(pixels: Any) -> bytes:
    """Return a screenshot (height x width x 3, uint8) as lossless WebP, a third of the size of a PNG."""
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "WEBP", lossless=True, quality=100, method=4)
    return held.getvalue()


def renumbered(tree: Any) -> Any:
    """Return a raw accessibility tree with its ids counted from 1.

    The browser's ids differ in every run. Ids that were equal stay equal.
    """
    numbers: dict[str, int] = {}

    def number(value: Any) -> Any:
        counted = numbers.setdefault(str(value), len(numbers) + 1)
        return counted if isinstance(value, int) else str(counted)

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: walk(inside, name) for name, inside in value.items()}
        if isinstance(value, list):
            return [walk(inside, key) for inside in value]
        return number(value) if key in BROWSER_IDS else value

    return walk(tree)


def step_record(
    picture: str, num: int, observation: dict[str, Any], trees: tuple[str, str], error: str
) -> dict[str, Any]:
    """Return a step as the released files have it; ``decide`` adds what the agent chose.

    ``picture`` is the path of the picture below ``out``; ``trees`` are the full and the pruned tree as text.
    """
    properties = observation["extra_element_properties"]
    return {
        "num": num,
        "reasoning": None,
        "action": None,
        "screenshot_path": f"trajectories/{picture}",
        "url": observation["url"],
        "open_pages_urls": list(observation["open_pages_urls"]),
        "focused_element": observation["focused_element_bid"],
        "last_action_error": error,
        "stats": None,
        "axtree": trees[0],
        "axtree_obj": renumbered(observation["axtree_object"]),
        "axtree_pruned": trees[1],
        "chat_messages": [],
        "bounding_boxes": properties,
        "extra_element_properties": properties,
    }


def decide(record: dict[str, Any], action: str, reasoning: str) -> None:
    """Add what the agent chose to a step's record, with a note instead of a prompt."""
    record |= {
        "action": action,
        "reasoning": reasoning,
        "stats": NO_COSTS,
        "chat_messages": [{"role": "system", "content": "A scripted agent: there was no prompt."}],
    }


def trajectory_record(
    task: Task, character: Character, steps: list[dict[str, Any]], reward: float, versions: str
) -> dict[str, Any]:
    """Return a trajectory as the released files have it; it does not depend on the clock."""
    return {
        "benchmark": task.benchmark,
        "agent": character.agent,
        "model": character.model,
        "valid": True,
        "experiment": f"{character.agent}_on_{task.benchmark}",
        "goal": task.goal + "\n",
        "seed": 0,
        "model_args": {"model_name": character.model, "temperature": 0.0},
        "flags": {"obs": {"use_ax_tree": True, "use_screenshot": True}, "use_thinking": True},
        "summary_info": {
            "n_steps": len(steps) - 1,
            "cum_reward": reward,
            "cum_raw_reward": 0,
            "err_msg": None,
            "stack_trace": None,
            "stats.cum_steps": len(steps),
            "terminated": True,
            "truncated": False,
        },
        "package_version": versions,
        "steps": steps,
    }


def write_run(
    out: Path, task: Task, character: Character, record: dict[str, Any], pictures: list[bytes]
) -> Path:
    """Write a run: first its pictures, then its JSON file, which marks it as complete. Return its path."""
    for num, data in enumerate(pictures):
        place = out / picture_name(task, character, num)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    place = json_place(out, task, character)
    place.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(place, json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    return place
