"""Make the views of recorded runs that judges get to see, one trajectory at a time.

A view never contains a reward, a label, the name of an agent or model, or an id.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from arb.core.console import counted
from arb.core.ids import reading_key
from arb.core.suite import Suite
from arb.core.trajectory import Recording, Step
from arb.judges.images import UnreadableImageError, prepare_image
from arb.judges.prompting import goal_parts, observation_apart, prompts_hash, steps_text, with_bounded_texts
from arb.judges.registry import entries
from arb.judges.types import (
    AnyJudge,
    Image,
    ImageOptions,
    View,
    ViewStep,
    Wants,
    covers,
    models_of,
    traits_of,
    wants_of,
)
from arb.judges.wrappers import JudgeWrapper
from dataset_script.sources import open_source
from dataset_script.sources.base import Observed, SourceFile
from dataset_script.sources.problems import UnusableFileError

_AS_RECORDED: Final = ImageOptions()
_TEXT_ONLY: Final = Wants()
_MOST_NAMES: Final = 5
"""The maximum number of incomplete runs that a message lists per missing part."""

VIEW_VERSION: Final = 1
"""Increment this if the same recording gives a different `View`, so that old runs are not continued."""

_EXAMPLE: Final = View(
    "A goal.",
    (),
    (
        ViewStep(1, "http://site/", "click('1')", "A reason.", "An error."),
        ViewStep(2, None, None, None, None),
        ViewStep(3, "http://site/end", None, None, None),
    ),
)

_TEXT_EXAMPLE: Final = View(
    "A goal.",
    (),
    (
        ViewStep(1, None, "a()", "A reason.", None),
        ViewStep(2, None, "b()", None, None, text="x" * 10_010),
        ViewStep(3, None, None, None, None, text="Done."),
    ),
    answer="An answer.",
)
"""An example view of a run without web pages, for `view_hash`."""

_FIRST_OF_TEXTS: Final = "6730cf7532f6962282048215b31dbc1a9966ca171dad96863c604c8920689e58"
"""The original hash of `_TEXT_EXAMPLE`. As long as the example has this hash, `view_hash` leaves it out, so
that runs that are older than the example can be continued."""

Read = TypeVar("Read")


def view_hash(wants: Wants) -> str:
    """Return a SHA-256 that changes if judges with these wants get a different view of the same recording."""
    texts = [part for part in goal_parts(_EXAMPLE) if isinstance(part, str)]
    view = with_bounded_texts(_TEXT_EXAMPLE)
    of_texts = prompts_hash(steps_text(view.steps, view.answer), observation_apart(view)[1] or "")
    if of_texts != _FIRST_OF_TEXTS:
        texts.append(of_texts)
    return prompts_hash(f"{VIEW_VERSION} {wants}", *texts, steps_text(_EXAMPLE.steps))


def missing_inputs(judge: AnyJudge, observed: Observed) -> tuple[str, ...]:
    """Return what a judge needs but a run does not have: ``screenshots`` or ``accessibility trees``.

    A run with text observations or without web pages needs no trees, and no screenshots either if the judge's
    traits say so (``takes_text_for_screenshots``).
    """
    if isinstance(judge, JudgeWrapper):  # all of its parts may be asked
        missing = (missing_inputs(part, observed) for part in judge.parts.values())
        return tuple(dict.fromkeys(name for names in missing for name in names))
    wants = wants_of(judge)
    found = []
    does_without = observed.texts or not observed.is_web
    takes_text = traits_of(judge).takes_text_for_screenshots
    if wants.screenshots != "none" and not (observed.screenshots or (takes_text and does_without)):
        found.append("screenshots")
    if wants.axtrees != "none" and not (observed.axtrees or does_without):
        found.append("accessibility trees")
    return tuple(found)


class NoViewError(ValueError):
    """Raised if the source has no readable run of a trajectory."""


class Views:
    """The recorded runs in a folder as judges see them. Raises SourceError if the folder is not a source.

    Threads may share an instance, but only one run is read at a time. Instances can be pickled. An unreadable
    picture counts as not recorded.
    """

    def __init__(self, folder: Path, suite: Suite | None = None, images: ImageOptions = _AS_RECORDED):
        self._source = open_source(folder)
        self._suite_ids = [t.trajectory_id for t in suite.trajectories] if suite is not None else None
        self._images = images
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_source", "_suite_ids", "_images")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": threading.RLock()}

    def ids(self) -> tuple[str, ...]:
        """Return the trajectory ids of the source. If there is a suite, they have its order and spelling."""
        with self._lock:
            there = self._files
        if self._suite_ids is None:
            return tuple(files[0].trajectory_id for files in there.values())
        return tuple(each for each in self._suite_ids if reading_key(each) in there)

    @cached_property
    def observed(self) -> Mapping[str, Observed]:
        """Which parts of each run were recorded, by reading key. Empty if every run would have to be read."""
        return {reading_key(each): has for each, has in self._source.observed().items()}

    def incomplete(self, judge: AnyJudge, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return which inputs of the judge each incomplete run lacks, keyed by trajectory id."""
        found = {}
        for each in ids:
            observed = self.observed.get(reading_key(each))
            missing = () if observed is None else missing_inputs(judge, observed)
            if missing:
                found[each] = missing
        return found

    def describe_incomplete(
        self, judge: AnyJudge, incomplete: Mapping[str, tuple[str, ...]], chosen: int
    ) -> str:
        """Return a message that names incomplete runs (out of ``chosen``), and judges that can judge them."""
        lines = [
            f"{judge.name} cannot judge {len(incomplete):,} of {counted(chosen, 'run')}; no call was made"
        ]
        for what in dict.fromkeys(what for lacks in incomplete.values() for what in lacks):
            names = [each for each, lacks in incomplete.items() if what in lacks]
            more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
            lines.append(f"  without {what}: {', '.join(names[:_MOST_NAMES])}{more}")
        kinds = {self.observed[reading_key(each)] for each in incomplete}
        with_models = [entry.judge for entry in entries() if models_of(entry.judge)]
        able = [each.name for each in with_models if not any(missing_inputs(each, kind) for kind in kinds)]
        lines += [f"judges that can: {', '.join(able)}"] if able else []
        if len(incomplete) < chosen:
            lines.append("to judge only the other runs, add --skip-incomplete")
        return "\n".join(lines)

    def view(self, trajectory_id: str, wants: Wants = _TEXT_ONLY) -> View:
        """Return the view of a trajectory for a judge with these wants. Raises NoViewError."""

        def read(file: SourceFile) -> Recording:
            return self._source.read_parts(file, wants.axtrees, wants.screenshots, wants.goal_images)

        with self._lock:
            recording = self._first_readable(trajectory_id, read)
        return view_of(recording, wants, self._images)

    def reward(self, trajectory_id: str) -> float | None:
        """Return the reward of a trajectory, or None if none was recorded. Raises NoViewError."""
        with self._lock:
            return self._first_readable(trajectory_id, self._source.reward)

    def data_hash(self) -> str:
        """Return a SHA-256 that changes with the recorded runs.

        For a published dataset, it covers every byte. For other sources, it covers the files' names, sizes
        and times.
        """
        with self._lock:
            files = [file for group in self._files.values() for file in group]
        return self._source.data_hash(files)

    @cached_property
    def _files(self) -> Mapping[str, Sequence[SourceFile]]:
        """The files of each trajectory, by reading key; files with the suite's spelling come first."""
        released = set(self._suite_ids or ())
        found: dict[str, list[SourceFile]] = {}
        for file in self._source.list_runs().files:
            found.setdefault(reading_key(file.trajectory_id), []).append(file)
        for group in found.values():
            group.sort(key=lambda file: (file.trajectory_id not in released, file.name))
        return found

    def _first_readable(self, trajectory_id: str, read: Callable[[SourceFile], Read]) -> Read:
        """Return the result of ``read`` for the first readable file of a trajectory. Raises NoViewError."""
        problems: list[str] = []
        for file in self._files.get(reading_key(trajectory_id), ()):
            try:
                return read(file)
            except UnusableFileError as error:
                problems.append(f"{file.name}: {error.code} {error}".strip())
        why = "; ".join(problems) or f"there is no run of it in {self._source.folder}"
        raise NoViewError(f"{trajectory_id}: {why}")


