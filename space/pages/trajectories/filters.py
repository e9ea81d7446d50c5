"""Finds the trajectories that a URL selects, and lists them: each task with its runs side by side."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import inf
from typing import Any, Final

from arb.core.suites.targets import UNSURE, Target, main_target
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from space.pages.trajectories.dataset import OpenedDataset
from space.pages.trajectories.index import NO_VOTES, TrajectoryEntry, VoteCounts, Votes
from space.web.paging import Page
from space.web.query import QueryParam, choices_in, link_to

PATH: Final = "/trajectories"

Outcome = tuple[str, str, str | None]
"""A filter by the experts' answers: its title, the name of a target, and the answer (None means unsure)."""


def outcomes_of(targets: Sequence[Target]) -> dict[str, Outcome]:
    """Return the filters on answers about whole runs, keyed by the filters' names in the URL.

    A filter for the positive answer to a binary target has the name of the target.
    """
    found: dict[str, Outcome] = {}
    for target in targets:
        for answer in target.answers if target.level == "run" else ():
            is_positive = answer.value in target.positive[:1]
            name = target.name if is_positive else f"{target.name}-{answer.value}"
            found[name] = f"{target.title}: {answer.title}", target.name, answer.value
    return {**found, UNSURE: ("Expert was unsure", main_target(targets).name, None)}


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
    """The reader's choice of trajectories. An empty string means no filter. ``page`` counts from 1."""

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
    subset: str = ""

    def address(self, **changes: Any) -> str:
        """Return the address of the list for this choice with some changes; defaults are left out."""
        chosen = asdict(self) | changes
        return link_to(
            PATH, **{name: value for name, value in chosen.items() if value != _DEFAULTS.get(name, "")}
        )

    @property
    def narrowed(self) -> bool:
        """Whether the list is filtered by anything but the suite; order and page do not count."""
        return self != TrajectoriesQuery(suite=self.suite, sort=self.sort, page=self.page)

    def unfiltered(self) -> str:
        """Return the address of the whole list, in the chosen order."""
        return TrajectoriesQuery(suite=self.suite, sort=self.sort).address()

    def of_task(self, benchmark: str, task: str) -> str:
        return TrajectoriesQuery(suite=self.suite, benchmark=benchmark, task=task).address()


_DEFAULTS: Final = asdict(TrajectoriesQuery())


def read_choice(query: str, known: Mapping[str, Collection[str]]) -> tuple[TrajectoriesQuery, list[str]]:
    """Return the choice in a query string, and the names of the parameters with invalid values.

    ``known`` has the valid values of fields chosen from a list; ``task`` and ``search`` accept any string.
    """
    controls = [QueryParam(name, "one", _DEFAULTS[name], tuple(known[name])) for name in known]
    controls += [QueryParam(name, "text", "") for name in ("task", "search")]
    controls.append(QueryParam("page", "number", 1, low=1, high=999_999))
    values, refused = choices_in(query, controls)
    values |= {name: values[name].strip() for name in ("task", "search")}
    return TrajectoriesQuery(**values | {"page": int(values["page"])}), refused


def known_values(opened: OpenedDataset, suites: Collection[str]) -> dict[str, Collection[str]]:
    """Return the valid values of each parameter that is chosen from a list."""
    found = {name: ("", *values) for name, values in opened.index.values.items() if name != "task"}
    found |= {"suite": ("", *suites), "outcome": ("", *outcomes_of(opened.targets))}
    return {**found, "length": ("", *LENGTHS), "judges": ("", *AGREEMENTS), "sort": tuple(SORTS)}


def choose(
    entries: Sequence[TrajectoryEntry],
    choice: TrajectoriesQuery,
    vote_counts: VoteCounts,
    targets: Sequence[Target],
) -> list[TrajectoryEntry]:
    words = choice.search.casefold().split()
    main = main_target(targets)
    fields = {name: getattr(choice, name) for name in ("split", "benchmark", "agent", "task")}
    wanted = {name: value for name, value in fields.items() if value}
    _, asked, answer = outcomes_of(targets).get(choice.outcome, ("", "", None))
    _, shortest, longest = LENGTHS.get(choice.length, ("", 0, inf))
    agreement = AGREEMENTS.get(choice.judges)

    def is_chosen(entry: TrajectoryEntry) -> bool:
        if any(getattr(entry, name) != value for name, value in wanted.items()):
            return False
        if choice.subset and choice.subset not in entry.subsets:
            return False
        if asked and (entry.labels is None or entry.labels.get(asked) != answer):
            return False
        if not shortest <= entry.n_actions <= longest:
            return False
        if agreement and not agreement[1](entry, vote_counts.get(entry.trajectory_id, NO_VOTES), main):
            return False
        text = f"{entry.goal} {entry.trajectory_id} {entry.task}".casefold() if words else ""
        return all(word in text for word in words)

    found = list(filter(is_chosen, entries)) if choice.narrowed else list(entries)
    if choice.sort == "longest":
        found.sort(key=lambda entry: -entry.n_actions)
    elif choice.sort == "shortest":
        found.sort(key=lambda entry: entry.n_actions)
    elif choice.sort == "disagreement":
        found.sort(key=lambda entry: -vote_counts.get(entry.trajectory_id, NO_VOTES).disagreement)
    return found


def _most_are_wrong(entry: TrajectoryEntry, votes: Votes, main: Target) -> bool:
    label = entry.labels.get(main.name) if entry.labels else None
    if label is None or votes.yes == votes.no:
        return False
    return (votes.yes > votes.no) is not (label in main.positive)


PAGE_SIZE: Final = 24
"""The number of runs on a page: enough for six tasks with four agents each."""


def browse_values(
    opened: OpenedDataset, choice: TrajectoriesQuery, vote_counts: VoteCounts, suites: Collection[str]
) -> dict[str, Any]:
    """Return the values of ``browse.html`` for a choice; ``tasks`` has a list of runs per task."""
    page = Page.of(choose(opened.index.entries, choice, vote_counts, opened.targets), choice.page, PAGE_SIZE)
    by_task = groupby(page.items, key=lambda entry: (entry.benchmark, entry.task, entry.split))
    return {
        "opened": opened,
        "choice": replace(choice, page=page.number),
        "fields": _fields(opened, vote_counts, suites),
        "tasks": [list(runs) for _, runs in by_task],
        "vote_counts": vote_counts,
        "no_votes": NO_VOTES,
        "page": page,
        "agent_title": agent_title,
    }


def _fields(
    opened: OpenedDataset, vote_counts: VoteCounts, suites: Collection[str]
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the form's controls as (name, label, options). A control without options is a text field."""
    values = opened.index.values
    only = "" if "test" in opened.index.labels_on else " (dev)"
    agreements = {name: title for name, (title, _) in AGREEMENTS.items()}
    agreements["wrong"] += only
    outcomes = {name: title for name, (title, _, _) in outcomes_of(opened.targets).items()}
    every = {
        "split": ("Split", {name: name.capitalize() for name in values["split"]}),
        "benchmark": ("Benchmark", {name: BENCHMARK_TITLES.get(name, name) for name in values["benchmark"]}),
        "agent": ("Agent", {name: agent_title(name) for name in values["agent"]}),
        "subset": ("Subset", {name: name.replace("=", ": ") for name in values["subset"]}),
        "outcome": (f"Experts say{only}", outcomes),
        "length": ("Length", {name: title for name, (title, _, _) in LENGTHS.items()}),
        "judges": ("Judges", agreements),
    }
    if all(votes.cast < 2 for votes in vote_counts.values()):  # a single judge can neither agree nor disagree
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
