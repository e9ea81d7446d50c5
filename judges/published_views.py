"""Runs of a published dataset, read for judges: of one trajectory, and only the columns that are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_script.recording import RecordedStep, Recording
from dataset_script.schema import STEP_FIELDS
from dataset_script.sources.base import SourceFile, UnusableFileError
from dataset_script.sources.published import RowGroup, read_row_group
from dataset_script.sources.published_runs import PublishedRun
from dataset_script.trajectory_ids import TrajectoryId
from judges.base import Wants

if TYPE_CHECKING:
    import pyarrow as pa

_TREES = ("axtree", "axtree_pruned")
_FINAL_TREES = ("final_axtree", "final_axtree_pruned")
_WITH_SCREENSHOT = "trajectories_with_screenshot"


class PublishedRuns:
    """Reads runs of a published folder. Trajectories are mostly asked for in the order of the tables, so the
    row group that was read last is kept, one for each configuration. Not for several threads at once.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._kept: dict[str, tuple[tuple[RowGroup, tuple[str, ...]], pa.Table]] = {}

    def read(self, file: SourceFile, wants: Wants) -> Recording:
        """One run with the trees and pictures that are wanted, as far as the folder has them, and no reward.

        A folder without the configuration `steps` has those of the last page only. Raises UnusableFileError
        when the folder was changed meanwhile.
        """
        if not isinstance(file, PublishedRun):
            raise UnusableFileError("not_a_trajectory", "it was not listed from a published folder")
        with _unreadable_when_changed():
            return self._read(file, wants)

    def reward(self, file: SourceFile) -> float | None:
        """The run's reward; None where the dataset has none. Raises UnusableFileError."""
        with _unreadable_when_changed():
            row = self._row(file, "rewards", ("cum_reward",)) if isinstance(file, PublishedRun) else None
        return row["cum_reward"] if row else None

    def _read(self, run: PublishedRun, wants: Wants) -> Recording:
        text = self._row(run, "trajectories", ("goal", "steps", *_wanted_final_trees(run, wants)))
        if text is None:
            raise UnusableFileError("not_a_trajectory", "the dataset has no text of it")
        pictures = self._pictures(run, wants)
        every_step = self._every_step(run, wants)
        last = len(text["steps"]) - 1
        steps = []
        for place, row in enumerate(text["steps"]):
            heavy = every_step.get(row["num"], {})
            is_last = place == last
            final = [text.get(name) if is_last else None for name in _FINAL_TREES]
            screenshot = heavy.get("screenshot") or (pictures.get("final_screenshot") if is_last else None)
            steps.append(
                RecordedStep(
                    **{field.name: row[field.name] for field in STEP_FIELDS},
                    axtree=heavy.get("axtree", final[0]),
                    axtree_pruned=heavy.get("axtree_pruned", final[1]),
                    box=None,
                    screenshot=screenshot["bytes"] if screenshot else None,
                )
            )
        place = TrajectoryId.parse(run.trajectory_id)
        return Recording(
            trajectory_id=run.trajectory_id,
            benchmark_folder=place.folder,
            agent=place.agent,
            task_id=place.task_id,
            model=None,
            goal=text["goal"] or "",
            goal_images=tuple(image["bytes"] for image in pictures.get("goal_images") or ()),
            valid=True,
            cum_reward=None,
            steps=tuple(steps),
        )

    def _pictures(self, run: PublishedRun, wants: Wants) -> Mapping[str, Any]:
        """The final screenshot and the goal's pictures, where they are wanted and there."""
        asked = {
            "final_screenshot": wants.screenshots != "none" and not _reads_every_screenshot(run, wants),
            "goal_images": wants.goal_images,
        }
        columns = tuple(name for name, is_asked in asked.items() if is_asked)
        return (self._row(run, _WITH_SCREENSHOT, columns) if columns else None) or {}

    def _every_step(self, run: PublishedRun, wants: Wants) -> Mapping[int, Mapping[str, Any]]:
        """By the step's number, the heavy columns that are wanted of every step; empty when none is."""
        columns = (*(_TREES if wants.axtrees == "all" else ()),)
        if _reads_every_screenshot(run, wants):
            columns += ("screenshot",)
        if not columns:
            return {}
        tables = (read_row_group(self._folder, group, ("num", *columns)) for group in run.steps)
        return {row["num"]: row for table in tables for row in table.to_pylist()}

    def _row(self, run: PublishedRun, configuration: str, columns: tuple[str, ...]) -> dict[str, Any] | None:
        row = dict(run.rows).get(configuration)
        if row is None:
            return None
        wanted = (row.group, columns)
        if configuration not in self._kept or self._kept[configuration][0] != wanted:
            self._kept[configuration] = (wanted, read_row_group(self._folder, row.group, columns))
        return self._kept[configuration][1].slice(row.place, 1).to_pylist()[0]


@contextmanager
def _unreadable_when_changed() -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (OSError, KeyError, IndexError, pa.ArrowException) as error:
        raise UnusableFileError("unreadable", f"the dataset has changed, or is damaged ({error})") from error


def _wanted_final_trees(run: PublishedRun, wants: Wants) -> tuple[str, ...]:
    is_wanted = wants.axtrees == "last" or (wants.axtrees == "all" and not run.steps)
    return _FINAL_TREES if is_wanted else ()


def _reads_every_screenshot(run: PublishedRun, wants: Wants) -> bool:
    """All screenshots are wanted; or the last is, and stands nowhere else."""
    has_final = any(name == _WITH_SCREENSHOT for name, _ in run.rows)
    is_wanted = wants.screenshots == "all" or (wants.screenshots == "last" and not has_final)
    return bool(run.steps) and is_wanted
