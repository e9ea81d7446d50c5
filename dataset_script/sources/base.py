"""Recorded runs in one neutral form, whatever they come from, and what a source of them gives.

A source lists its runs and reads one at a time: `released` and `published` are the layouts of the release and
of our own Parquet, `agentlab` is what AgentLab and browsergym-experiments leave behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from core.replies import Verdict

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels of the screenshot."""


@dataclass(frozen=True, slots=True)
class Step:
    """An observation and the action chosen from it; None where nothing was recorded.

    ``box`` is that of the element the action names; ``screenshot`` is an image's bytes or where it lies.
    """

    num: int
    url: str | None
    action: str | None
    reasoning: str | None
    last_action_error: str | None
    focused_element: str | None
    axtree: str | None
    axtree_pruned: str | None
    box: Box | None
    screenshot: bytes | Path | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of an agent on a task. ``cum_reward`` is the rule-based reward: never for judges."""

    trajectory_id: str
    model: str | None
    goal: str
    goal_images: tuple[bytes, ...]
    cum_reward: float | None
    steps: tuple[Step, ...]


class SourceError(ValueError):
    """A folder that is no source of runs; the message says what was expected."""


class UnusableFileError(ValueError):
    """A file that gives no row: ``code`` as in `build.report.LEFT_OUT`, and the detail as its text."""

    def __init__(self, code: str, detail: str = ""):
        super().__init__(code, detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class Note:
    """Something odd in a file that was used all the same: a code of `build.report.NOTES`, and a detail."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A run of the source: where it lies, its name inside the source, the id that its place spells."""

    path: Path
    name: str
    trajectory_id: str


@dataclass(frozen=True, slots=True)
class SourceListing:
    """What a source holds: its runs, by name, and the names of whatever else lies where runs are expected.

    ``notes`` are about the source as a whole.
    """

    files: tuple[SourceFile, ...]
    others: tuple[str, ...]
    notes: tuple[Note, ...] = ()


class TrajectorySource(Protocol):
    """A folder of recorded runs. Small and picklable: worker processes get a copy with every file."""

    folder: Path
    kind: str
    """One word for the manifest: ``released``, ``agentlab``, ``published``."""

    def list(self) -> SourceListing:
        """List the runs without reading them. Raises SourceError when the folder is no such source."""

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError when it gives no trajectory."""

    def identity(self, file: SourceFile) -> str:
        """A text that changes when what ``read`` gives may have changed: names, sizes, times; cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment(Verdict):
    """A published judge's verdict on a run and the raw reply it was read from; no prompt and no reward.

    ``has_screenshot`` and ``has_axtree`` are what the judge was shown; None where it is not recorded.
    """

    judge: str
    model: str | None
    has_screenshot: bool | None
    has_axtree: bool | None
    reply: str | None


@runtime_checkable
class JudgmentSource(Protocol):
    """A source that also holds what published judges said."""

    def list_judgments(self) -> SourceListing:
        """List the judgment files; several may speak of one trajectory."""

    def read_judgment(self, file: SourceFile) -> Judgment:
        """Read one judgment. Raises UnusableFileError when it gives none."""
