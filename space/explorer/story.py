"""One trajectory as a story: its goal, and step by step what the agent saw, thought and did. Pure.

An error that the browser reports belongs to the action of the step before: the released data stores it with
the observation that follows, and here it stands with the action that failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from space.explorer.action_words import ActionWords, describe_action

STEP_COLUMNS: Final = (
    "num",
    "url",
    "action",
    "reasoning",
    "last_action_error",
    "axtree_pruned",
    "screenshot",
    "box",
)
"""What a story needs of `steps`."""

Size = tuple[int, int]
"""Width and height of a picture in pixels."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The element acted on, as percentages of the screenshot's width and height."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the page shows it. ``place`` counts from 1; ``num`` is its number in the dataset.

    ``error`` is what was wrong with this step's action. Without a screenshot ``size`` and ``outline`` are
    None; ``is_outside`` tells that the element acted on lies outside the picture.
    """

    place: int
    num: int
    url: str
    action: str | None
    words: ActionWords | None
    reasoning: str
    error: str
    size: Size | None
    outline: Outline | None
    is_outside: bool

    @property
    def says(self) -> str:
        """The reasoning, unless it only repeats the action."""
        return "" if self.reasoning.strip() == (self.action or "").strip() else self.reasoning.strip()


def steps_of_story(rows: Sequence[Mapping[str, Any]], sizes: Mapping[int, Size]) -> tuple[Step, ...]:
    """The steps of a trajectory from its rows in `steps`; ``sizes`` are its screenshots', by number."""
    return tuple(
        _step(place, row, following, sizes.get(row["num"]))
        for place, (row, following) in enumerate(zip_longest(rows, rows[1:]), start=1)
    )


def _step(place: int, row: Mapping[str, Any], following: Mapping[str, Any] | None, size: Size | None) -> Step:
    outline = outline_of(row["box"], size) if row["box"] and size else None
    return Step(
        place=place,
        num=row["num"],
        url=row["url"] or "",
        action=row["action"],
        words=describe_action(row["action"], row["axtree_pruned"]),
        reasoning=row["reasoning"] or "",
        error=(following["last_action_error"] or "").strip() if following else "",
        size=size,
        outline=outline,
        is_outside=bool(row["box"]) and size is not None and outline is None,
    )


def outline_of(box: Sequence[float], size: Size) -> Outline | None:
    """Where a box lies on a picture, cut at its edges; None when none of it is on the picture."""
    left, top = max(0.0, box[0]), max(0.0, box[1])
    right, bottom = min(float(size[0]), box[0] + box[2]), min(float(size[1]), box[1] + box[3])
    if right - left < 1 or bottom - top < 1:
        return None
    across, down = 100 / size[0], 100 / size[1]
    return Outline(left * across, top * down, (right - left) * across, (bottom - top) * down)
