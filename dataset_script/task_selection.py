"""Choose the tasks of a new suite, and its dev and test split, as the paper did (section 3.2, A.1).

A task's area is its first site, or in WorkArena its category. Tasks with the same area and evaluation method
form a group. Up to n tasks are drawn from each group, within one split of the metadata. A task may be in
several groups, but it is in the sample only once.

If a total is given, all areas contribute the same number of tasks. Small areas contribute all their tasks,
and the largest areas make up the difference. A total of 100 gives the sizes in A.1 for WebArena,
VisualWebArena and WorkArena's second level. A group may exceed its limit to reach the total: the paper has 17
Wikipedia tasks of one group, though its limit for VisualWebArena is 9. From AssistantBench the paper uses the
whole validation split, and from WorkArena's first level the whole test split.

Each group is drawn with a seed of its own, so the result depends neither on the order of rows nor on other
groups. The paper's sample cannot be drawn again, since its seed is unknown.
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from arb.core.ids import TrajectoryId, task_key
from arb.core.suite import SuiteError, read_rows
from arb.core.vocabulary import SPLITS

NAME, SPLIT = "task_name", "browsergym_split"
OPTIONAL_COLUMNS = (("sites", "eval_types"), ("level", "category"))
"""Pairs of optional columns of the metadata. WebArena has the first pair, WorkArena the second."""


@dataclass(frozen=True, slots=True)
class MetadataTask:
    """A task in BrowserGym's metadata. Fields for which the metadata has no column are empty."""

    task_id: str
    sites: tuple[str, ...]
    evaluations: tuple[str, ...]
    split: str
    category: str = ""
    level: str = ""

    @property
    def area(self) -> str:
        """The task's first site. Without sites, its category; without a category, its benchmark."""
        return self.sites[0] if self.sites else self.category or self.task_id.split(".")[0]

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The task's groups as (area, evaluation method), one per evaluation method."""
        return tuple((self.area, evaluation) for evaluation in self.evaluations or ("",))


def read_metadata(path: Path) -> tuple[MetadataTask, ...]:
    """Read a benchmark's metadata from BrowserGym's CSV file. Raises SuiteError, which lists all wrong rows.

    The columns are `NAME`, `SPLIT` and perhaps a pair of `OPTIONAL_COLUMNS`.
    """
    rows = read_rows(path, (NAME, SPLIT))
    there = set(rows[0]) if rows else set()
    needed = [NAME]
    for pair in OPTIONAL_COLUMNS:
        if not there.isdisjoint(pair):
            needed += pair
    needed.append(SPLIT)
    if absent := [name for name in needed if rows and name not in there]:
        raise SuiteError(f"{path.name}: the columns {', '.join(absent)} are missing; add them")
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
    """Draw up to ``per_group`` tasks (default: all) of ``split`` from each group; return them in input order.

    With a ``total``, each area gives its share (`even_shares`), first from its drawn tasks, then from its
    other tasks. ``level`` restricts the tasks to a level of WorkArena. Raises SuiteError if no task has the
    split or the level, or if there are fewer tasks than the total.
    """
    if per_group is not None and per_group < 1:
        raise SuiteError(f"--per-group {per_group}: use 1 or more")
    tasks = tuple(tasks)
    tasks_of_level = tuple(task for task in tasks if level in (None, task.level))
    chosen = tuple(task for task in tasks_of_level if task.split == split)
    if not tasks_of_level:
        raise SuiteError(_no_task("--level", level, (task.level for task in tasks)))
    if not chosen:
        raise SuiteError(_no_task("--metadata-split", split, (task.split for task in tasks_of_level)))
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


def _no_task(option: str, name: str | None, there: Iterable[str]) -> str:
    found = ", ".join(sorted(filter(None, set(there)))) or "none"
    return f"{option} {name!r}: no task of the metadata has it; use one of: {found}"


