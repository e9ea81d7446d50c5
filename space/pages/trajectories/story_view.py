"""A story as the page shows it: titles, addresses, and the words for what experts and judges said. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

from arb.core.vocabulary import LABEL_TITLES
from space.pages.trajectories.dataset import Story
from space.pages.trajectories.filters import (
    OUTCOME_WORDS,
    RunTile,
    TrajectoriesQuery,
    agent_title,
    benchmark_title,
    run_of,
)
from space.pages.trajectories.images import WIDTHS
from space.pages.trajectories.index import Labels, TrajectoryEntry, VoteCounts
from space.pages.trajectories.verdicts import STATES, JudgeVerdict
from space.web.query import link_to

OPTIMALITY: Final = MappingProxyType(
    {1: "complete failure", 2: "suboptimal", 3: "somewhat optimal", 4: "completely optimal"}
)
SMALLEST_LARGE: Final = 640
"""Pictures below this many pixels are thumbnails and never stand for a large one."""


@dataclass(frozen=True)
class Side:
    """The judges with one verdict; ``differs`` tells on dev that it is not the experts'."""

    verdict: str
    title: str
    differs: bool
    judges: tuple[JudgeVerdict, ...]


@dataclass(frozen=True)
class StoryView:
    """A story at one of its steps, among the runs that were chosen.

    ``place`` is the step shown, from 1; ``number`` the run's place among ``n_found`` chosen ones, None when
    the choice leaves it out; ``previous`` and ``next`` are addresses.
    """

    story: Story
    choice: TrajectoriesQuery
    place: int
    runs: tuple[RunTile, ...]
    number: int | None
    n_found: int
    previous: str | None
    next: str | None

    optimality: ClassVar[Mapping[int, str]] = OPTIMALITY
    states: ClassVar[Mapping[str, str]] = STATES

    @property
    def benchmark(self) -> str:
        """The benchmark's title."""
        return benchmark_title(self.story.entry.benchmark)

    @property
    def agent(self) -> str:
        """The agent's title."""
        return agent_title(self.story.entry.agent)

    @property
    def goal(self) -> str:
        """What the agent was asked to do."""
        return self.story.entry.goal

    @property
    def title(self) -> str:
        """Agent and task, for the window's title."""
        return " · ".join(filter(None, (self.agent, self.story.entry.task)))

    @property
    def list_address(self) -> str:
        """The list that one came from."""
        return self.choice.address()

    @property
    def task_address(self) -> str:
        """The list of all runs of the task."""
        return self.choice.of_task(self.story.entry.benchmark, self.story.entry.task)

    def step_address(self, place: int) -> str:
        """The story at another step."""
        return self.choice.address(id=self.story.entry.trajectory_id, step=place if place > 1 else "")

    def screenshot(self, num: int, width: int | None = None) -> str:
        """A step's picture, made smaller or as recorded. Step 0 is written out, not left out."""
        return self._of_the_run("/api/screenshot", num=str(num), width=width)

    def goal_image(self, num: int, width: int | None = None) -> str:
        """A picture of the goal."""
        return self._of_the_run("/api/goal_image", num=str(num), width=width)

    def widths(self, recorded: int) -> tuple[int, ...]:
        """The widths that a picture can be made smaller to and still be looked at large."""
        return tuple(width for width in WIDTHS if SMALLEST_LARGE <= width < recorded)

    @property
    def tree_address(self) -> str:
        """The trees of the run; number and form of the tree are added by the page."""
        return self._of_the_run("/api/tree")

    def reasoning_address(self, judge: str) -> str:
        """What a judge wrote."""
        return self._of_the_run("/trajectories/reasoning", judge=judge)

    def judge_address(self, row_id: str) -> str:
        """A judge's own page."""
        return link_to("/judge", id=row_id)

    def _of_the_run(self, path: str, **more: object) -> str:
        return link_to(path, trajectory_id=self.story.entry.trajectory_id, **more, v=self.story.version)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The judges by their verdict on success, in the order of the story."""
        found = []
        for success, words in ((True, "success"), (False, "failure"), (None, None)):
            judges = tuple(judge for judge in self.story.judges if judge.labels.success is success)
            if judges:
                says = "says" if len(judges) == 1 else "say"
                title = f"{len(judges)} {says} {words}" if words else f"{len(judges)} gave no verdict"
                found.append(Side(words or "none", title, any(j.differs for j in judges), judges))
        return tuple(found)

    @staticmethod
    def outcome(success: bool | None) -> str:
        """An expert's word on success: success, failure or unsure."""
        return OUTCOME_WORDS[success]

    @staticmethod
    def answer(value: bool | None) -> str:
        """An expert's answer to a yes-or-no question."""
        return {True: "yes", False: "no", None: "unsure"}[value]

    @staticmethod
    def other_answers(labels: Labels) -> str:
        """What a judge said besides success, on one line; empty where it said nothing else."""
        found = [
            f"{LABEL_TITLES[name].lower()} {'yes' if value else 'no'}"
            for name in ("side_effect", "repetition")
            if (value := getattr(labels, name)) is not None
        ]
        found += [f"optimality {labels.optimality} of 4"] if labels.optimality else []
        return ", ".join(found)


def view_story(
    story: Story,
    choice: TrajectoriesQuery,
    chosen: Sequence[TrajectoryEntry],
    vote_counts: VoteCounts,
    step: str,
) -> StoryView:
    """The story at the step that an address asks for (a number from 1; the first where it is none)."""
    number = next((n for n, entry in enumerate(chosen, 1) if entry is story.entry), None)
    around = (None, None)
    if number is not None:
        around = (
            chosen[number - 2] if number > 1 else None,
            chosen[number] if number < len(chosen) else None,
        )
    previous, following = (choice.address(id=e.trajectory_id) if e else None for e in around)
    wished = int(step) if step.isascii() and step.isdigit() and len(step) < 6 else 1
    return StoryView(
        story=story,
        choice=choice,
        place=min(max(1, wished), max(1, len(story.steps))),
        runs=tuple(run_of(e, choice, vote_counts.votes(e.trajectory_id), story.version) for e in story.runs),
        number=number,
        n_found=len(chosen),
        previous=previous,
        next=following,
    )
