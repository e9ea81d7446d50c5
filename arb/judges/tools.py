"""Tools with which a model looks at a recorded run: open a step, see a screenshot, search, compare two steps.

They read nothing but the `View`, so they cannot show a label, a reward or another run. The arguments that a
model gives are checked like any other input from outside, and the length of every result is limited.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from arb.judges import prompting
from arb.judges.engine.errors import read_json
from arb.judges.images import UnreadableImageError, crop_image
from arb.judges.types import Image, Message, Tool, ToolCall, View, ViewStep

MOST_CALLS: Final = 8
"""The maximum number of calls in one reply that are carried out."""

RESULT_CHARS: Final = 12_000
"""The maximum length of a result in characters. A longer one is cut in the middle."""

_MOST_FOUND: Final = 20
_AROUND: Final = 80
"""How many matches `search` shows, and how many characters it shows on each side of a match."""

_QUERY_CHARS: Final = 200
_LINES_COMPARED: Final = 2_000

Result = tuple[str, tuple[str | Image, ...]]
"""The result of a tool call: a text, and pictures with their headings."""

TOOLS: Final = tuple(
    Tool(**declared)
    for declared in tomllib.loads(
        (Path(__file__).parent / "catalog" / "tools.toml").read_text(encoding="utf-8")
    )["tool"]
)
"""All tools, as they are declared to a model."""


class _UsageError(ValueError):
    """Raised for a call that cannot be carried out. The message tells the model how to call the tool."""


class RunTools:
    """The tools, applied to one run."""

    def __init__(self, view: View):
        self._steps = {step.number: step for step in view.steps}

    def results(self, calls: Sequence[ToolCall]) -> tuple[Message, ...]:
        """Return a message for each call's result and, if there are pictures, a message with all of them.

        The results themselves are texts, since not every endpoint accepts pictures in them.
        """
        messages: list[Message] = []
        pictures: list[str | Image] = []
        for place, call in enumerate(calls):
            if place < MOST_CALLS:
                text, images = self._result(call)
            else:
                text, images = f"not carried out: make at most {MOST_CALLS} calls at once", ()
            cut = prompting.cut_middle(text, RESULT_CHARS) or "(empty)"
            messages.append(Message("tool", cut, tool_call_id=call.id))
            pictures += images
        return (*messages, Message("user", tuple(pictures))) if pictures else tuple(messages)

    def _result(self, call: ToolCall) -> Result:
        tools = {"open_step": self._open_step, "screenshot": self._screenshot}
        tools |= {"search": self._search, "diff": self._diff}
        try:
            arguments = read_json(call.arguments or "{}")
        except ValueError as problem:
            return f"error: the arguments are not valid JSON ({problem})", ()
        if call.name not in tools:
            return f"error: there is no such tool; use {', '.join(tools)}", ()
        if not isinstance(arguments, dict):
            return "error: the arguments have to be a JSON object", ()
        try:
            return tools[call.name](arguments)
        except (_UsageError, UnreadableImageError) as problem:
            return f"error: {problem}", ()

    def _step(self, number: Any) -> ViewStep:
        if isinstance(number, str) and number.isdecimal() and len(number) < 6:
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or number not in self._steps:
            raise _UsageError(f"there is no such step; use a number from 1 to {max(self._steps, default=0)}")
        return self._steps[number]

    def _open_step(self, arguments: dict[str, Any]) -> Result:
        step = self._step(arguments.get("n"))
        parts = [prompting.steps_text((step,))]
        parts += [f"Error of the action before: {step.error}"] if step.error else []
        tree = step.axtree_pruned if step.axtree_pruned is not None else step.axtree
        parts += [f"Accessibility tree:\n{tree}"] if tree is not None else []
        parts += ["A screenshot was recorded."] if step.screenshot else []
        return "\n\n".join(parts), ()

    def _screenshot(self, arguments: dict[str, Any]) -> Result:
        step, crop = self._step(arguments.get("n")), arguments.get("crop")
        picture = step.screenshot
        if picture is None:
            return f"no screenshot of step {step.number} was recorded", ()
        heading = f"Screenshot of step {step.number}"
        if crop:
            if not isinstance(crop, list) or not all(type(edge) in (int, float) for edge in crop):
                raise _UsageError("crop needs four numbers: left, top, right and bottom in per cent")
            picture = crop_image(picture, [int(edge) for edge in crop])
            heading += f", from {crop[0]} % to {crop[2]} % across and from {crop[1]} % to {crop[3]} % down"
        return f"{heading}: it is shown below", (f"{heading}:", picture)

    def _search(self, arguments: dict[str, Any]) -> Result:
        text = arguments.get("text")
        if not isinstance(text, str) or not text.strip() or len(text) > _QUERY_CHARS:
            raise _UsageError(f"text has to be a text of 1 to {_QUERY_CHARS} characters")
        pattern = re.compile(re.escape(text.strip()), re.IGNORECASE)
        lines: list[str] = []
        count = 0
        for step in self._steps.values():
            for part, content in _texts_of(step):
                for found in pattern.finditer(content):
                    count += 1
                    if len(lines) < _MOST_FOUND:
                        around = content[max(0, found.start() - _AROUND) : found.end() + _AROUND]
                        lines.append(f"step {step.number}, {part}: … {' '.join(around.split())} …")
        heading = f"found {count} times" + (f"; the first {_MOST_FOUND}:" if count > _MOST_FOUND else "")
        return "\n".join([heading, *lines]), ()

    def _diff(self, arguments: dict[str, Any]) -> Result:
        pages = [self._step(arguments.get(name)) for name in ("a", "b")]
        texts = [step.axtree_pruned or step.axtree or step.text for step in pages]
        if None in texts:
            return "the page of one of these steps was not recorded", ()
        before, after = ((text or "").splitlines()[:_LINES_COMPARED] for text in texts)
        names = [f"step {step.number}" for step in pages]
        changes = list(difflib.unified_diff(before, after, names[0], names[1], n=0, lineterm=""))
        return "\n".join(changes) or "the pages are equal", ()


def _texts_of(step: ViewStep) -> Iterator[tuple[str, str]]:
    """Yield the name and content of each text of a step that can be searched."""
    tree = step.axtree if step.axtree is not None else step.axtree_pruned
    parts = {"address": step.url, "observation": step.text, "reasoning": step.reasoning}
    parts |= {"action": step.action, "error": step.error, "tree": tree}
    for name, text in parts.items():
        if text:
            yield name, text
