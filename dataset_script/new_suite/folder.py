"""The folder of a new suite: its files as texts, and writing them whole, never over anything."""

import csv
import io
import re
import secrets
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dataset_script.new_suite.runs import UsableRun
from dataset_script.new_suite.suite_toml import render_suite_toml, suggested_rules
from dataset_script.suite import SuiteError, shipped_suites
from dataset_script.task_selection import Task as KnownTask
from dataset_script.task_selection import split_by_share
from dataset_script.trajectory_ids import TrajectoryId, task_key

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_TASK_COLUMNS: Final = (
    "task", "benchmark", "split", "sites", "evaluation_types", "difficulty", "category", "goal",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """How to split: the share of dev, the seed, and the tasks, as (benchmark, task), that have to be dev."""

    dev_share: float
    seed: int = 0
    always_dev: Collection[tuple[str, str]] = field(default=frozenset())


def suite_texts(
    runs: Sequence[UsableRun], choice: SplitChoice, metadata: Iterable[KnownTask] = ()
) -> dict[str, str]:
    """The files of the suite by name: trajectories.csv, suite.toml and, where something is known, tasks.csv.

    Same runs, choice and metadata: same texts. Raises SelectionError when they cannot be split.
    """
    splits = split_by_share(
        [run.trajectory_id for run in runs], choice.dev_share, choice.seed, choice.always_dev
    )
    ids = [(run.trajectory_id, split) for run, split in zip(runs, splits, strict=True)]
    made = (
        f"Made by `python -m dataset_script new-suite` from {len(runs)} runs: "
        f"dev {choice.dev_share} of the tasks, seed {choice.seed}."
    )
    texts = {
        "trajectories.csv": _csv(("trajectory_id", "split"), ids),
        "suite.toml": render_suite_toml(made, suggested_rules(splits.count("test"))),
    }
    known = {task_key(task.task_id): task for task in metadata}
    if known or any(run.goal for run in runs):
        texts["tasks.csv"] = _csv(_TASK_COLUMNS, _task_rows(runs, splits, known))
    return texts


def check_new(folder: Path) -> None:
    """Refuse a folder that is there already, and a name that no suite can have. Raises SuiteError."""
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise SuiteError(f"{name!r}: use letters, digits, '.', '_' and '-' in a suite's name")
    if name in shipped_suites():
        raise SuiteError(f"{name}: a shipped suite has this name; give the folder another one")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise SuiteError(f"{folder}: is there already and is never written over; name another folder")


def write_new(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the files into a new folder, all or none. Raises SuiteError when it is there, and OSError."""
    check_new(folder)
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        unfinished.mkdir()
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8", newline="")
        unfinished.rename(target)  # fails where somebody has filled the folder meanwhile
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _task_rows(
    runs: Sequence[UsableRun], splits: Sequence[str], known: Mapping[str, KnownTask]
) -> list[tuple[str, ...]]:
    """A row a task; its goal is that of its first run that has one."""
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for run, split in zip(runs, splits, strict=True):
        parts = TrajectoryId.parse(run.trajectory_id)
        key = parts.benchmark, parts.task
        if key in rows and (rows[key][-1] or not run.goal):
            continue
        told = known.get(parts.task)
        lists = (" ".join(told.sites), " ".join(told.evaluations)) if told is not None else ("", "")
        rows[key] = (parts.task, parts.benchmark, split, *lists, "", "", run.goal)
    return [rows[key] for key in sorted(rows)]


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
