"""The list as the page shows it: tasks, and under each its runs beside each other. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from space.address import link_to
from space.explorer.choice import AGREEMENTS, LENGTHS, OUTCOMES, SORTS, Choice, choose
from space.explorer.index import Entry, Index
from space.explorer.vote_counts import VoteCounts, Votes

PAGE_SIZE: Final = 24
"""Runs on a page: six tasks of four agents."""

TILE_WIDTH: Final = 320

OUTCOME_WORDS: Final = {True: "success", False: "failure", None: "unsure"}


@dataclass(frozen=True)
class Field:
    """A control of the form: its name in the address, its label, what can be chosen (nothing: any text)."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    chosen: str


@dataclass(frozen=True)
class Run:
    """A run as a tile. ``outcome`` is the expert's word on dev and empty on test."""

    entry: Entry
    agent: str
    address: str
    picture: str
    votes: Votes
    outcome: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A task with the runs of it that are on this page."""

    benchmark: str
    task: str
    split: str
    goal: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class BrowseView:
    """One page of what was chosen."""

    choice: Choice
    fields: tuple[Field, ...]
    task_names: tuple[str, ...]
    tasks: tuple[Task, ...]
    n_found: int
    n_all: int
    page: int
    n_pages: int
    why_empty: str


def browse(
    index: Index, choice: Choice, vote_counts: VoteCounts, suites: Collection[str], version: str
) -> BrowseView:
    """The page of the list that a choice asks for; a page past the end gives the last one."""
    found = choose(index.entries, choice, vote_counts)
    n_pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(choice.page, n_pages)
    choice = replace(choice, page=page)
    first = (page - 1) * PAGE_SIZE
    return BrowseView(
        choice=choice,
        fields=tuple(_fields(index, choice, vote_counts, suites)),
        task_names=index.values("task"),
        tasks=tuple(_tasks(found[first : first + PAGE_SIZE], choice, vote_counts, version)),
        n_found=len(found),
        n_all=len(index.entries),
        page=page,
        n_pages=n_pages,
        why_empty="" if found else _why_empty(index, choice),
    )


def _fields(index: Index, choice: Choice, vote_counts: VoteCounts, suites: Collection[str]) -> list[Field]:
    """The controls, without those that leave nothing to choose."""
    every = {
        "split": ("Split", {name: name.capitalize() for name in index.values("split")}),
        "benchmark": ("Benchmark", {name: benchmark_title(name) for name in index.values("benchmark")}),
        "agent": ("Agent", {name: agent_title(name) for name in index.values("agent")}),
        "outcome": ("Experts say (dev)", {name: title for name, (title, _) in OUTCOMES.items()}),
        "length": ("Length", {name: title for name, (title, _, _) in LENGTHS.items()}),
        "judges": ("Judges", {name: title for name, (title, _) in AGREEMENTS.items()}),
    }
    if vote_counts.most < 2:  # where one judge or none has spoken, there is nothing to agree on
        del every["judges"]
    found = [
        Field(name, label, (("", "All"), *options.items()), getattr(choice, name))
        for name, (label, options) in every.items()
        if options
    ]
    found.insert(2, Field("task", "Task", (), choice.task))
    if len(suites) > 1:
        found.append(Field("suite", "Suite", tuple(zip(suites, suites, strict=True)), choice.suite))
    return [*found, Field("sort", "Order", tuple(SORTS.items()), choice.sort)]


def _tasks(entries: Sequence[Entry], choice: Choice, vote_counts: VoteCounts, version: str) -> list[Task]:
    """The entries with neighbours of one task put together."""
    return [
        Task(
            benchmark_title(benchmark),
            task,
            split,
            runs[0].goal,
            tuple(run_of(entry, choice, vote_counts.votes(entry.trajectory_id), version) for entry in runs),
        )
        for (benchmark, task, split), runs in _grouped(entries)
    ]


def _grouped(entries: Sequence[Entry]) -> list[tuple[tuple[str, str, str], list[Entry]]]:
    key = groupby(entries, key=lambda entry: (entry.benchmark, entry.task, entry.split))
    return [(name, list(runs)) for name, runs in key]


def run_of(entry: Entry, choice: Choice, votes: Votes, version: str) -> Run:
    """An entry as a tile that leads to its story, with the choice kept in its address."""
    said = entry.labels
    notes = (("side effect", said and said.side_effect), ("repetition", said and said.repetition))
    return Run(
        entry=entry,
        agent=agent_title(entry.agent) or "A run",
        address=choice.address(id=entry.trajectory_id),
        picture=link_to(
            "/api/screenshot", trajectory_id=entry.trajectory_id, num="last", width=TILE_WIDTH, v=version
        ),
        votes=votes,
        outcome="" if said is None else OUTCOME_WORDS[said.success],
        notes=tuple(word for word, is_so in notes if is_so),
    )


def _why_empty(index: Index, choice: Choice) -> str:
    """What stands in the way, in words."""
    if choice.outcome and choice.split == "test":
        return "Experts' labels of test trajectories are not shown, so none can be chosen by them."
    if choice.judges == "wrong" and choice.split == "test":
        return "Whether judges are wrong is shown on dev only."
    if choice.task and choice.task not in index.values("task"):
        return "No task has this name. A part of a name can be searched for."
    return "Nothing fits all of these choices."


def benchmark_title(name: str) -> str:
    """A benchmark as people write it."""
    return BENCHMARK_TITLES.get(name, name)


def agent_title(name: str) -> str:
    """An agent as people write it."""
    return AGENT_TITLES.get(name, name.removeprefix("GenericAgent-"))
