"""The simplified judge (paper, section 4.1 and Figures 5 and 6): four questions in one call."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from arb.core.replies import Form
from arb.judges.parsing import parse_answer
from arb.judges.prompting import (
    SHORTER,
    content_of,
    goal_parts,
    hash_of_file,
    last_step,
    observation_apart,
    read_prompts,
    steps_text,
    with_bounded_texts,
)
from arb.judges.traits import DescribedJudge, JudgeTraits
from arb.judges.types import JUDGE_ROLE, Call, Image, JudgeSession, Message, View, Wants

PAPER = "arXiv 2504.08942"

_ORDER = ("success", "side", "optimal", "loop")
_INVERTED = ("loop", "side", "optimal", "success")
_KINDS = {
    (True, False): "axtree",
    (False, True): "screenshot",
    (True, True): "both",
    (False, False): "neither",
}
"""What is seen of the last page, tree and screenshot."""


@dataclass(frozen=True)
class SimplifiedJudge(DescribedJudge):
    """Sees the goal, every step, and of the last page the tree, the screenshot, both or neither.

    For what was not recorded the prompt says so, and the judge decides without it; of a run without web pages
    the last observation's text stands in place of the tree. Inverted, it is asked for success last instead of
    first. Structured, which the paper's are not, its replies are JSON of the fields and choices that the
    wording names, where the endpoint can hold a model to that.
    """

    form: ClassVar[Form] = "tags"

    name: str
    model: str
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
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model}

    @property
    def prompts_hash(self) -> str:
        return hash_of_file("simplified")

    @property
    def system(self) -> str:
        return _system(self.has_axtree, self.has_screenshot, self.is_inverted)

    @property
    def response_format(self) -> Mapping[str, Any] | None:
        """The ``response_format`` of a request; None unless structured."""
        return response_format(self.system) if self.is_structured else None

    def describe(self) -> JudgeTraits:
        kind = _KINDS[self.has_axtree, self.has_screenshot]
        return JudgeTraits(
            method=f"simplified-{kind}{'-inverted' if self.is_inverted else ''}",
            is_structured=self.is_structured,
            is_inverted=self.is_inverted,
            form=self.form,
            response_formats={} if self.response_format is None else {JUDGE_ROLE: self.response_format},
        )

    def ask(self, view: View) -> JudgeSession:
        """One call. Where the prompt is too long, it is made again with the pruned tree or shorter texts."""
        tree, pruned = last_step(view).axtree, last_step(view).axtree_pruned
        short = with_bounded_texts(view, SHORTER)
        has_shorter = (self.has_axtree and tree is not None and pruned is not None) or short != view
        shorter = self.messages(short, pruned) if has_shorter else None
        full = self.messages(view, pruned if tree is None else tree)
        (reply,) = yield [Call("verdict", full, shorter)]
        return parse_answer(reply, self.form)

    def messages(self, view: View, axtree: str | None) -> tuple[Message, ...]:
        """The messages with this text of the last page's tree; None where none was recorded."""
        prompts = read_prompts("simplified")
        parts: list[str | Image] = goal_parts(view)
        steps, observation = view.steps, None
        if self.has_axtree and axtree is None:
            steps, observation = observation_apart(view)
        parts.append(prompts["steps"].format(steps=steps_text(steps, view.answer)))
        if self.has_axtree:
            missing = prompts["no axtree"] if observation is None else observation
            parts.append(missing if axtree is None else prompts["axtree"].format(axtree=axtree))
        if self.has_screenshot:
            screenshot = last_step(view).screenshot
            parts += [prompts["screenshot"], screenshot] if screenshot else [prompts["no screenshot"]]
        parts.append(prompts["last"])
        return (Message("system", self.system), Message("user", content_of(parts)))


def response_format(system: str) -> dict[str, Any]:
    """The form of the reply that a system message describes, its tags as fields and in their order.

    A tag with choices has those; ``<reasoning>`` is free text.
    """
    choices: dict[str, list[str]] = {"reasoning": []}
    for tag, text in re.findall(r"<(success|side|optimal|loop)>([^<]+)</\1>", system):
        if text != "answer" and text not in choices.setdefault(tag, []):
            choices[tag].append(text)
    fields = {tag: {"type": "string"} | ({"enum": texts} if texts else {}) for tag, texts in choices.items()}
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "answers", "strict": True, "schema": schema}}


@cache
def _system(has_axtree: bool, has_screenshot: bool, is_inverted: bool) -> str:
    prompts = read_prompts("simplified")
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