def _spread(tasks: Sequence[MetadataTask], drawn: Collection[str], total: int, seed: int) -> set[str]:
    """Return the ids of ``total`` tasks, spread evenly over the areas, preferring tasks in ``drawn``."""
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
    """Divide ``total`` evenly, but give no group more than its size. Raises SuiteError if impossible."""
    if not 0 < total <= sum(sizes.values()):
        raise SuiteError(f"--total {total}: choose a number from 1 to {sum(sizes.values())}")
    shares: dict[str, int] = {}
    left = total
    for place, (name, size) in enumerate(sorted(sizes.items(), key=lambda item: (item[1], item[0]))):
        shares[name] = min(size, left // (len(sizes) - place))
        left -= shares[name]
    return shares


def count_by_area(tasks: Iterable[MetadataTask]) -> dict[str, int]:
    """Return the number of tasks in each area, smallest first."""
    counts = Counter(task.area for task in tasks)
    return dict(sorted(counts.items(), key=lambda item: (item[1], item[0])))


def read_ids(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the name of a CSV file's id column (trajectory_id or task_id), and the ids in it.

    Raises SuiteError if the column is missing, or if an id is empty, repeated or malformed.
    """
    rows = read_rows(path, ())
    column = next((name for name in ("trajectory_id", "task_id") if rows and name in rows[0]), None)
    if column is None:
        raise SuiteError(f"{path.name}: add a column trajectory_id or task_id with at least one row")
    ids = tuple((row[column] or "").strip() for row in rows)
    problems = [f"row {number}: {column} is empty" for number, text in enumerate(ids, start=2) if not text]
    problems += [
        f"{text[:80]!r}: in {n} rows; keep one row" for text, n in Counter(ids).items() if n > 1 and text
    ]
    if column == "trajectory_id":
        problems += [
            f"{text[:80]!r}: expected <benchmark>/<agent>/<task_id>" for text in ids if not _is_id(text)
        ]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return column, ids


def split_by_task(ids: Sequence[str], dev_tasks: int, seed: int) -> tuple[str, ...]:
    """Draw ``dev_tasks`` tasks for dev, and return the split of each trajectory or task id.

    All runs of a task are in the same split. Raises SuiteError if a split would have no task.
    """
    tasks = sorted({_task_of(text) for text in ids})
    if not 0 < dev_tasks < len(tasks):
        raise SuiteError(f"--dev-tasks {dev_tasks}: of {len(tasks)} tasks, choose 1 to {len(tasks) - 1}")
    dev = set(random.Random(f"{seed}/dev").sample(tasks, dev_tasks))
    return tuple(SPLITS[0] if _task_of(text) in dev else SPLITS[1] for text in ids)


def draw_dev_tasks(
    tasks: Collection[tuple[str, str]], share: float, seed: int, always_dev: Collection[tuple[str, str]] = ()
) -> frozenset[tuple[str, str]]:
    """Draw about the same share of each benchmark's tasks for dev, as (benchmark, task) pairs.

    Tasks in ``always_dev`` are always in dev. The result does not depend on the order of the tasks. Raises
    SuiteError if the share is not between 0 and 1, or if a split would have no task.
    """
    if not 0 < share < 1:
        raise SuiteError(f"--dev-share {share}: choose a number between 0 and 1, such as 0.15")
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
            f"dev would have {len(dev)} of the {sizes.total()} tasks; choose a share that leaves tasks for "
            "both dev and test"
        )
    return frozenset(dev)


def _shares(sizes: Mapping[str, int], share: float, seed: int) -> dict[str, int]:
    """Return how many members to draw from each group, so that ``share`` of all members are drawn.

    The numbers are rounded down. The groups that lost the most by rounding then get one more each, until the
    total is right.
    """
    numbers = {name: int(share * size) for name, size in sizes.items()}
    left = int(share * sum(sizes.values()) + 0.5) - sum(numbers.values())
    by_loss = sorted(sizes, key=lambda name: (numbers[name] - share * sizes[name], _rank(seed, name)))
    for name in by_loss[:left]:
        numbers[name] += 1
    return numbers


def _rank(seed: int, *names: str) -> bytes:
    """Return a pseudo-random sort key that is the same on every machine and in every version of Python."""
    return hashlib.sha256("/".join((str(seed), *names)).encode()).digest()


def _task_of(text: str) -> tuple[str, str]:
    """Return the benchmark and the task of a trajectory id or a task id, in any spelling."""
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
