"""Finds the trajectories that a URL selects, and lists them: each task with its runs side by side."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Final
from urllib.parse import parse_qs

from arb.core.suites.targets import UNSURE, Target, main_target
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from space.pages.trajectories.index import Index, TrajectoryEntry, VoteCounts, Votes
from space.web.query import link_to

PATH: Final = "/trajectories"
LONGEST_TEXT: Final = 300
LONGEST_QUERY: Final = 8_000
_NOT_NARROWING: Final = ("suite", "sort", "page")

Outcome = tuple[str, str, str | None]
"""The title of a filter by what experts said, the name of a target, and the answer (None: unsure)."""


def outcomes_of(targets: Sequence[Target]) -> dict[str, Outcome]:
    """Return the filters by answers to targets of whole runs, by their names in the URL.

    A filter for the positive answer to a binary target has the name of the target. Other answers to the main
    target have their last alias, if they have one, so that older addresses stay valid.
    """
    found: dict[str, Outcome] = {}
    main = main_target(targets)
    for target in targets:
        for answer in target.answers if target.level == "run" else ():
            name = f"{target.name}-{answer.value}"
            if answer.value in target.positive[:1]:
                name = target.name
            elif target is main and answer.aliases:
                name = answer.aliases[-1]
            found[name] = f"{target.title}: {answer.title}", target.name, answer.value
    return {**found, UNSURE: ("Expert was unsure", main.name, None)}


LENGTHS: Final[Mapping[str, tuple[str, int, int]]] = {
    "1-5": ("Up to 5 actions", 0, 5),
    "6-10": ("6 to 10 actions", 6, 10),
    "11-20": ("11 to 20 actions", 11, 20),
    "21-": ("21 actions or more", 21, 1_000_000),
}

AGREEMENTS: Final[Mapping[str, tuple[str, Callable[[TrajectoryEntry, Votes, Target], bool]]]] = {
    "agree": ("All agree", lambda entry, votes, main: votes.cast >= 2 and votes.fewer == 0),
    "disagree": ("Some disagree", lambda entry, votes, main: votes.fewer > 0),
    "divided": ("At least a third disagree", lambda entry, votes, main: 3 * votes.fewer >= votes.cast > 1),
    "wrong": ("Most are wrong", lambda entry, votes, main: _most_are_wrong(entry, votes, main)),
}
"""Filters by the judges' verdicts on the main target. Only the last one uses labels."""

SORTS: Final[Mapping[str, str]] = {
    "task": "Task",
    "longest": "Longest first",
    "shortest": "Shortest first",
    "disagreement": "Most disagreement first",
}


@dataclass(frozen=True)
class TrajectoriesQuery:
    """The reader's choice. An empty text does not filter; ``page`` counts from 1."""

    suite: str = ""
    split: str = ""
    benchmark: str = ""
    agent: str = ""
    task: str = ""
    outcome: str = ""
    length: str = ""
    judges: str = ""
    search: str = ""
    sort: str = "task"
    page: int = 1

    @classmethod
    def of_query(cls, query: str, known: Mapping[str, Collection[str]]) -> "TrajectoriesQuery":
        """Return the choice in a query string; an invalid value (see `refused`) becomes the default.

        ``known`` has the valid values of fields chosen from a list; ``task`` and ``search`` accept any text.
        """
        parameters = parameters_in(query)
        found = {name: parameters[name] for name in known if parameters.get(name) in known[name]}
        found |= {name: parameters[name] for name in ("task", "search") if name in parameters}
        number = parameters.get("page", "")
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1
        return cls(**found, page=max(1, page))

    def address(self, **changes: Any) -> str:
        """Return the address of the list for this choice with some changes; defaults are left out."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        defaults = {field.name: field.default for field in fields(self)}
        return link_to(
            PATH, **{name: value for name, value in chosen.items() if value != defaults.get(name, "")}
        )

    @property
    def narrowed(self) -> bool:
        """Whether the list is filtered by anything but the suite; order and page do not count."""
        return any(getattr(self, field.name) for field in fields(self) if field.name not in _NOT_NARROWING)

    def unfiltered(self) -> str:
        """Return the address of the whole list, in the chosen order."""
        return TrajectoriesQuery(suite=self.suite, sort=self.sort).address()

    def of_task(self, benchmark: str, task: str) -> str:
        return TrajectoriesQuery(suite=self.suite, benchmark=benchmark, task=task).address()


def parameters_in(query: str) -> dict[str, str]:
    """Return the first value of each parameter in a query string, cut to ``LONGEST_TEXT``."""
    found = parse_qs(query[:LONGEST_QUERY])
    return {name: values[0].strip()[:LONGEST_TEXT] for name, values in found.items()}


def refused(query: str, known: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names of the query parameters with invalid values."""
    parameters = parameters_in(query)
    return [name for name in known if parameters.get(name) and parameters[name] not in known[name]]


