"""Build the published dataset from recorded runs: Parquet for every configuration, card, manifest.

Labels come from the suite's own ``dev_labels.csv``, so there are none for test that could get in. First every
trajectory is made into a part (`parts`), then the parts are written as shards (`shards`); both by worker
processes, and neither depends on how many there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.console import Progress, no_progress
from core.suite import DevLabels, Suite, SuiteError, Trajectory, load_dev_labels
from core.vocabulary import SPLITS
from dataset_script.build.blind import Blinding
from dataset_script.build.output import WorkFolder, check_replaceable, put_in_place, work_folder
from dataset_script.build.parts import (
    Assignment,
    Part,
    PartTask,
    Workers,
    assign,
    choose_suite,
    make_part,
    part_tasks,
)
from dataset_script.build.report import BuildReport, finding
from dataset_script.build.rows import ROWS_OF_A_RUN, Row, annotation_row, task_row
from dataset_script.build.shards import (
    RowsTask,
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
from dataset_script.task_selection import load_tasks


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
    check_replaceable(out, source)
    runs = open_source(source, options.also_allowed)
    if options.for_judges:
        runs = _WithoutRewards(runs)
    listing = runs.list()
    suite = suite or choose_suite([file.trajectory_id for file in listing.files])
    if unknown := [name for name in options.allow_missing if suite.find(name) is None]:
        raise SuiteError(f"{', '.join(unknown[:5])}: no trajectory of the suite {suite.name}")
    labels = load_dev_labels(suite)
    earlier = earlier_shards(out, suite.name) if options.append else {}
    with work_folder(out) as work, Workers(options.workers) as workers:
        job = _Job(suite, runs, labels, options, work, workers, progress, earlier)
        report = job.run(listing)
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


@dataclass(frozen=True, slots=True)
class _Job:
    """One build under way."""

    suite: Suite
    source: TrajectorySource
    labels: tuple[DevLabels, ...]
    options: BuildOptions
    work: WorkFolder
    workers: Workers
    progress: Progress
    earlier: Mapping[tuple[str, str], Sequence[Sequence[str]]]
    """The ids in the shards of the dataset that is added to, by configuration and split."""

    def run(self, listing: SourceListing) -> BuildReport:
        report = BuildReport(self.suite.name)
        runs = assign(self.suite, listing)
        report.left_out += runs.left_out
        report.notes += [*runs.notes, *(finding(n.code, self.source.kind, n.detail) for n in listing.notes)]
        allowed = {self.suite.find(name) for name in self.options.allow_missing}
        for trajectory in self.suite.trajectories:
            if trajectory in runs.files:
                continue
            if trajectory in allowed:
                report.notes.append(finding("allowed_missing", trajectory.trajectory_id))
            else:
                report.left_out.append(finding("missing", trajectory.trajectory_id))
        parts = self._parts(runs, report)
        built = {trajectory: part for trajectory, part in parts.items() if part.sizes}
        for trajectory in built:
            report.count(trajectory.split, trajectory.benchmark)
        report.notes += [finding("empty_split", split) for split in SPLITS if report.built(split) == 0]
        tables = dict.fromkeys(ROWS_OF_A_RUN, built) | {"judgments": self._judgments(report)}
        if self.options.for_judges:
            del tables["rewards"]
        if report.built():
            shards = [*self._shards(tables), *self._small_tables(built)]
            self._write_texts(shards, report)
        return report

    def _parts(
        self, runs: Assignment, report: BuildReport, is_judgments: bool = False
    ) -> dict[Trajectory, Part]:
        """The part of every trajectory that has files, in the order of the dataset."""
        tasks = part_tasks(
            runs, self.source, self.labels, self.work.parts, self.options.blinding, is_judgments
        )
        count = 0

        def done(task: PartTask) -> None:
            nonlocal count
            count += 1
            self.progress(count, len(tasks), task.trajectory.trajectory_id)

        parts = self.workers.run_all(make_part, tasks, [_size(task) for task in tasks], done)
        for part in parts:
            report.left_out += part.left_out
            report.notes += part.notes
        return {task.trajectory: part for task, part in zip(tasks, parts, strict=True)}

    def _judgments(self, report: BuildReport) -> dict[Trajectory, Part]:
        if not isinstance(self.source, JudgmentSource):
            return {}
        judgments = assign(self.suite, self.source.list_judgments())
        report.left_out += judgments.left_out
        report.notes += judgments.notes
        parts = self._parts(judgments, report, is_judgments=True)
        return {trajectory: part for trajectory, part in parts.items() if part.sizes}

    def _shards(self, tables: dict[str, dict[Trajectory, Part]]) -> list[Shard]:
        tasks = [
            task
            for configuration, parts in tables.items()
            for split in SPLITS
            for task in plan_shards(
                self.work.staged,
                configuration,
                split,
                [p for t, p in parts.items() if t.split == split],
                self.earlier.get((configuration, split), ()),
            )
        ]
        sizes = [
            min(sum(part.sizes[task.configuration] for part in task.parts), 50_000_000) for task in tasks
        ]
        return self.workers.run_all(write_shard, tasks, sizes)

    def _small_tables(self, built: Iterable[Trajectory]) -> list[Shard]:
        """The tables that come from the suite: annotations of what was built, and the tasks."""
        ids = {trajectory.trajectory_id for trajectory in built}
        asked = self.suite.questions
        annotations = [annotation_row(label, asked) for label in self.labels if label.trajectory_id in ids]
        annotations.sort(key=lambda row: (self._published_id(row["trajectory_id"]), row["annotation"]))
        tasks = load_tasks(self.suite)
        rows: dict[tuple[str, str], list[Row]] = {("annotations", "dev"): annotations}
        for split in SPLITS:
            rows["tasks", split] = [task_row(task) for task in tasks if task.split == split]
        todo = [
            RowsTask(self.work.staged, configuration, split, tuple(found), self.options.blinding, asked)
            for (configuration, split), found in rows.items()
            if found
        ]
        return self.workers.run_all(write_rows, todo, [0] * len(todo))

    def _write_texts(self, shards: list[Shard], report: BuildReport) -> None:
        suite, blind = self.suite, self.options.blinding is not None
        name = f"{suite.name}-blind" if blind else suite.name
        for configuration in CONFIGURATIONS:
            rows = {
                s: sum(x.rows for x in shards if (x.configuration, x.split) == (configuration, s))
                for s in SPLITS
            }
            if any(rows.values()):
                report.rows[configuration] = {split: count for split, count in rows.items() if count}
        origin = getattr(self.source, "origin", dict)()
        source = {"kind": self.source.kind, "blind": blind, **origin}
        splits = report.rows["trajectories"]
        texts = {
            "README.md": render_card(
                CardFacts(
                    suite.name, report.counts, report.rows, blind, suite.about, suite.profile, suite.questions
                )
            ),
            "eval.yaml": render_eval_yaml(name, suite.profile.title, splits),
            MANIFEST: render_manifest(name, source, shards),
        }
        index = (self.work.staged, tuple((s.configuration, s.split, s.name) for s in shards))
        self.workers.run_all(write_index, [index], [0])
        for file, text in texts.items():
            (self.work.staged / file).write_text(text, encoding="utf-8")

    def _published_id(self, trajectory_id: str) -> str:
        """The id in the dataset; rows are in its order, so that the order of a blind one reveals nothing."""
        return self.options.blinding.trajectory_id(trajectory_id) if self.options.blinding else trajectory_id


def _size(task: PartTask) -> int:
    """About how much is read for a task at once, in bytes."""
    sizes = (_size_of(file.path) if file.size is None else file.size for file in task.files)
    return max(sizes, default=0)


def _size_of(path: Path) -> int:
    try:
        return sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0
