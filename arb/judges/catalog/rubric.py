"""A rubric judge, which first writes criteria for the goal, and then rates each one and cites a step.

As in the Universal Verifier (arXiv 2604.06240), criteria are written before an attempt is seen, and outcome
and process are rated separately. The prompts and rules are our own, so this judge is not called Universal
Verifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from arb.core.replies import Form, numbered_rows, read_criteria, without_thoughts
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge, verdict_call
from arb.judges.catalog.webjudge import spread
from arb.judges.parsing import parse_answer
from arb.judges.types import Answer, Call, Image, JudgeSession, Message, View, Wants

MOST_CRITERIA = 20


class Criterion(NamedTuple):
    """One line of a rubric."""

    number: int
    is_required: bool
    kind: str
    text: str


@dataclass(frozen=True)
class RubricJudge(OneModelJudge):
    """A judge that calls a run successful if all required criteria are met.

    The first call asks for criteria, which depend only on the goal, so all runs of a task share this call.
    The second call shows all steps and ``most_screenshots`` screenshots, spread evenly over the run. If the
    reply and the rubric mark different criteria as required, the answer has no verdict.
    """

    form: ClassVar[Form] = "criteria"
    prompts: ClassVar[str] = "rubric"
    method: ClassVar[str] = "rubric"
    wants: ClassVar[Wants] = Wants(screenshots="all", goal_images=True)

    most_screenshots: int = 8
    calls: str = "2"
    source: str = "our own, after arXiv 2604.06240"

    @property
    def inputs(self) -> str:
        return f"goal, steps, {self.most_screenshots} screenshots"

    def ask(self, view: View) -> JudgeSession:
        """Ask for the criteria, and then for their ratings."""
        (written,) = yield [Call("criteria", self.criteria_messages(view))]
        text = prompting.text_of(written)
        if text is None:
            return prompting.failed_answer(written)
        criteria = read_rubric(text)
        if not any(each.is_required for each in criteria):
            return Answer("unparsed")
        (reply,) = yield [verdict_call(view, lambda each: self.messages(each, criteria))]
        answer = parse_answer(reply, self.form)
        if answer.state != "ok":
            return answer
        by_number = {each.number: each for each in criteria}
        rated = read_criteria(without_thoughts(reply.text or ""))
        required = {each.number for each in criteria if each.is_required}
        if {each.number for each in rated if each.is_required} != required:
            return Answer("unparsed")
        evidence = []
        for rating, rated_as in zip(rated, answer.evidence, strict=True):
            if (criterion := by_number.get(rating.number)) is not None:
                evidence.append(rated_as._replace(criterion=f"{criterion.kind}: {criterion.text}"))
        return replace(answer, evidence=tuple(evidence))

    def criteria_messages(self, view: View) -> tuple[Message, ...]:
        """Return the messages that ask for the criteria of the goal."""
        system = Message("system", prompting.read_prompts("rubric")["criteria"])
        return (system, Message("user", prompting.content_of(prompting.goal_parts(view, "The task:"))))

    def messages(self, view: View, criteria: Sequence[Criterion]) -> tuple[Message, ...]:
        """Return the messages that ask for a rating of each criterion."""
        prompts = prompting.read_prompts("rubric")
        lines = (
            f"{each.number} | {'required' if each.is_required else 'optional'} | {each.kind} | {each.text}"
            for each in criteria
        )
        parts: list[str | Image] = prompting.goal_parts(view, "The task:")
        parts.append(prompts["rubric"].format(criteria="\n".join(lines)))
        parts.append(prompts["steps"].format(steps=prompting.steps_text(view.steps, view.answer)))
        seen = [(step.number, step.screenshot) for step in view.steps if step.screenshot is not None]
        for number, screenshot in spread(seen, self.most_screenshots):
            parts += [prompts["screenshot"].format(number=number), screenshot]
        parts += [] if seen else [prompts["no screenshots"]]
        return (Message("system", prompts["judge"]), Message("user", prompting.content_of(parts)))


def read_rubric(text: str) -> list[Criterion]:
    """Return the criteria in lines such as ``1 | required | outcome | text``. Skip other lines."""
    found: dict[int, Criterion] = {}
    for number, (need, kind, *words) in numbered_rows(without_thoughts(text)):
        need, kind = need.casefold(), kind.casefold()
        if need in ("required", "optional") and kind in ("outcome", "process") and len(found) < MOST_CRITERIA:
            found[number] = Criterion(number, need == "required", kind, " | ".join(words))
    return list(found.values())
