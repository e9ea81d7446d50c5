"""Choosing the tasks of a new suite, and its dev and test split, the way the paper did (section 3.2, A.1).

A group is a task's area with one of its evaluation methods; an area is its first site, in WorkArena its
category. Up to n tasks are drawn from each group within one split of the metadata; a task may be in several
groups and is in the sample once. With a total, each area gives as many as any other, a small one all it has,
and the largest what is left over: the sizes in A.1 of WebArena, VisualWebArena and WorkArena's second level
are just this for a total of 100. (Wikipedia's 17 of VisualWebArena are one group, and more than the 9 that
A.1 allows, so there a group gives more when the total needs it.) Of AssistantBench the paper takes the whole
validation split, of WorkArena's first level the whole test split.

Every draw is seeded on its own, so the order of rows and other groups do not change it. Which tasks the paper
drew cannot be repeated: its seed is not known.
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from pathlib import Path

from arb.core.ids import TrajectoryId, task_key
from arb.core.suite import Suite, SuiteError, read_rows
from arb.core.vocabulary import SPLITS

NAME, SPLIT = "task_name", "browsergym_split"
OPTIONAL_COLUMNS = (("sites", "eval_types"), ("level", "category"))
"""What a benchmark's metadata may have beside `NAME` and `SPLIT`: WebArena's two, or WorkArena's two."""


@dataclass(frozen=True, slots=True)
class MetadataTask:
    """A task of the metadata, everything as given; empty what the benchmark's metadata does not have."""

    task_id: str
    sites: tuple[str, ...]
    evaluations: tuple[str, ...]
    split: str
    category: str = ""
    level: str = ""

    @property
    def area(self) -> str:
        """What a sample is spread over: the first site, else the category, else the benchmark."""
        return self.sites[0] if self.sites else self.category or self.task_id.split(".")[0]

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The groups the task is in: its area with each of its evaluation methods."""
        return tuple((self.area, evaluation) for evaluation in self.evaluations or ("",))


def read_metadata(path: Path) -> tuple[MetadataTask, ...]:
    """Read BrowserGym's metadata of a benchmark: a CSV file with `NAME` and `SPLIT`, and any of
    `OPTIONAL_COLUMNS` (sites and evaluation methods separated by spaces). Raises SuiteError naming every
    bad row.
    """
    rows = read_rows(path, (NAME, SPLIT))
    there = rows[0].keys() if rows else ()
    needed = [NAME, *(name for pair in OPTIONAL_COLUMNS if {*pair} & {*there} for name in pair), SPLIT]
    if absent := [name for name in needed if rows and name not in there]:
        raise SuiteError(f"{path.name}: the columns {', '.join(absent)} are absent")
    tasks, problems = {}, []
    for number, row in enumerate(rows, start=2):
        cells = {name: (row[name] or "").strip() for name in needed}
        name = cells[NAME]
        if empty := [column for column, text in cells.items() if not text]:
            problems.append(f"row {number}: {', '.join(empty)} is empty")
        elif name in tasks:
            problems.append(f"row {number}, task_name {name[:80]!r}: named twice; keep one row")
        else:
            sites, evaluations = (tuple(cells.get(column, "").split()) for column in OPTIONAL_COLUMNS[0])
            more = {column: cells.get(column, "") for column in OPTIONAL_COLUMNS[1]}
            tasks[name] = MetadataTask(name, sites, evaluations, cells[SPLIT], **more)
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(tasks.values())


def sample_tasks(
    tasks: Iterable[MetadataTask],
    per_group: int | None = None,
    seed: int = 0,
    split: str = "test",
    *,
    total: int | None = None,
    level: str | None = None,
) -> tuple[MetadataTask, ...]:
    """Draw up to ``per_group`` tasks of ``split`` from every group (None: all), each task once, in the order
    given; ``level`` is WorkArena's.

    With a ``total`` each area gives its share of it: of what was drawn, and where that is not enough, of its
    other tasks. The paper took 8 a group for WebArena and 9 for VisualWebArena, and 100 in all of either.
    Raises SuiteError when no task has the split or the level, and when there are fewer than the total.
    """
    if per_group is not None and per_group < 1:
        raise SuiteError("draw at least one task a group")
    tasks = tuple(tasks)
    tasks_of_level = tuple(task for task in tasks if level in (None, task.level))
    chosen = tuple(task for task in tasks_of_level if task.split == split)
    if not tasks_of_level:
        raise SuiteError(_no_task("level", level, (task.level for task in tasks)))
    if not chosen:
        raise SuiteError(_no_task("split", split, (task.split for task in tasks_of_level)))
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for task in chosen:
        for group in task.groups:
            groups[group].append(task.task_id)
    drawn: set[str] = set()
    for (area, evaluation), members in groups.items():
        own_draw = random.Random(f"{seed}/{area}/{evaluation}")
        drawn.update(own_draw.sample(sorted(members), min(per_group or len(members), len(members))))
    if total is not None:
        drawn = _spread(chosen, drawn, total, seed)
    return tuple(task for task in chosen if task.task_id in drawn)


def _no_task(what: str, name: str | None, there: Iterable[str]) -> str:
    found = ", ".join(sorted(filter(None, set(there)))) or "none"
    return f"no task of the {what} {name!r}; the metadata has: {found}"


def _spread(tasks: Sequence[MetadataTask], drawn: Collection[str], total: int, seed: int) -> set[str]:
    """The ids of so many tasks, spread over the areas; those that were drawn before others."""
    by_area: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        by_area[task.area].append(task.task_id)
    spread: set[str] = set()
    for area, share in even_shares({area: len(ids) for area, ids in by_area.items()}, total).items():
        ids = sorted(by_area[area])
        random.Random(f"{seed}/{area}").shuffle(ids)
        spread.update(sorted(ids, key=lambda each: each not in drawn)[:share])
    return spread


def even_shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """The total shared out: as many from each as from any other, from a small one all that it has; of what
    does not come out even, the largest give one more. Raises SuiteError when there are fewer in all.
    """
    if not 0 < total <= sum(sizes.values()):
        raise SuiteError(f"a total of 1 to {sum(sizes.values())} tasks can be drawn, not {total}")
    shares: dict[str, int] = {}
    left = total
    for place, (name, size) in enumerate(sorted(sizes.items(), key=lambda item: (item[1], item[0]))):
        shares[name] = min(size, left // (len(sizes) - place))
        left -= shares[name]
    return shares


def count_by_area(tasks: Iterable[MetadataTask]) -> dict[str, int]:
    """Tasks for each area, smallest first, as the paper lists them."""
    counts = Counter(task.area for task in tasks)
    return dict(sorted(counts.items(), key=lambda item: (item[1], item[0])))


def read_ids(path: Path) -> tuple[str, tuple[str, ...]]:
    """The ids to split: a CSV file with a column trajectory_id or task_id; returns the column's name too.

    Raises SuiteError.
    """
    rows = read_rows(path, ())
    column = next((name for name in ("trajectory_id", "task_id") if rows and name in rows[0]), None)
    if column is None:
        raise SuiteError(f"{path.name}: needs a column trajectory_id or task_id, and at least one row")
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
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return column, ids


def split_by_task(ids: Sequence[str], dev_tasks: int, seed: int) -> tuple[str, ...]:
    """The split of each id, dev or test: ``dev_tasks`` tasks are drawn for dev, every run of a task with it.

    An id is a trajectory's or a task's. Raises SuiteError unless both splits get a task.
    """
    tasks = sorted({_task_of(text) for text in ids})
    if not 0 < dev_tasks < len(tasks):
        raise SuiteError(f"dev can take 1 to {len(tasks) - 1} of the {len(tasks)} tasks, not {dev_tasks}")
    dev = set(random.Random(f"{seed}/dev").sample(tasks, dev_tasks))
    return tuple(SPLITS[0] if _task_of(text) in dev else SPLITS[1] for text in ids)


def draw_dev_tasks(
    tasks: Collection[tuple[str, str]], share: float, seed: int, always_dev: Collection[tuple[str, str]] = ()
) -> frozenset[tuple[str, str]]:
    """The tasks, as (benchmark, task), that are for dev: a share of them, rounded, and about as much of each
    benchmark.

    Which ones follows from a hash of the seed and the task, not from their order. Tasks of ``always_dev`` are
    dev whatever the share. Raises SuiteError for a share that is not between 0 and 1, and unless both
    splits get a task.
    """
    if not 0 < share < 1:
        raise SuiteError(f"the share of dev is between 0 and 1, such as 0.15, not {share}")
    sizes = Counter(benchmark for benchmark, _ in tasks)
    numbers = _shares(sizes, share, seed)
    kept = Counter(task[0] for task in tasks if task in always_dev)
    dev: set[tuple[str, str]] = set()
    for benchmark in sizes:
        of_benchmark = (task for task in tasks if task[0] == benchmark)
        number = max(kept[benchmark], numbers[benchmark])
        dev.update(nsmallest(number, of_benchmark, lambda task: (task not in always_dev, _rank(seed, *task))))
    if not 0 < len(dev) < sizes.total():
        raise SuiteError(
            f"{SPLITS[0]} would get {len(dev)} of the {sizes.total()} tasks; choose another share, so that "
            "both splits get some"
        )
    return frozenset(dev)


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


_LISTS = ("sites", "evaluation_types")
_WORDS = ("difficulty", "category")


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a suite, in one spelling for all agents; empty or None where nothing is known."""

    task: str
    benchmark: str
    split: str
    sites: tuple[str, ...] = ()
    evaluation_types: tuple[str, ...] = ()
    difficulty: str | None = None
    category: str | None = None


