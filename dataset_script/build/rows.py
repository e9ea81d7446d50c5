"""Turn a recorded run into the rows of each configuration, with notes about anything unusual in it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from arb.core.annotation import Annotation
from arb.core.ids import Trajectory, TrajectoryId
from arb.core.suites.targets import RELEASED_YES_NO, Target
from arb.core.trajectory import Recording, RunUsage, Step
from dataset_script.build.pictures import BrokenImageError, check_picture, image_cell
from dataset_script.schema import CONFIGURATIONS, LABEL_COLUMNS, STEP_FIELDS
from dataset_script.sources.base import RecordedJudgment
from dataset_script.sources.problems import Note
from dataset_script.sources.released_files import SUCCESS_ABOVE
from dataset_script.tasks import Task

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A trajectory of the suite with its recording and, if it is in dev, its labels.

    Raises ValueError for labels of a test trajectory, which are never published.
    """

    trajectory: Trajectory
    recording: Recording
    labels: Annotation | None

    def __post_init__(self) -> None:
        if self.labels is not None and self.trajectory.split != "dev":
            raise ValueError(
                f"{self.trajectory.trajectory_id}: labels of a {self.trajectory.split} trajectory"
            )


def describe_run(kind: str, trajectory_id: str, recording: Recording | None) -> Row:
    """Return a run as `inspect-source` prints it. For an unreadable run, goal, answer and state are None."""
    benchmark, agent, task_id = (*trajectory_id.split("/", 2), None, None, None)[:3]
    texts = ("action", "reasoning", "url", "text")
    steps = [
        {"index": step.num, **{name: getattr(step, name) for name in texts}}
        | {"has_screenshot": step.screenshot is not None, "has_axtree": bool(step.axtree)}
        for step in (recording.steps if recording else ())
    ]
    return {
        "trajectory_id": trajectory_id,
        "format": kind,
        "benchmark": benchmark,
        "agent": agent,
        "task_id": task_id,
        "goal": recording and recording.goal,
        "steps": steps,
        "answer": recording and recording.answer,
        "state": recording and recording.state,
        "usage": asdict(recording.usage) if recording and recording.usage else None,
    }


def trajectory_row(run: Run) -> Row:
    """Return the run's row in `trajectories`. Names are spelled as in the suite."""
    trajectory, steps = run.trajectory, run.recording.steps
    return {
        "trajectory_id": trajectory.trajectory_id,
        "benchmark": trajectory.benchmark,
        "agent": trajectory.agent,
        "model": run.recording.model,
        "task_id": TrajectoryId.parse(trajectory.trajectory_id).task_id,
        "goal": run.recording.goal.rstrip("\r\n"),
        "n_steps": len(steps),
        "steps": [{column.name: getattr(step, column.name) for column in STEP_FIELDS} for step in steps],
        "final_axtree": steps[-1].axtree if steps else None,
        "final_axtree_pruned": steps[-1].axtree_pruned if steps else None,
        "answer": run.recording.answer,
        **_label_cells(run.labels),
    }


def screenshot_row(run: Run) -> Row:
    """Return the run's row in `trajectories_with_screenshot`. Call `with_images` on the recording first."""
    steps = run.recording.steps
    return {
        **trajectory_row(run),
        "final_screenshot": _picture(steps[-1]) if steps else None,
        "goal_images": [image_cell(image) for image in run.recording.goal_images],
    }


def step_rows(run: Run) -> Iterator[Row]:
    """Yield the run's rows in `steps`. Call `with_images` on the recording first."""
    for step in run.recording.steps:
        more = {
            "trajectory_id": run.trajectory.trajectory_id,
            "screenshot": _picture(step),
            "box": None if step.box is None else list(step.box),
        }
        names = (column.name for column in CONFIGURATIONS["steps"].columns)
        yield {name: more[name] if name in more else getattr(step, name) for name in names}


def _picture(step: Step) -> Row | None:
    return image_cell(step.screenshot) if isinstance(step.screenshot, bytes) else None


def reward_row(run: Run) -> Row:
    """Return the run's row in `rewards`, the only configuration that contains the reward."""
    reward = run.recording.cum_reward
    return {
        "trajectory_id": run.trajectory.trajectory_id,
        "cum_reward": reward,
        "rule_based": None if reward is None else int(reward > SUCCESS_ABOVE),
    }


