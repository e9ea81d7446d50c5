"""A recorded run, as produced by sources and used by dataset builds, judges and pages."""

from dataclasses import dataclass
from pathlib import Path

Box = tuple[float, float, float, float]
"""Left, top, width and height, in pixels of the screenshot."""


@dataclass(frozen=True, slots=True)
class Step:
    """An observation and the action that followed it. Fields that were not recorded are None.

    ``box`` is the bounding box of the element that the action used. ``text`` is an observation that is not a
    web page, such as a tool's result or a terminal's output.
    """

    num: int
    url: str | None = None
    action: str | None = None
    reasoning: str | None = None
    last_action_error: str | None = None
    focused_element: str | None = None
    axtree: str | None = None
    axtree_pruned: str | None = None
    box: Box | None = None
    screenshot: bytes | Path | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run of the agent used, as recorded. Fields that were not recorded are None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    @classmethod
    def of(
        cls,
        input_tokens: float | None = None,
        output_tokens: float | None = None,
        cost_usd: float | None = None,
        seconds: float | None = None,
    ) -> "RunUsage | None":
        """Return the usage with integer tokens and rounded amounts, or None if nothing was recorded."""
        if (input_tokens, output_tokens, cost_usd, seconds) == (None,) * 4:
            return None
        tokens = (None if each is None else round(each) for each in (input_tokens, output_tokens))
        return cls(*tokens, *(None if each is None else round(each, 6) for each in (cost_usd, seconds)))


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of an agent on a task. ``cum_reward`` is the benchmark's reward, which judges never see.

    ``answer`` is the agent's final message if it is not an action. ``state`` says how the run ended, in the
    words of the source's format (``completed``, ``limit: messages``), but never whether it succeeded.
    """

    trajectory_id: str
    model: str | None = None
    goal: str = ""
    goal_images: tuple[bytes, ...] = ()
    cum_reward: float | None = None
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    state: str | None = None
    usage: RunUsage | None = None
