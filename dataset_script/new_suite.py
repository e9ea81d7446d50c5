"""Create a suite from recorded runs: find the usable runs, split them, and write the suite's folder.

The folder is written completely or not at all, and never overwrites anything. Its ``suite.toml`` hides the
labels and explains each rule.

`build_source` instead creates a suite of all runs of a source, and their dataset, in a cache folder.
"""

import fcntl
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from arb.core.console import Progress, no_progress
from arb.core.files import atomic_write, csv_text, new_folder
from arb.core.ids import TrajectoryId, reading_key, task_key
from arb.core.predictions.findings import Finding
from arb.core.suite import Suite, SuiteError, SuiteRules, load_suite, shipped_suites
from arb.core.suites.profile import read_profile, render_suite_toml
from arb.core.vocabulary import SPLITS
from dataset_script.build.build import BuildOptions, build
from dataset_script.build.output import code_version
from dataset_script.build.parts import first_usable, read_run
from dataset_script.build.report import LEFT_OUT, NOTES, BuildReport, finding, finding_line, listing_findings
from dataset_script.build.workers import Workers
from dataset_script.sources import open_source
from dataset_script.sources.base import FileCounts, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import PublishedDataset
from dataset_script.sources.values import id_part
from dataset_script.task_selection import MetadataTask, draw_dev_tasks
from dataset_script.tasks import load_tasks


@dataclass(frozen=True, slots=True)
class UsableRun:
    """A trajectory that can be part of a suite, with the number of its steps.

    ``goal`` is empty if none was recorded.
    """

    trajectory_id: str
    goal: str
    n_steps: int = 0

    @property
    def task(self) -> tuple[str, str]:
        parts = TrajectoryId.parse(self.trajectory_id)
        return parts.benchmark, parts.task


def find_runs(
    source: TrajectorySource, workers: int = 1, progress: Progress = no_progress
) -> tuple[list[UsableRun], BuildReport]:
    """Return the runs that `build` can use, sorted by id, and a report of what it would leave out.

    If a trajectory has several files, the first usable one by name is used. Raises SourceError, or OSError if
    a worker process was killed.
    """
    listing = source.list_all()
    files: dict[str, list[SourceFile]] = defaultdict(list)
    for file in listing.files:
        files[reading_key(file.trajectory_id)].append(file)
    candidates = [sorted(of_key, key=lambda file: file.name) for of_key in files.values()]
    results: dict[int, tuple[UsableRun | None, Sequence[Finding]]] = {}
    with Workers(workers) as pool:
        tasks = ((task, 0) for task in enumerate(candidates))
        for (place, candidate), result in pool.run_each(partial(_usable_run, source), tasks):
            results[place] = result
            progress(len(results), len(candidates), candidate[0].name)
    report = BuildReport("")
    report.left_out, report.notes = listing_findings(source, listing)
    for place in sorted(results):
        report.left_out += results[place][1]
    report.count_files(source, listing)
    runs = [run for run, _ in results.values() if run is not None]
    return sorted(runs, key=lambda run: run.trajectory_id), report


def _usable_run(
    source: TrajectorySource, numbered: tuple[int, Sequence[SourceFile]]
) -> tuple[UsableRun | None, Sequence[Finding]]:
    def used(file: SourceFile) -> UsableRun:
        recording, _ = read_run(source, file)
        return UsableRun(file.trajectory_id, recording.goal.strip(), len(recording.steps))

    return first_usable(numbered[1], used)


