"""A recorded run in one neutral form: what sources produce, builds store, judges view and pages show."""

from dataclasses import dataclass
from pathlib import Path

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels of the screenshot."""


@dataclass(frozen=True, slots=True)
class Step:
    """An observation and the action chosen from it; None where nothing was recorded.

    ``box`` is that of the element the action names; ``screenshot`` is an image's bytes or where it lies;
    ``text`` is what was observed in words if it is no web page: a tool's result, a terminal's output.
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
class Recording:
    """A run of an agent on a task. ``cum_reward`` is the rule-based reward: never for judges.

    ``answer`` is what the agent said at the end, if that is no action; ``state`` how the run ended, in the
    words of its format (``completed``, ``limit: messages``), never whether it succeeded.
    """

    trajectory_id: str
    model: str | None = None
    goal: str = ""
    goal_images: tuple[bytes, ...] = ()
    cum_reward: float | None = None
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    state: str | None = None
