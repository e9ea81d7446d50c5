"""The judges of OSReward and browser-use, which see all steps and the last screenshots in one call.

The prompts here are our own; `official` contains the authors' prompts.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from arb.core.replies import Form, in_fields, parse_yes_no, without_thoughts
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge, verdict_call
from arb.judges.parsing import parse_answer
from arb.judges.types import Answer, Evidence, Image, JudgeSession, Message, Reply, View, Wants


@dataclass(frozen=True)
class LastFramesJudge(OneModelJudge):
    """The base class of judges that send all steps and the last ``most_screenshots`` pictures in one call."""

    wants: ClassVar[Wants] = Wants(screenshots="all", goal_images=True)

    most_screenshots: int = 5
    calls: str = "1"
    source: str = ""

    @property
    def inputs(self) -> str:
        return f"goal, steps, last {self.most_screenshots} screenshots"

    def ask(self, view: View) -> JudgeSession:
        """Make one call."""
        (reply,) = yield [verdict_call(view, self.messages)]
        return self.answer(reply)

    def answer(self, reply: Reply) -> Answer:
        return parse_answer(reply, self.form)

    def screenshots(self, view: View) -> list[Image]:
        """Return the recorded screenshots of the last steps."""
        steps = view.steps[-self.most_screenshots :]
        return [step.screenshot for step in steps if step.screenshot is not None]

    def messages(self, view: View) -> tuple[Message, ...]:
        prompts, images = prompting.read_prompts(self.prompts), self.screenshots(view)
        parts: list[str | Image] = prompting.goal_parts(view, prompts["task"])
        parts.append(prompts["steps"].format(steps=prompting.steps_text(view.steps, view.answer)))
        parts.append(prompts["shown"].format(count=len(images)) if images else prompts["none shown"])
        return (
            Message("system", prompts["system"]),
            Message("user", prompting.content_of([*parts, *images])),
        )


@dataclass(frozen=True)
class OSRewardJudge(LastFramesJudge):
    """The binary judge of OSReward (arXiv 2607.28609), which sees the screenshots of the last five steps."""

    form: ClassVar[Form] = "judge"
    prompts: ClassVar[str] = "osreward"
    method: ClassVar[str] = "osreward-style"

    source: str = "arXiv 2607.28609"


@dataclass(frozen=True)
class BrowserUseJudge(LastFramesJudge):
    """The judge of the package browser-use, which sees the last ten screenshots.

    It also says whether the task is impossible and whether a captcha was reached. Both statements become
    evidence.
    """

    form: ClassVar[Form] = "verdict"
    prompts: ClassVar[str] = "browser_use"
    method: ClassVar[str] = "browseruse-style"

    most_screenshots: int = 10
    source: str = "browser-use, agent/judge.py"

    def answer(self, reply: Reply) -> Answer:
        text = without_thoughts(reply.text or "")
        evidence = []
        for name in ("impossible_task", "reached_captcha"):
            answers = [parse_yes_no(found.text) for found in in_fields(text, name)]
            if answers and answers[-1] is not None:
                evidence.append(Evidence(criterion=name.replace("_", " "), met=answers[-1]))
        return replace(super().answer(reply), evidence=tuple(evidence))

    def screenshots(self, view: View) -> list[Image]:
        """Return the last screenshots that were recorded, no matter at which steps."""
        images = [step.screenshot for step in view.steps if step.screenshot is not None]
        return images[-self.most_screenshots :]
