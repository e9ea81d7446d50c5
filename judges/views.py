"""What judges are shown, out of recorded runs: one trajectory at a time, and only the parts a judge wants.

Nothing but goal, addresses, actions, reasoning, errors, trees and pictures is taken from a recording: no
reward, no label, no agent's or model's name, no id.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from dataset_script.recording import RecordedStep, Recording
from dataset_script.sources.base import IdentifiesFiles, SourceFile, UnusableFileError
from dataset_script.sources.published_runs import PublishedSource
from dataset_script.sources.recognise import open_source
from dataset_script.suite import Suite
from dataset_script.trajectory_ids import reading_key
from judges.base import Image, View, ViewStep, Wants
from judges.images import ImageOptions, UnreadableImageError
from judges.published_views import PublishedRuns

Read = TypeVar("Read")

_AS_RECORDED: Final = ImageOptions()
_TEXT_ONLY: Final = Wants()


class NoViewError(ValueError):
    """A trajectory that cannot be shown: the source has no run of it, or none that can be read."""


class Views:
    """The runs of a folder as judges see them: released layout, published dataset, or AgentLab's results.

    Reads one run at a time, whatever number of threads ask; copies to other processes by pickle. A picture
    that cannot be read counts as one that was not recorded. Raises SourceError when the folder is no source.
    """

    def __init__(self, folder: Path, suite: Suite | None = None, images: ImageOptions = _AS_RECORDED):
        self._source = open_source(folder)
        self._suite_ids = [t.trajectory_id for t in suite.trajectories] if suite is not None else None
        self._images = images
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_source", "_suite_ids", "_images")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": threading.RLock()}

    def ids(self) -> tuple[str, ...]:
        """The trajectories there are, in the suite's order and spelling; without a suite in the source's."""
        with self._lock:
            there = self._files
        if self._suite_ids is None:
            return tuple(files[0].trajectory_id for files in there.values())
        return tuple(each for each in self._suite_ids if reading_key(each) in there)

    def view(self, trajectory_id: str, wants: Wants = _TEXT_ONLY) -> View:
        """What a judge with these wants is shown of a trajectory, named in any spelling.

        Raises NoViewError.
        """
        with self._lock:
            recording = self._first_readable(trajectory_id, lambda file: self._recording(file, wants))
        last = len(recording.steps)
        goal_images = recording.goal_images if wants.goal_images else ()
        return View(
            goal=recording.goal,
            goal_images=tuple(image for each in goal_images if (image := self._image(each)) is not None),
            steps=tuple(
                self._step(step, number, wants, number == last)
                for number, step in enumerate(recording.steps, start=1)
            ),
        )

    def reward(self, trajectory_id: str) -> float | None:
        """The reward by the benchmark's own rules, for judges that get it; None where there is none.

        Raises NoViewError.
        """
        with self._lock:
            return self._first_readable(trajectory_id, self._reward)

    def data_hash(self) -> str:
        """SHA-256 that changes when the recorded runs do.

        Of a published dataset it covers every byte (its manifest has the files' hashes); of other sources
        names, sizes and times of the files.
        """
        with self._lock:
            files = [file for group in self._files.values() for file in group]
        if isinstance(self._source, PublishedSource):
            return self._source.identity(files[0])
        digest = hashlib.sha256()
        identity = self._source.identity if isinstance(self._source, IdentifiesFiles) else lambda file: ""
        for file in files:
            digest.update(f"{file.name}\n{identity(file)}\n".encode())
        return digest.hexdigest()

    @cached_property
    def _files(self) -> Mapping[str, Sequence[SourceFile]]:
        """The files of each trajectory by reading key; the suite's spelling first, as `build` takes them."""
        released = set(self._suite_ids or ())
        found: dict[str, list[SourceFile]] = {}
        for file in self._source.list().files:
            found.setdefault(reading_key(file.trajectory_id), []).append(file)
        for group in found.values():
            group.sort(key=lambda file: (file.trajectory_id not in released, file.name))
        return found

    @cached_property
    def _published(self) -> PublishedRuns:
        return PublishedRuns(self._source.folder)

    def _first_readable(self, trajectory_id: str, read: Callable[[SourceFile], Read]) -> Read:
        """What ``read`` gives of the first of a trajectory's files that can be read."""
        problems: list[str] = []
        for file in self._files.get(reading_key(trajectory_id), ()):
            try:
                return read(file)
            except UnusableFileError as error:
                problems.append(f"{file.name}: {error.code} {error}".strip())
        why = "; ".join(problems) or f"there is no run of it in {self._source.folder}"
        raise NoViewError(f"{trajectory_id}: {why}")

    def _recording(self, file: SourceFile, wants: Wants) -> Recording:
        if isinstance(self._source, PublishedSource):
            return self._published.read(file, wants)
        return self._source.read(file)[0]

    def _reward(self, file: SourceFile) -> float | None:
        if isinstance(self._source, PublishedSource):
            return self._published.reward(file)
        return self._source.read(file)[0].cum_reward

    def _step(self, step: RecordedStep, number: int, wants: Wants, is_last: bool) -> ViewStep:
        shows_axtree = _is_wanted(wants.axtrees, is_last)
        shows_screenshot = _is_wanted(wants.screenshots, is_last)
        return ViewStep(
            number=number,
            url=step.url,
            action=step.action,
            reasoning=step.reasoning,
            error=step.last_action_error,
            axtree=step.axtree if shows_axtree else None,
            axtree_pruned=step.axtree_pruned if shows_axtree else None,
            screenshot=self._image(step.screenshot) if shows_screenshot else None,
        )

    def _image(self, content: bytes | Path | None) -> Image | None:
        if content is None:
            return None
        try:
            data = content.read_bytes() if isinstance(content, Path) else content
        except OSError as error:  # it was there a moment ago: a fault, not a picture that was never taken
            raise NoViewError(f"a screenshot cannot be read ({error.strerror})") from error
        try:
            return self._images.prepare(data)
        except UnreadableImageError:
            return None


def _is_wanted(which: str, is_last: bool) -> bool:
    return which == "all" or (which == "last" and is_last)
