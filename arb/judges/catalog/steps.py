"""A judge that answers a question about every step of a run, for suites with targets of level ``step``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from arb.core.replies import Form
from arb.core.suites.targets import AnswerChoice, Target
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge, verdict_call
from arb.judges.parsing import parse_answer
from arb.judges.types import JudgeSession, JudgeTraits, Message, StepQuestion, View, Wants

RIGHT: Final = Target(
    "right",
    "Right",
    prompting.read_prompts("steps")["question"],
    (AnswerChoice("yes", "Right", "y"), AnswerChoice("no", "Wrong", "n")),
    level="step",
)
"""The question for suites that have none about steps. The answers to it are written only to
judgments.jsonl."""


@dataclass(frozen=True)
class StepJudge(OneModelJudge):
    """A judge that answers ``target`` for each step, and whether the whole run succeeded, in one call."""

    form: ClassVar[Form] = "status"
    prompts: ClassVar[str] = "steps"
    method: ClassVar[str] = "steps"
    wants: ClassVar[Wants] = Wants()

    target: Target = RIGHT
    inputs: str = "goal, steps"
    calls: str = "1"
    source: str = "our own"

    def with_targets(self, targets: Sequence[Target]) -> "StepJudge":
        """Return this judge with the first target about steps that has a list of answers, or with `RIGHT`."""
        asked = (each for each in targets if each.level == "step" and each.answers)
        return replace(self, target=next(asked, RIGHT))

    @property
    def prompts_hash(self) -> str:
        return prompting.prompts_hash(super().prompts_hash, self.system)

    @property
    def question(self) -> StepQuestion:
        return StepQuestion(self.target.name, self.target.values)

    @property
    def system(self) -> str:
        """The system message, which contains the target's question and answers."""
        prompts, target = prompting.read_prompts("steps"), self.target
        return prompts["system"].format(
            question=target.text,
            answers="\n".join(f"- {answer.value}: {answer.title}" for answer in target.answers),
            guide=prompts["guide"].format(guide=target.guide) if target.guide else "",
            values=", ".join(target.values),
        )

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), steps=self.question)

    def ask(self, view: View) -> JudgeSession:
        """Make one call."""
        (reply,) = yield [verdict_call(view, self.messages)]
        return parse_answer(reply, self.form, self.question)

    def messages(self, view: View) -> tuple[Message, ...]:
        steps = prompting.steps_text(view.steps, view.answer)
        text = prompting.read_prompts("steps")["steps"].format(steps=steps)
        goal = f"The user's goal:\n{view.goal.strip()}"
        return (Message("system", self.system), Message("user", f"{goal}\n\n{text}"))
