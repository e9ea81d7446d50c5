"""The steps of a trajectory: observations, reasoning and actions, with each action in words.

The released data stores an error of the browser with the observation after the failed action. Here it is
shown with the action.
"""

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from arb.core.trajectory import Box, Step
from arb.judges.prompting import cut_middle
from dataset_script.sources.axtree import acted_on

_CALL: Final = re.compile(r"\s*([A-Za-z_]\w{0,40})\(")
_MESSAGES: Final = ("send_msg_to_user", "report_infeasible")
_QUOTED: Final = r"""('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_LONGEST_NAME: Final = 90
_LONGEST_CALL: Final = 20_000

_VERBS: Final = tomllib.loads(Path(__file__).with_name("actions.toml").read_text(encoding="utf-8"))
"""Actions in words, keyed by the name of the function that an agent calls."""


@dataclass(frozen=True, slots=True)
class ActionWords:
    """An action in words, its element and its message to the user; ``bid`` is the element's id."""

    title: str
    element: str
    message: str
    bid: str | None


def describe_action(action: str | None, *trees: str | None) -> ActionWords | None:
    """Return an action in words, or None for no action; its element is looked up in the trees, in order."""
    if not action:
        return None
    called = _CALL.match(action)
    name = called[1] if called else ""
    bid = acted_on(action)
    found = (element_in(tree, bid) for tree in trees if tree and bid)
    return ActionWords(
        title=_VERBS.get(name, "Act"),
        element=next(filter(None, found), ""),
        message=_message(action) if name in _MESSAGES else "",
        bid=bid,
    )


def element_in(tree: str, bid: str) -> str:
    """Return the role and name of an element in a tree, such as ``link “Cycling”``; empty if missing."""
    line = re.search(rf"^[ \t]*\[{re.escape(bid)}\] ([^\n]*)", tree, re.MULTILINE)
    if line is None:
        return ""
    named = re.match(rf"(\S+) {_QUOTED}", line[1])
    if named is None:
        return line[1].split(",")[0][:_LONGEST_NAME]
    role = "text" if named[1] == "StaticText" else named[1]
    quoted = _parsed(named[2])
    name = " ".join(str(quoted.value).split()) if isinstance(quoted, ast.Constant) else ""
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}…"
    return f"{role} “{name}”" if name else role


def _message(action: str) -> str:
    """Return the first string argument of a call, or an empty string if the call cannot be parsed."""
    call = _parsed(action)
    if not isinstance(call, ast.Call):
        return ""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    value = values[0].value if values and isinstance(values[0], ast.Constant) else ""
    return value if isinstance(value, str) else ""


def _parsed(text: str) -> ast.expr | None:
    """Parse an expression of an agent or a page, without running it; return None if it is invalid."""
    if len(text) > _LONGEST_CALL:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


STEP_COLUMNS: Final = (
    "num", "url", "action", "reasoning", "last_action_error", "text", "axtree_pruned", "screenshot", "box",
)  # fmt: skip
"""The columns of `steps` that a story needs."""

LONGEST_TEXT: Final = 20_000
"""The page shows at most this many characters of an observation. The middle of a longer one is left out."""

Size = tuple[int, int]
"""The width and height of a picture in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryStep(Step):
    """A step as the page shows it; ``place`` counts from 1.

    ``error`` is the error of this step's action. ``size`` is None if the step has no screenshot. ``outline``
    is the box of the element acted on (left, top, width, height) in percent of the screenshot.
    """

    place: int
    words: ActionWords | None
    error: str
    size: Size | None
    outline: Box | None

    @property
    def is_outside(self) -> bool:
        return bool(self.box) and self.size is not None and self.outline is None

    @property
    def is_page(self) -> bool:
        """Whether a web page was recorded in this step."""
        return bool(self.url or self.size) or self.axtree_pruned is not None

    @property
    def says(self) -> str:
        """The reasoning, unless it only repeats the action."""
        reasoning = (self.reasoning or "").strip()
        return "" if reasoning == (self.action or "").strip() else reasoning


def steps_of_story(rows: Sequence[Mapping[str, Any]], sizes: Mapping[int, Size]) -> tuple[StoryStep, ...]:
    """Return a trajectory's steps from its rows in `steps`; ``sizes`` maps step numbers to picture sizes."""
    steps = []
    for place, (row, following) in enumerate(zip_longest(rows, rows[1:]), start=1):
        size, box = sizes.get(row["num"]), row["box"]
        step = StoryStep(
            num=row["num"],
            url=row["url"],
            action=row["action"],
            reasoning=row["reasoning"],
            last_action_error=row["last_action_error"],
            axtree_pruned=row["axtree_pruned"],
            box=box,
            text=cut_middle(row.get("text"), LONGEST_TEXT),
            place=place,
            words=describe_action(row["action"], row["axtree_pruned"]),
            error=(following["last_action_error"] or "").strip() if following else "",
            size=size,
            outline=outline_of(box, size) if box and size else None,
        )
        steps.append(step)
    return tuple(steps)


def outline_of(box: Sequence[float], size: Size) -> Box | None:
    """Return a box in percent of a picture, cut at its edges, or None if it lies outside the picture."""
    left, top = max(0.0, box[0]), max(0.0, box[1])
    right, bottom = min(float(size[0]), box[0] + box[2]), min(float(size[1]), box[1] + box[3])
    if right - left < 1 or bottom - top < 1:
        return None
    across, down = 100 / size[0], 100 / size[1]
    return left * across, top * down, (right - left) * across, (bottom - top) * down
