"""What all shards say of trajectories and tasks, compared with itself, the suite and the published numbers.

`ShardFacts` takes of a shard a row a trajectory: its id and a few short hashes, never a text, a label or an
image. In `Facts` the rows of all shards meet, in a temporary database on disk and sorted by id, so that
memory does not grow with them.
"""

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from arb.core.annotation import DECISION
from arb.core.ids import TrajectoryId, reading_key
from arb.core.suite import OFFICIAL, Suite, Trajectory
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

Row = tuple[str, str, bool, str, str]
"""Of one trajectory in one shard: its id, the key of all its spellings, whether the id has three parts, and
as JSON the rest of its rows' keys and what its end looks like."""


class ShardFacts:
    """What one shard says of its trajectories and tasks."""

    def __init__(self, shard: Shard):
        self._shard = shard
        self.tasks: list[tuple[str, str, str]] = []
        """Benchmark, task and split of each row of `tasks`."""
        self._rest: dict[str, list[str]] = defaultdict(list)
        self._ends: dict[str, dict[str, Any]] = defaultdict(dict)
        self._keys: set[str] = set()

    def take(self, batch: "pa.RecordBatch", digests: Digests, findings: Findings) -> None:
        """Take some rows; one that was met before, or an annotator with a name, is a finding at once."""
        first, *more = (batch.column(name).to_pylist() for name in KEYS[self._shard.configuration])
        for name, *rest in zip(first, *more, strict=True):
            spelled = " ".join(map(str, (name, *rest)))
            if (key := reading_key(spelled)) in self._keys:
                findings.add("duplicate_id", self._shard.name, spelled)
            else:
                self._keys.add(key)
                self._rest[str(name)].append(" ".join(map(str, rest)))
        if self._shard.configuration == "tasks":
            self._take_tasks(batch, findings)
            return
        names = [str(name) for name in first]
        if self._shard.configuration == "steps":
            self._take_steps(names, batch, digests)
        elif "n_steps" in batch.schema.names:
            self._take_trajectories(names, batch, digests)
        elif self._shard.configuration == "annotations":
            for annotator in batch.column("annotator").to_pylist():
                if annotator is not None and not _OPAQUE.fullmatch(annotator):
                    findings.add("annotator_name", self._shard.name, "annotator")
        for name in names:
            if _parsed(name) is None:
                findings.add("not_in_suite", self._shard.name, f"{name[:80]!r}: no trajectory id")

    def rows(self) -> Iterator[Row]:
        """What `Facts.add` takes of each trajectory."""
        for name, rest in self._rest.items():
            has_parts = self._shard.configuration != "tasks" and _parsed(name) is not None
            canonical = str(_parsed(name)) if has_parts else name
            ends = json.dumps(self._ends.get(name, {}))
            yield canonical, reading_key(name), has_parts, json.dumps(rest), ends

    def _take_tasks(self, batch: "pa.RecordBatch", findings: Findings) -> None:
        columns = (batch.column(name).to_pylist() for name in ("benchmark", "task", "split"))
        for benchmark, task, split in zip(*columns, strict=True):
            self.tasks.append((benchmark, task, split))
            if split != self._shard.split:
                findings.add("wrong_split", self._shard.name, f"{task}: says {split}")

    def _take_steps(self, names: list[str], batch: "pa.RecordBatch", digests: Digests) -> None:
        numbers = batch.column("num").to_pylist()
        for row, name in enumerate(names):
            end = self._ends[name]
            end["steps"] = end.get("steps", 0) + 1
            if (number := numbers[row] or 0) < end.get("last", -1):
                continue
            end["last"] = number
            for column in _ENDS.values():
                end[column] = _digest(batch, digests, column, row)

    def _take_trajectories(self, names: list[str], batch: "pa.RecordBatch", digests: Digests) -> None:
        lengths = batch.column("n_steps").to_pylist()
        inside = batch.column("steps").value_lengths().to_pylist()
        for row, name in enumerate(names):
            end = self._ends[name]
            end["n_steps"], end["length"] = lengths[row], inside[row]
            for column in _ENDS.keys() & set(batch.schema.names):
                end[column] = _digest(batch, digests, column, row)


