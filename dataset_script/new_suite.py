"""Make a suite from recorded runs: find the usable runs, split them, and write the suite's folder.

Every run of the source is read as `build` reads it, for its id and its goal. The folder is written completely
or not at all, and never overwrites anything. Its ``suite.toml`` hides the labels and explains each rule.

`build_source` makes a suite of all runs of a source, and their dataset, in a cache instead of such a folder.
"""

import fcntl
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

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
from dataset_script.build.report import LEFT_OUT, BuildReport, finding, finding_line
from dataset_script.build.workers import Workers
from dataset_script.sources import open_source
from dataset_script.sources.base import (
    SourceError,
    SourceFile,
    SourceListing,
    TrajectorySource,
    id_part,
)
from dataset_script.sources.published import PublishedDataset
from dataset_script.task_selection import MetadataTask, draw_dev_tasks
from dataset_script.tasks import load_tasks


@dataclass(frozen=True, slots=True)
class UsableRun:
    """A trajectory that can be part of a suite, and its goal, which is empty if none was recorded."""

    trajectory_id: str
    goal: str

    @property
    def task(self) -> tuple[str, str]:
        parts = TrajectoryId.parse(self.trajectory_id)
        return parts.benchmark, parts.task


@dataclass(slots=True)
class FoundRuns:
    """The usable runs of a source, sorted by id, and the reasons why other files were left out."""

    runs: list[UsableRun] = field(default_factory=list)
    left_out: list[Finding] = field(default_factory=list)


def find_runs(source: TrajectorySource, workers: int = 1, progress: Progress = no_progress) -> FoundRuns:
    """Return every trajectory that `build` could take from the source, and the files that it would leave out.

    If a trajectory has several files, in any spelling of its id, the first usable file by name counts. Raises
    SourceError, or OSError if a worker process was killed.
    """
    listing = source.list_runs()
    files: dict[str, list[SourceFile]] = defaultdict(list)
    for file in listing.files:
        files[reading_key(file.trajectory_id)].append(file)
    candidates = [tuple(sorted(of_key, key=lambda file: file.name)) for of_key in files.values()]
    results: dict[tuple[SourceFile, ...], tuple[UsableRun | None, Sequence[Finding]]] = {}
    with Workers(workers) as pool:
        tasks = ((candidate, 0) for candidate in candidates)
        for candidate, result in pool.run_each(partial(_usable_run, source), tasks):
            results[candidate] = result
            progress(len(results), len(candidates), candidate[0].name)
    found = FoundRuns(left_out=[finding("link_out", name) for name in listing.links_out])
    for candidate in candidates:
        run, left_out = results[candidate]
        found.left_out += left_out
        if run is not None:
            found.runs.append(run)
    found.runs.sort(key=lambda run: run.trajectory_id)
    return found


def _usable_run(
    source: TrajectorySource, files: Sequence[SourceFile]
) -> tuple[UsableRun | None, Sequence[Finding]]:
    def used(file: SourceFile) -> UsableRun:
        recording, _ = read_run(source, file)
        return UsableRun(file.trajectory_id, recording.goal.strip())

    return first_usable(files, used)


