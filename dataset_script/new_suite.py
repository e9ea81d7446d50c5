"""A suite of one's own from recorded runs: which runs can be used, their split, the files of its folder.

Every run of the source is read, as `build` reads it, for its id and its goal. The folder is written whole and
never over anything; its ``suite.toml`` hides the labels and says what each rule does.

`build_source` needs no such folder: it makes a suite of all runs of a source, and their dataset, in a cache.
"""

import fcntl
import hashlib
import json
import pickle
import re
import secrets
import shutil
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Final

from arb.core.console import Progress, no_progress
from arb.core.files import atomic_write, csv_text
from arb.core.ids import TrajectoryId, reading_key, task_key
from arb.core.predictions.findings import Finding
from arb.core.suite import Suite, SuiteError, SuiteRules, load_suite, shipped_suites
from arb.core.suites.profile import read_profile, render_suite_toml
from arb.core.vocabulary import SPLITS
from dataset_script.build.build import BuildOptions, build
from dataset_script.build.output import code_version
from dataset_script.build.parts import Workers, guarded
from dataset_script.build.report import LEFT_OUT, BuildReport, finding, finding_line
from dataset_script.sources import open_source
from dataset_script.sources.base import (
    SourceError,
    SourceFile,
    SourceListing,
    TrajectorySource,
    UnusableFileError,
    id_part,
)
from dataset_script.sources.published import PublishedDataset
from dataset_script.task_selection import MetadataTask, draw_dev_tasks, iterate_tasks


@dataclass(frozen=True, slots=True)
class UsableRun:
    """A trajectory that a suite can have, and its goal in words; empty where none was recorded."""

    trajectory_id: str
    goal: str


class FoundRuns:
    """What a source gives, in a temporary database on disk; and by name what it does not, with the reason."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_TABLES)
        self.left_out: list[Finding] = []

    def close(self) -> None:
        self._database.close()

    def add_files(self, files: Iterable[SourceFile]) -> None:
        rows = ((*map(_packed, (reading_key(f.trajectory_id), f.name)), pickle.dumps(f)) for f in files)
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO files VALUES (?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def candidates(self, source: TrajectorySource) -> Iterator["_Candidate"]:
        """The files of each trajectory, in the order in which the source lists their first ones."""
        of_key = "SELECT file FROM files WHERE key = ? ORDER BY name"
        grouped = self._database.execute(
            "SELECT min(rowid) AS place, key FROM files GROUP BY key ORDER BY place"
        )
        for place, key in grouped:
            files = self._database.execute(of_key, (key,))
            yield _Candidate(place, source, tuple(pickle.loads(file) for (file,) in files))

    def add(self, run: UsableRun) -> None:
        parts = TrajectoryId.parse(run.trajectory_id)
        row = (run.trajectory_id, parts.benchmark, parts.task, run.goal)
        self._database.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", tuple(map(_packed, row)))

    def rows(self, columns: str, order: str) -> Iterator[tuple[str, ...]]:
        """Columns of the runs: id, benchmark, task, goal."""
        for row in self._database.execute(f"SELECT {columns} FROM runs ORDER BY {order}"):
            yield tuple(cell.decode("utf-8", "surrogatepass") for cell in row)

    def count(self, condition: str = "TRUE") -> int:
        """How many candidates there are, or runs that meet a condition."""
        return self._database.execute(f"SELECT count(*) FROM runs WHERE {condition}").fetchone()[0]

    def number_of_candidates(self) -> int:
        return self._database.execute("SELECT count(DISTINCT key) FROM files").fetchone()[0]


_TABLES: Final = """
CREATE TABLE files (key, name, file);
CREATE INDEX files_by_key ON files (key, name);
CREATE TABLE runs (id PRIMARY KEY, benchmark, task, goal) WITHOUT ROWID;
"""


def _packed(text: str) -> bytes:
    """As SQLite takes it: names of files may have halves of characters. In the order of the text."""
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The files of one trajectory, to be read until one can be used, and its place in the source."""

    place: int
    source: TrajectorySource
    files: tuple[SourceFile, ...]


