"""WebJudge (Online-Mind2Web, arXiv 2504.01382): key points, a rating for each screenshot, a verdict."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from core.replies import Form
from judges.parsing import parse_answer, parse_rating
from judges.prompting import (
    content_of,
    failed_answer,
    goal_parts,
    hash_of_file,
    read_prompts,
    steps_text,
    text_of,
)
from judges.types import JUDGE_ROLE, Call, Image, JudgeSession, Message, Reply, View, ViewStep, Wants

_SCORE_LINE = re.compile(r"^\W*score\b.*$", re.IGNORECASE | re.MULTILINE)
_REASONING = re.compile(r"^\W*reasoning\W*", re.IGNORECASE)


@dataclass(frozen=True)
class WebJudge:
    """Draws key points from the goal, rates screenshots against them, judges by those that matter.

    Of more than ``most_rated`` screenshots that many are rated, spread evenly from the first to the last;
    each is a call. Those rated ``threshold`` or more are shown, in their order; of more than ``most_shown``
    the best, among equals the later ones. A screenshot whose rating cannot be read, or was refused, is not
    shown. Defaults are the method's own. Reasoning models need room for more tokens than the verdict has.
    """

    form: ClassVar[Form] = "status"
    wants: ClassVar[Wants] = Wants(screenshots="all", goal_images=True)

    name: str
    model: str
    threshold: int = 3
    most_rated: int = 50
    most_shown: int = 50
    max_output_tokens: int | None = None
    inputs: str = "goal, steps, all screenshots"
    source: str = "arXiv 2504.01382"

    @property
    def calls(self) -> str:
        return f"n + 2, n up to {self.most_rated}"

    @property
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model}

    @property
    def prompts_hash(self) -> str:
        return hash_of_file("webjudge")

    def ask(self, view: View) -> JudgeSession:
        """Key points, then all ratings at once, then the verdict."""
        (listed,) = yield [self._call("key points", self.key_points_messages(view))]
        points = text_of(listed)
        if points is None:
            return failed_answer(listed)
        rated = spread([step for step in view.steps if step.screenshot is not None], self.most_rated)
        replies: Sequence[Reply] = ()
        if rated:
            replies = yield [
                self._call("rating", self.rating_messages(view, points, step.screenshot)) for step in rated
            ]
        if (failed := next((reply for reply in replies if reply.state == "error"), None)) is not None:
            return failed_answer(failed)
        chosen = self._chosen(rated, replies)
        (reply,) = yield [self._call("verdict", self.messages(view, points, chosen, bool(rated)))]
        return parse_answer(reply, self.form)

    def key_points_messages(self, view: View) -> tuple[Message, ...]:
        """The question for the key points: about the goal alone, so one for all runs of a task."""
        system = Message("system", read_prompts("webjudge")["key points"])
        return (system, Message("user", content_of(goal_parts(view, "The task:"))))

    def rating_messages(self, view: View, points: str, screenshot: Image) -> tuple[Message, ...]:
        prompts = read_prompts("webjudge")
        parts: list[str | Image] = goal_parts(view, "The task:")
        parts += [prompts["points"].format(points=points.strip()), prompts["screenshot"], screenshot]
        return (Message("system", prompts["rating"]), Message("user", content_of(parts)))

    def messages(
        self, view: View, points: str, chosen: Sequence[tuple[ViewStep, str]], has_screenshots: bool
    ) -> tuple[Message, ...]:
        """The question for the verdict, with the chosen screenshots and the notes on them."""
        prompts = read_prompts("webjudge")
        parts: list[str | Image] = goal_parts(view, "The task:")
        parts.append(prompts["points"].format(points=points.strip()))
        parts.append(prompts["steps"].format(steps=steps_text(view.steps)))
        for step, note in chosen:
            parts += [prompts["shown"].format(number=step.number, note=note), step.screenshot]
        if not chosen:
            parts.append(prompts["none shown" if has_screenshots else "none recorded"])
        return (Message("system", prompts["judge"]), Message("user", content_of(parts)))

    def _call(self, purpose: str, messages: tuple[Message, ...]) -> Call:
        return Call(purpose, messages, max_output_tokens=self.max_output_tokens)

    def _chosen(self, rated: Sequence[ViewStep], replies: Sequence[Reply]) -> list[tuple[ViewStep, str]]:
        """The steps whose screenshots are sent, in order, each with what its rating says of it."""
        found: list[tuple[float, ViewStep, str]] = []
        for step, reply in zip(rated, replies, strict=True):
            text = text_of(reply) or ""
            rating = parse_rating(text)
            if rating is not None and rating >= self.threshold:
                found.append((rating, step, _note(text)))
        found.sort(key=lambda each: (-each[0], -each[1].number))
        best = sorted(found[: self.most_shown], key=lambda each: each[1].number)
        return [(step, note) for _, step, note in best]


def spread(steps: Sequence[ViewStep], most: int) -> list[ViewStep]:
    """At most ``most``, evenly from the first to the last; for one, the last."""
    if len(steps) <= most:
        return list(steps)
    if most <= 1:
        return list(steps[len(steps) - most :])
    return [steps[round(place * (len(steps) - 1) / (most - 1))] for place in range(most)]


def _note(text: str) -> str:
    """What a rating says of its screenshot: the reply without the line of the score, on one line."""
    remainder = _REASONING.sub("", _SCORE_LINE.sub("", text).strip())
    return " ".join(remainder.split())
