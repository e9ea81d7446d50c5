"""Trajectories and their ids, ``<benchmark>/<agent>/<task_id>``, in all released spellings.

In the released data, a task of VisualWebArena is named ``visualwebarena.resized.7`` for two agents, but
``visualwebarena.7`` for GPT-4o. One of AssistantBench is ``assistantbench.improved.validation.3``. The
release's split file leaves out ``resized`` and ``improved``. All spellings name the same trajectory.
"""

import re
from dataclasses import dataclass
from typing import Literal

ItemKey = tuple[str, str | None, str | None]
"""The key of an item: the reading key of its trajectory, its step and its part."""

_REPEAT = re.compile(r"~[0-9]+$")


def task_key(task_id: str) -> str:
    """Return the spelling of a task that all agents share: ``visualwebarena.7`` for ``….resized.7``."""
    return task_id.replace(".resized.", ".").replace(".improved.", ".")


def reading_key(trajectory_id: str) -> str:
    """Return a key that is equal for all spellings of a trajectory's id. Never write it to a file."""
    return task_key(trajectory_id.strip())


@dataclass(frozen=True, slots=True)
class TrajectoryId:
    """The three parts of a trajectory's id."""

    folder: str
    agent: str
    task_id: str

    @classmethod
    def parse(cls, text: str) -> "TrajectoryId":
        """Split an id into its parts. Raises ValueError unless it has exactly three non-empty parts."""
        parts = text.strip().split("/")
        if len(parts) != 3 or not all(parts):
            raise ValueError("expected <benchmark>/<agent>/<task_id>")
        return cls(*parts)

    @property
    def benchmark(self) -> str:
        """The benchmark's name in reports. WorkArena tasks that end in ``-l2`` are listed as WorkArena++."""
        is_second_level = self.folder == "workarena" and self.task_id.endswith("-l2")
        return "workarena++" if is_second_level else self.folder

    @property
    def task(self) -> str:
        """The task's name, which is the same for all agents and for repeated runs (``7~2``)."""
        return _REPEAT.sub("", task_key(self.task_id))

    def __str__(self) -> str:
        return f"{self.folder}/{self.agent}/{self.task_id}"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An item that can have labels: one run of an agent on a task, or a step or other part of a run.

    ``step`` is the number of a step as a string, and ``part`` the name of another part; both are None for a
    whole run. ``tags`` are the subsets that the item belongs to, as (name, value) pairs such as (difficulty,
    hard).
    """

    trajectory_id: str
    benchmark: str
    agent: str
    task: str
    split: str
    step: str | None = None
    part: str | None = None
    tags: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, trajectory_id: str, split: str) -> "Trajectory":
        """Return the trajectory with an id and a split. Raises ValueError for a malformed id."""
        parts = TrajectoryId.parse(trajectory_id)
        return cls(str(parts), parts.benchmark, parts.agent, parts.task, split)

    @property
    def level(self) -> Literal["run", "step", "part"]:
        return "run" if self.step is self.part is None else "part" if self.step is None else "step"

    @property
    def subsets(self) -> tuple[str, ...]:
        """The names of the subsets that the item belongs to, such as ``difficulty=hard``."""
        return tuple("=".join(tag) for tag in self.tags)

    @property
    def key(self) -> ItemKey:
        """The key of the item, which is equal for all spellings of its id."""
        return reading_key(self.trajectory_id), self.step, self.part
