"""Trajectories by their ids: ``<benchmark>/<agent>/<task_id>`` as released, read in every spelling in use.

The released data spells VisualWebArena's tasks ``visualwebarena.resized.7`` for two agents and
``visualwebarena.7`` for GPT-4o, and AssistantBench's ``assistantbench.improved.validation.3``; its own
split file leaves both words out. All spellings name one trajectory.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from arb.core.vocabulary import SPLITS

_REPEAT = re.compile(r"~[0-9]+$")


def task_key(task_id: str) -> str:
    """The task, one spelling for all agents: ``visualwebarena.resized.7`` gives ``visualwebarena.7``."""
    return task_id.replace(".resized.", ".").replace(".improved.", ".")


def reading_key(trajectory_id: str) -> str:
    """The key under which every spelling of one trajectory meets; not for writing."""
    return task_key(trajectory_id.strip())


@dataclass(frozen=True, slots=True)
class TrajectoryId:
    """The three parts of an id."""

    folder: str
    agent: str
    task_id: str

    @classmethod
    def parse(cls, text: str) -> "TrajectoryId":
        """Split an id into its parts; raises ValueError when it does not have three."""
        parts = text.strip().split("/")
        if len(parts) != 3 or not all(parts):
            raise ValueError("expected <benchmark>/<agent>/<task_id>")
        return cls(*parts)

    @property
    def benchmark(self) -> str:
        """The reporting benchmark: WorkArena's second level (task ids ending in ``-l2``) is WorkArena++."""
        is_second_level = self.folder == "workarena" and self.task_id.endswith("-l2")
        return "workarena++" if is_second_level else self.folder

    @property
    def task(self) -> str:
        """The task, alike for all agents and repeats (``7~2``): the cluster that intervals resample."""
        return _REPEAT.sub("", task_key(self.task_id))

    def __str__(self) -> str:
        return f"{self.folder}/{self.agent}/{self.task_id}"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run of an agent on a task."""

    trajectory_id: str
    benchmark: str
    agent: str
    task: str
    split: str

    @classmethod
    def of(cls, trajectory_id: str, split: str) -> "Trajectory":
        """By the id, in any spelling. Raises ValueError when it does not have three parts."""
        parts = TrajectoryId.parse(trajectory_id)
        return cls(str(parts), parts.benchmark, parts.agent, parts.task, split)


class TrajectoryTable(Sequence[Trajectory]):
    """Trajectories by id, each in the memory of its id and 13 bytes: made when they are asked for.

    ``rows`` are numbered trajectories in any order. They are put in order in a temporary database on
    disk, which takes no memory. ``repeated`` are the numbers and ids of those that are there already;
    ``tasks_in_both_splits`` are in the order of the rows.
    """

    def __init__(self, rows: Iterable[tuple[int, Trajectory]]):
        import sqlite3

        with closing(sqlite3.connect("")) as database:
            database.execute("CREATE TABLE runs (key PRIMARY KEY, id, benchmark, task, split, row)")
            self.repeated = []
            for number, run in rows:
                values = run.trajectory_id, run.benchmark, run.task, run.split, number
                insert = "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)"
                if not database.execute(insert, (reading_key(run.trajectory_id), *values)).rowcount:
                    self.repeated.append((number, run.trajectory_id))
            grouped = "SELECT task FROM runs GROUP BY benchmark, task HAVING min(split) < max(split)"
            self.tasks_in_both_splits = [task for (task,) in database.execute(f"{grouped} ORDER BY min(row)")]
            (size,) = database.execute("SELECT total(length(CAST(id AS BLOB))) FROM runs").fetchone()
            self._text, self._ends, self._splits = bytearray(int(size)), array("Q", (0,)), bytearray()
            for name, split in database.execute("SELECT id, split FROM runs ORDER BY id"):
                written = name.encode()
                self._ends.append(self._ends[-1] + len(written))
                self._text[self._ends[-2] : self._ends[-1]] = written
                self._splits.append(SPLITS.index(split))
            by_key = "SELECT row_number() OVER (ORDER BY id) - 1, key FROM runs ORDER BY key"
            self._by_key = array("I", (place for place, _ in database.execute(by_key)))

    def __len__(self) -> int:
        return len(self._splits)

    def __getitem__(self, place):
        if isinstance(place, slice):
            return tuple(self[each] for each in range(len(self))[place])
        place = range(len(self))[place]  # from the end too; raises IndexError
        return Trajectory.of(self._id(place), SPLITS[self._splits[place]])

    def _id(self, place: int) -> str:
        return self._text[self._ends[place] : self._ends[place + 1]].decode()

    def find(self, trajectory_id: str) -> Trajectory | None:
        """The trajectory that an id names in any of its spellings: 20 ids of a million are compared."""
        key = reading_key(trajectory_id)
        at = bisect_left(self._by_key, key, key=lambda place: reading_key(self._id(place)))
        if at == len(self) or reading_key(self._id(self._by_key[at])) != key:
            return None
        return self[self._by_key[at]]