def find_runs(source: TrajectorySource, workers: int = 1, progress: Progress = no_progress) -> FoundRuns:
    """Every trajectory that `build` could take from the source; a file that is broken ends nothing.

    Several files of one trajectory, in any spelling, are one; the first by name that can be used counts.
    Raises SourceError, and WorkerError when a process was killed.
    """
    listing = source.list_runs()
    found = FoundRuns()
    found.add_files(listing.files)
    total = found.number_of_candidates()
    problems: list[tuple[int, Sequence[Finding]]] = []
    with Workers(workers) as pool:
        tasks = ((candidate, 0) for candidate in found.candidates(source))
        for count, (candidate, (run, left_out)) in enumerate(pool.run_each(_usable_run, tasks), start=1):
            progress(count, total, candidate.files[0].name)
            if run is not None:
                found.add(run)
            if left_out:
                problems.append((candidate.place, left_out))
    found.left_out += [finding("link_out", name) for name in listing.links_out]
    for _, left_out in sorted(problems, key=lambda problem: problem[0]):
        found.left_out += left_out
    return found


def _usable_run(candidate: _Candidate) -> tuple[UsableRun | None, Sequence[Finding]]:
    left_out: list[Finding] = []
    for place, file in enumerate(candidate.files):
        try:
            TrajectoryId.parse(file.trajectory_id)
            recording, _ = guarded(candidate.source.read, file)
        except ValueError as problem:
            code = problem.code if isinstance(problem, UnusableFileError) else "not_a_trajectory"
            left_out.append(finding(code, file.name, str(problem)))
            continue
        others = candidate.files[place + 1 :]
        left_out += [finding("duplicate", other.name, f"{file.name} was taken") for other in others]
        return UsableRun(file.trajectory_id, recording.goal.strip()), left_out
    return None, left_out


