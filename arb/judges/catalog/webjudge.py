"""WebJudge (Online-Mind2Web, arXiv 2504.01382): key points, a rating for each screenshot, a verdict.

The method is that of the authors' ``src/methods/webjudge_online_mind2web.py``; the wording here is our own,
so that what runs is called ``webjudge-style``. `official.OfficialWebJudge` has their words and messages.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from arb.core.replies import Form
from arb.judges.parsing import parse_answer, parse_rating
from arb.judges.prompting import (
    ImageOptions,
    content_of,
    failed_answer,
    goal_parts,
    hash_of_file,
    read_prompts,
    steps_text,
    text_of,
)
from arb.judges.traits import DescribedJudge, JudgeTraits
from arb.judges.types import JUDGE_ROLE, Call, Image, JudgeSession, Message, Reply, View, ViewStep, Wants

_SCORE_LINE = re.compile(r"^\W*score\b.*$", re.IGNORECASE | re.MULTILINE)
_REASONING = re.compile(r"^\W*reasoning\W*", re.IGNORECASE)

AUTHORS_QUALITY: Final = 75
"""Of the authors' JPEG files: Pillow's own default, on its scale to 100."""


@dataclass(frozen=True)
class WebJudge(DescribedJudge):
    """Draws key points from the goal, rates screenshots against them, judges by those that matter.

    Every screenshot is rated, each by a call; of those rated ``threshold`` or more the first ``max_images``
    are shown in their order, after the notes on them. A screenshot whose rating cannot be read, or was
    refused, is not shown. ``most_rated`` bounds the calls: of more screenshots that many are rated, spread
    evenly from the first to the last. Defaults are the method's own, but for ``max_output_tokens``: reasoning
    models need room for more tokens than the authors' 512.
    """

    form: ClassVar[Form] = "status"
    wants: ClassVar[Wants] = Wants(screenshots="all", goal_images=True)
    images: ClassVar[ImageOptions] = ImageOptions(format="jpeg", detail="high", quality=AUTHORS_QUALITY)

    name: str
    model: str
    threshold: int = 3
    most_rated: int | None = None
    max_images: int = 50
    max_output_tokens: int | None = None
    inputs: str = "goal, steps, all screenshots"
    source: str = "arXiv 2504.01382"

    @property
    def calls(self) -> str:
        return "n + 2" if self.most_rated is None else f"n + 2, n up to {self.most_rated}"

    @property
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model}

    @property
    def prompts_hash(self) -> str:
        return hash_of_file("webjudge")

    def describe(self) -> JudgeTraits:
        limit = self.max_output_tokens
        return JudgeTraits(
            method="webjudge-style",
            form=self.form,
            images=self.images,
            output_tokens={} if limit is None else {JUDGE_ROLE: limit},
        )

    def ask(self, view: View) -> JudgeSession:
        """Key points, then all ratings at once, then the verdict."""
        (listed,) = yield [Call("key points", self.key_points_messages(view))]
        text = text_of(listed)
        if text is None:
            return failed_answer(listed)
        points = self.key_points(text)
        rated = spread([step for step in view.steps if step.screenshot is not None], self.most_rated)
        replies: Sequence[Reply] = ()
        if rated:
            replies = yield [
                Call("rating", self.rating_messages(view, points, step.screenshot)) for step in rated
            ]
        if (failed := next((reply for reply in replies if reply.state == "error"), None)) is not None:
            return failed_answer(failed)
        chosen: list[tuple[ViewStep, str]] = []
        for step, reply in zip(rated, replies, strict=True):
            score, note = self.rating(text_of(reply) or "")
            if score is not None and score >= self.threshold:
                chosen.append((step, note))
        (reply,) = yield [Call("verdict", self.messages(view, points, chosen, bool(rated)))]
        return parse_answer(reply, self.form)

    def key_points(self, reply: str) -> str:
        """The key points in the reply to the first question."""
        return reply.strip()

    def rating(self, reply: str) -> tuple[int | None, str]:
        """A screenshot's score, None where none can be read, and what the reply says of the screenshot."""
        return parse_rating(reply), _note(reply)

    def key_points_messages(self, view: View) -> tuple[Message, ...]:
        """The question for the key points: about the goal alone, so one for all runs of a task."""
        system = Message("system", read_prompts("webjudge")["key points"])
        return (system, Message("user", content_of(goal_parts(view, "The task:"))))

    def rating_messages(self, view: View, points: str, screenshot: Image) -> tuple[Message, ...]:
        prompts = read_prompts("webjudge")
        parts: list[str | Image] = goal_parts(view, "The task:")
        parts += [prompts["points"].format(points=points), prompts["screenshot"], screenshot]
        return (Message("system", prompts["rating"]), Message("user", content_of(parts)))

    def messages(
        self, view: View, points: str, chosen: Sequence[tuple[ViewStep, str]], has_screenshots: bool
    ) -> tuple[Message, ...]:
        """The question for the verdict: the notes on the first ``max_images`` of the chosen screenshots, and
        then these.
        """
        prompts = read_prompts("webjudge")
        parts: list[str | Image] = goal_parts(view, "The task:")
        parts.append(prompts["points"].format(points=points))
        parts.append(prompts["steps"].format(steps=steps_text(view.steps, view.answer)))
        if images := chosen[: self.max_images]:
            notes = (
                prompts["note"].format(place=place, number=step.number, note=note)
                for place, (step, note) in enumerate(images, start=1)
            )
            parts.append(prompts["shown"].format(notes="\n".join(notes)))
            parts += [step.screenshot for step, _ in images]
        else:
            parts.append(prompts["none shown" if has_screenshots else "none recorded"])
        return (Message("system", prompts["judge"]), Message("user", content_of(parts)))


def spread(steps: Sequence[ViewStep], most: int | None) -> list[ViewStep]:
    """At most ``most``, evenly from the first to the last; for one, the last; for None, all."""
    if most is None or len(steps) <= most:
        return list(steps)
    if most <= 1:
        return list(steps[len(steps) - most :])
    return [steps[round(place * (len(steps) - 1) / (most - 1))] for place in range(most)]


def _note(text: str) -> str:
    """What a rating says of its screenshot: the reply without the line of the score, on one line."""
    remainder = _REASONING.sub("", _SCORE_LINE.sub("", text).strip())
    return " ".join(remainder.split())
