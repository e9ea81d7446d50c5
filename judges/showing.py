"""How judges put a trajectory into a message: the goal with its pictures, and the steps as text."""

from collections.abc import Iterable, Sequence

from judges.base import Content, Image, View, ViewStep

_NOT_RECORDED = "(not recorded)"


def content_of(parts: Iterable[str | Image]) -> Content:
    """Texts and pictures as the content of a message: texts that meet are joined by an empty line.

    Without any picture the content is one text.
    """
    joined: list[str | Image] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n\n{part}"
        else:
            joined.append(part)
    return joined[0] if len(joined) == 1 and isinstance(joined[0], str) else tuple(joined)


def goal_parts(view: View, heading: str = "The user's goal:") -> list[str | Image]:
    """The goal, and the pictures that belong to it where there are any."""
    text = f"{heading}\n{view.goal.strip()}"
    if not view.goal_images:
        return [text]
    return [f"{text}\n\nPictures that belong to the goal:", *view.goal_images]


def steps_text(steps: Sequence[ViewStep]) -> str:
    """Every step: its number, the page's address, the action taken on it, and the agent's reasoning.

    The last observation, from which no action was taken, has a number and an address only.
    """
    return "\n\n".join(_step_text(step, step is steps[-1]) for step in steps) or "(no step was recorded)"


def last_step(view: View) -> ViewStep:
    """The last observation; an empty one of a view without any."""
    return view.steps[-1] if view.steps else ViewStep(0, None, None, None, None)


def _step_text(step: ViewStep, is_last: bool) -> str:
    lines = [f"Step {step.number}", f"URL: {step.url or _NOT_RECORDED}"]
    if is_last and step.action is None:
        lines[0] += " (the end: no further action)"
        return "\n".join(lines)
    lines.append(f"Action: {step.action or _NOT_RECORDED}")
    if step.reasoning:
        lines.append(f"Reasoning: {step.reasoning.strip()}")
    return "\n".join(lines)
