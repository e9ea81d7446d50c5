"""Compare the trajectories and tasks in the shards with each other and with the suite."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from arb.core.annotation import DECISION
from arb.core.ids import Trajectory, TrajectoryId, reading_key
from arb.core.suite import Suite
from arb.core.vocabulary import SPLITS
from dataset_script.build.pictures import image_digest
from dataset_script.by_id import IndexEntry
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.published import Shard
from dataset_script.verify.manifest import Findings

_ENDS: Final = {
    "final_axtree": "axtree",
    "final_axtree_pruned": "axtree_pruned",
    "final_screenshot": "screenshot",
}
"""Columns of a trajectory that repeat a column of its last step in `steps`, with that column's name."""

_OPAQUE: Final = re.compile(rf"annotator-\d{{1,4}}|{DECISION}")

Digests = Mapping[str, list[str | None]]
"""Hashes of the pictures in each picture column, keyed by column."""

Task = tuple[str, str, str]
"""Benchmark, task and split."""

Ends = dict[tuple[str, str], dict[str, Any]]
"""What is known about the last step of one trajectory, by (configuration, split)."""


@dataclass(slots=True)
class ShardFacts:
    """The ids of the trajectories and tasks in one shard, without any text, label or image.

    ``ends`` maps each trajectory id to the number of steps and hashes of the last step.
    """

    shard: Shard
    rows: int = 0
    keys: list[str] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    ends: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))

    def take(self, batch: pa.RecordBatch, digests: Digests, findings: Findings) -> None:
        names = CONFIGURATIONS[self.shard.configuration].key
        key_columns = [batch.column(name).to_pylist() for name in names if name in batch.schema.names]
        self.keys += (" ".join(map(str, key)) for key in zip(*key_columns, strict=True))
        if self.shard.configuration == "tasks":
            self._take_tasks(batch, findings)
            return
        for row, name in enumerate(map(str, key_columns[0])):
            try:
                trajectory_id = str(TrajectoryId.parse(name))
            except ValueError:
                findings.add("not_in_suite", self.shard.name, f"{name[:80]!r} is not a trajectory id")
            else:
                self._take_row(trajectory_id, row, batch, digests)
        if self.shard.configuration == "annotations":
            for annotator in batch.column("annotator").to_pylist():
                if annotator is not None and not _OPAQUE.fullmatch(annotator):
                    findings.add("annotator_name", self.shard.name, "annotator")

    def index_entry(self) -> IndexEntry:
        first, last = min(self.ends, default=None), max(self.ends, default=None)
        return IndexEntry(self.shard.configuration, self.shard.split, self.shard.name, first, last)

    def _take_tasks(self, batch: pa.RecordBatch, findings: Findings) -> None:
        columns = (batch.column(name).to_pylist() for name in ("benchmark", "task", "split"))
        for benchmark, task, split in zip(*columns, strict=True):
            self.tasks.append((str(benchmark), str(task), str(split)))
            if split != self.shard.split:
                findings.add("wrong_split", self.shard.name, f"{task}: says {split}")

    def _take_row(self, trajectory_id: str, row: int, batch: pa.RecordBatch, digests: Digests) -> None:
        """Record the trajectory in row ``row``: its number of steps, and the hashes of its last step."""
        end = self.ends[trajectory_id]  # adds the trajectory if it is new
        if self.shard.configuration == "steps":
            end["steps"] = end.get("steps", 0) + 1
            number = batch.column("num")[row].as_py() or 0
            if number < end.get("last", -1):
                return
            end["last"] = number
        elif "n_steps" in batch.schema.names:
            end["n_steps"] = batch.column("n_steps")[row].as_py()
            end["length"] = batch.column("steps").value_lengths()[row].as_py()
        for column in {*_ENDS, *_ENDS.values()}.intersection(batch.schema.names):
            end[column] = _digest(batch, digests, column, row)


def _digest(batch: pa.RecordBatch, digests: Digests, column: str, row: int) -> str:
    if column in digests:
        return digests[column][row] or ""
    text = batch.column(column)[row].as_py()
    return "" if text is None else image_digest(text.encode())


def _runs(shards: Sequence[ShardFacts]) -> list[tuple[str, Ends]]:
    """Return what all shards say about the end of each trajectory, as (id, `Ends`) pairs sorted by id."""
    runs: dict[str, Ends] = defaultdict(dict)
    for facts in shards:
        for trajectory_id, end in facts.ends.items():
            runs[trajectory_id][facts.shard.configuration, facts.shard.split] = end
    return sorted(runs.items(), key=itemgetter(0))


