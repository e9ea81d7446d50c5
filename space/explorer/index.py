"""What can be browsed: a short entry for each trajectory, made once from the text columns of a dataset.

Labels are read from the dev split only. Those columns of the test split are never asked for, so a dataset
that held any by mistake would not bring them onto a page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from dataset_script.schema import LABEL_COLUMNS
from dataset_script.sources.published import PublishedDataset
from dataset_script.suite import Suite
from dataset_script.trajectory_ids import task_key
from dataset_script.vocabulary import BENCHMARKS, LABELS

DEV: Final = "dev"
LISTED: Final = ("split", "benchmark", "agent", "task")
"""Fields that a reader chooses from a list of what is there."""

_TEXT_COLUMNS: Final = ("trajectory_id", "benchmark", "agent", "task_id", "goal", "n_steps")


@dataclass(frozen=True, slots=True)
class Labels:
    """What the primary annotator said of a dev trajectory; None where the annotator was unsure."""

    success: bool | None
    side_effect: bool | None
    repetition: bool | None
    optimality: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A trajectory in the list. ``labels`` is None on test; ``agent`` is empty where a dataset is blind."""

    trajectory_id: str
    split: str
    benchmark: str
    agent: str
    task: str
    goal: str
    n_actions: int
    labels: Labels | None


@dataclass(frozen=True)
class Index:
    """The entries in the order of their tasks, so that the agents on one task stand together."""

    entries: tuple[Entry, ...]
    by_id: Mapping[str, Entry] = field(repr=False)
    _values: Mapping[str, tuple[str, ...]] = field(repr=False)

    @classmethod
    def of(cls, entries: Iterator[Entry]) -> "Index":
        """Put entries in order."""
        ordered = tuple(sorted(entries, key=_order))
        values = {
            name: tuple(dict.fromkeys(value for entry in ordered if (value := getattr(entry, name))))
            for name in LISTED
        }
        by_id = {entry.trajectory_id: entry for entry in ordered}
        return cls(ordered, MappingProxyType(by_id), MappingProxyType(values))

    def values(self, name: str) -> tuple[str, ...]:
        """The different values of one of LISTED, in the order of the entries, without empty ones."""
        return self._values[name]

    def of_task(self, entry: Entry) -> tuple[Entry, ...]:
        """Every run of the entry's task, the entry's own too, by agent."""
        return tuple(e for e in self.entries if (e.benchmark, e.task) == (entry.benchmark, entry.task))


def build_index(dataset: PublishedDataset, suite: Suite | None) -> Index:
    """The entries of every split. A trajectory that ``suite`` has on test has no labels, wherever it lies.

    ``suite`` is the one that is served where the dataset was built for it, else None. Raises what pyarrow
    raises for a damaged file.
    """
    return Index.of(
        _entry(row, split, suite) for split in dataset.splits("trajectories") for row in _rows(dataset, split)
    )


def _rows(dataset: PublishedDataset, split: str) -> Iterator[dict[str, Any]]:
    columns = [*_TEXT_COLUMNS, *(LABEL_COLUMNS if split == DEV else ())]
    for batch in dataset.table("trajectories", split, columns).to_batches():
        yield from batch.to_pylist()


def _entry(row: Mapping[str, Any], split: str, suite: Suite | None) -> Entry:
    known = suite.find(row["trajectory_id"]) if suite else None
    split = known.split if known else split
    has_labels = split == DEV and "success" in row
    return Entry(
        trajectory_id=row["trajectory_id"],
        split=split,
        benchmark=row["benchmark"] or "",
        agent=row["agent"] or "",
        task=task_key(row["task_id"] or ""),
        goal=row["goal"] or "",
        n_actions=max(0, (row["n_steps"] or 0) - 1),
        labels=labels_of(row) if has_labels else None,
    )


def labels_of(row: Mapping[str, Any]) -> Labels:
    """The answers in a row of `trajectories` or `annotations`: 1 is yes, 0 is no, null is unsure."""
    answers = {name: None if row[name] is None else bool(row[name]) for name in LABELS}
    return Labels(**answers, optimality=row["optimality"])


def _order(entry: Entry) -> tuple:
    known = entry.benchmark in BENCHMARKS
    place = BENCHMARKS.index(entry.benchmark) if known else len(BENCHMARKS)
    return place, entry.benchmark, natural(entry.task), entry.agent, entry.trajectory_id


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """A key under which ``webarena.9`` comes before ``webarena.24``."""
    parts: list[tuple[str, int]] = []
    word, digits = "", ""
    for character in [*text, " "]:
        if character.isdecimal():
            digits += character
            continue
        if digits:
            parts.append((word, int(digits[:18])))
            word, digits = "", ""
        word += character
    return (*parts, (word, -1))
