"""Build a dataset folder from recorded runs: Parquet shards of every configuration, card and manifest.

Labels come only from the suite's ``dev_labels.csv``, so the dataset never contains a test label. Worker
processes first make the tables of each trajectory (`parts`), then combine them into shards (`shards`). The
result does not depend on the number of processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from arb.core.annotation import Annotation
from arb.core.console import Progress, no_progress
from arb.core.hub import CROISSANT
from arb.core.ids import Trajectory, reading_key
from arb.core.suite import Suite, load_dev_labels
from arb.core.vocabulary import SPLITS
from dataset_script.build import output
from dataset_script.build import shards as sharding
from dataset_script.build.blind import Blinding
from dataset_script.build.croissant import render_croissant
from dataset_script.build.parts import (
    Part,
    PartTask,
    choose_suite,
    group_files,
    make_part,
    named_trajectories,
)
from dataset_script.build.report import BuildReport, finding, listing_findings
from dataset_script.build.rows import annotation_row, task_row
from dataset_script.build.workers import Workers
from dataset_script.by_id import write_index
from dataset_script.card import CardFacts, render_card, render_eval_yaml
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources import open_source
from dataset_script.sources.base import SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.published import MANIFEST, Shard
from dataset_script.tasks import Task, load_tasks


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of a build.

    Attributes:
        strict: Write no dataset if any file is left out, or any trajectory of the suite is missing.
        also_allowed: Additional classes that AgentLab's pickles may contain (see `open_source`).
        for_judges: Leave out rewards and published judgments, because judges must not see them.
        allow_missing: Ids of trajectories that are in the suite but may be missing from the source.
        agent_from: The recorded facts to name agents after, instead of the usual ones (see `sources.agents`).
        append: Keep the shards of an earlier build, and write only the new trajectories, to new shards.
        rewards: Rewards to use instead of those in the source, keyed by the `reading_key` of the run's id.
    """

    strict: bool = False
    workers: int = 1
    blinding: Blinding | None = None
    also_allowed: tuple[str, ...] = ()
    for_judges: bool = False
    allow_missing: tuple[str, ...] = ()
    append: bool = False
    agent_from: tuple[str, ...] = ()
    rewards: Mapping[str, float] = field(default_factory=dict)


def build(
    source: Path,
    out: Path,
    suite: Suite | None = None,
    options: BuildOptions = BuildOptions(),
    progress: Progress = no_progress,
) -> BuildReport:
    """Build a dataset in ``out`` for ``suite``, by default the shipped suite that has the source's runs.

    Unusable files are left out and named in the report. ``out`` is replaced only at the end, and not at all
    if nothing was built, or if ``strict`` is set and something was left out (see ``report.published``). An
    interrupted build resumes when it is started again. Raises SourceError, SuiteError or OutputError, or
    OSError if the disk is full or a process was killed.
    """
    output.restore_replaced(out)
    output.check_replaceable(out, source)
    runs = open_source(source, options.also_allowed, options.agent_from)
    listing = runs.list_all()
    suite = suite or choose_suite(listing.files)
    named_trajectories(suite, options.allow_missing)  # raises if one is unknown
    labels, tasks = load_dev_labels(suite), load_tasks(suite)
    earlier = sharding.earlier_places(out, suite.name) if options.append else {}
    with output.work_folder(out) as work, Workers(options.workers) as workers:
        build = _Build(suite, runs, options, work, workers, progress, labels, tasks, earlier)
        report = build.run(listing)
        if report.built() == 0 or (options.strict and report.left_out):
            return report
        output.check_replaceable(out, source)
        output.put_in_place(work.staged, out)
    report.published = True
    return report


