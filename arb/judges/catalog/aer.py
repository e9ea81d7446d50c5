"""AER (Pan et al., arXiv 2404.06474; paper, section 4.1): judge the steps and a screenshot or its caption."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge, verdict_call
from arb.judges.parsing import parse_answer
from arb.judges.types import (
    Call,
    Image,
    JudgeSession,
    JudgeTraits,
    Message,
    View,
    Wants,
)

CAPTIONER = "captioner"
"""The role of the model that describes the final screenshot for AER-C."""


@dataclass(frozen=True)
class AerJudge(OneModelJudge):
    """AER-V, which sees the final screenshot, or AER-C, which reads a captioner's description of it.

    If no screenshot was recorded, the judge sees only the steps, and AER-C makes only one call. If the
    captioner fails, the answer has no verdict. In a run without web pages, AER-C judges the text
    observations.
    """

    form: ClassVar[Form] = "status"
    prompts: ClassVar[str] = "aer"
    wants: ClassVar[Wants] = Wants(screenshots="last", goal_images=True)

    captioner: str | None = None
    source: str = "arXiv 2404.06474"

    @property
    def inputs(self) -> str:
        return "goal, steps, " + ("caption of the last screenshot" if self.captioner else "last screenshot")

    @property
    def calls(self) -> str:
        return "2" if self.captioner else "1"

    @property
    def models(self) -> Mapping[str, str]:
        return {**super().models} | ({CAPTIONER: self.captioner} if self.captioner else {})

    def describe(self) -> JudgeTraits:
        """Return the judge's traits. AER-C accepts text observations in place of screenshots."""
        has_captioner = self.captioner is not None
        method = "aer-c" if has_captioner else "aer-v"
        return JudgeTraits(method=method, form=self.form, takes_text_for_screenshots=has_captioner)

    def ask(self, view: View) -> JudgeSession:
        """Ask the captioner for a caption, if there is a captioner, and then ask for the verdict."""
        caption = None
        screenshot = prompting.last_step(view).screenshot
        if self.captioner and screenshot is not None:
            (described,) = yield [Call("caption", self.caption_messages(screenshot), role=CAPTIONER)]
            caption = prompting.text_of(described)
            if caption is None:
                return prompting.failed_answer(described)
        (reply,) = yield [verdict_call(view, lambda each: self.messages(each, caption))]
        return parse_answer(reply, self.form)

    def caption_messages(self, screenshot: Image) -> tuple[Message, ...]:
        return (Message("user", (prompting.read_prompts("aer")["captioner"], screenshot)),)

    def messages(self, view: View, caption: str | None) -> tuple[Message, ...]:
        prompts = prompting.read_prompts("aer")
        screenshot = prompting.last_step(view).screenshot
        parts: list[str | Image] = prompting.goal_parts(view)
        parts.append(prompts["steps"].format(steps=prompting.steps_text(view.steps, view.answer)))
        if caption is not None:
            parts.append(prompts["caption"].format(caption=caption.strip()))
        elif screenshot is not None:
            parts += [prompts["screenshot"], screenshot]
        else:
            parts.append(prompts["no screenshot"])
        return (Message("system", prompts["system"]), Message("user", prompting.content_of(parts)))