_PATH: Final = re.compile(
    r"(?:(?<![\w.:/])/(?:data|home|mnt|opt|private|root|tmp|usr|Users|var|workspace)\b|\b[A-Za-z]:\\|~/)"
    r"[^\s'\"]*"
)
"""A file path in an error message. It may be a path on the machine that ran the agent."""


def usage_rows(run: Run) -> Iterator[Row]:
    """Yield the run's row in `usage`. Yield nothing if neither its end nor its usage was recorded."""
    state, usage = run.recording.state, run.recording.usage
    state = None if state is None else _PATH.sub("[path]", state)
    if state is not None or usage is not None:
        cells = asdict(usage or RunUsage())
        yield {"trajectory_id": run.trajectory.trajectory_id, "state": state, **cells}


ROWS_OF_A_RUN: Final[Mapping[str, Callable[[Run], Iterator[Row]]]] = MappingProxyType(
    {
        "trajectories": lambda run: iter((trajectory_row(run),)),
        "trajectories_with_screenshot": lambda run: iter((screenshot_row(run),)),
        "steps": step_rows,
        "rewards": lambda run: iter((reward_row(run),)),
        "usage": usage_rows,
    }
)
"""For each configuration that is made from recorded runs, a function that returns the rows of a run."""


def judgment_row(trajectory: Trajectory, judgment: RecordedJudgment) -> Row:
    answers = {name: getattr(judgment, name) for name in RELEASED_YES_NO}
    return {
        "trajectory_id": trajectory.trajectory_id,
        "judge": judgment.judge,
        "judge_model": judgment.model,
        "has_screenshot": judgment.has_screenshot,
        "has_axtree": judgment.has_axtree,
        "state": judgment.state,
        **{name: None if answer is None else int(answer) for name, answer in answers.items()},
        "optimality": judgment.optimality,
        "reply": judgment.reply,
    }


def annotation_row(labels: Annotation, questions: Iterable[Target] = ()) -> Row:
    """Return a row of `annotations`, with the columns that ``questions`` need (see `columns_of`)."""
    own = {question.name: labels.answers.get(question.name) for question in questions if question.is_own}
    items = {"step": labels.of_step, "part": labels.of_part}
    levels = {question.level for question in questions}
    return {
        "trajectory_id": labels.trajectory_id,
        "annotation": labels.annotation,
        "annotator": labels.annotator,
        **_label_cells(labels),
        **{level: name for level, name in items.items() if level in levels},
        **own,
    }


def task_row(task: Task) -> Row:
    return asdict(task) | {"sites": list(task.sites), "evaluation_types": list(task.evaluation_types)}


def with_images(recording: Recording) -> tuple[Recording, list[Note]]:
    """Return the recording with pictures as bytes. A broken picture becomes None and is noted."""
    notes: list[Note] = []

    def checked(image: bytes | Path | None, name: str) -> bytes | None:
        if image is None:
            return None
        try:
            return check_picture(image)
        except BrokenImageError as error:
            notes.append(Note(error.code, f"{name} {error}"))
            return None

    steps = tuple(
        replace(step, screenshot=checked(step.screenshot, f"the screenshot of step {step.num}"))
        for step in recording.steps
    )
    goal = [checked(image, f"goal image {number}") for number, image in enumerate(recording.goal_images)]
    whole = tuple(image for image in goal if image is not None)
    return replace(recording, steps=steps, goal_images=whole), notes


def notes_on(run: Run) -> Iterator[Note]:
    """Yield a note for each unusual property of a run that is nevertheless in the dataset."""
    steps = run.recording.steps
    if steps and (steps[-1].action is not None or steps[-1].reasoning is not None):
        yield Note("action_on_last_step")
    if [step.num for step in steps] != list(range(len(steps))):
        yield Note("step_numbers")
    if not run.recording.goal.strip():
        yield Note("no_goal")
    if steps and not steps[-1].axtree and not any(step.text for step in steps):
        yield Note("no_final_tree")
    if run.trajectory.split == "dev" and run.labels is None:
        yield Note("no_dev_labels")


def _label_cells(labels: Annotation | None) -> dict[str, int | None]:
    if labels is None:
        return dict.fromkeys(LABEL_COLUMNS)
    indexes = {name: {"yes": 1, "no": 0}.get(labels.answers.get(name, "")) for name in RELEASED_YES_NO}
    grade = labels.answers.get("optimality", "")
    return {**indexes, "optimality": int(grade) if grade.isdigit() else None}