def _disagreements(run: Ends) -> list[str]:
    """Return the names of the columns on which the configurations disagree for one trajectory."""
    groups: dict[str, tuple[str, ...]] = {"the number of steps": ("n_steps", "length", "steps")}
    groups |= {final: (final, step) for final, step in _ENDS.items()}
    found = []
    for what, columns in groups.items():
        values = {end[column] for end in run.values() for column in columns if column in end}
        if len(values) > 1:
            found.append(what)
    return found


def _check_duplicates(shards: Sequence[ShardFacts], findings: Findings) -> None:
    """Add a finding for each row that occurs twice in a configuration, even with ids spelled differently."""
    seen: dict[str, set[str]] = defaultdict(set)
    for facts in shards:
        of_configuration = seen[facts.shard.configuration]
        for key in facts.keys:
            if reading_key(key) in of_configuration:
                findings.add("duplicate_id", facts.shard.name, key)
            of_configuration.add(reading_key(key))


EVERY_TRAJECTORY: Final = ("trajectories", "trajectories_with_screenshot", "steps", "rewards")
"""Configurations that must contain every trajectory."""


def check_agreement(
    shards: Sequence[ShardFacts],
    suite: Suite | None,
    allowed: Collection[Trajectory],
    findings: Findings,
    *,
    is_blind: bool = False,
) -> None:
    """Compare the ids, splits, counts and last steps of all shards with each other and with the suite.

    ``allowed`` are trajectories that may be missing. Findings about several files have the file "data".
    """
    _check_duplicates(shards, findings)
    configurations = {facts.shard.configuration for facts in shards if facts.ends}
    seen = {task for facts in shards for task in facts.tasks}
    found: Counter[Task] = Counter()
    present = set()
    for trajectory_id, run in _runs(shards):
        name = TrajectoryId.parse(trajectory_id)
        for what in _disagreements(run):
            findings.add("configurations_disagree", "data", f"{trajectory_id}: {what}")
        for configuration in configurations.intersection(EVERY_TRAJECTORY):
            for split in SPLITS:
                if ((configuration, split) in run) != (("trajectories", split) in run):
                    findings.add("configurations_disagree", f"data/{configuration}/{split}", trajectory_id)
        for configuration, split in run:
            seen.add((name.benchmark, name.task, split))
            if configuration == "trajectories":
                found[name.benchmark, name.task, split] += 1
                present.add(trajectory_id)
        if suite is not None and not is_blind:
            _check_against_suite(trajectory_id, run, suite, findings)
    splits_of_task = Counter((benchmark, task) for benchmark, task, _ in seen)
    for (_, task), count in sorted(splits_of_task.items()):
        if count > 1:
            findings.add("task_in_both_splits", "data", task)
    if suite is None:
        findings.add("suite_unknown", "manifest.json")
        return
    expected = Counter((t.benchmark, t.task, t.split) for t in suite.trajectories)
    allowed_of_task = Counter((t.benchmark, t.task, t.split) for t in allowed)
    missing = (expected - found) & allowed_of_task
    if is_blind:
        _check_blind_runs(found, expected, missing, findings)
    else:
        for trajectory in suite.trajectories:
            if trajectory.trajectory_id not in present:
                code = "allowed_missing" if trajectory in allowed else "missing_trajectory"
                findings.add(code, "data/trajectories", trajectory.trajectory_id)


def _check_against_suite(trajectory_id: str, run: Ends, suite: Suite, findings: Findings) -> None:
    known = suite.find(trajectory_id)
    n_steps = max(end.get("n_steps", end.get("steps", 0)) or 0 for end in run.values())
    asked = suite.asked_in(known.trajectory_id)[0] if known is not None and n_steps else ()
    for step in asked:
        if not 1 <= int(step) <= n_steps:
            findings.add("unknown_step", "items.csv", f"{trajectory_id}: step {step} of {n_steps}")
    for configuration, split in run:
        if known is None:
            findings.add("not_in_suite", f"data/{configuration}/{split}", trajectory_id)
        elif known.split != split:
            findings.add("wrong_split", f"data/{configuration}/{split}", trajectory_id)


def _check_blind_runs(
    found: Counter[Task], expected: Counter[Task], missing: Counter[Task], findings: Findings
) -> None:
    """Check that every task has as many runs as in the suite, since blind ids do not identify runs.

    ``missing`` counts the missing runs that were allowed.
    """
    for code, counts, what in (
        ("not_in_suite", found - expected, "runs too many"),
        ("missing_trajectory", expected - found - missing, "runs"),
        ("allowed_missing", missing, "runs"),
    ):
        for (_, task, split), number in sorted(counts.items()):
            findings.add(code, f"data/trajectories/{split}", f"{task}: {number} {what}", count=number)
