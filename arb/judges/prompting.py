"""Build a judge's messages from prompt files and from a trajectory's goal and steps.

A prompt file is ``catalog/prompts/<judge>.txt``. Each of its sections begins with a line ``=== name ===``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from arb.judges.types import Answer, Content, Image, Reply, View, ViewStep

PROMPTS: Final = Path(__file__).parent / "catalog" / "prompts"
_HEADING: Final = re.compile(r"^=== (.+) ===\n", re.MULTILINE)
_NOT_RECORDED: Final = "(not recorded)"


@cache
def read_prompts(name: str) -> Mapping[str, str]:
    """Return the sections of ``prompts/<name>.txt`` by name, without their final line breaks."""
    parts = _HEADING.split((PROMPTS / f"{name}.txt").read_text(encoding="utf-8"))
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({heading: text.removesuffix("\n") for heading, text in sections})


def prompts_hash(*texts: str) -> str:
    """Return the SHA-256 of texts in the given order, for the ``prompts_hash`` of a judge."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def hash_of_file(name: str) -> str:
    return prompts_hash(*(part for section in read_prompts(name).items() for part in section))


def content_of(parts: Iterable[str | Image]) -> Content:
    """Return texts and pictures as the content of a message, with an empty line between adjacent texts."""
    joined: list[str | Image] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n\n{part}"
        else:
            joined.append(part)
    return joined[0] if len(joined) == 1 and isinstance(joined[0], str) else tuple(joined)


def goal_parts(view: View, heading: str = "The user's goal:") -> list[str | Image]:
    """Return a text with the heading and the goal, followed by the goal's pictures."""
    text = f"{heading}\n{view.goal.strip()}"
    if not view.goal_images:
        return [text]
    return [f"{text}\n\nPictures that belong to the goal:", *view.goal_images]


ANSWER: Final = "The agent's final answer:\n{answer}"


def steps_text(steps: Sequence[ViewStep], answer: str | None = None) -> str:
    """Return all steps as one text, followed by the agent's answer if there is one.

    Each step has a number, an observation (the page's address, a text, or both), an action and the agent's
    reasoning.
    """
    has_pages = any(step.url for step in steps) or all(step.text is None for step in steps)
    texts = [_step_text(step, step is steps[-1], has_pages) for step in steps]
    texts = texts or ["(no step was recorded)"]
    return "\n\n".join([*texts, ANSWER.format(answer=answer.strip())] if answer else texts)


ONE_TEXT: Final = 10_000
"""The maximum length of an observation, an action or the answer in a run with text observations."""

ALL_TEXTS: Final = 200_000
"""The maximum total length of the observations in a run with text observations: about 50,000 tokens."""

SHORTER: Final = 0.2
"""The share of `ONE_TEXT` and `ALL_TEXTS` that a prompt may use if the full prompt was too long."""

_MARK: Final = re.compile(r"\n\[… ([\d,]{1,15}) characters left out …\]\n")
_BELOW: Final = "(the last one; it stands below)"


def with_bounded_texts(view: View, share: float = 1.0) -> View:
    """If a view has text observations, cut long observations, actions and the answer in the middle.

    ``share`` scales the limits `ONE_TEXT` and `ALL_TEXTS`. Any other view is returned unchanged.
    """
    lengths = [len(step.text) for step in view.steps if step.text is not None]
    if not lengths:
        return view
    each = int(ONE_TEXT * share)
    of_texts = _length_for(lengths, int(ALL_TEXTS * share), each)
    steps = (
        replace(step, text=cut_middle(step.text, of_texts), action=cut_middle(step.action, each))
        for step in view.steps
    )
    return replace(view, steps=tuple(steps), answer=cut_middle(view.answer, each))


def _length_for(lengths: Sequence[int], together: int, each: int) -> int:
    """Return the length to which texts must be cut to get at most ``together`` characters in total.

    It is at most ``each``. Short texts leave room for longer ones: to fit texts of 10, 100 and 100 characters
    into 150, the longer ones are cut to 70.
    """
    for place, length in enumerate(sorted(lengths)):
        room = together // (len(lengths) - place)
        if length > room:
            return min(room, each)
        together -= length
    return each


def cut_middle(text: str | None, most: int) -> str | None:
    """Cut a text longer than ``most`` in the middle, and say there how many characters were left out."""
    if text is None or len(text) <= most:
        return text
    head, tail = most - most // 2, len(text) - most // 2
    count = tail - head
    for mark in _MARK.finditer(text, head, tail):  # the text was cut before
        count += int(mark[1].replace(",", "")) - len(mark[0])
    return f"{text[:head]}\n[… {count:,} characters left out …]\n{text[tail:]}"


def observation_apart(view: View) -> tuple[Sequence[ViewStep], str | None]:
    """Return the steps without the text of the last observation, and that text with a heading.

    Judges send that text in place of the last page's tree. If no step has a text, return the steps and None.
    """
    number = max((step.number for step in view.steps if step.text is not None), default=None)
    if number is None:
        return view.steps, None
    steps = [replace(step, text=_BELOW) if step.number == number else step for step in view.steps]
    (text,) = (step.text for step in view.steps if step.number == number)
    return steps, f"The last observation, of a run without web pages:\n\n{(text or '').strip()}"


def last_step(view: View) -> ViewStep:
    """Return the last step of a view, or an empty step if the view has no steps."""
    return view.steps[-1] if view.steps else ViewStep(0, None, None, None, None)


def _step_text(step: ViewStep, is_last: bool, has_pages: bool) -> str:
    lines = [f"Step {step.number}"]
    lines += [f"URL: {step.url or _NOT_RECORDED}"] if has_pages or step.url else []
    lines += [] if step.text is None else [f"Observation: {step.text.strip() or '(empty)'}"]
    if is_last and step.action is None:
        lines[0] += " (the end: no further action)"
        return "\n".join(lines)
    lines.append(f"Action: {step.action or _NOT_RECORDED}")
    if step.reasoning:
        lines.append(f"Reasoning: {step.reasoning.strip()}")
    return "\n".join(lines)


def text_of(reply: Reply) -> str | None:
    """Return the text of a reply, or None if the call failed, the model refused, or the text is empty."""
    if reply.state != "ok" or reply.refusal or reply.finish_reason == "content_filter":
        return None
    return reply.text if (reply.text or "").strip() else None


def failed_answer(reply: Reply) -> Answer:
    """Return the answer, without a verdict, for a reply that has no usable text (see `text_of`)."""
    if reply.state != "ok":
        return Answer(reply.state)
    if reply.refusal or reply.finish_reason == "content_filter":
        return Answer("refused")
    if reply.finish_reason == "length":
        return Answer("truncated")
    return Answer("unparsed" if reply.finish_reason else "error")