def known_values(
    suites: Collection[str], index: Index, targets: Sequence[Target]
) -> dict[str, Collection[str]]:
    """Return the valid values of each parameter that is chosen from a list."""
    return {
        "suite": suites,
        **{name: index.values(name) for name in ("split", "benchmark", "agent")},
        "outcome": outcomes_of(targets).keys(),
        "length": LENGTHS.keys(),
        "judges": AGREEMENTS.keys(),
        "sort": SORTS.keys(),
    }


def choose(
    entries: Sequence[TrajectoryEntry],
    choice: TrajectoriesQuery,
    vote_counts: VoteCounts,
    targets: Sequence[Target],
) -> list[TrajectoryEntry]:
    words = choice.search.casefold().split()
    is_all = not choice.narrowed
    found = [entry for entry in entries if is_all or _is_chosen(entry, choice, vote_counts, words, targets)]
    if choice.sort == "longest":
        found.sort(key=lambda entry: -entry.n_actions)
    elif choice.sort == "shortest":
        found.sort(key=lambda entry: entry.n_actions)
    elif choice.sort == "disagreement":
        found.sort(key=lambda entry: -vote_counts.votes(entry.trajectory_id).disagreement)
    return found


def _is_chosen(
    entry: TrajectoryEntry,
    choice: TrajectoriesQuery,
    vote_counts: VoteCounts,
    words: Sequence[str],
    targets: Sequence[Target],
) -> bool:
    for name in ("split", "benchmark", "agent", "task"):
        wanted = getattr(choice, name)
        if wanted and getattr(entry, name) != wanted:
            return False
    if choice.outcome:
        _, name, answer = outcomes_of(targets)[choice.outcome]
        if entry.labels is None or entry.labels.get(name) != answer:
            return False
    if choice.length:
        _, low, high = LENGTHS[choice.length]
        if not low <= entry.n_actions <= high:
            return False
    if choice.judges:
        is_agreed = AGREEMENTS[choice.judges][1]
        if not is_agreed(entry, vote_counts.votes(entry.trajectory_id), main_target(targets)):
            return False
    text = f"{entry.goal} {entry.trajectory_id} {entry.task}".casefold() if words else ""
    return all(word in text for word in words)


def _most_are_wrong(entry: TrajectoryEntry, votes: Votes, main: Target) -> bool:
    label = entry.labels.get(main.name) if entry.labels else None
    if label is None or votes.yes == votes.no:
        return False
    return (votes.yes > votes.no) is not (label in main.positive)


PAGE_SIZE: Final = 24
"""The number of runs on a page: six tasks of four agents."""


def browse_values(
    index: Index,
    choice: TrajectoriesQuery,
    vote_counts: VoteCounts,
    suites: Collection[str],
    version: str,
    targets: Sequence[Target],
) -> dict[str, Any]:
    """Return the values of ``browse.html`` for a choice; a page number past the end means the last page.

    ``tasks`` has the runs on the page, in one list per task.
    """
    found = choose(index.entries, choice, vote_counts, targets)
    n_pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(choice.page, n_pages)
    on_page = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    by_task = groupby(on_page, key=lambda entry: (entry.benchmark, entry.task, entry.split))
    return {
        "choice": replace(choice, page=page),
        "fields": _fields(index, vote_counts, suites, targets),
        "main": main_target(targets),
        "targets": targets,
        "task_names": index.values("task"),
        "tasks": [list(runs) for _, runs in by_task],
        "vote_counts": vote_counts,
        "version": version,
        "n_found": len(found),
        "n_all": len(index.entries),
        "labels_on": index.labels_on,
        "n_pages": n_pages,
        "agent_title": agent_title,
    }


def _fields(
    index: Index, vote_counts: VoteCounts, suites: Collection[str], targets: Sequence[Target]
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the form's controls as (name, label, options); the control without options takes any text."""
    only = "" if "test" in index.labels_on else " (dev)"
    agreements = {name: title for name, (title, _) in AGREEMENTS.items()}
    agreements["wrong"] += only
    every = {
        "split": ("Split", {name: name.capitalize() for name in index.values("split")}),
        "benchmark": (
            "Benchmark",
            {name: BENCHMARK_TITLES.get(name, name) for name in index.values("benchmark")},
        ),
        "agent": ("Agent", {name: agent_title(name) for name in index.values("agent")}),
        "outcome": (f"Experts say{only}", {name: each[0] for name, each in outcomes_of(targets).items()}),
        "length": ("Length", {name: title for name, (title, _, _) in LENGTHS.items()}),
        "judges": ("Judges", agreements),
    }
    if vote_counts.most < 2:  # a single judge can neither agree nor disagree
        del every["judges"]
    found = [
        (name, label, [("", "All"), *options.items()]) for name, (label, options) in every.items() if options
    ]
    found.insert(2, ("task", "Task", []))
    if len(suites) > 1:
        found.append(("suite", "Suite", [(suite, suite) for suite in suites]))
    return [*found, ("sort", "Order", list(SORTS.items()))]


def agent_title(name: str) -> str:
    return AGENT_TITLES.get(name, name.removeprefix("GenericAgent-"))
