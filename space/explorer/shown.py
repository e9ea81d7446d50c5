"""The datasets that are shown: a built one where there is one, and the shipped sample.

Everything here is read-only. One trajectory's row groups are read at a time, and never a whole split's.
"""

import hashlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dataset_script import sample
from dataset_script.sources.base import SourceError
from dataset_script.sources.published import MANIFEST, PublishedDataset
from dataset_script.suite import Suite
from space.explorer.index import Entry, Index, build_index
from space.explorer.vote_counts import Votes, published_votes

logger = logging.getLogger(__name__)

SAMPLE_DATA: Final = Path(sample.__file__).parent / "data"


class TrajectoriesUnavailable(Exception):
    """Files of the dataset that cannot be read now; the log says which, the message is for anyone."""


@dataclass(frozen=True)
class Shown:
    """A dataset as it was when it was opened. ``version`` is a short hash of its manifest."""

    dataset: PublishedDataset
    version: str
    is_sample: bool
    index: Index = field(repr=False)

    @property
    def suite(self) -> str:
        """The suite that the dataset was built for."""
        return self.dataset.suite

    @cached_property
    def published_votes(self) -> Mapping[str, Votes]:
        """The votes of the judges whose verdicts the dataset carries."""
        return published_votes(self.dataset)

    def entry(self, trajectory_id: str) -> Entry:
        """One trajectory's entry; raises KeyError for an id that the dataset does not have."""
        return self.index.by_id[trajectory_id]

    def steps(self, trajectory_id: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
        """The rows of a trajectory in `steps`; none where the dataset has no steps of it."""
        if trajectory_id not in self.dataset.steps_at:
            return []
        return self.dataset.steps_of(trajectory_id, columns)


class Folder:
    """A dataset's folder. One that was built again is opened again; one that is damaged is not taken."""

    def __init__(self, path: Path, suite: Suite | None = None) -> None:
        self._path, self._suite = path, suite
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int], Shown] | None = None

    def now(self) -> Shown:
        """The dataset as it is now. Raises TrajectoriesUnavailable where it cannot be opened at all."""
        with self._lock:
            try:
                stat = (self._path / MANIFEST).stat()
                mark = (stat.st_mtime_ns, stat.st_size)
                if self._opened is None or self._opened[0] != mark:
                    self._opened = (mark, self._open())
            except (OSError, SourceError, ValueError, KeyError) as reason:
                logger.warning("the dataset in %s cannot be opened: %s", self._path, reason)
                if self._opened is None:
                    raise TrajectoriesUnavailable("the dataset cannot be read now") from reason
            return self._opened[1]

    def _open(self) -> Shown:
        dataset = PublishedDataset(self._path)
        version = hashlib.sha256((self._path / MANIFEST).read_bytes()).hexdigest()[:16]
        same = self._suite if self._suite and self._suite.name == dataset.suite else None
        return Shown(dataset, version, self._path == SAMPLE_DATA, build_index(dataset, same))


def folders_shown(data_dir: Path, suite: Suite) -> tuple[Folder, ...]:
    """The built dataset where there is one, and the shipped sample, which is always there."""
    paths = [data_dir] if (data_dir / MANIFEST).is_file() else []
    return tuple(Folder(path, suite) for path in (*paths, SAMPLE_DATA))