def suggested_rules(test_trajectories: int) -> SuiteRules:
    """Return the default rules, with a lower minimum of positive verdicts if the test split is small.

    With the usual minimum, an honest judge's submission could be held for review.
    """
    fewest = min(SuiteRules().fewest_positives, max(1, test_trajectories // 10))
    return SuiteRules(fewest_positives=fewest)


_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_TASK_COLUMNS: Final = (
    "task", "benchmark", "split", "sites", "evaluation_types", "difficulty", "category", "goal",
)  # fmt: skip


def suite_texts(
    runs: Sequence[UsableRun],
    dev_share: float,
    seed: int,
    always_dev: Collection[tuple[str, str]],
    title: str,
    metadata: Iterable[MetadataTask] = (),
    with_steps: bool = False,
) -> dict[str, str]:
    """Return the text of each file of the suite, keyed by the file's name.

    tasks.csv is included if there are goals or metadata. With ``with_steps``, items.csv lists every step.
    ``always_dev`` are the (benchmark, task) pairs that must be in dev. Raises SuiteError if the runs cannot
    be split.
    """
    goals: dict[tuple[str, str], str] = {}  # the goal of each task, from its first run that has a goal
    for run in runs:
        goals[run.task] = goals.get(run.task) or run.goal
    dev = draw_dev_tasks(goals, dev_share, seed, always_dev)
    splits = {task: SPLITS[0] if task in dev else SPLITS[1] for task in goals}
    ids = [(run.trajectory_id, splits[run.task]) for run in runs]
    test_runs = sum(split == SPLITS[1] for _, split in ids)
    share = f"with {dev_share} of the tasks in dev (seed {seed})"
    made = f"Created by `arb data new-suite` from {len(runs)} runs, {share}."
    texts = {
        "trajectories.csv": csv_text(("trajectory_id", "split"), ids),
        "suite.toml": render_suite_toml(made, title, suggested_rules(test_runs)),
    }
    if with_steps:
        # Steps are numbered from 1, as on pages and in what judges see.
        steps = [(run.trajectory_id, step + 1) for run in runs for step in range(run.n_steps)]
        texts["items.csv"] = csv_text(("trajectory_id", "step"), steps)
    known = {task_key(task.task_id): task for task in metadata}
    if known or any(goals.values()):
        rows = []
        for (benchmark, name), goal in sorted(goals.items()):
            task = known.get(name) or MetadataTask(name, (), (), "")
            lists = " ".join(task.sites), " ".join(task.evaluations)
            rows.append((name, benchmark, splits[benchmark, name], *lists, "", task.category, goal))
        texts["tasks.csv"] = csv_text(_TASK_COLUMNS, rows)
    return texts


def check_title(title: str | None, folder: Path) -> str:
    """Return the title, or one made from the folder's name if None. Raises SuiteError if it is invalid."""
    try:
        return read_profile({"title": title or ""}, folder.resolve().name).title
    except ValueError as problem:
        raise SuiteError(str(problem)) from None


def check_new(folder: Path) -> None:
    """Raise SuiteError unless the folder is missing or empty, and its name is allowed for a new suite."""
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise SuiteError(
            f"{name!r}: a suite's name has letters, digits, '.', '_' and '-', and begins with a letter or "
            "digit; rename the folder"
        )
    if name in shipped_suites():
        raise SuiteError(f"{name}: a shipped suite has this name; rename the folder")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise SuiteError(f"{folder}: exists already and will not be overwritten; name another folder")


def write_new(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files into a new folder, or none of them. Raises SuiteError (see `check_new`) or OSError."""
    check_new(folder)
    with new_folder(folder) as unfinished:
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8", newline="")


def complete_report(report: BuildReport, folder: Path) -> None:
    """Add the name of the suite in a folder, and the numbers of its runs and tasks, to the report."""
    suite = load_suite(folder)
    report.suite = suite.name
    for trajectory in suite.trajectories:
        report.count(trajectory.split, trajectory.benchmark)
    tasks = Counter(task.split for task in load_tasks(suite))
    report.rows = {f"{split}, {tasks[split]} tasks": counts for split, counts in report.counts.items()}


SOURCE_SPLIT: Final = "test"
"""The split of all runs in a suite that `build_source` creates, since their labels are unknown."""


class SourceFacts(msgspec.Struct, frozen=True):
    """A description of a source of runs.

    ``sha256`` is a hash of its files' names, sizes and times. ``left_out`` has one line, with the reason, for
    each file without a usable run. ``crashed`` has the ids of runs that ended before they could be judged,
    and ``warnings`` has a line for each agent name that is shared by runs with different settings.
    """

    name: str
    kind: str
    sha256: str
    left_out: tuple[str, ...] = ()
    crashed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: FileCounts | None = None


@dataclass(frozen=True, slots=True)
class SourceDataset:
    """The suite and the dataset of all readable runs of a source."""

    suite: Suite
    folder: Path
    facts: SourceFacts

    @property
    def suite_folder(self) -> Path:
        return self.suite.tasks_path.parent


def build_source(
    source: Path,
    cache: Path,
    workers: int = 1,
    progress: Progress = no_progress,
    agent_from: tuple[str, ...] = (),
) -> SourceDataset:
    """Build a suite and a dataset, without rewards and judgments, of all usable runs of a source.

    Both are stored in a subfolder of ``cache``, named by a hash of the source and the code. An unchanged
    source is not built again, and an interrupted build resumes. If another process is building the same
    source, this waits for it. Agents are named after the facts in ``agent_from``. Raises SourceError (also if
    no run can be used), OutputError or OSError.
    """
    runs = open_source(source, agent_from=agent_from)
    listing = runs.list_all()
    facts = SourceFacts(source.resolve().name, runs.kind, _hash_of(runs, listing))
    made_by = hashlib.sha256(f"{facts.sha256} {code_version()} {facts.name}".encode()).hexdigest()
    place = cache / made_by[:32]
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    suite = place / f"runs-of-{id_part(facts.name)[:80]}"
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / _FACTS).is_file():
            workers = workers if len(listing.files) >= _FEWEST_TO_SHARE else 1
            options = BuildOptions(workers=workers, for_judges=True, agent_from=agent_from)
            found = _build_runs(source, listing, suite, place / _DATASET, options, progress)
            atomic_write(place / _FACTS, msgspec.json.encode(structs.replace(facts, **found)))
    return SourceDataset(load_suite(suite), place / _DATASET, source_facts(place / _DATASET) or facts)


def source_facts(dataset: Path) -> SourceFacts | None:
    """Return what `build_source` stored about a dataset's source, or None if it did not build it."""
    path = dataset.parent / _FACTS
    if dataset.name != _DATASET or not path.is_file():
        return None
    return msgspec.json.decode(path.read_bytes(), type=SourceFacts)


_FEWEST_TO_SHARE: Final = 20
"""With fewer runs, no workers are started: starting them would take longer than reading the runs."""

_FACTS: Final = "source.json"
_DATASET: Final = "dataset"


def _hash_of(runs: TrajectorySource, listing: SourceListing) -> str:
    digest = hashlib.sha256(runs.kind.encode())
    try:
        for file in listing.files:
            digest.update(f"{file.name}\n{file.trajectory_id}\n{runs.identity(file)}\n".encode())
        digest.update("\n".join(listing.others).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise SourceError(f"{runs.folder} cannot be read ({error})") from error
    return digest.hexdigest()


def _build_runs(
    source: Path, listing: SourceListing, suite: Path, out: Path, options: BuildOptions, progress: Progress
) -> dict[str, Any]:
    """Build the dataset and write its suite. Return the `SourceFacts` fields that a build provides."""
    ids: dict[str, str] = {}
    left_out = []
    for file in listing.files:
        try:
            ids.setdefault(reading_key(file.trajectory_id), str(TrajectoryId.parse(file.trajectory_id)))
        except ValueError as problem:
            left_out.append(finding("not_a_trajectory", file.name, f"{file.trajectory_id!r}: {problem}"))
    _write_ids(suite, ids.values())
    report = build(source, out, load_suite(suite), options, progress)
    left_out += [each for each in report.left_out if each.code not in ("not_in_suite", "missing")]
    lines = [f"{finding_line(each)} ({LEFT_OUT[each.code]})" for each in left_out]
    unread = [each for each in report.notes if each.code == "not_json_file"]
    lines += [f"{finding_line(each)} ({NOTES[each.code]})" for each in unread]
    if not report.published:
        raise SourceError("\n".join([f"{source}: none of its runs can be used:", *lines[:_MOST_LINES]]))
    built = PublishedDataset(out).table("trajectories", columns=["trajectory_id"])[0].to_pylist()
    _write_ids(suite, built)
    ended = {each.file for each in left_out if each.code in _CRASHED}
    crashed = {file.trajectory_id for file in listing.files if file.name in ended} - {*built}
    same = [each.message for each in report.notes if each.code == "same_agent"]
    return {
        "left_out": tuple(lines),
        "crashed": tuple(sorted(crashed)),
        "warnings": tuple(f"{message} ({NOTES['same_agent']})" for message in same),
        "files": report.files,
    }


_CRASHED: Final = ("crashed", "no_steps")
"""Codes for runs that were left out, but in which the agent did run and failed."""


_MOST_LINES: Final = 20


def _write_ids(suite: Path, ids: Iterable[str]) -> None:
    suite.mkdir(exist_ok=True)
    rows = [(each, SOURCE_SPLIT) for each in sorted(ids)]
    atomic_write(suite / "trajectories.csv", csv_text(("trajectory_id", "split"), rows).encode())
