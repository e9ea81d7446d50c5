"""The simplified judge (paper, section 4.1 and Figures 5 and 6), which asks four questions in one call."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge
from arb.judges.parsing import parse_answer
from arb.judges.types import (
    JUDGE_ROLE,
    Call,
    Image,
    JudgeSession,
    JudgeTraits,
    Message,
    View,
    ViewStep,
    Wants,
)

PAPER = "arXiv 2504.08942"

_ORDER = ("success", "side", "optimal", "loop")
_INVERTED = ("loop", "side", "optimal", "success")
_KINDS = {
    (True, False): "axtree",
    (False, True): "screenshot",
    (True, True): "both",
    (False, False): "neither",
}
"""The kind of prompt, keyed by (shows the last page's tree, shows its screenshot)."""


@dataclass(frozen=True)
class SimplifiedJudge(OneModelJudge):
    """A judge that sees the goal, every step, and the last page's tree, screenshot, both or neither.

    If the tree or screenshot was not recorded, the prompt says so. In a run without web pages, the text of
    the last observation replaces the tree. An inverted judge is asked about success last instead of first. A
    structured judge, which is not in the paper, replies in JSON with the fields and choices of the prompt, if
    the endpoint can enforce that.
    """

    form: ClassVar[Form] = "tags"
    prompts: ClassVar[str] = "simplified"
    takes_texts: ClassVar[bool] = False

    has_axtree: bool = False
    has_screenshot: bool = False
    is_inverted: bool = False
    is_structured: bool = False
    shows_goal_images: bool = True
    calls: str = "1"
    source: str = PAPER

    @property
    def inputs(self) -> str:
        seen = ["goal", "steps"]
        seen += ["last tree"] if self.has_axtree else []
        seen += ["last screenshot"] if self.has_screenshot else []
        return ", ".join(seen) + ("; success asked last" if self.is_inverted else "")

    @property
    def wants(self) -> Wants:
        return Wants(
            axtrees="last" if self.has_axtree else "none",
            screenshots="last" if self.has_screenshot else "none",
            goal_images=self.shows_goal_images,
        )

    @property
    def system(self) -> str:
        return _system(self.has_axtree, self.has_screenshot, self.is_inverted)

    @property
    def response_format(self) -> Mapping[str, Any] | None:
        """The ``response_format`` of requests, or None if the judge is not structured."""
        return response_format(self.system) if self.is_structured else None

    def describe(self) -> JudgeTraits:
        kind = _KINDS[self.has_axtree, self.has_screenshot]
        return replace(
            super().describe(),
            method=f"simplified-{kind}{'-inverted' if self.is_inverted else ''}",
            is_inverted=self.is_inverted,
            response_formats={} if self.response_format is None else {JUDGE_ROLE: self.response_format},
        )

    def ask(self, view: View) -> JudgeSession:
        """Make one call. If the prompt is too long, it is sent with a pruned tree or shorter texts."""
        tree, pruned = prompting.last_step(view).axtree, prompting.last_step(view).axtree_pruned
        short = prompting.with_bounded_texts(view, prompting.SHORTER)
        has_shorter = (self.has_axtree and tree is not None and pruned is not None) or short != view
        shorter = self.messages(short, pruned) if has_shorter else None
        full = self.messages(view, pruned if tree is None else tree)
        (reply,) = yield [Call("verdict", full, shorter)]
        return parse_answer(reply, self.form)

    def messages(self, view: View, axtree: str | None) -> tuple[Message, ...]:
        """Return the messages of the call. ``axtree`` is the last page's tree, or None if not recorded."""
        prompts = prompting.read_prompts("simplified")
        parts: list[str | Image] = prompting.goal_parts(view)
        steps: Sequence[ViewStep] = view.steps
        observation = None
        if self.has_axtree and axtree is None:
            steps, observation = prompting.observation_apart(view)
        parts.append(prompts["steps"].format(steps=prompting.steps_text(steps, view.answer)))
        if self.has_axtree:
            missing = prompts["no axtree"] if observation is None else observation
            parts.append(missing if axtree is None else prompts["axtree"].format(axtree=axtree))
        if self.has_screenshot:
            screenshot = prompting.last_step(view).screenshot
            parts += [prompts["screenshot"], screenshot] if screenshot else [prompts["no screenshot"]]
        parts.append(prompts["last"])
        return (Message("system", self.system), Message("user", prompting.content_of(parts)))


def response_format(system: str) -> dict[str, Any]:
    """Return a JSON response format whose fields are the tags in a system message, in the same order.

    The values of a field are the choices that the message gives for the tag. ``reasoning`` is free text.
    """
    choices: dict[str, list[str]] = {"reasoning": []}
    for tag, text in re.findall(r"<(success|side|optimal|loop)>([^<]+)</\1>", system):
        if text != "answer" and text not in choices.setdefault(tag, []):
            choices[tag].append(text)
    fields = {tag: {"type": "string"} | ({"enum": texts} if texts else {}) for tag, texts in choices.items()}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answers", "strict": True, "schema": schema}}


@cache
def _system(has_axtree: bool, has_screenshot: bool, is_inverted: bool) -> str:
    prompts = prompting.read_prompts("simplified")
    order = _INVERTED if is_inverted else _ORDER
    kind = _KINDS[has_axtree, has_screenshot]
    return prompts["system"].format(
        evidence=prompts.get(f"evidence {kind}", ""),
        in_evidence=prompts.get(f"in evidence {kind}", ""),
        questions="\n\n".join(
            f"Question {number}: {prompts[f'question {tag}']}" for number, tag in enumerate(order, start=1)
        ),
        form="\n".join(f"<{tag}>answer</{tag}>" for tag in order),
    )
