"""A short entry for each trajectory, and the votes of judges on it, read once from a dataset's columns.

Labels are read only for the dev split. The label columns of the test split are never read, so a dataset that
contained them by mistake would not show them; `labels` adds those that may be shown. Votes are counted from
verdicts, never from labels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from arb.core.ids import task_key
from arb.core.suite import Suite
from arb.core.suites.targets import RELEASED_ANSWERS, Target
from arb.core.vocabulary import BENCHMARKS
from dataset_script.schema import LABEL_COLUMNS
from dataset_script.sources.published import PublishedDataset

DEV: Final = "dev"
LISTED: Final = ("split", "benchmark", "agent", "task")
"""Fields whose values a reader chooses from a list."""

_TEXT_COLUMNS: Final = ("trajectory_id", "benchmark", "agent", "task_id", "goal", "n_steps")


Labels = Mapping[str, str | None]
"""Answers about a trajectory as values of the targets, keyed by target. None means unsure or unanswered."""


@dataclass(frozen=True, slots=True)
class TrajectoryEntry:
    """A trajectory in the list; ``labels`` is None if they may not be shown, or if there are none.

    ``agent`` is empty if it must stay hidden.
    """

    trajectory_id: str
    split: str
    benchmark: str
    agent: str
    task: str
    goal: str
    n_actions: int
    labels: Labels | None
    subsets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Index:
    """The entries in the order of their tasks, so that the runs of one task are next to each other.

    ``values`` has the distinct values of each field in LISTED, in the order of the entries. Under ``subset``
    it has the names of the subsets.
    """

    entries: tuple[TrajectoryEntry, ...]
    by_id: Mapping[str, TrajectoryEntry] = field(repr=False)
    values: Mapping[str, tuple[str, ...]] = field(repr=False)

    @cached_property
    def labels_on(self) -> frozenset[str]:
        """The splits whose labels are shown."""
        return frozenset(entry.split for entry in self.entries if entry.labels is not None)

    def with_labels(self, labels: Mapping[str, Labels]) -> "Index":
        """Return the index with new labels, keyed by trajectory id. Other trajectories keep theirs."""
        entries = tuple(replace(e, labels=labels.get(e.trajectory_id, e.labels)) for e in self.entries)
        return replace(self, entries=entries, by_id={entry.trajectory_id: entry for entry in entries})

    def of_task(self, entry: TrajectoryEntry) -> tuple[TrajectoryEntry, ...]:
        """Return every run of the entry's task, including the entry itself, sorted by agent."""
        return tuple(e for e in self.entries if (e.benchmark, e.task) == (entry.benchmark, entry.task))


def build_index(dataset: PublishedDataset, suite: Suite | None) -> Index:
    """Return the index of all splits of a dataset; raise an error of pyarrow if a file is damaged.

    ``suite`` is the suite that is served, or None if the dataset belongs to another one. Its test
    trajectories get no labels, even if the dataset has them in another split.
    """
    entries = [
        _entry(row, split, suite) for split in dataset.splits("trajectories") for row in _rows(dataset, split)
    ]
    entries.sort(key=_order)
    values = {}
    for name in LISTED:
        distinct = dict.fromkeys(getattr(entry, name) for entry in entries)
        values[name] = tuple(filter(None, distinct))
    values["subset"] = tuple(sorted({name for entry in entries for name in entry.subsets}))
    return Index(tuple(entries), {entry.trajectory_id: entry for entry in entries}, values)


def _rows(dataset: PublishedDataset, split: str) -> Iterator[dict[str, Any]]:
    columns = [*_TEXT_COLUMNS, *(LABEL_COLUMNS if split == DEV else ())]
    for batch in dataset.table("trajectories", split, columns).to_batches():
        yield from batch.to_pylist()


def _entry(row: Mapping[str, Any], split: str, suite: Suite | None) -> TrajectoryEntry:
    known = suite.find(row["trajectory_id"]) if suite else None
    split = known.split if known else split
    has_labels = split == DEV and LABEL_COLUMNS[0] in row
    return TrajectoryEntry(
        trajectory_id=row["trajectory_id"],
        split=split,
        benchmark=row["benchmark"] or "",
        agent=row["agent"] or "",
        task=task_key(row["task_id"] or ""),
        goal=row["goal"] or "",
        n_actions=max(0, (row["n_steps"] or 0) - 1),
        labels=labels_of(row) if has_labels else None,
        subsets=known.subsets if known else (),
    )


