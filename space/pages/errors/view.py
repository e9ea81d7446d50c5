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
from space.pages.errors.columns import LABEL, JudgeColumn, JudgeColumns
from space.web.query import link_to
from submissions.service import SubmissionService

PATH: Final = "/errors"
KINDS: Final[Mapping[str, Kind]] = {"fp": "false positive", "fn": "false negative"}
ON_A_PAGE: Final = 10
MOST_PAIRS: Final = 6


@dataclass(frozen=True)
class ErrorLine:
    """An error with what is needed to read it; ``address`` is None where the trajectory cannot be shown."""

    error: JudgeError
    goal: str | None
    address: str | None
    benchmark: str
    agent: str
    reasoning: str
    tags: tuple[ErrorTag, ...]

    @property
    def sentence(self) -> str:
        """What the judge and the experts say."""
        said, was = ("success", "failure") if self.error.kind == "false positive" else ("failure", "success")
        return f"The judge says {said}, the experts say {was}."

    @property
    def others_sentence(self) -> str:
        """How many other judges say what the experts say."""
        if not self.error.others:
            return "No verdict of another judge is known here."
        judges = "judge agrees" if self.error.others == 1 else "judges agree"
        return f"{self.error.others_right} of {self.error.others} other {judges} with the experts."


@dataclass(frozen=True)
class Queue:
    """A page of a judge's errors; ``counts`` by kind are those of the whole split."""

    column: JudgeColumn
    split: str
    counts: Mapping[str, int]
    n_tagged: int
    lines: tuple[ErrorLine, ...]
    number: int
    n_pages: int


@dataclass(frozen=True)
class Pair:
    """Two people who tagged some of the same errors."""

    first: str
    second: str
    found: TagComparison


@dataclass(frozen=True)
class JudgeChoice:
    """A judge whose errors can be read: how many there are, and how many were tagged."""

    name: str
    address: str
    errors: int
    tagged: int


def errors_of(
    service: SubmissionService, columns: JudgeColumns, column: JudgeColumn, split: str, kind: str = ""
) -> tuple[JudgeError, ...]:
    """A judge's errors on a split, the clearest first; of one of KINDS where one is given."""
    labels = columns.labels(split)
    if labels is None:
        return ()
    others = [other.verdicts for other in columns.on(split).values() if other.judge != column.judge]
    return error_queue(service.suite, labels, LABEL, column.verdicts, others, KINDS.get(kind))


def queue_page(
    service: SubmissionService,
    columns: JudgeColumns,
    column: JudgeColumn,
    split: str,
    kind: str,
    number: int,
    tags: Sequence[ErrorTag],
) -> Queue:
    """One page of the queue."""
    every = errors_of(service, columns, column, split)
    wanted = [error for error in every if error.kind == KINDS.get(kind, error.kind)]
    n_pages = max(1, -(-len(wanted) // ON_A_PAGE))
    number = min(number, n_pages)
    of_error: dict[str, list[ErrorTag]] = {}
    for tag in current_tags(tag for tag in tags if tag.judge == column.judge):
        of_error.setdefault(tag.trajectory_id, []).append(tag)
    places = {t.trajectory_id: (place, t) for place, t in enumerate(service.suite.split(split))}
    lines = []
    for error in wanted[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]:
        place, trajectory = places[error.trajectory_id]
        goal = columns.goal(trajectory)
        lines.append(
            ErrorLine(
                error=error,
                goal=goal,
                address=None if goal is None else link_to("/trajectories", id=error.trajectory_id),
                benchmark=BENCHMARK_TITLES.get(error.benchmark, error.benchmark),
                agent=AGENT_TITLES.get(error.agent, error.agent),
                reasoning=columns.reasoning(column, trajectory, place),
                tags=tuple(of_error.get(error.trajectory_id, ())),
            )
        )
    counts = {name: sum(error.kind == said for error in every) for name, said in KINDS.items()}
    n_tagged = sum(error.trajectory_id in of_error for error in every)
    return Queue(column, split, counts, n_tagged, tuple(lines), number, n_pages)


def judge_choices(
    service: SubmissionService, columns: JudgeColumns, split: str, tags: Sequence[ErrorTag]
) -> list[JudgeChoice]:
    """Every judge with verdicts on a split, by name."""
    tagged = {(tag.judge, tag.trajectory_id) for tag in tags}
    found = []
    for column in columns.on(split).values():
        errors = errors_of(service, columns, column, split)
        n_tagged = sum((column.judge, error.trajectory_id) in tagged for error in errors)
        address = link_to(PATH, judge=column.judge, split=split)
        found.append(JudgeChoice(column.name, address, len(errors), n_tagged))
    return sorted(found, key=lambda choice: (choice.name.casefold(), choice.address))


def pairs_of(tags: Sequence[ErrorTag]) -> list[Pair]:
    """Pairs of people who tagged the same errors, those with most of them first."""
    people = sorted({tag.tagger for tag in tags})
    found = [Pair(*pair, compare_taggers(tags, *pair)) for pair in combinations(people[:50], 2)]
    return sorted((pair for pair in found if pair.found.n), key=lambda pair: -pair.found.n)[:MOST_PAIRS]


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
