"""Which runs of a source can be used: every one is read, as `build` reads it, for its id and its goal."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataset_script.building.parts import guarded
from dataset_script.building.report import finding
from dataset_script.building.workers import Workers
from dataset_script.prediction_file.findings import Finding
from dataset_script.sources.base import SourceFile, TrajectorySource, UnusableFileError
from dataset_script.trajectory_ids import TrajectoryId, reading_key

Progress = Callable[[int, int, str], None]
"""Called as work is done: how many runs, of how many, and which was the last."""


@dataclass(frozen=True, slots=True)
class UsableRun:
    """A trajectory that a suite can have, and its goal in words; empty where none was recorded."""

    trajectory_id: str
    goal: str


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """What a source gives, by id, and by name what it does not give, with the reason."""

    runs: tuple[UsableRun, ...]
    left_out: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Look:
    """The files of one trajectory, to be looked at until one can be used."""

    source: TrajectorySource
    files: tuple[SourceFile, ...]


def find_runs(
    source: TrajectorySource, workers: int = 1, progress: Progress = lambda done, total, name: None
) -> FoundRuns:
    """Every trajectory that `build` could take from the source; a file that is broken ends nothing.

    Several files of one trajectory, in any spelling, are one; the first by name that can be used counts.
    Raises SourceError, and WorkerError when a process was killed.
    """
    groups: dict[str, list[SourceFile]] = defaultdict(list)
    for file in source.list().files:
        groups[reading_key(file.trajectory_id)].append(file)
    looks = [_Look(source, tuple(sorted(group, key=lambda f: f.name))) for group in groups.values()]
    count = 0

    def done(look: _Look) -> None:
        nonlocal count
        count += 1
        progress(count, len(looks), look.files[0].name)

    with Workers(workers) as shared_out:
        found = shared_out.run_all(_look_at, looks, [0] * len(looks), done)
    runs = sorted((run for run, _ in found if run is not None), key=lambda run: run.trajectory_id)
    return FoundRuns(tuple(runs), tuple(finding for _, left_out in found for finding in left_out))


def _look_at(look: _Look) -> tuple[UsableRun | None, Sequence[Finding]]:
    left_out: list[Finding] = []
    for place, file in enumerate(look.files):
        try:
            TrajectoryId.parse(file.trajectory_id)
            recording, _ = guarded(look.source.read, file)
        except ValueError as problem:
            code = problem.code if isinstance(problem, UnusableFileError) else "not_a_trajectory"
            left_out.append(finding(code, file.name, str(problem)))
            continue
        others = look.files[place + 1 :]
        left_out += [finding("duplicate", other.name, f"{file.name} was taken") for other in others]
        return UsableRun(file.trajectory_id, recording.goal.strip()), left_out
    return None, left_out
