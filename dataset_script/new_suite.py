"""A suite of one's own from recorded runs: which runs can be used, their split, the files of its folder.

Every run of the source is read, as `build` reads it, for its id and its goal. The folder is written whole and
never over anything; its ``suite.toml`` hides the labels and says what each rule does.

`build_source` needs no such folder: it makes a suite of all runs of a source, and their dataset, in a cache.
"""

import fcntl
import hashlib
import json
import re
import secrets
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from core.console import Progress, no_progress
from core.files import atomic_write, csv_text
from core.ids import TrajectoryId, reading_key, task_key
from core.predictions.findings import Finding
from core.suite import Suite, SuiteError, SuiteRules, load_suite, shipped_suites
from core.suites.profile import OPTIONAL_PAGES, read_profile
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
from dataset_script.task_selection import MetadataTask, split_by_share


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
class _Candidate:
    """The files of one trajectory, to be read until one can be used."""

    source: TrajectorySource
    files: tuple[SourceFile, ...]


def find_runs(source: TrajectorySource, workers: int = 1, progress: Progress = no_progress) -> FoundRuns:
    """Every trajectory that `build` could take from the source; a file that is broken ends nothing.

    Several files of one trajectory, in any spelling, are one; the first by name that can be used counts.
    Raises SourceError, and WorkerError when a process was killed.
    """
    groups: dict[str, list[SourceFile]] = defaultdict(list)
    listing = source.list()
    for file in listing.files:
        groups[reading_key(file.trajectory_id)].append(file)
    candidates = [_Candidate(source, tuple(sorted(group, key=lambda f: f.name))) for group in groups.values()]
    count = 0

    def done(candidate: _Candidate) -> None:
        nonlocal count
        count += 1
        progress(count, len(candidates), candidate.files[0].name)

    with Workers(workers) as pool:
        found = pool.run_all(_usable_run, candidates, [0] * len(candidates), done)
    runs = sorted((run for run, _ in found if run is not None), key=lambda run: run.trajectory_id)
    links = [finding("link_out", name) for name in listing.links_out]
    return FoundRuns(tuple(runs), (*links, *(finding for _, left_out in found for finding in left_out)))


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


COMMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "files_a_day": "Test files of an account that are scored in 24 hours, over all its judges.",
        "files_a_year": "The same in 365 days, over all versions of the labels.",
        "accounts_a_year": "What all accounts together are shown in 365 days: at most what so many may at\n"
        "# their limits; beyond it files are refused, with the day from which they are taken again.",
        "account_age_days": "How many days old an account has to be before it submits to test.",
        "age_exempt": 'Accounts that need not be that old, such as ["ada", "bob"].',
        "private_noise": "Noise on the true positives that a submitter sees: its standard deviation.\n"
        "# With few test trajectories it hides the differences between judges; 0 shows exact figures,\n"
        "# and with them whoever submits often enough can work test labels out.",
        "public_noise": "The same on the overall figures of public rows.",
        "public_rows_a_year": "Rows that an account may make public in 365 days.",
        "round_days": "Public rows appear together, every so many days.",
        "fewest_positives": "A file that calls fewer test trajectories successful waits for a maintainer:\n"
        "# a tenth of them, and 30 where they are many.",
        "ranking_half": "true: rank by a fixed hidden half of the tasks and show figures of the other half,\n"
        "# so that no figure helps anybody to a better rank; intervals widen by a factor of 1.4.",
    }
)
"""What each rule says, as comments of TOML; a line that follows brings its own ``#``."""

PAGE_COMMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compare": "Two or more judges side by side.",
        "rates": "How often agents succeed, by experts and by judges.",
        "trajectories": "Goals, steps and screenshots; errors and disputes need it.",
        "errors": "A judge's errors, read and tagged.",
        "labels": "The label versions; disputes need it.",
        "disputes": "Where readers report a wrong label.",
        "paper": "The result tables of the paper behind this software: not about your suite.",
        "submit": "The page that takes files; the REST API and the MCP server take them without it too.",
    }
)
"""What each page that can be switched is for, as comments of TOML."""