def suggested_rules(test_trajectories: int) -> SuiteRules:
    """The defaults; on a small test split fewer positive verdicts do, or an honest judge would be held."""
    fewest = min(SuiteRules().fewest_positives, max(1, test_trajectories // 10))
    return SuiteRules(fewest_positives=fewest)


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
    found: FoundRuns, choice: SplitChoice, title: str, metadata: Iterable[MetadataTask] = ()
) -> dict[str, Iterable[str]]:
    """The files of the suite by name, each in pieces: trajectories.csv, suite.toml and, where something is
    known, tasks.csv.

    Same runs, choice, title and metadata: same texts. Raises SelectionError when they cannot be split.
    """

    def tasks() -> Iterator[tuple[str, str]]:
        return (task for task, _ in groupby(found.rows("benchmark, task", "benchmark, task")))

    dev = draw_dev_tasks(tasks, choice.dev_share, choice.seed, choice.always_dev)
    test_runs = sum(task not in dev for task in found.rows("benchmark, task", "benchmark, task"))
    made = (
        f"Made by `python -m dataset_script new-suite` from {found.count()} runs: "
        f"dev {choice.dev_share} of the tasks, seed {choice.seed}."
    )
    ids = ((name, _split(task, dev)) for name, *task in found.rows("id, benchmark, task", "id"))
    texts: dict[str, Iterable[str]] = {
        "trajectories.csv": _csv_lines(("trajectory_id", "split"), ids),
        "suite.toml": (render_suite_toml(made, title, suggested_rules(test_runs)),),
    }
    known = {task_key(task.task_id): task for task in metadata}
    if known or found.count("goal <> x''"):
        texts["tasks.csv"] = _csv_lines(_TASK_COLUMNS, _task_rows(found, dev, known))
    return texts


def _split(task: Sequence[str], dev: Collection[tuple[str, str]]) -> str:
    return SPLITS[0] if tuple(task) in dev else SPLITS[1]


def _csv_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (csv_text(row, ()) for row in chain((header,), rows))


def check_title(title: str | None, folder: Path) -> str:
    """The title of a new suite, by default made of its folder's name. Raises SuiteError."""
    try:
        return read_profile({"title": title or ""}, folder.resolve().name).title
    except ValueError as problem:
        raise SuiteError(str(problem)) from None


def check_new(folder: Path) -> None:
    """Refuse a folder that is there already, and a name that no suite can have. Raises SuiteError."""
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise SuiteError(f"{name!r}: use letters, digits, '.', '_' and '-' in a suite's name")
    if name in shipped_suites():
        raise SuiteError(f"{name}: a shipped suite has this name; give the folder another one")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise SuiteError(f"{folder}: is there already and is never written over; name another folder")


def write_new(folder: Path, texts: Mapping[str, Iterable[str]]) -> None:
    """Write the files, given in pieces, into a new folder, all or none.

    Raises SuiteError when it is there, and OSError.
    """
    check_new(folder)
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        unfinished.mkdir()
        for name, pieces in texts.items():
            with (unfinished / name).open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
        unfinished.rename(target)  # fails where somebody has filled the folder meanwhile
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _task_rows(
    found: FoundRuns, dev: Collection[tuple[str, str]], known: Mapping[str, MetadataTask]
) -> Iterator[tuple[str, ...]]:
    """A row a task; its goal is that of its first run that has one."""
    runs = found.rows("benchmark, task, goal", "benchmark, task, id")
    for (benchmark, name), of_task in groupby(runs, key=lambda row: row[:2]):
        task = known.get(name)
        lists = (" ".join(task.sites), " ".join(task.evaluations)) if task is not None else ("", "")
        category = task.category if task is not None else ""
        goal = next((goal for *_, goal in of_task if goal), "")
        yield name, benchmark, _split((benchmark, name), dev), *lists, "", category, goal


def suite_report(folder: Path, found: "FoundRuns") -> BuildReport:
    """What is in the suite, read again from its folder, and what was left out, as `build` reports it."""
    suite = load_suite(folder)
    report = BuildReport(suite.name)
    for trajectory in suite.trajectories:
        report.count(trajectory.split, trajectory.benchmark)
    tasks = Counter(task.split for task in iterate_tasks(suite))
    report.rows = {f"{split}, {tasks[split]} tasks": counts for split, counts in report.counts.items()}
    report.left_out = found.left_out
    return report


SOURCE_SPLIT: Final = "test"
"""The split that all runs of a source are in: nothing is known of their labels."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source by its folder's name and its kind. ``sha256`` is over the names, sizes and times of its files;
    ``left_out`` are lines that name what gave no run, with the reason.
    """

    name: str
    kind: str
    sha256: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceDataset:
    """All readable runs of a source: a suite of them, and the dataset that was built of them."""

    suite: Suite
    folder: Path
    facts: SourceFacts

    @property
    def suite_folder(self) -> Path:
        """Where `load_suite` finds the suite."""
        return self.suite.tasks_path.parent


def build_source(
    source: Path, cache: Path, workers: int = 1, progress: Progress = no_progress
) -> SourceDataset:
    """The runs of a source as a suite and a dataset, without rewards and judgments, to judge or to look at.

    Both lie in ``cache``, under a hash of the source and of the code that reads it: an unchanged source is
    not built again, and a build that was stopped goes on. While another process builds the same source it is
    waited for. The folders there may be removed whenever nothing reads them. Raises SourceError, also where
    no run can be used; OutputError, WorkerError, OSError.
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
    """What `build_source` noted of the source of a dataset; None for a dataset of another kind."""
    path = dataset.parent / _FACTS
    if dataset.name != _DATASET or not path.is_file():
        return None
    found = json.loads(path.read_bytes())
    return SourceFacts(**found | {"left_out": tuple(found["left_out"])})


_FEWEST_TO_SHARE: Final = 20
"""Fewer runs are read before other processes have started."""

_FACTS: Final = "source.json"
_DATASET: Final = "dataset"


def _hash_of(runs: TrajectorySource, listing: SourceListing) -> str:
    """SHA-256 that changes when a run comes, goes or may give something else."""
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
    """Build the dataset, and write the suite of the runs that are in it; what was left out, a line each."""
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
