"""WebJudge (Online-Mind2Web, arXiv 2504.01382): find key points, rate each screenshot, give a verdict.

The method is that of the authors' ``src/methods/webjudge_online_mind2web.py``. The prompts here are our own,
so the method is called ``webjudge-style``. `official.OfficialWebJudge` uses the authors' prompts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple, TypeVar

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge
from arb.judges.parsing import parse_answer, parse_rating
from arb.judges.types import (
    JUDGE_ROLE,
    Call,
    Image,
    ImageOptions,
    JudgeSession,
    JudgeTraits,
    Message,
    Reply,
    View,
    Wants,
)

_SCORE_LINE = re.compile(r"^\W*score\b.*$", re.IGNORECASE | re.MULTILINE)
_REASONING = re.compile(r"^\W*reasoning\W*", re.IGNORECASE)

AUTHORS_QUALITY: Final = 75
"""The quality of the authors' JPEG files. It is Pillow's default."""

T = TypeVar("T")


class RatedScreenshot(NamedTuple):
    """A screenshot for the verdict's prompt, with the number of its step and the note from its rating."""

    number: int
    screenshot: Image
    note: str


@dataclass(frozen=True)
class WebJudge(OneModelJudge):
    """A judge that finds the goal's key points, rates screenshots by them, and judges by the best ones.

    Each screenshot is rated in a separate call. The verdict's prompt shows the screenshots rated
    ``threshold`` or more, at most the first ``max_images``, with the notes from their ratings. A screenshot
    with an unreadable or refused rating is not shown. At most ``most_rated`` screenshots are rated, spread
    evenly over the run. The defaults are the authors', except for ``max_output_tokens``, because reasoning
    models need more than the authors' 512 tokens.
    """

    form: ClassVar[Form] = "status"
    prompts: ClassVar[str] = "webjudge"
    method: ClassVar[str] = "webjudge-style"
    takes_texts: ClassVar[bool] = False
    wants: ClassVar[Wants] = Wants(screenshots="all", goal_images=True)
    images: ClassVar[ImageOptions] = ImageOptions(format="jpeg", detail="high", quality=AUTHORS_QUALITY)

    threshold: int = 3
    most_rated: int | None = None
    max_images: int = 50
    max_output_tokens: int | None = None
    inputs: str = "goal, steps, all screenshots"
    source: str = "arXiv 2504.01382"

    @property
    def calls(self) -> str:
        return "n + 2" if self.most_rated is None else f"n + 2, n up to {self.most_rated}"

    def describe(self) -> JudgeTraits:
        limit = self.max_output_tokens
        tokens = {} if limit is None else {JUDGE_ROLE: limit}
        return replace(super().describe(), images=self.images, output_tokens=tokens)

    def ask(self, view: View) -> JudgeSession:
        """Ask for the key points, then for all ratings in parallel, and then for the verdict."""
        (listed,) = yield [Call("key points", self.key_points_messages(view))]
        text = prompting.text_of(listed)
        if text is None:
            return prompting.failed_answer(listed)
        points = self.key_points(text)
        seen = [(step.number, step.screenshot) for step in view.steps if step.screenshot is not None]
        rated = spread(seen, self.most_rated)
        replies: Sequence[Reply] = ()
        if rated:
            replies = yield [
                Call("rating", self.rating_messages(view, points, screenshot)) for _, screenshot in rated
            ]
        if (failed := next((reply for reply in replies if reply.state == "error"), None)) is not None:
            return prompting.failed_answer(failed)
        chosen: list[RatedScreenshot] = []
        for (number, screenshot), reply in zip(rated, replies, strict=True):
            score, note = self.rating(prompting.text_of(reply) or "")
            if score is not None and score >= self.threshold:
                chosen.append(RatedScreenshot(number, screenshot, note))
        (reply,) = yield [Call("verdict", self.messages(view, points, chosen, bool(rated)))]
        return parse_answer(reply, self.form)

    def key_points(self, reply: str) -> str:
        return reply.strip()

    def rating(self, reply: str) -> tuple[int | None, str]:
        """Return the score in a rating (None if it is unreadable) and the note on the screenshot."""
        return parse_rating(reply), _note(reply)

    def key_points_messages(self, view: View) -> tuple[Message, ...]:
        """Return the messages that ask for the key points of the goal. All runs of a task share this call."""
        system = Message("system", prompting.read_prompts("webjudge")["key points"])
        return (system, Message("user", prompting.content_of(prompting.goal_parts(view, "The task:"))))

    def rating_messages(self, view: View, points: str, screenshot: Image) -> tuple[Message, ...]:
        prompts = prompting.read_prompts("webjudge")
        parts: list[str | Image] = prompting.goal_parts(view, "The task:")
        parts += [prompts["points"].format(points=points), prompts["screenshot"], screenshot]
        return (Message("system", prompts["rating"]), Message("user", prompting.content_of(parts)))

    def messages(
        self, view: View, points: str, chosen: Sequence[RatedScreenshot], has_screenshots: bool
    ) -> tuple[Message, ...]:
        """Return the messages that ask for the verdict and show the first ``max_images`` of ``chosen``."""
        prompts = prompting.read_prompts("webjudge")
        parts: list[str | Image] = prompting.goal_parts(view, "The task:")
        parts.append(prompts["points"].format(points=points))
        parts.append(prompts["steps"].format(steps=prompting.steps_text(view.steps, view.answer)))
        if images := chosen[: self.max_images]:
            notes = (
                prompts["note"].format(place=place, number=each.number, note=each.note)
                for place, each in enumerate(images, start=1)
            )
            parts.append(prompts["shown"].format(notes="\n".join(notes)))
            parts += [each.screenshot for each in images]
        else:
            parts.append(prompts["none shown" if has_screenshots else "none recorded"])
        return (Message("system", prompts["judge"]), Message("user", prompting.content_of(parts)))


def spread(items: Sequence[T], most: int | None) -> list[T]:
    """Return at most ``most`` items, spread evenly over the list. If ``most`` is 1, return the last one."""
    if most is None or len(items) <= most:
        return list(items)
    if most <= 1:
        return list(items[len(items) - most :])
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]


def _note(text: str) -> str:
    """Return the text of a screenshot's rating without the score, on one line."""
    remainder = _REASONING.sub("", _SCORE_LINE.sub("", text).strip())
    return " ".join(remainder.split())
