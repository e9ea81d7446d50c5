"""An annotator's queue, and one trajectory with its questions, as the pages show them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from arb.core.ids import TrajectoryId
from arb.core.suite import Suite
from space.pages.labels.access import PATH, AnnotatorContext
from space.pages.trajectories.dataset import BlindStory
from space.pages.trajectories.filters import benchmark_title
from space.pages.trajectories.images import WIDTHS
from space.pages.trajectories.story_view import SMALLEST_LARGE
from space.web.query import link_to
from submissions.labels.annotation_state import AssignedTask

API = "/api/annotate"


def view_queue(reader: AnnotatorContext) -> dict[str, Any]:
    """Return what the page of a queue shows; no line for a maintainer who is no annotator.

    ``next`` is the address of the first trajectory that is not done, None at the end; ``undo`` that of what
    was saved last. ``time`` says how long it took and may yet take.
    """
    tasks = own_tasks(reader)
    lines = []
    for number, task in enumerate(tasks, start=1):
        parts = TrajectoryId.parse(task.trajectory_id)
        line = {"number": number, "address": reader.address_of(task.trajectory_id), "task": parts.task}
        lines.append({**line, "benchmark": benchmark_title(parts.benchmark), "status": _status(task)})
    waiting, undo = next_of(tasks), undo_of(reader)
    return {
        "lines": lines,
        "n_done": sum(task.is_done for task in tasks),
        "n_all": len(tasks),
        "next": reader.address_of(waiting) if waiting else None,
        "undo": reader.address_of(undo) if undo else None,
        "time": describe_time(tasks),
    }


def own_tasks(reader: AnnotatorContext) -> tuple[AssignedTask, ...]:
    return reader.state.queue(reader.annotator) if reader.annotator else ()


def _status(task: AssignedTask) -> str:
    if task.saved is None:
        return "to do"
    word = "begun"
    if task.is_done:
        word = "done"
    elif task.saved.is_skipped:
        word = "skipped"
    return f"{word}, flagged" if task.saved.flag else word


def undo_of(reader: AnnotatorContext, but: str = "") -> str | None:
    """The trajectory that was saved last and may yet change, besides ``but``; None where there is none."""
    saved = [
        (task.saved.sequence, task.trajectory_id)
        for task in own_tasks(reader)
        if task.saved and not reader.state.is_closed(task.trajectory_id, reader.annotator or "")
    ]
    return max((each for each in saved if each[1] != but), default=(0, None))[1]


def describe_time(tasks: Sequence[AssignedTask]) -> str:
    """Minutes spent, and those that the rest takes at the median of what is done; empty before that."""
    took = [task.saved.seconds for task in tasks if task.saved and task.is_done]
    if not took:
        return ""
    left = (len(tasks) - len(took)) * median(took)
    elapsed = f"{_minutes(sum(took))} spent"
    return f"{elapsed}, about {_minutes(left)} left" if len(took) < len(tasks) else elapsed


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"


CONTRADICTIONS: Final = (
    (("success", "yes"), ("optimality", "1")),
    (("success", "no"), ("optimality", "4")),
    (("repetition", "yes"), ("optimality", "4")),
)
"""Answers to the released questions that do not fit together: asked back before they are saved as done."""


def contradictions_of(suite: Suite) -> list[tuple[tuple[str, str], ...]]:
    """Those whose answers the suite's questions have, unless a question is the suite's own."""
    known = {(each.name, value) for each in suite.questions if not each.is_own for value in each.values}
    return [pair for pair in CONTRADICTIONS if known.issuperset(pair)]


def next_of(tasks: Sequence[AssignedTask], after: str = "") -> str | None:
    """The next trajectory to do behind ``after``, from the beginning again; None where all is done."""
    ids = [task.trajectory_id for task in tasks]
    start = ids.index(after) + 1 if after in ids else 0
    ahead = [*tasks[start:], *tasks[:start]]
    return next((task.trajectory_id for task in ahead if not task.is_done), None)


@dataclass(frozen=True)
class ItemView:
    """A blind story at one of its steps. ``task`` is the reader's own; None for who only looks on.

    ``suite`` has the questions and the guidelines; ``token`` names the trajectory in every address, since
    its id names the agent.
    """

    suite: Suite
    story: BlindStory
    token: str
    place: int
    task: AssignedTask | None
    is_closed: bool
    n_done: int
    n_all: int
    time: str
    undo: str | None

    @property
    def contradictions(self) -> list[tuple[tuple[str, str], ...]]:
        """Pairs of (question, answer) that do not fit together."""
        return contradictions_of(self.suite)

    @property
    def title(self) -> str:
        """What stands in the window's title."""
        return f"Annotate {self.story.task}"

    @property
    def goal(self) -> str:
        """What the agent was asked to do."""
        return self.story.goal

    @property
    def benchmark(self) -> str:
        """The benchmark's title."""
        return benchmark_title(self.story.benchmark)

    @property
    def answers(self) -> Mapping[str, str]:
        """The reader's own answers so far."""
        return self.task.saved.answers if self.task and self.task.saved else MappingProxyType({})

    def step_address(self, place: int) -> str:
        """The same at another step."""
        return link_to(PATH, item=self.token, step=place if place > 1 else "")

    def screenshot(self, num: int, width: int | None = None) -> str:
        """A step's picture, made smaller or as recorded."""
        return self._of_the_run(f"{API}/screenshot", num=str(num), width=width)

    def goal_image(self, num: int, width: int | None = None) -> str:
        """A picture of the goal."""
        return self._of_the_run(f"{API}/goal_image", num=str(num), width=width)

    def widths(self, recorded: int) -> tuple[int, ...]:
        """The widths that a picture can be made smaller to and still be looked at large."""
        return tuple(width for width in WIDTHS if SMALLEST_LARGE <= width < recorded)

    @property
    def tree_address(self) -> str:
        """The trees of the run; number and form of the tree are added by the page."""
        return self._of_the_run(f"{API}/tree")

    def _of_the_run(self, path: str, **more: object) -> str:
        return link_to(path, item=self.token, **more, v=self.story.version)


def view_item(suite: Suite, story: BlindStory, reader: AnnotatorContext, step: str) -> ItemView:
    """A story for its reader, at the step that an address asks for (the first where it is none)."""
    state, annotator = reader.state, reader.annotator
    tasks, undo = own_tasks(reader), undo_of(reader, but=story.trajectory_id)
    task = next((task for task in tasks if task.trajectory_id == story.trajectory_id), None)
    wished = int(step) if step.isascii() and step.isdigit() and len(step) < 6 else 1
    return ItemView(
        suite=suite,
        story=story,
        token=reader.token(story.trajectory_id),
        place=min(max(1, wished), max(1, len(story.steps))),
        task=task,
        is_closed=bool(task and annotator and state.is_closed(story.trajectory_id, annotator)),
        n_done=sum(task.is_done for task in tasks),
        n_all=len(tasks),
        time=describe_time(tasks),
        undo=reader.address_of(undo) if undo else None,
    )
