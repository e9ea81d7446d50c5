"""What all shards say of trajectories and tasks, compared with each other and with the suite.

`ShardFacts` holds ids and a few short hashes of a shard, never a text, a label or an image.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from arb.core.annotation import DECISION
from arb.core.ids import Trajectory, TrajectoryId, reading_key
from arb.core.suite import Suite
from arb.core.vocabulary import SPLITS
from dataset_script.build.pictures import image_digest
from dataset_script.by_id import IndexEntry
from dataset_script.sources.published import Shard
from dataset_script.verify.manifest import Findings

if TYPE_CHECKING:
    import pyarrow as pa

KEYS: Final = MappingProxyType(
    {
        "trajectories": ("trajectory_id",),
        "trajectories_with_screenshot": ("trajectory_id",),
        "steps": ("trajectory_id", "num"),
        "annotations": ("trajectory_id", "annotation"),
        "judgments": ("trajectory_id", "judge"),
        "rewards": ("trajectory_id",),
        "tasks": ("benchmark", "task"),
    }
)
"""The columns that name a row."""

_ENDS: Final = MappingProxyType(
    {"final_axtree": "axtree", "final_axtree_pruned": "axtree_pruned", "final_screenshot": "screenshot"}
)
"""Columns of a trajectory that repeat its last step's, and that step's column."""

_OPAQUE: Final = re.compile(rf"annotator-\d{{1,4}}|{DECISION}")

Digests = Mapping[str, list[str | None]]
"""The digest of each cell of the columns of pictures, by column."""

Task = tuple[str, str, str]
"""Benchmark, task and split."""


@dataclass(slots=True)
class ShardFacts:
    """What one shard says of its trajectories and tasks.

    ``ends`` has, for each trajectory id, its number of steps and hashes of its last step.
    """

    shard: Shard
    rows: int = 0
    keys: list[str] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    ends: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))

    def take(self, batch: "pa.RecordBatch", digests: Digests, findings: Findings) -> None:
        """Add the rows of a batch."""
        key_columns = [batch.column(name).to_pylist() for name in KEYS[self.shard.configuration]]
        self.keys += (" ".join(map(str, key)) for key in zip(*key_columns, strict=True))
        if self.shard.configuration == "tasks":
            self._take_tasks(batch, findings)
            return
        ids = []
        for name in map(str, key_columns[0]):
            parsed = _parsed(name)
            if parsed is None:
                findings.add("not_in_suite", self.shard.name, f"{name[:80]!r}: no trajectory id")
            else:
                self.ends[str(parsed)]  # the trajectory is in this shard, whatever is known of its end
            ids.append(None if parsed is None else str(parsed))
        if self.shard.configuration == "steps":
            self._take_steps(ids, batch, digests)
        elif "n_steps" in batch.schema.names:
            self._take_trajectories(ids, batch, digests)
        elif self.shard.configuration == "annotations":
            for annotator in batch.column("annotator").to_pylist():
                if annotator is not None and not _OPAQUE.fullmatch(annotator):
                    findings.add("annotator_name", self.shard.name, "annotator")

    def index_entry(self) -> IndexEntry:
        """Return the shard's entry in the index."""
        first, last = min(self.ends, default=None), max(self.ends, default=None)
        return IndexEntry(self.shard.configuration, self.shard.split, self.shard.name, first, last)

    def _take_tasks(self, batch: "pa.RecordBatch", findings: Findings) -> None:
        columns = (batch.column(name).to_pylist() for name in ("benchmark", "task", "split"))
        for benchmark, task, split in zip(*columns, strict=True):
            self.tasks.append((str(benchmark), str(task), str(split)))
            if split != self.shard.split:
                findings.add("wrong_split", self.shard.name, f"{task}: says {split}")

    def _take_steps(self, ids: list[str | None], batch: "pa.RecordBatch", digests: Digests) -> None:
        numbers = batch.column("num").to_pylist()
        for row, name in enumerate(ids):
            if name is None:
                continue
            end = self.ends[name]
            end["steps"] = end.get("steps", 0) + 1
            if (number := numbers[row] or 0) < end.get("last", -1):
                continue
            end["last"] = number
            for column in _ENDS.values():
                end[column] = _digest(batch, digests, column, row)

    def _take_trajectories(self, ids: list[str | None], batch: "pa.RecordBatch", digests: Digests) -> None:
        lengths = batch.column("n_steps").to_pylist()
        inside = batch.column("steps").value_lengths().to_pylist()
        for row, name in enumerate(ids):
            if name is None:
                continue
            end = self.ends[name]
            end["n_steps"], end["length"] = lengths[row], inside[row]
            for column in _ENDS.keys() & set(batch.schema.names):
                end[column] = _digest(batch, digests, column, row)


def _parsed(trajectory_id: str) -> TrajectoryId | None:
    try:
        return TrajectoryId.parse(trajectory_id)
    except ValueError:
        return None