def load_tasks(suite: Suite) -> tuple[Task, ...]:
    """Return every task of the suite's trajectories, by name, with what ``tasks.csv`` says if there is one.

    Benchmark and split are those of the trajectories. Raises SuiteError naming every row of the file that
    contradicts them or names a task that the suite does not have.
    """
    tasks = {(t.benchmark, t.task): Task(t.task, t.benchmark, t.split) for t in suite.trajectories}
    problems, described = [], set()
    needed = ("task", "benchmark", *_LISTS, *_WORDS)
    rows = read_rows(suite.tasks_path, needed) if suite.tasks_path.is_file() else []
    for number, row in enumerate(rows, start=2):
        key = (row["benchmark"] or "", task_key(row["task"] or ""))
        place = f"row {number}, task {key[1][:80]!r}"
        task = tasks.get(key)
        if task is None:
            problems.append(f"{place}: not a task of the suite's trajectories")
        elif key in described:
            problems.append(f"{place}: named twice; keep one row")
        elif row.get("split") not in (None, "", task.split):
            problems.append(f"{place}: its trajectories are in {task.split}")
        else:
            described.add(key)
            lists = {name: tuple((row[name] or "").split()) for name in _LISTS}
            words = {name: row[name] or None for name in _WORDS}
            tasks[key] = replace(task, **lists, **words)
    if problems:
        raise SuiteError(f"{suite.tasks_path.name}: " + "; ".join(problems))
    return tuple(tasks[key] for key in sorted(tasks))
