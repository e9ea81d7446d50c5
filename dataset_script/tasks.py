"""Load the tasks of a suite from its trajectories and its optional ``tasks.csv``."""

from dataclasses import dataclass, replace

from arb.core.ids import task_key
from arb.core.suite import Suite, SuiteError, read_rows

_COLUMNS = ("task", "benchmark", "sites", "evaluation_types", "difficulty", "category")


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a suite. ``task`` is spelled the same for all agents; unknown fields are empty or None."""

    task: str
    benchmark: str
    split: str
    sites: tuple[str, ...] = ()
    evaluation_types: tuple[str, ...] = ()
    difficulty: str | None = None
    category: str | None = None


def load_tasks(suite: Suite) -> tuple[Task, ...]:
    """Return the tasks of a suite, sorted by benchmark and name, with the details in tasks.csv, if it exists.

    Raises SuiteError, which lists every row of the file that repeats a task, names an unknown task, or has
    another split than the task's trajectories.
    """
    tasks = {(t.benchmark, t.task): Task(t.task, t.benchmark, t.split) for t in suite.trajectories}
    problems, described = [], set()
    rows = read_rows(suite.tasks_path, _COLUMNS) if suite.tasks_path.is_file() else []
    for number, row in enumerate(rows, start=2):
        key = (row["benchmark"] or "", task_key(row["task"] or ""))
        place = f"row {number}, task {key[1][:80]!r}"
        task = tasks.get(key)
        if task is None:
            problems.append(f"{place}: no trajectory of the suite has this task")
        elif key in described:
            problems.append(f"{place}: named twice; keep one row")
        elif row.get("split") not in (None, "", task.split):
            problems.append(f"{place}: its trajectories are in {task.split}; correct the split")
        else:
            described.add(key)
            tasks[key] = replace(
                task,
                sites=tuple((row["sites"] or "").split()),
                evaluation_types=tuple((row["evaluation_types"] or "").split()),
                difficulty=row["difficulty"] or None,
                category=row["category"] or None,
            )
    if problems:
        raise SuiteError(f"{suite.tasks_path.name}: " + "; ".join(problems))
    return tuple(tasks[key] for key in sorted(tasks))