@dataclass(frozen=True, slots=True)
class _Build:
    """A build in progress."""

    suite: Suite
    source: TrajectorySource
    options: BuildOptions
    work: output.WorkFolder
    workers: Workers
    progress: Progress
    labels: Sequence[Annotation]
    tasks: Sequence[Task]
    earlier: sharding.EarlierPlaces

    def run(self, listing: SourceListing) -> BuildReport:
        report = BuildReport(self.suite.name)
        files = self._group_files(listing, report)
        allowed = named_trajectories(self.suite, self.options.allow_missing)
        for trajectory in self.suite.trajectories:
            if trajectory in files:
                continue
            if trajectory in allowed:
                report.notes.append(finding("allowed_missing", trajectory.trajectory_id))
            else:
                report.left_out.append(finding("missing", trajectory.trajectory_id))
        of_runs = (each for each in self.labels if each.is_primary and each.level == "run")
        primary = {each.trajectory_id: each for each in of_runs}
        options = self.options
        task_of = partial(
            PartTask, self.work.parts, self.source, blinding=options.blinding, for_judges=options.for_judges
        )
        rewards = {each: options.rewards.get(reading_key(each.trajectory_id)) for each in files}
        tasks = [
            task_of(each, own, primary.get(each.trajectory_id), reward=rewards[each])
            for each, own in files.items()
        ]
        parts = self._make_parts(tasks, report)
        for trajectory, _ in parts:
            report.count(trajectory.split, trajectory.benchmark)
        report.notes += [finding("empty_split", split) for split in SPLITS if report.built(split) == 0]
        judgments = []
        if not options.for_judges:
            files = self._group_files(self.source.list_judgments(), report)
            tasks = [task_of(*each, is_judgments=True) for each in files.items()]
            judgments = self._make_parts(tasks, report)
        report.count_files(self.source, listing)
        if parts:
            self._write_all(parts, judgments, report)
        return report

    def _group_files(
        self, listing: SourceListing, report: BuildReport
    ) -> dict[Trajectory, tuple[SourceFile, ...]]:
        """Return the files of each trajectory of the suite. Add findings on all others to ``report``."""
        left_out, notes = listing_findings(self.source, listing)
        report.left_out += left_out
        report.notes += notes
        return group_files(self.suite, listing, report)

    def _make_parts(self, tasks: Sequence[PartTask], report: BuildReport) -> list[tuple[Trajectory, Part]]:
        """Make the parts and return those with rows, by published id. Add all findings to ``report``."""
        sized = sorted(
            ((task, max(file.size for file in task.files)) for task in tasks),
            key=lambda each: (-each[1], each[0].published_id),
        )
        made = []
        for count, (task, part) in enumerate(self.workers.run_each(make_part, sized), start=1):
            made.append((task.trajectory, part))
            self.progress(count, len(sized), task.trajectory.trajectory_id)
        made.sort(key=lambda each: each[1].trajectory_id)
        for _, part in made:
            report.left_out += part.left_out
            report.notes += part.notes
        return [(trajectory, part) for trajectory, part in made if part.sizes]

    def _write_all(
        self,
        parts: Sequence[tuple[Trajectory, Part]],
        judgments: Sequence[tuple[Trajectory, Part]],
        report: BuildReport,
    ) -> None:
        """Write all files of the dataset. The shards with images, which are the largest, come first."""
        planned = [name for name in sharding.PLANNED if name != "rewards" or not self.options.for_judges]
        tasks: list[tuple[sharding.ShardTask, int]] = []
        for configuration in sorted(planned, key=lambda name: not CONFIGURATIONS[name].has_images):
            for split in SPLITS:
                made = judgments if configuration == "judgments" else parts
                of_split = [part for trajectory, part in made if trajectory.split == split]
                for task in self._plan(configuration, split, of_split):
                    size = sum(part.sizes[configuration] for part in task.parts)
                    tasks.append((task, min(size, 50_000_000)))
        written = [shard for _, shard in self.workers.run_each(sharding.write_shard, tasks)]
        self._write_texts([*written, *self._write_tables_of_suite(parts)], report)

    def _plan(self, configuration: str, split: str, parts: Sequence[Part]) -> list[sharding.ShardTask]:
        """Return the shards to write for a split. Trajectories of an earlier build keep their shards."""
        old, new = [], []
        for part in parts:
            place = self.earlier.get((configuration, split, part.trajectory_id))
            if place is None:
                new.append(part)
            else:
                old.append((place, replace(part, earlier=place[0])))
        old.sort(key=lambda each: each[0])
        in_order = [*(part for _, part in old), *new]
        return sharding.plan_shards(self.work.staged, configuration, split, in_order)

    def _write_tables_of_suite(self, parts: Sequence[tuple[Trajectory, Part]]) -> list[Shard]:
        """Write the tables `tasks` and `annotations`, and return their shards."""
        staged, blinding, questions = self.work.staged, self.options.blinding, self.suite.targets
        order = {trajectory.trajectory_id: place for place, (trajectory, _) in enumerate(parts)}
        labels = [each for each in self.labels if each.trajectory_id in order]
        labels.sort(key=lambda each: order[each.trajectory_id])
        written = []
        if labels:
            rows = [annotation_row(each, questions) for each in labels]
            written.append(sharding.write_rows(staged, "annotations", "dev", rows, blinding, questions))
        for split in SPLITS:
            if rows := [task_row(task) for task in self.tasks if task.split == split]:
                written.append(sharding.write_rows(staged, "tasks", split, rows, blinding))
        return written

    def _write_texts(self, shards: list[Shard], report: BuildReport) -> None:
        suite, blind = self.suite, self.options.blinding is not None
        name = f"{suite.name}-blind" if blind else suite.name
        sizes: dict[str, dict[str, int]] = {}
        stored, fingerprints = {}, {}
        for configuration in CONFIGURATIONS:
            own = [shard for shard in shards if shard.configuration == configuration and shard.rows]
            if not own:
                continue
            rows = dict.fromkeys((split for split in SPLITS if any(s.split == split for s in own)), 0)
            report.rows[configuration], sizes[configuration] = rows, dict(rows)
            for shard in own:
                rows[shard.split] += shard.rows
                sizes[configuration][shard.split] += sharding.unpacked_bytes(self.work.staged / shard.name)
            stored[configuration] = sum(shard.bytes for shard in own)
            fingerprints[configuration] = sharding.fingerprint(own)
        source = {"kind": self.source.kind, "blind": blind, **self.source.origin()}
        if report.files is not None:
            source["files"] = report.files.to_json()
            if not blind:  # the names may tell which agents ran
                source["not_read"] = report.named_files()
        splits = report.rows["trajectories"]
        facts = CardFacts(
            suite.name,
            report.counts,
            report.rows,
            sizes,
            stored,
            fingerprints,
            is_blind=blind,
            about=suite.about,
            profile=suite.profile,
            questions=suite.targets,
        )
        texts = {
            "README.md": render_card(facts),
            CROISSANT: render_croissant(facts),
            "eval.yaml": render_eval_yaml(
                name, suite.profile.title, splits, targets=suite.targets, noun=suite.profile.noun
            ),
            MANIFEST: sharding.render_manifest(name, source, shards),
        }
        write_index(self.work.staged, ((s.configuration, s.split, s.name) for s in shards))
        for file, text in texts.items():
            (self.work.staged / file).write_text(text, encoding="utf-8")
