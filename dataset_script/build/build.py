"""Build the published dataset from recorded runs: Parquet for every configuration, card, manifest.

Labels come from the suite's own ``dev_labels.csv``, so there are none for test that could get in. First every
trajectory is made into a part (`parts`), then the parts are written as shards (`shards`); both by worker
processes, and neither depends on how many there are. What is known of each trajectory stands in a database on
disk (`Runs`), so that memory does not grow with their number.
"""

import json
import os
import pickle
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arb.core.annotation import Annotation
from arb.core.console import Progress, no_progress
from arb.core.hub import CROISSANT
from arb.core.predictions.findings import Finding
from arb.core.suite import Suite, SuiteError, load_dev_labels
from arb.core.suites.questions import Question
from arb.core.vocabulary import SPLITS
from dataset_script.build.blind import Blinding
from dataset_script.build.croissant import render_croissant
from dataset_script.build.output import (
    WorkFolder,
    check_replaceable,
    put_in_place,
    restore_replaced,
    work_folder,
)
from dataset_script.build.parts import Part, PartTask, Workers, choose_suite, make_part
from dataset_script.build.report import BuildReport, finding
from dataset_script.build.rows import Row, annotation_row, task_row
from dataset_script.build.shards import (
    PLANNED,
    RowsTask,
    ShardTask,
    earlier_shards,
    plan_shards,
    render_manifest,
    write_rows,
    write_shard,
)
from dataset_script.by_id import write_index
from dataset_script.card import CardFacts, render_card, render_eval_yaml
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources import open_source
from dataset_script.sources.base import (
    JudgmentSource,
    Note,
    Recording,
    SourceFile,
    SourceListing,
    TrajectorySource,
)
from dataset_script.sources.published import MANIFEST, Shard
from dataset_script.task_selection import Task, iterate_tasks


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to build. ``strict``: publish nothing when something is left out. ``workers``: processes.

    ``also_allowed``: classes of one's own agents in AgentLab's pickles (see `open_source`). ``for_judges``:
    what judges are shown and nothing else, so no rewards and no published judgments. ``allow_missing``: ids
    of the suite that the source may lack. ``append``: trajectories that the dataset in ``out`` has stay in
    their shards, and the others follow.
    """

    strict: bool = False
    workers: int = 1
    blinding: Blinding | None = None
    also_allowed: tuple[str, ...] = ()
    for_judges: bool = False
    allow_missing: tuple[str, ...] = ()
    append: bool = False


def build(
    source: Path,
    out: Path,
    suite: Suite | None = None,
    options: BuildOptions = BuildOptions(),
    progress: Progress = no_progress,
) -> BuildReport:
    """Build the dataset of ``suite`` (None: the shipped suite that the source's ids belong to) into ``out``.

    A file that cannot be used ends nothing: it is in the report. ``out`` is replaced only at the end, by
    renaming, and not at all when nothing was built, or when ``strict`` and something was left out
    (see ``report.published``). A build that is stopped goes on from there when it is run again. Raises
    SourceError, SuiteError, OutputError, WorkerError; OSError when the disk is full.
    """
    restore_replaced(out)
    check_replaceable(out, source)
    runs = open_source(source, options.also_allowed)
    if options.for_judges:
        runs = _WithoutRewards(runs)
    listing = runs.list()
    suite = suite or choose_suite(listing.files)
    if unknown := [name for name in options.allow_missing if suite.find(name) is None]:
        raise SuiteError(f"{', '.join(unknown[:5])}: no trajectory of the suite {suite.name}")
    with work_folder(out) as work, closing(Runs(suite, runs, options.blinding, work)) as known:
        known.add_labels(load_dev_labels(suite))
        known.add_tasks(iterate_tasks(suite))
        known.add_earlier(earlier_shards(out, suite.name) if options.append else ())
        with Workers(options.workers) as workers:
            report = _Job(suite, runs, options, work, workers, progress, known).run(listing)
        if report.built() == 0 or (options.strict and report.left_out):
            return report
        check_replaceable(out, source)
        put_in_place(work.staged, out)
    report.published = True
    return report


@dataclass(frozen=True, slots=True)
class _WithoutRewards:
    """A source without its rewards, and without the judgments that published judges gave."""

    source: TrajectorySource

    @property
    def folder(self) -> Path:
        return self.source.folder

    @property
    def kind(self) -> str:
        return self.source.kind

    def list(self) -> SourceListing:
        return self.source.list()

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        recording, notes = self.source.read(file)
        return replace(recording, cum_reward=None), notes

    def identity(self, file: SourceFile) -> str:
        return self.source.identity(file)


class Runs:
    """What is known of each trajectory of a build: its files, its part, its labels; and the tasks.

    All of it stands in a database in the work folder (without one in a temporary one), by published id, which
    is the order of the dataset. Worker processes read the rows of labels and tasks from it themselves.
    """

    def __init__(
        self,
        suite: Suite,
        source: TrajectorySource,
        blinding: Blinding | None = None,
        work: WorkFolder | None = None,
    ):
        self._suite, self._source, self._blinding, self._work = suite, source, blinding, work
        if work is not None:
            # of a build that was killed; pickles in it are read, so nobody else may write it
            work.runs.unlink(missing_ok=True)
            os.close(os.open(work.runs, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._database = sqlite3.connect(work.runs if work is not None else "", isolation_level=None)
        self._database.executescript(_TABLES)

    def close(self) -> None:
        self._database.close()
        if self._work is not None:
            self._work.runs.unlink(missing_ok=True)

    def _id(self, trajectory_id: str) -> str:
        return self._blinding.trajectory_id(trajectory_id) if self._blinding else trajectory_id

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add the rows, in one transaction. A row of a key that is there is not added."""
        marks = ", ".join("?" for _ in self._database.execute(f"PRAGMA table_info({table})"))
        with self.transaction():
            self._database.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is added in the block at its end: a page of the database then not once for each row."""
        self._database.execute("BEGIN")
        yield
        self._database.execute("COMMIT")

    def add_labels(self, labels: Iterable[Annotation]) -> None:
        self._insert(
            "labels", ((self._id(one.trajectory_id), one.annotation, pickle.dumps(one)) for one in labels)
        )

    def add_tasks(self, tasks: Iterable[Task]) -> None:
        self._insert("tasks", ((one.split, pickle.dumps(one)) for one in tasks))

    def add_earlier(self, rows: Iterable[tuple[str, str, int, str]]) -> None:
        """Add the shards of the dataset that is added to: `earlier_shards`."""
        self._insert("earlier", ((*row, place) for place, row in enumerate(rows)))

    def add_files(self, listing: SourceListing, *, is_judgments: bool = False) -> BuildReport:
        """Give files to the trajectories that their ids name, in any spelling; report those of none."""
        report = BuildReport(self._suite.name)
        report.left_out += [finding("link_out", name) for name in listing.links_out]
        for name in listing.others:
            if name.endswith(".json"):
                report.left_out.append(finding("misplaced", name))
            else:
                report.notes.append(finding("not_json_file", name))

        def found() -> Iterator[tuple[Any, ...]]:
            for file in listing.files:
                trajectory = self._suite.find(file.trajectory_id)
                if trajectory is None:
                    report.left_out.append(finding("not_in_suite", file.name))
                    continue
                own = trajectory.trajectory_id
                order = file.trajectory_id != own, file.name.encode("utf-8", "surrogatepass")
                yield is_judgments, self._id(own), own, *order, _size(file), pickle.dumps(file)

        self._insert("files", found())
        return report

    def missing(self) -> Iterator[str]:
        """The ids of the suite's trajectories that have no file."""
        for trajectory in self._suite.trajectories:
            query = "SELECT 1 FROM files WHERE NOT is_judgment AND id = ? LIMIT 1"
            if not self._database.execute(query, (self._id(trajectory.trajectory_id),)).fetchone():
                yield trajectory.trajectory_id

    def count(self, is_judgments: bool = False) -> int:
        """How many trajectories have files."""
        query = "SELECT count(DISTINCT id) FROM files WHERE is_judgment = ?"
        return self._database.execute(query, (is_judgments,)).fetchone()[0]

    def tasks(self, is_judgments: bool = False, folder: Path = Path()) -> Iterator[tuple[PartTask, int]]:
        """A task for every trajectory that has files, with about how many bytes are read for it at once; the
        largest first.
        """
        of_run = "SELECT file FROM files WHERE is_judgment = ? AND id = ? ORDER BY other_spelling, name"
        for name, own, size in self._database.execute(
            "SELECT id, own_id, max(bytes) AS size FROM files WHERE is_judgment = ? GROUP BY id "
            "ORDER BY size DESC, id",
            (is_judgments,),
        ):
            files = tuple(_unpickled(self._database.execute(of_run, (is_judgments, name))))
            primary = "SELECT label FROM labels WHERE id = ? AND annotation = 1"
            labels = () if is_judgments else _unpickled(self._database.execute(primary, (name,)))
            trajectory = self._suite.find(own)
            yield (
                PartTask(
                    folder,
                    self._source,
                    trajectory,
                    files,
                    next(iter(labels), None),
                    self._blinding,
                    is_judgments,
                ),
                size,
            )

    def add_part(self, task: PartTask, part: Part) -> None:
        found = [[(f.code, f.file, f.message) for f in each] for each in (part.left_out, part.notes)]
        run = task.trajectory
        row = (task.is_judgments, part.trajectory_id, run.split, run.benchmark, bool(part.sizes))
        texts = (Path(part.file).name, json.dumps(part.sizes), json.dumps(found))
        self._database.execute("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, *texts))

    def findings(self, is_judgments: bool) -> Iterator[tuple[list[Finding], list[Finding]]]:
        """What was left out of each part and the notes on it, in the order of the dataset."""
        query = "SELECT found FROM parts WHERE is_judgment = ? AND found <> '[[], []]' ORDER BY id"
        for (text,) in self._database.execute(query, (is_judgments,)):
            left_out, notes = json.loads(text)
            yield [finding(*each) for each in left_out], [finding(*each) for each in notes]

    def counts(self) -> Iterator[tuple[str, str, int]]:
        """How many trajectories were built, by split and benchmark."""
        return self._database.execute(
            "SELECT split, benchmark, count(*) FROM parts WHERE NOT is_judgment AND is_built "
            "GROUP BY split, benchmark ORDER BY min(id)"
        )

    def parts(self, configuration: str, split: str) -> "Parts":
        return Parts(self._database, self._work.parts, configuration, split)

    def rows(self, configuration: str, split: str, questions: Sequence[Question]) -> "StoredRows | None":
        """The rows of a configuration that comes from the suite; None where there are none."""
        found = StoredRows(self._work.runs, configuration, split, tuple(questions))
        return found if any(True for _ in found) else None


_TABLES = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE files (is_judgment, id, own_id, other_spelling, name, bytes, file);
CREATE INDEX files_by_id ON files (is_judgment, id);
CREATE TABLE parts (is_judgment, id, split, benchmark, is_built, file, sizes, found,
    PRIMARY KEY (is_judgment, id)) WITHOUT ROWID;
CREATE TABLE labels (id, annotation, label, PRIMARY KEY (id, annotation)) WITHOUT ROWID;
CREATE TABLE tasks (split, task);
CREATE TABLE earlier (configuration, split, shard, id, place,
    PRIMARY KEY (configuration, split, id)) WITHOUT ROWID;
"""


def _unpickled(rows: Iterable[tuple[bytes]]) -> Iterator[Any]:
    return (pickle.loads(content) for (content,) in rows)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts with rows in a configuration and split, in the order of the shards; read when iterated."""

    database: sqlite3.Connection
    folder: Path
    configuration: str
    split: str

    def __iter__(self) -> Iterator[Part]:
        for name, file, sizes, earlier in self.database.execute(
            "SELECT parts.id, file, sizes, shard FROM parts LEFT JOIN earlier ON configuration = ? AND "
            "earlier.split = parts.split AND earlier.id = parts.id "
            "WHERE is_judgment = ? AND is_built AND parts.split = ? "
            "ORDER BY shard IS NULL, shard, place, parts.id",
            (self.configuration, self.configuration == "judgments", self.split),
        ):
            yield Part(f"{self.folder}/{file}", name, json.loads(sizes), earlier=earlier)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of `annotations` (of trajectories that were built) or of `tasks`, from the database at a path;
    a task for worker processes carries no more than that.
    """

    path: Path
    configuration: str
    split: str
    questions: tuple[Question, ...]

    def __iter__(self) -> Iterator[Row]:
        with closing(sqlite3.connect(self.path)) as database:
            if self.configuration == "tasks":
                query = "SELECT task FROM tasks WHERE split = ? ORDER BY rowid"
                yield from map(task_row, _unpickled(database.execute(query, (self.split,))))
                return
            labels = database.execute(
                "SELECT label FROM labels JOIN parts ON parts.id = labels.id "
                "WHERE NOT is_judgment AND is_built ORDER BY labels.id, annotation"
            )
            yield from (annotation_row(label, self.questions) for label in _unpickled(labels))


@dataclass(frozen=True, slots=True)
class _Job:
    """One build under way."""

    suite: Suite
    source: TrajectorySource
    options: BuildOptions
    work: WorkFolder
    workers: Workers
    progress: Progress
    runs: Runs

    def run(self, listing: SourceListing) -> BuildReport:
        report = self.runs.add_files(listing)
        report.notes += [finding(note.code, self.source.kind, note.detail) for note in listing.notes]
        allowed = {self.suite.find(name).trajectory_id for name in self.options.allow_missing}
        for trajectory_id in self.runs.missing():
            if trajectory_id in allowed:
                report.notes.append(finding("allowed_missing", trajectory_id))
            else:
                report.left_out.append(finding("missing", trajectory_id))
        self._make_parts(report)
        for split, benchmark, number in self.runs.counts():
            report.counts[split][benchmark] = number
        report.notes += [finding("empty_split", split) for split in SPLITS if report.built(split) == 0]
        if isinstance(self.source, JudgmentSource):
            judgments = self.runs.add_files(self.source.list_judgments(), is_judgments=True)
            report.left_out += judgments.left_out
            report.notes += judgments.notes
            self._make_parts(report, is_judgments=True)
        if report.built():
            shards = [shard for _, shard in self.workers.run_each(write_shard, self._shard_tasks())]
            self._write_texts([*shards, *self._small_tables()], report)
        return report

    def _make_parts(self, report: BuildReport, *, is_judgments: bool = False) -> None:
        total, tasks = self.runs.count(is_judgments), self.runs.tasks(is_judgments, self.work.parts)
        with self.runs.transaction():
            for count, (task, part) in enumerate(self.workers.run_each(make_part, tasks), start=1):
                self.runs.add_part(task, part)
                self.progress(count, total, task.trajectory.trajectory_id)
        for left_out, notes in self.runs.findings(is_judgments):
            report.left_out += left_out
            report.notes += notes

    def _shard_tasks(self) -> Iterator[tuple[ShardTask, int]]:
        """Every shard, and about how many bytes are read for it; those with images, the large ones, first."""
        planned = [name for name in PLANNED if name != "rewards" or not self.options.for_judges]
        for configuration in sorted(planned, key=lambda name: not CONFIGURATIONS[name].has_images):
            for split in SPLITS:
                parts = self.runs.parts(configuration, split)
                for task in plan_shards(self.work.staged, configuration, split, parts):
                    yield task, min(sum(part.sizes[configuration] for part in task.parts), 50_000_000)

    def _small_tables(self) -> list[Shard]:
        """The tables that come from the suite: annotations of what was built, and the tasks."""
        asked = self.suite.questions
        todo = [
            RowsTask(self.work.staged, configuration, split, rows, self.options.blinding, asked)
            for configuration, split in (("annotations", "dev"), *(("tasks", split) for split in SPLITS))
            if (rows := self.runs.rows(configuration, split, asked)) is not None
        ]
        return self.workers.run_all(write_rows, todo, [0] * len(todo))

    def _write_texts(self, shards: list[Shard], report: BuildReport) -> None:
        suite, blind = self.suite, self.options.blinding is not None
        name = f"{suite.name}-blind" if blind else suite.name
        for configuration in CONFIGURATIONS:
            own = [shard for shard in shards if shard.configuration == configuration]
            rows = {split: sum(shard.rows for shard in own if shard.split == split) for split in SPLITS}
            if any(rows.values()):
                report.rows[configuration] = {split: count for split, count in rows.items() if count}
        origin = getattr(self.source, "origin", dict)()
        source = {"kind": self.source.kind, "blind": blind, **origin}
        splits = report.rows["trajectories"]
        facts = CardFacts(
            suite.name, report.counts, report.rows, blind, suite.about, suite.profile, suite.questions
        )
        texts = {
            "README.md": render_card(facts),
            CROISSANT: render_croissant(facts),
            "eval.yaml": render_eval_yaml(name, suite.profile.title, splits),
            MANIFEST: render_manifest(name, source, shards),
        }
        index = (self.work.staged, tuple((s.configuration, s.split, s.name) for s in shards))
        self.workers.run_all(write_index, [index], [0])
        for file, text in texts.items():
            (self.work.staged / file).write_text(text, encoding="utf-8")


def _size(file: SourceFile) -> int:
    """About how many bytes are read for a run at once."""
    path = file.path
    if file.size is not None:
        return file.size
    try:
        return sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0