def _digest(batch: "pa.RecordBatch", digests: Digests, column: str, row: int) -> str:
    """Return a hash of a cell; an empty text for a null."""
    if column in digests:
        return digests[column][row] or ""
    text = batch.column(column)[row].as_py()
    return "" if text is None else image_digest(text.encode())


@dataclass(slots=True)
class _Sightings:
    """A trajectory in all shards: where it is, and what each configuration says of its end."""

    places: set[tuple[str, str]] = field(default_factory=set)
    ends: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))


def _runs(shards: Sequence[ShardFacts]) -> Iterator[tuple[str, _Sightings]]:
    """Yield every trajectory id with what the shards say of it, sorted by id."""
    runs: dict[str, _Sightings] = defaultdict(_Sightings)
    for facts in shards:
        configuration = facts.shard.configuration
        for trajectory_id, end in facts.ends.items():
            run = runs[trajectory_id]
            run.places.add((configuration, facts.shard.split))
            _join(run.ends[configuration], end)
    yield from sorted(runs.items())


def _join(ends: dict[str, Any], more: dict[str, Any]) -> None:
    """Add what a further shard says of a trajectory's steps; the last step has the highest number."""
    count = ends.get("steps", 0) + more.get("steps", 0)
    if "last" not in more or more["last"] >= ends.get("last", -1):
        ends |= more
    if "steps" in more:
        ends["steps"] = count


def _disagreements(ends: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the columns of one trajectory in which the configurations differ."""
    groups = {"the number of steps": ("n_steps", "length", "steps")}
    groups |= {final: (final, step) for final, step in _ENDS.items()}
    found = []
    for what, columns in groups.items():
        values = {end[column] for end in ends.values() for column in columns if column in end}
        if len(values) > 1:
            found.append(what)
    return found


def _check_duplicates(shards: Sequence[ShardFacts], findings: Findings) -> None:
    """Find rows that their configuration has twice, in any spelling of the id."""
    seen: dict[str, set[str]] = defaultdict(set)
    for facts in shards:
        of_configuration = seen[facts.shard.configuration]
        for key in facts.keys:
            if reading_key(key) in of_configuration:
                findings.add("duplicate_id", facts.shard.name, key)
            of_configuration.add(reading_key(key))


EVERY_TRAJECTORY: Final = ("trajectories", "trajectories_with_screenshot", "steps", "rewards")
"""Configurations that have every trajectory; the others have some."""


def check_agreement(
    shards: Sequence[ShardFacts],
    suite: Suite | None,
    allowed: Collection[Trajectory],
    findings: Findings,
    *,
    is_blind: bool = False,
) -> None:
    """Compare ids, splits, counts and ends over all shards.

    ``allowed`` are trajectories of the suite that may be missing. A finding that belongs to no single file
    names "data".
    """
    _check_duplicates(shards, findings)
    configurations = {facts.shard.configuration for facts in shards if facts.ends}
    seen = {task for facts in shards for task in facts.tasks}
    found: Counter[Task] = Counter()
    present = set()
    for trajectory_id, run in _runs(shards):
        name = TrajectoryId.parse(trajectory_id)
        for what in _disagreements(run.ends):
            findings.add("configurations_disagree", "data", f"{trajectory_id}: {what}")
        for configuration in configurations.intersection(EVERY_TRAJECTORY):
            for split in SPLITS:
                if ((configuration, split) in run.places) != (("trajectories", split) in run.places):
                    findings.add("configurations_disagree", f"data/{configuration}/{split}", trajectory_id)
        for configuration, split in run.places:
            seen.add((name.benchmark, name.task, split))
            if configuration == "trajectories":
                found[name.benchmark, name.task, split] += 1
                present.add(trajectory_id)
        if suite is not None and not is_blind:
            _check_against_suite(trajectory_id, run.places, suite, findings)
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


def _check_against_suite(
    trajectory_id: str, places: Collection[tuple[str, str]], suite: Suite, findings: Findings
) -> None:
    known = suite.find(trajectory_id)
    for configuration, split in places:
        if known is None:
            findings.add("not_in_suite", f"data/{configuration}/{split}", trajectory_id)
        elif known.split != split:
            findings.add("wrong_split", f"data/{configuration}/{split}", trajectory_id)


def _check_blind_runs(
    found: Counter[Task], expected: Counter[Task], missing: Counter[Task], findings: Findings
) -> None:
    """Check that every task has as many runs as in the suite: blind ids name no trajectory of it.

    ``missing`` are runs that may be missing, and are.
    """
    for code, counts, what in (
        ("not_in_suite", found - expected, "runs too many"),
        ("missing_trajectory", expected - found - missing, "runs"),
        ("allowed_missing", missing, "runs"),
    ):
        for (_, task, split), number in sorted(counts.items()):
            findings.add(code, f"data/trajectories/{split}", f"{task}: {number} {what}", count=number)
