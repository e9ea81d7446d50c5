"""Choosing the tasks of a new suite, and its dev and test split, the way the paper did (section 3.2, A.1).

A group is a task's first site with one of its evaluation methods; up to n tasks are drawn from each group
within the metadata's own test split. A task may be in several groups and is in the sample once. Every draw
is seeded on its own, so the order of rows and other groups do not change it. The paper's own draw cannot be
repeated: it ended at 100 tasks a benchmark, and its seed is not known.
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.ids import TrajectoryId, task_key
from core.suite import SuiteError, read_rows
from core.vocabulary import SPLITS

METADATA_COLUMNS = ("task_name", "sites", "eval_types", "browsergym_split")


class SelectionError(ValueError):
    """Tasks that cannot be chosen from; the message names the file, and every bad row."""


@dataclass(frozen=True, slots=True)
class MetadataTask:
    """A task of the metadata: ``sites`` and ``evaluations`` in the order given, ``split`` as given."""

    task_id: str
    sites: tuple[str, ...]
    evaluations: tuple[str, ...]
    split: str

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The groups the task is in: its first site with each of its evaluation methods."""
        return tuple((self.sites[0], evaluation) for evaluation in self.evaluations)


def read_metadata(path: Path) -> tuple[MetadataTask, ...]:
    """Read BrowserGym's metadata of a benchmark: a CSV file with `METADATA_COLUMNS` (sites and evaluation
    methods separated by spaces). Raises SelectionError naming every bad row.
    """
    tasks, problems = {}, []
    for number, row in enumerate(_rows(path, METADATA_COLUMNS), start=2):
        name, sites, evaluations, split = ((row[column] or "").strip() for column in METADATA_COLUMNS)
        absent = [
            c
            for c, value in zip(METADATA_COLUMNS, (name, sites, evaluations, split), strict=True)
            if not value
        ]
        if absent:
            problems.append(f"row {number}: {', '.join(absent)} is empty")
        elif name in tasks:
            problems.append(f"row {number}, task_name {name[:80]!r}: named twice; keep one row")
        else:
            tasks[name] = MetadataTask(name, tuple(sites.split()), tuple(evaluations.split()), split)
    if problems:
        raise SelectionError(f"{path.name}: " + "; ".join(problems))
    return tuple(tasks.values())


def sample_tasks(
    tasks: Iterable[MetadataTask], per_group: int, seed: int, split: str = "test"
) -> tuple[MetadataTask, ...]:
    """Draw up to ``per_group`` tasks of ``split`` from every group, each task once, in the order given.

    The paper took 8 for WebArena and 9 for VisualWebArena. Raises SelectionError when no task has the split.
    """
    if per_group < 1:
        raise SelectionError("draw at least one task a group")
    tasks = tuple(tasks)
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for task in tasks:
        for group in task.groups if task.split == split else ():
            groups[group].append(task.task_id)
    if not groups:
        found = ", ".join(sorted({task.split for task in tasks})) or "none"
        raise SelectionError(f"no task of the split {split!r}; the metadata has: {found}")
    drawn: set[str] = set()
    for (site, evaluation), members in groups.items():
        own_draw = random.Random(f"{seed}/{site}/{evaluation}")
        drawn.update(own_draw.sample(sorted(members), min(per_group, len(members))))
    return tuple(task for task in tasks if task.task_id in drawn)


def count_by_site(tasks: Iterable[MetadataTask]) -> dict[str, int]:
    """Tasks for each first site, smallest first, as the paper lists them."""
    counts = Counter(task.sites[0] for task in tasks)
    return dict(sorted(counts.items(), key=lambda item: (item[1], item[0])))


def read_ids(path: Path) -> tuple[str, tuple[str, ...]]:
    """The ids to split: a CSV file with a column trajectory_id or task_id; returns the column's name too.

    Raises SelectionError.
    """
    rows = _rows(path, ())
    column = next((name for name in ("trajectory_id", "task_id") if rows and name in rows[0]), None)
    if column is None:
        raise SelectionError(f"{path.name}: needs a column trajectory_id or task_id, and at least one row")
    ids = tuple((row[column] or "").strip() for row in rows)
    problems = [f"row {number}: {column} is empty" for number, text in enumerate(ids, start=2) if not text]
    problems += [
        f"{text[:80]!r}: named {n} times; keep one row" for text, n in Counter(ids).items() if n > 1 and text
    ]
    if column == "trajectory_id":
        problems += [
            f"{text[:80]!r}: expected <benchmark>/<agent>/<task_id>" for text in ids if not _is_id(text)
        ]
    if problems:
        raise SelectionError(f"{path.name}: " + "; ".join(problems))
    return column, ids