def labels_of(row: Mapping[str, Any]) -> Labels:
    """Return the answers in a row of `trajectories`, `annotations` or `judgments`, for targets with a column.

    In a yes/no column, 1 is yes and 0 is no. In every column, null is unsure.
    """
    return {name: _answer_in(row[name], values) for name, values in RELEASED_ANSWERS.items() if name in row}


def _answer_in(cell: Any, values: Sequence[str]) -> str | None:
    if cell is None:
        return None
    return ("yes" if cell else "no") if "yes" in values else str(cell)


def _order(entry: TrajectoryEntry) -> tuple[Any, ...]:
    known = entry.benchmark in BENCHMARKS
    place = BENCHMARKS.index(entry.benchmark) if known else len(BENCHMARKS)
    return place, entry.benchmark, natural(entry.task), entry.agent, entry.trajectory_id


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key that puts ``webarena.9`` before ``webarena.24``."""
    words = re.findall(r"(\D*)(\d*)", text)
    return tuple((word, int(digits[:18]) if digits else -1) for word, digits in words)


RULE_BASED: Final = "functional"
"""The name of the rule-based judge in the published judgments; `rewards` also holds its verdict."""


@dataclass(frozen=True, slots=True)
class Votes:
    """The judges' verdicts on one trajectory for the main target, which has to be binary.

    ``silent`` counts the judges without a readable verdict.
    """

    yes: int = 0
    no: int = 0
    silent: int = 0

    @property
    def cast(self) -> int:
        return self.yes + self.no

    @property
    def fewer(self) -> int:
        """The number of votes of the minority."""
        return min(self.yes, self.no)

    @property
    def disagreement(self) -> float:
        """The minority's share of the votes, from 0 to 0.5, or -1 if there are no votes."""
        return self.fewer / self.cast if self.cast else -1.0


NO_VOTES: Final = Votes()


VoteCounts = Mapping[str, Votes]
"""The votes of judges, keyed by trajectory id, for trajectories that have votes."""


def with_rule_based(
    judgments: Sequence[Mapping[str, Any]], rewards: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the judgments, plus rule-based verdicts of trajectories that have them only in ``rewards``."""
    known = {row["trajectory_id"] for row in judgments if row["judge"] == RULE_BASED}
    missing = (row for row in rewards if row["rule_based"] is not None and row["trajectory_id"] not in known)
    added = [{**row, "judge": RULE_BASED, LABEL_COLUMNS[0]: row["rule_based"]} for row in missing]
    return [*judgments, *added]


def judgments_in(dataset: PublishedDataset, split: str) -> list[Mapping[str, Any]]:
    """Return the answers of the dataset's judges on a split, with the rule-based verdicts."""

    def rows(name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        return dataset.table(name, split, columns).to_pylist() if split in dataset.splits(name) else []

    judgments = rows("judgments", ["trajectory_id", "judge", *LABEL_COLUMNS])
    return with_rule_based(judgments, rows("rewards", ["trajectory_id", "rule_based"]))


def published_votes(dataset: PublishedDataset, main: Target) -> dict[str, Votes]:
    """Return the votes of the dataset's judges, keyed by trajectory id; the rule-based judge counts once.

    There are none if the main target is not binary or not in the dataset.
    """
    counts: Counts = {}
    if main.type != "binary" or main.name not in LABEL_COLUMNS:
        return {}
    for split in dict.fromkeys((*dataset.splits("judgments"), *dataset.splits("rewards"))):
        for row in judgments_in(dataset, split):
            if main.name in row:
                count_vote(counts, row["trajectory_id"], row[main.name])
    return {trajectory_id: Votes(*found) for trajectory_id, found in counts.items()}


Counts = dict[str, list[int]]
_YES, _NO, _SILENT = range(3)


def count_vote(counts: Counts, trajectory_id: str, verdict: int | None) -> None:
    """Count one verdict: 1 is yes, 0 is no; null and values below 0 are missing verdicts."""
    kind = _YES if verdict else _NO
    if verdict is None or verdict < 0:
        kind = _SILENT
    counts.setdefault(trajectory_id, [0, 0, 0])[kind] += 1
