"""A recorded run, in the form that sources produce, builds store, judges view and pages show."""

from dataclasses import dataclass
from pathlib import Path

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels of the screenshot."""


@dataclass(frozen=True, slots=True)
class Step:
    """An observation and the action that followed it. Fields that were not recorded are None.

    ``box`` is the bounding box of the action's element, and ``screenshot`` an image's bytes or path.
    ``text`` is an observation that is not a web page, such as a tool's result or a terminal's output.
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
    """A run of an agent on a task. ``cum_reward`` is the rule-based reward, which judges never see.

    ``answer`` is the agent's final message if that is not an action. ``state`` says in the words of the
    source's format how the run ended (``completed``, ``limit: messages``), never whether it succeeded.
    """

    trajectory_id: str
    model: str | None = None
    goal: str = ""
    goal_images: tuple[bytes, ...] = ()
    cum_reward: float | None = None
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    state: str | None = None