def view_of(recording: Recording, wants: Wants, images: ImageOptions = _AS_RECORDED) -> View:
    """Return the view of a recorded run for a judge with these wants.

    Raises NoViewError if a screenshot is a file that cannot be read.
    """
    last = len(recording.steps)
    goal_images = (_image(each, images) for each in recording.goal_images if wants.goal_images)
    view = View(
        goal=recording.goal,
        answer=recording.answer,
        goal_images=tuple(image for image in goal_images if image is not None),
        steps=tuple(
            _step(step, number, wants, images, is_last=number == last)
            for number, step in enumerate(recording.steps, start=1)
        ),
    )
    return with_bounded_texts(view)


def _step(step: Step, number: int, wants: Wants, images: ImageOptions, *, is_last: bool) -> ViewStep:
    shows_axtree = covers(wants.axtrees, is_last)
    shows_screenshot = covers(wants.screenshots, is_last)
    return ViewStep(
        number=number,
        url=step.url,
        action=step.action,
        reasoning=step.reasoning,
        error=step.last_action_error,
        axtree=step.axtree if shows_axtree else None,
        axtree_pruned=step.axtree_pruned if shows_axtree else None,
        screenshot=_image(step.screenshot, images) if shows_screenshot else None,
        text=step.text,
    )


def _image(content: bytes | Path | None, images: ImageOptions) -> Image | None:
    if content is None:
        return None
    try:
        data = content.read_bytes() if isinstance(content, Path) else content
    except OSError as error:  # the file was listed, so the picture is not just missing
        raise NoViewError(f"a screenshot cannot be read ({error.strerror})") from error
    try:
        return prepare_image(data, images)
    except UnreadableImageError:
        return None