def _parsed(trajectory_id: str) -> TrajectoryId | None:
    try:
        return TrajectoryId.parse(trajectory_id)
    except ValueError:
        return None


def _digest(batch: "pa.RecordBatch", digests: Digests, column: str, row: int) -> str:
    """What stands for a cell; nothing for a null."""
    if column in digests:
        return digests[column][row] or ""
    text = batch.column(column)[row].as_py()
    return "" if text is None else image_digest(text.encode())


class Facts:
    """What all shards say, in a temporary database; ``with Facts() as facts``, then shards in their order."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # a file of its own that goes when it is closed
        self._database.executescript(_TABLES)
        self._shards: list[Shard] = []
        self.configurations: set[str] = set()
        """Those that have rows with a trajectory's id."""

    def __enter__(self) -> "Facts":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, shard: Shard, tasks: Iterable[tuple[str, str, str]], rows: Iterable[Row]) -> None:
        """Add what a shard says: of `ShardFacts` the tasks and the rows."""
        self.count("seen", tasks)
        place = (len(self._shards), shard.configuration, shard.split)
        added = self._database.executemany(
            "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ((*place, *row) for row in rows)
        )
        self._shards.append(shard)
        if shard.configuration != "tasks" and added.rowcount > 0:
            self.configurations.add(shard.configuration)

    def check_duplicates(self, findings: Findings) -> None:
        """Rows that an earlier shard of the configuration has too, in any spelling of the id."""
        repeated = self._database.execute(
            "SELECT shard, configuration, id, key, rest FROM facts WHERE (configuration, key) IN (SELECT "
            "configuration, key FROM facts GROUP BY configuration, key HAVING count(DISTINCT shard) > 1) "
            "ORDER BY configuration, key, shard, rowid"
        )
        for _, rows in groupby(repeated, key=lambda row: (row[1], row[3])):
            met: set[str] = set()
            for shard, _, trajectory_id, _, rest in rows:
                for spelled in (f"{trajectory_id} {each}".rstrip(" ") for each in json.loads(rest)):
                    if (key := reading_key(spelled)) in met:
                        findings.add("duplicate_id", self._shards[shard].name, spelled)
                    met.add(key)

    def index_entries(self) -> Iterator[IndexEntry]:
        """Each shard with the least and the greatest id in it."""
        found = self._database.execute("SELECT shard, min(id), max(id) FROM facts GROUP BY shard")
        ids = {shard: (first, last) for shard, first, last in found}
        for number, shard in enumerate(self._shards):
            place = (shard.configuration, shard.split, shard.name)
            yield IndexEntry(*place, *ids.get(number, (None, None)))

    def trajectories(self) -> Iterator[tuple[str, set[tuple[str, str]], dict[str, dict[str, Any]]]]:
        """By id: each id with three parts, the configurations and splits that have it, and its ends in each
        configuration.
        """
        self._database.execute("CREATE INDEX IF NOT EXISTS by_id ON facts (id)")
        found = self._database.execute(
            "SELECT id, configuration, split, ends FROM facts WHERE has_parts ORDER BY id, shard"
        )
        for trajectory_id, rows in groupby(found, key=lambda row: row[0]):
            places: set[tuple[str, str]] = set()
            ends: dict[str, dict[str, Any]] = defaultdict(dict)
            for _, configuration, split, end in rows:
                places.add((configuration, split))
                _join(ends[configuration], json.loads(end))
            yield trajectory_id, places, ends

    def has(self, trajectory_id: str) -> bool:
        """Whether the default configuration has the trajectory, in any split."""
        question = "SELECT 1 FROM facts WHERE id = ? AND configuration = 'trajectories' LIMIT 1"
        return self._database.execute(question, (trajectory_id,)).fetchone() is not None

    def count(self, what: "TaskCount", tasks: Iterable[tuple[str, str, str]]) -> None:
        """Count a run of each benchmark, task and split."""
        self._database.executemany(
            f"INSERT INTO tasks (benchmark, task, split, {what}) VALUES (?, ?, ?, 1) "
            f"ON CONFLICT DO UPDATE SET {what} = {what} + 1",
            tasks,
        )

    def tasks_in_both_splits(self) -> Iterator[str]:
        query = "SELECT task FROM tasks WHERE seen GROUP BY benchmark, task HAVING count(*) > 1"
        return (task for (task,) in self._database.execute(f"{query} ORDER BY benchmark, task"))

    def runs_of_tasks(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Of each task and split how many runs are too many, missing, and missing as was allowed."""
        return self._database.execute(
            f"SELECT task, split, found - expected, {_LACKING} - {_ALLOWED_MISSING}, {_ALLOWED_MISSING} "
            "FROM tasks ORDER BY benchmark, task, split"
        )

    def totals(self, number: str) -> tuple[Counter[str], Counter[str]]:
        """The sums of an expression over the tasks, by split and by split and benchmark; by split how many
        tasks it is positive of.
        """
        sums: Counter[str] = Counter()
        tasks: Counter[str] = Counter()
        for split, benchmark, total, count in self._database.execute(
            f"SELECT split, benchmark, sum({number}), count(*) FROM tasks WHERE {number} > 0 "
            "GROUP BY split, benchmark"
        ):
            sums[split] += total
            sums[f"{split} {benchmark}"] += total
            tasks[split] += count
        return sums, tasks


TaskCount = Literal["seen", "found", "expected", "allowed"]
"""Runs of a task in any configuration or row of `tasks`, in the default one, in the suite, and of these those
that may be missing."""

_TABLES: Final = """
CREATE TABLE facts (shard, configuration, split, id, key, has_parts, rest, ends);
CREATE TABLE tasks (benchmark, task, split, seen DEFAULT 0, found DEFAULT 0, expected DEFAULT 0,
    allowed DEFAULT 0, PRIMARY KEY (benchmark, task, split)) WITHOUT ROWID;
"""

_LACKING: Final = "max(expected - found, 0)"
_ALLOWED_MISSING: Final = f"min({_LACKING}, allowed)"


def _join(ends: dict[str, Any], more: dict[str, Any]) -> None:
    """Add what a further shard says: its steps are counted, and of two last steps the one with the higher
    number stands.
    """
    count = ends.get("steps", 0) + more.get("steps", 0)
    if "last" not in more or more["last"] >= ends.get("last", -1):
        ends |= more
    if "steps" in more:
        ends["steps"] = count


def disagreements(ends: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Columns of one trajectory in which the configurations differ."""
    groups = {"the number of steps": ("n_steps", "length", "steps")}
    groups |= {final: (final, step) for final, step in _ENDS.items()}
    found = []
    for what, columns in groups.items():
        if len({value for end in ends.values() for name, value in end.items() if name in columns}) > 1:
            found.append(what)
    return found


PUBLISHED_COUNTS: Final = MappingProxyType(
    {
        "dev": 196,
        "test": 1106,
        "test assistantbench": 108,
        "test visualwebarena": 276,
        "test webarena": 310,
        "test workarena": 64,
        "test workarena++": 348,
    }
)
"""Trajectories of the official suite, by split and by benchmark (paper, sections 3.3 and 4)."""

PUBLISHED_TASKS: Final = MappingProxyType({"dev": 51, "test": 300})

EVERY_TRAJECTORY: Final = ("trajectories", "trajectories_with_screenshot", "steps", "rewards")
"""Configurations that speak of every trajectory; the others of some."""


def check_agreement(
    facts: Facts,
    suite: Suite | None,
    allowed: Collection[Trajectory],
    findings: Findings,
    *,
    is_blind: bool = False,
) -> None:
    """Compare ids, splits, counts and ends; what is of no single file is found in "data".

    ``allowed`` are trajectories of the suite that may be missing.
    """
    facts.check_duplicates(findings)
    for trajectory_id, places, ends in facts.trajectories():
        name = TrajectoryId.parse(trajectory_id)
        for what in disagreements(ends):
            findings.add("configurations_disagree", "data", f"{trajectory_id}: {what}")
        for configuration in facts.configurations.intersection(EVERY_TRAJECTORY):
            for split in SPLITS:
                if ((configuration, split) in places) != (("trajectories", split) in places):
                    findings.add("configurations_disagree", f"data/{configuration}/{split}", trajectory_id)
        task = name.benchmark, name.task
        facts.count("seen", ((*task, split) for _, split in places))
        facts.count("found", ((*task, split) for c, split in places if c == "trajectories"))
        if suite is not None and not is_blind:
            _check_against_suite(trajectory_id, places, suite, findings)
    for task in facts.tasks_in_both_splits():
        findings.add("task_in_both_splits", "data", task)
    if suite is None:
        findings.add("suite_unknown", "manifest.json")
        return
    facts.count("expected", ((t.benchmark, t.task, t.split) for t in suite.trajectories))
    facts.count("allowed", ((t.benchmark, t.task, t.split) for t in allowed))
    if is_blind:
        _check_blind_runs(facts, findings)
    else:
        _check_complete(facts, suite, allowed, findings)
    if suite.name == OFFICIAL:
        _check_published_counts(facts, findings)


def _check_against_suite(
    trajectory_id: str, places: Collection[tuple[str, str]], suite: Suite, findings: Findings
) -> None:
    known = suite.find(trajectory_id)
    for configuration, split in places:
        if known is None:
            findings.add("not_in_suite", f"data/{configuration}/{split}", trajectory_id)
        elif known.split != split:
            findings.add("wrong_split", f"data/{configuration}/{split}", trajectory_id)


def _check_blind_runs(facts: Facts, findings: Findings) -> None:
    """Blind ids name no trajectory of the suite; but every task has as many runs as the suite says."""
    for task, split, too_many, missing, allowed_missing in facts.runs_of_tasks():
        for code, number, what in (
            ("not_in_suite", too_many, "runs too many"),
            ("missing_trajectory", missing, "runs"),
            ("allowed_missing", allowed_missing, "runs"),
        ):
            if number > 0:
                findings.add(code, f"data/trajectories/{split}", f"{task}: {number} {what}", number)


def _check_complete(facts: Facts, suite: Suite, allowed: Collection[Trajectory], findings: Findings) -> None:
    for trajectory in suite.trajectories:
        if not facts.has(trajectory.trajectory_id):
            code = "allowed_missing" if trajectory in allowed else "missing_trajectory"
            findings.add(code, "data/trajectories", trajectory.trajectory_id)


def _check_published_counts(facts: Facts, findings: Findings) -> None:
    """The official suite has the published numbers, less what is missing as was allowed."""
    found, tasks = facts.totals("found")
    missing, _ = facts.totals(_ALLOWED_MISSING)
    _, tasks_left = facts.totals(f"(expected - {_ALLOWED_MISSING})")
    _, all_tasks = facts.totals("expected")
    for what, published in PUBLISHED_COUNTS.items():
        if found[what] != (expected := published - missing[what]):
            findings.add("counts", "data/trajectories", f"{what}: {found[what]} trajectories, not {expected}")
    for split, published in PUBLISHED_TASKS.items():
        if tasks[split] != (expected := published - all_tasks[split] + tasks_left[split]):
            findings.add("counts", "data/trajectories", f"{split}: {tasks[split]} tasks, not {expected}")