_PROFILE: Final = """# What the suite is called on every page, card and answer.
title = {title}

# A paragraph for the About page and the cards, and BibTeX that says how to cite the suite.
# description = "Runs of four agents on the sites of our lab."
# citation = '''
# @misc{{ours2026, title = {{...}}, author = {{...}}, year = {{2026}}}}
# '''

"""

_LINKS: Final = """
# Links at the foot of every page: names of your choice, addresses with https:// or mailto:.
[links]
# data = "https://huggingface.co/datasets/OWNER/NAME"
# code = "https://github.com/OWNER/NAME"
# contact = "mailto:ada@example.org"

# Pages of the Space: one that is false is not served, and nothing leads to it.
[pages]
"""

_HEAD: Final = """# "private": the test labels are hidden; figures are shown with noise,
# and public rows appear in rounds.
# "public": anyone can have them anyway, and every figure is shown as it is.
labels = "private"
"""

_RULES: Final = """
# Every rule there is, as suggested for this suite.
[rules]
"""


def suggested_rules(test_trajectories: int) -> SuiteRules:
    """The defaults; on a small test split fewer positive verdicts do, or an honest judge would be held."""
    fewest = min(SuiteRules().fewest_positives, max(1, test_trajectories // 10))
    return SuiteRules(fewest_positives=fewest)


def render_suite_toml(made: str, title: str, rules: SuiteRules) -> str:
    """The file's text; ``made`` is a line that says how the suite came about."""
    pages = [f"# {PAGE_COMMENTS[name]}\n{name} = {_toml(is_on)}\n" for name, is_on in OPTIONAL_PAGES.items()]
    parts = [
        f"# {COMMENTS[field.name]}\n{field.name} = {_toml(getattr(rules, field.name))}\n"
        for field in fields(SuiteRules)
    ]
    profile = _PROFILE.format(title=_toml(title))
    return "".join([f"# {made}\n\n", profile, _HEAD, _LINKS, *pages, _RULES, *parts])


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():  # JSON escapes what TOML wants escaped
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return repr(value)


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
    runs: Sequence[UsableRun], choice: SplitChoice, title: str, metadata: Iterable[MetadataTask] = ()
) -> dict[str, str]:
    """The files of the suite by name: trajectories.csv, suite.toml and, where something is known, tasks.csv.

    Same runs, choice, title and metadata: same texts. Raises SelectionError when they cannot be split.
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
        "trajectories.csv": csv_text(("trajectory_id", "split"), ids),
        "suite.toml": render_suite_toml(made, title, suggested_rules(splits.count("test"))),
    }
    known = {task_key(task.task_id): task for task in metadata}
    if known or any(run.goal for run in runs):
        texts["tasks.csv"] = csv_text(_TASK_COLUMNS, _task_rows(runs, splits, known))
    return texts


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
    runs: Sequence[UsableRun], splits: Sequence[str], known: Mapping[str, MetadataTask]
) -> list[tuple[str, ...]]:
    """A row a task; its goal is that of its first run that has one."""
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for run, split in zip(runs, splits, strict=True):
        parts = TrajectoryId.parse(run.trajectory_id)
        key = parts.benchmark, parts.task
        if key in rows and (rows[key][-1] or not run.goal):
            continue
        task = known.get(parts.task)
        lists = (" ".join(task.sites), " ".join(task.evaluations)) if task is not None else ("", "")
        category = task.category if task is not None else ""
        rows[key] = (parts.task, parts.benchmark, split, *lists, "", category, run.goal)
    return [rows[key] for key in sorted(rows)]


def suite_report(folder: Path, found: "FoundRuns") -> BuildReport:
    """What is in the suite, read again from its folder, and what was left out, as `build` reports it."""
    suite = load_suite(folder)
    report = BuildReport(suite.name)
    for trajectory in suite.trajectories:
        report.count(trajectory.split, trajectory.benchmark)
    for split, counts in report.counts.items():
        tasks = len({(t.benchmark, t.task) for t in suite.split(split)})
        report.rows[f"{split}, {tasks} tasks"] = counts
    report.left_out = list(found.left_out)
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
    listing = runs.list()
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