def suggested_rules(test_trajectories: int) -> SuiteRules:
    """Return the default rules, but require fewer positive verdicts if the test split is small.

    With the default number, the submission of an honest judge would be held back.
    """
    fewest = min(SuiteRules().fewest_positives, max(1, test_trajectories // 10))
    return SuiteRules(fewest_positives=fewest)


_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_TASK_COLUMNS: Final = (
    "task", "benchmark", "split", "sites", "evaluation_types", "difficulty", "category", "goal",
)  # fmt: skip


def suite_texts(
    found: FoundRuns,
    dev_share: float,
    seed: int,
    always_dev: Collection[tuple[str, str]],
    title: str,
    metadata: Iterable[MetadataTask] = (),
) -> dict[str, str]:
    """Return texts by file name: trajectories.csv, suite.toml and, if there are goals or metadata, tasks.csv.

    ``always_dev`` are tasks, as (benchmark, task), that must be in dev. Raises SuiteError if the runs cannot
    be split.
    """
    goals: dict[tuple[str, str], str] = {}  # for each task the goal of its first run that has one
    for run in found.runs:
        goals[run.task] = goals.get(run.task) or run.goal
    dev = draw_dev_tasks(goals, dev_share, seed, always_dev)
    splits = {task: SPLITS[0] if task in dev else SPLITS[1] for task in goals}
    ids = [(run.trajectory_id, splits[run.task]) for run in found.runs]
    test_runs = sum(split == SPLITS[1] for _, split in ids)
    made = (
        f"Made by `python -m dataset_script new-suite` from {len(found.runs)} runs: "
        f"dev {dev_share} of the tasks, seed {seed}."
    )
    texts = {
        "trajectories.csv": csv_text(("trajectory_id", "split"), ids),
        "suite.toml": render_suite_toml(made, title, suggested_rules(test_runs)),
    }
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
    """Return a new suite's title, by default made from the folder's name. Raises SuiteError if invalid."""
    try:
        return read_profile({"title": title or ""}, folder.resolve().name).title
    except ValueError as problem:
        raise SuiteError(str(problem)) from None


def check_new(folder: Path) -> None:
    """Raise SuiteError if the folder exists and is not empty, or a new suite cannot have its name."""
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise SuiteError(f"{name!r}: a suite's name has letters, digits, '.', '_' and '-'; rename the folder")
    if name in shipped_suites():
        raise SuiteError(f"{name}: a shipped suite has this name; rename the folder")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise SuiteError(f"{folder}: exists already and is never overwritten; name another folder")


def write_new(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files into a new folder, or none. Raises SuiteError as `check_new` does, or OSError."""
    check_new(folder)
    with new_folder(folder.resolve()) as unfinished:
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8", newline="")


def suite_report(folder: Path, found: FoundRuns) -> BuildReport:
    """Return a report on the suite in ``folder``: counts by split, and the files that ``found`` left out."""
    suite = load_suite(folder)
    report = BuildReport(suite.name)
    for trajectory in suite.trajectories:
        report.count(trajectory.split, trajectory.benchmark)
    tasks = Counter(task.split for task in load_tasks(suite))
    report.rows = {f"{split}, {tasks[split]} tasks": counts for split, counts in report.counts.items()}
    report.left_out = found.left_out
    return report


SOURCE_SPLIT: Final = "test"
"""The split in which `build_source` puts all runs, since their labels are unknown."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The name of a source's folder, its kind, and the state of its files.

    ``sha256`` is a hash of the names, sizes and times of its files. ``left_out`` has one line with the reason
    for each file without a usable run.
    """

    name: str
    kind: str
    sha256: str
    left_out: tuple[str, ...] = ()


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
    source: Path, cache: Path, workers: int = 1, progress: Progress = no_progress
) -> SourceDataset:
    """Build a suite and a dataset, without rewards and judgments, of all usable runs of a source.

    Both are in ``cache``, in a folder named by a hash of the source and of the code that reads it. An
    unchanged source is not built again, and a stopped build resumes. If another process is building the same
    source, this one waits for it. The folders may be removed when nothing reads them. Raises SourceError
    (also if no run can be used), OutputError or OSError.
    """
    runs = open_source(source)
    listing = runs.list_runs()
    facts = SourceFacts(source.resolve().name, runs.kind, _hash_of(runs, listing))
    made_by = hashlib.sha256(f"{facts.sha256} {code_version()} {facts.name}".encode()).hexdigest()
    place = cache / made_by[:32]
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    suite = place / f"runs-of-{id_part(facts.name)[:80]}"
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / _FACTS).is_file():
            workers = workers if len(listing.files) >= _FEWEST_TO_SHARE else 1
            left_out = _build_runs(source, listing, suite, place / _DATASET, workers, progress)
            stored = asdict(facts) | {"left_out": left_out}
            atomic_write(place / _FACTS, json.dumps(stored, indent=1).encode() + b"\n")
    return SourceDataset(load_suite(suite), place / _DATASET, source_facts(place / _DATASET) or facts)


def source_facts(dataset: Path) -> SourceFacts | None:
    """Return the facts that `build_source` stored with a dataset, or None if it did not build the dataset."""
    path = dataset.parent / _FACTS
    if dataset.name != _DATASET or not path.is_file():
        return None
    found = json.loads(path.read_bytes())
    return SourceFacts(**found | {"left_out": tuple(found["left_out"])})


_FEWEST_TO_SHARE: Final = 20
"""The fewest runs that worker processes read. Starting these takes longer than reading fewer runs."""

_FACTS: Final = "source.json"
_DATASET: Final = "dataset"


def _hash_of(runs: TrajectorySource, listing: SourceListing) -> str:
    digest = hashlib.sha256(runs.kind.encode())
    try:
        for file in listing.files:
            digest.update(f"{file.name}\n{file.trajectory_id}\n{runs.identity(file)}\n".encode())
    except OSError as error:
        raise SourceError(f"{runs.folder}: cannot be read ({error})") from error
    return digest.hexdigest()


def _build_runs(
    source: Path, listing: SourceListing, suite: Path, out: Path, workers: int, progress: Progress
) -> list[str]:
    """Build the dataset and write a suite of the runs in it. Return one line per file that was left out."""
    ids: dict[str, str] = {}
    left_out = []
    for file in listing.files:
        try:
            ids.setdefault(reading_key(file.trajectory_id), str(TrajectoryId.parse(file.trajectory_id)))
        except ValueError as problem:
            left_out.append(finding("not_a_trajectory", file.name, f"{file.trajectory_id!r}: {problem}"))
    _write_ids(suite, ids.values())
    report = build(source, out, load_suite(suite), BuildOptions(workers=workers, for_judges=True), progress)
    left_out += [each for each in report.left_out if each.code not in ("not_in_suite", "missing")]
    lines = [f"{finding_line(each)} ({LEFT_OUT[each.code]})" for each in left_out]
    if not report.published:
        raise SourceError("\n".join([f"{source}: none of its runs can be used:", *lines[:_MOST_LINES]]))
    _write_ids(suite, PublishedDataset(out).table("trajectories", columns=["trajectory_id"])[0].to_pylist())
    return lines


_MOST_LINES: Final = 20


def _write_ids(suite: Path, ids: Iterable[str]) -> None:
    suite.mkdir(exist_ok=True)
    rows = [(each, SOURCE_SPLIT) for each in sorted(ids)]
    atomic_write(suite / "trajectories.csv", csv_text(("trajectory_id", "split"), rows).encode())
