"""The errors of a judge as the page lists them, and counts of their tags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.errors import (
    CATEGORIES,
    ErrorTag,
    JudgeError,
    Kind,
    TagComparison,
    compare_taggers,
    count_tags,
    current_tags,
    error_queue,
)
from space.pages.trajectories.index import TrajectoryEntry
from space.verdicts import LABEL, JudgeColumn, JudgeVerdicts
from space.web.query import link_to
from submissions.service import SubmissionService

PATH: Final = "/errors"
KINDS: Final[Mapping[str, Kind]] = {"fp": "false positive", "fn": "false negative"}
ON_A_PAGE: Final = 10
MOST_PAIRS: Final = 6


@dataclass(frozen=True)
class ErrorFilter:
    """Which errors are listed; an empty text chooses every kind, benchmark or agent."""

    kind: str = ""
    benchmark: str = ""
    agent: str = ""

    def has(self, error: JudgeError) -> bool:
        return (
            KINDS.get(self.kind, error.kind) == error.kind
            and self.benchmark in ("", error.benchmark)
            and self.agent in ("", error.agent)
        )


@dataclass(frozen=True)
class ErrorLine:
    """An error with what is needed to read it; ``entry`` is None where the trajectory cannot be shown."""

    error: JudgeError
    entry: TrajectoryEntry | None
    address: str
    reasoning: str
    tags: tuple[ErrorTag, ...]

    @property
    def can_be_read(self) -> bool:
        """Whether there is anything besides the fact that the judge is wrong."""
        return bool(self.entry or self.reasoning or self.tags)


@dataclass(frozen=True)
class Queue:
    """A page of a judge's errors; ``counts`` by kind and ``n_tagged`` are those of the whole split."""

    counts: Mapping[str, int]
    n_tagged: int
    n_chosen: int
    lines: tuple[ErrorLine, ...]
    number: int
    n_pages: int


def errors_of(
    service: SubmissionService, verdicts: JudgeVerdicts, column: JudgeColumn, split: str
) -> tuple[JudgeError, ...]:
    """A judge's errors on a split, the clearest first."""
    labels = verdicts.labels(split)
    if labels is None:
        return ()
    others = [other.success for other in verdicts.on(split).values() if other.judge != column.judge]
    return error_queue(service.suite, labels, LABEL, column.success, others)


def queue_page(
    service: SubmissionService,
    verdicts: JudgeVerdicts,
    column: JudgeColumn,
    split: str,
    chosen: ErrorFilter,
    number: int,
    tags: Sequence[ErrorTag],
) -> Queue:
    """One page of the queue."""
    every = errors_of(service, verdicts, column, split)
    wanted = [error for error in every if chosen.has(error)]
    n_pages = max(1, -(-len(wanted) // ON_A_PAGE))
    number = min(number, n_pages)
    of_error: dict[str, list[ErrorTag]] = {}
    for tag in current_tags(tag for tag in tags if tag.judge == column.judge):
        of_error.setdefault(tag.trajectory_id, []).append(tag)
    places = {t.trajectory_id: (place, t) for place, t in enumerate(service.suite.split(split))}
    lines = []
    for error in wanted[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]:
        place, trajectory = places[error.trajectory_id]
        entry = verdicts.entry(trajectory)
        lines.append(
            ErrorLine(
                error=error,
                entry=entry,
                address=last_step_address(entry, column) if entry else "",
                reasoning=verdicts.reasoning(column, trajectory, place),
                tags=tuple(of_error.get(error.trajectory_id, ())),
            )
        )
    counts = {name: sum(error.kind == kind for error in every) for name, kind in KINDS.items()}
    n_tagged = sum(error.trajectory_id in of_error for error in every)
    return Queue(counts, n_tagged, len(wanted), tuple(lines), number, n_pages)


def last_step_address(entry: TrajectoryEntry, column: JudgeColumn) -> str:
    """The run at its last step, where success is decided, with what the judge wrote opened."""
    judge = column.dataset_name or column.judge
    return link_to("/trajectories", id=entry.trajectory_id, step=entry.n_actions + 1, judge=judge)


def judge_choices(
    service: SubmissionService, verdicts: JudgeVerdicts, split: str, tags: Sequence[ErrorTag]
) -> list[tuple[JudgeColumn, int, int]]:
    """Every judge with verdicts on a split, by name: how many errors it has, and how many are tagged."""
    tagged = {(tag.judge, tag.trajectory_id) for tag in tags}
    found = []
    for column in verdicts.on(split).values():
        errors = errors_of(service, verdicts, column, split)
        n_tagged = sum((column.judge, error.trajectory_id) in tagged for error in errors)
        found.append((column, len(errors), n_tagged))
    return sorted(found, key=lambda choice: (choice[0].name.casefold(), choice[0].judge))


def pairs_of(tags: Sequence[ErrorTag]) -> list[tuple[str, str, TagComparison]]:
    """Pairs of people who tagged the same errors, those with most of them first."""
    people = sorted({tag.tagger for tag in tags})[:50]
    found = [(*pair, compare_taggers(tags, *pair)) for pair in combinations(people, 2)]
    return sorted((pair for pair in found if pair[2].n), key=lambda pair: -pair[2].n)[:MOST_PAIRS]


def count_tables(
    tags: Sequence[ErrorTag], names: Mapping[str, str]
) -> list[tuple[str, list[str], list[tuple[str, list[int]]]]]:
    """Tables of counts as (heading, categories, rows of (name, counts)): by judge, benchmark, agent."""
    counts = count_tags(tags)
    categories = list(counts.overall)
    groups = (
        ("Judge", counts.by_judge, names),
        ("Benchmark", counts.by_benchmark, BENCHMARK_TITLES),
        ("Agent", counts.by_agent, AGENT_TITLES),
    )
    tables = []
    for heading, group, titles in groups:
        rows = [
            (titles.get(name, name), [found.get(category, 0) for category in categories])
            for name, found in group.items()
        ]
        if heading == "Judge":
            rows.append(("All", [counts.overall[category] for category in categories]))
        tables.append((heading, categories, rows))
    return tables if categories else []


def category_title(category: str) -> str:
    """A category for people: the paper's by their titles, own ones by their words."""
    known = CATEGORIES.get(category)
    return known.title if known else category.replace("_", " ").capitalize()