def split_by_task(ids: Sequence[str], dev_tasks: int, seed: int) -> tuple[str, ...]:
    """The split of each id, dev or test: ``dev_tasks`` tasks are drawn for dev, every run of a task with it.

    An id is a trajectory's or a task's. Raises SelectionError unless both splits get a task.
    """
    tasks = sorted({_task_of(text) for text in ids})
    if not 0 < dev_tasks < len(tasks):
        raise SelectionError(f"dev can take 1 to {len(tasks) - 1} of the {len(tasks)} tasks, not {dev_tasks}")
    dev = set(random.Random(f"{seed}/dev").sample(tasks, dev_tasks))
    return tuple(SPLITS[0] if _task_of(text) in dev else SPLITS[1] for text in ids)


def split_by_share(
    ids: Sequence[str], share: float, seed: int, always_dev: Collection[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """The split of each trajectory id: a share of the tasks, rounded, is for dev, and about as much of each
    benchmark.

    Which ones follows from a hash of the seed and the task, not from the order of the ids. Tasks of
    ``always_dev``, as (benchmark, task), are dev whatever the share. Raises SelectionError for a share that
    is not between 0 and 1, and unless both splits get a task.
    """
    if not 0 < share < 1:
        raise SelectionError(f"the share of dev is between 0 and 1, such as 0.15, not {share}")
    named = [TrajectoryId.parse(text) for text in ids]
    by_benchmark: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for trajectory in named:
        by_benchmark[trajectory.benchmark].add((trajectory.benchmark, trajectory.task))
    numbers = _shares({name: len(tasks) for name, tasks in by_benchmark.items()}, share, seed)
    dev: set[tuple[str, str]] = set()
    for benchmark, tasks in by_benchmark.items():
        ranked = sorted(tasks, key=lambda task: (task not in always_dev, _rank(seed, *task)))
        kept = sum(task in always_dev for task in tasks)
        dev.update(ranked[: max(kept, numbers[benchmark])])
    number = sum(len(tasks) for tasks in by_benchmark.values())
    if not 0 < len(dev) < number:
        raise SelectionError(
            f"{SPLITS[0]} would get {len(dev)} of the {number} tasks; choose another share, so that both "
            "splits get some"
        )
    return tuple(SPLITS[0] if (one.benchmark, one.task) in dev else SPLITS[1] for one in named)


def _shares(sizes: Mapping[str, int], share: float, seed: int) -> dict[str, int]:
    """How many of each group make up the share of all: what is left after rounding down goes to those that
    lost most by it."""
    numbers = {name: int(share * size) for name, size in sizes.items()}
    left = int(share * sum(sizes.values()) + 0.5) - sum(numbers.values())
    by_loss = sorted(sizes, key=lambda name: (numbers[name] - share * sizes[name], _rank(seed, name)))
    for name in by_loss[:left]:
        numbers[name] += 1
    return numbers


def _rank(seed: int, *names: str) -> bytes:
    """Draws lots: the same on every machine, in every version of Python."""
    return hashlib.sha256("/".join((str(seed), *names)).encode()).digest()


def _task_of(text: str) -> tuple[str, str]:
    """A task, whatever its spelling; a task id alone begins with its benchmark."""
    if _is_id(text):
        trajectory = TrajectoryId.parse(text)
        return trajectory.folder, trajectory.task
    return text.split(".")[0], task_key(text)


def _is_id(text: str) -> bool:
    try:
        TrajectoryId.parse(text)
    except ValueError:
        return False
    return True


def _rows(path: Path, needed: Sequence[str]) -> list[dict[str, str | None]]:
    try:
        return read_rows(path, needed)
    except SuiteError as error:
        raise SelectionError(str(error)) from error
    except OSError as error:
        raise SelectionError(f"{path}: {error.strerror}") from error
