"""Access to the datasets that are shown: a built dataset, if there is one, and the shipped sample.

Everything is read-only. Only the row groups of one trajectory are read at a time, never a whole split.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pyarrow import ArrowException

from arb.core.cache import ByteCache
from arb.core.settings import Settings
from arb.core.suite import Suite
from arb.core.suites.profile import MODALITIES
from arb.core.suites.targets import Target, default_targets, main_target
from dataset_script import sample
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import MANIFEST, PublishedDataset
from space.pages.trajectories.images import (
    RECORDED_BYTES,
    RESIZED_BYTES,
    WIDTHS,
    NoPicture,
    Picture,
    Pictures,
    open_picture,
    smaller,
)
from space.pages.trajectories.index import (
    RULE_BASED,
    Index,
    TrajectoryEntry,
    VoteCounts,
    Votes,
    build_index,
    published_votes,
)
from space.pages.trajectories.labels import Expert, VisibleLabels, experts_in
from space.pages.trajectories.parts import RunPart, parts_of_run
from space.pages.trajectories.story import STEP_COLUMNS, StoryStep, steps_of_story
from space.pages.trajectories.verdicts import (
    JudgeVerdict,
    SubmittedJudges,
    judge_names,
    judges_of,
    reasoning_in,
    with_submitted,
)
from submissions.app import SubmissionsApp

logger = logging.getLogger(__name__)

SAMPLE_DATA: Final = Path(sample.__file__).parent / "data"


class TrajectoriesUnavailable(Exception):
    """Raised when files of the dataset cannot be read. The message is public; the log has the reason."""


@dataclass(frozen=True)
class OpenedDataset:
    """A dataset as it was when it was opened.

    ``version`` is a short hash of its manifest. ``targets`` and ``modalities`` are those of the served
    suite, or AgentRewardBench's if the dataset belongs to another suite.
    """

    dataset: PublishedDataset
    version: str
    is_sample: bool
    index: Index = field(repr=False)
    targets: tuple[Target, ...] = field(default_factory=default_targets, repr=False)
    modalities: tuple[str, ...] = MODALITIES

    @property
    def main(self) -> Target:
        return main_target(self.targets)

    @property
    def suite(self) -> str:
        return self.dataset.suite

    @cached_property
    def published_votes(self) -> Mapping[str, Votes]:
        return published_votes(self.dataset, self.main)

    @cached_property
    def judges_on_test(self) -> frozenset[str]:
        """The ids of the board's rows whose verdicts on test are in the dataset."""
        names = {RULE_BASED} if "test" in self.dataset.splits("rewards") else set()
        if "test" in self.dataset.splits("judgments"):
            names |= set(self.dataset.table("judgments", "test", ["judge"])["judge"].unique().to_pylist())
        published = judge_names()
        return frozenset(published[name][1] for name in names if name in published)

    def entry(self, trajectory_id: str) -> TrajectoryEntry:
        """Return a trajectory's entry; raise KeyError if the dataset does not have the trajectory."""
        return self.index.by_id[trajectory_id]

    def answer(self, trajectory_id: str) -> str | None:
        """Return the agent's final answer, or None if it gave none."""
        rows = self.dataset.rows_of("trajectories", trajectory_id, ["answer"])
        return rows[0].get("answer") if rows else None


class Folder:
    """The folder of a dataset. It is opened again after a rebuild, unless the new dataset is damaged."""

    def __init__(self, path: Path, suite: Suite | None = None) -> None:
        self._path, self._suite = path, suite
        self._manifest = str(path / MANIFEST)
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int] | None, OpenedDataset] | None = None

    def mark(self) -> tuple[int, int] | None:
        """Return a value that changes when the dataset is rebuilt, or None if there is no dataset now."""
        try:
            stat = os.stat(self._manifest)  # noqa: PTH116 - a tenth of the time of a path's, in every request
        except OSError:
            return None
        return (stat.st_mtime_ns, stat.st_size)

    def now(self) -> OpenedDataset:
        """Return the current dataset; raise TrajectoriesUnavailable if it could never be opened."""
        with self._lock:
            try:
                mark = self.mark()
                if self._opened is None or self._opened[0] != mark:
                    self._opened = (mark, self._open())
            except (OSError, SourceError, ValueError, KeyError) as reason:
                logger.warning("the dataset in %s cannot be opened: %s", self._path, reason)
                if self._opened is None:
                    raise TrajectoriesUnavailable("the dataset cannot be read now") from reason
            return self._opened[1]

    def _open(self) -> OpenedDataset:
        dataset = PublishedDataset(self._path)
        version = hashlib.sha256((self._path / MANIFEST).read_bytes()).hexdigest()[:16]
        same = self._suite if self._suite and self._suite.name == dataset.suite else None
        opened = OpenedDataset(dataset, version, self._path == SAMPLE_DATA, build_index(dataset, same))
        if same is None:
            return opened
        return replace(opened, targets=same.targets, modalities=same.profile.modalities)


def dataset_folders(settings: Settings, suite: Suite) -> tuple[Folder, ...]:
    """Return the folders of the built dataset, if there is one, and of the shipped sample.

    `make demo` copies the sample into ``data_dir``; such a copy does not count as a built dataset. Further
    suites of a Space do not show the sample: annotators of the default suite must not see it there.
    """
    manifest = settings.data_dir / MANIFEST
    is_other = manifest.is_file() and manifest.read_bytes() != (SAMPLE_DATA / MANIFEST).read_bytes()
    paths = [settings.data_dir] if is_other else []
    if settings.main is settings:
        paths.append(SAMPLE_DATA)
    return tuple(Folder(path, suite) for path in paths)


PictureKind = Literal["step", "goal"]
TreeForm = Literal["full", "pruned"]
_TREE_COLUMNS: Final = {"full": "axtree", "pruned": "axtree_pruned"}


@dataclass(frozen=True, kw_only=True)
class Story:
    """A trajectory from its goal to its last observation, with labels and verdicts of judges.

    Labels that may not be shown are left out, and ``are_labels_hidden`` is then true. A story for annotators
    has no labels, verdicts or other runs of the task.
    """

    opened: OpenedDataset
    entry: TrajectoryEntry
    goal_images: tuple[int, ...]
    steps: tuple[StoryStep, ...]
    answer: str | None
    runs: tuple[TrajectoryEntry, ...] = ()
    experts: tuple[Expert, ...] = ()
    are_labels_hidden: bool = False
    judges: tuple[JudgeVerdict, ...] = ()
    parts: tuple[RunPart, ...] = ()


@contextmanager
def _readable() -> Iterator[None]:
    """Log errors of the dataset's files, and raise TrajectoriesUnavailable for the reader."""
    try:
        yield
    except (OSError, IndexError, ArrowException, SourceError) as error:
        logger.exception("the dataset's files cannot be read")
        raise TrajectoriesUnavailable("the files of the dataset cannot be read now") from error


class Explorer:
    """Read-only access to the trajectories that can be shown, once per process; thread-safe.

    Methods raise KeyError if no dataset has the item, and TrajectoriesUnavailable if files cannot be read.
    """

    def __init__(self, settings: Settings, service: SubmissionsApp) -> None:
        self._service = service
        self._folders = dataset_folders(settings, service.suite)
        self._submitted = SubmittedJudges(service)
        self.labels = VisibleLabels(service)
        self._labelled: tuple[object, object, OpenedDataset] | None = None
        # All pictures of a trajectory are cached: readers who load one soon load the next.
        self._recorded: ByteCache[Pictures] = ByteCache(
            RECORDED_BYTES, lambda pictures: sum(len(each.content) for each in pictures.values()) + 1_000
        )
        self._resized: ByteCache[Picture] = ByteCache(
            RESIZED_BYTES, lambda picture: len(picture.content) + 200
        )
        self._counted: ByteCache[VoteCounts] = ByteCache(4, lambda _: 1)

    @property
    def mark(self) -> Hashable:
        """A value that changes when a dataset is rebuilt. Unlike `datasets`, it takes only microseconds."""
        return tuple(folder.mark() for folder in self._folders)

    @property
    def served(self) -> Suite:
        """The suite whose judges are scored here; datasets of other suites are only shown."""
        return self._service.suite

    @_readable()
    def datasets(self) -> tuple[OpenedDataset, ...]:
        """Return one dataset per suite; the first dataset is shown by default."""
        found = [folder.now() for folder in self._folders]
        by_suite = {opened.suite: opened for opened in reversed(found)}
        if (served := by_suite.get(self.served.name)) is not None:
            by_suite[served.suite] = self._with_labels(served)
        return tuple(by_suite.values())[::-1]

    def _with_labels(self, opened: OpenedDataset) -> OpenedDataset:
        """Return the dataset of the served suite with the labels that may be shown, cached."""
        visible, known = self.labels.by_id(), self._labelled
        if known is None or known[0] is not opened or known[1] is not visible:
            index = opened.index.with_labels({name: found[0].labels for name, found in visible.items()})
            known = self._labelled = (opened, visible, replace(opened, index=index))
        return known[2]

    def of_suite(self, suite: str = "") -> OpenedDataset:
        """Return the dataset of a suite, or the first dataset if no such suite is shown."""
        datasets = self.datasets()
        if not datasets:
            raise TrajectoriesUnavailable("this suite has no trajectories here")
        return next((opened for opened in datasets if opened.suite == suite), datasets[0])

    def holding(self, trajectory_id: str) -> OpenedDataset:
        """Return the dataset that has a trajectory; raise KeyError if no dataset has it."""
        for opened in self.datasets():
            if trajectory_id in opened.index.by_id:
                return opened
        raise KeyError(trajectory_id)

    @_readable()
    def vote_counts(self, opened: OpenedDataset) -> VoteCounts:
        """Return the judges' votes on each trajectory of a dataset, cached per dataset and board."""
        submitted = self._submitted.of_suite(opened.suite)
        judges = [judge for judge in submitted if judge.row.id not in opened.judges_on_test]
        key = (opened.version, *(judge.row.id for judge in judges))
        return self._counted.get(key, lambda: with_submitted(opened.published_votes, judges, opened.main))

    @_readable()
    def story(self, trajectory_id: str) -> Story:
        """Return a trajectory with its text and outlines. Pictures and trees are loaded separately."""
        opened = self.holding(trajectory_id)
        entry = opened.entry(trajectory_id)
        submitted = self._submitted.of_suite(opened.suite)
        with_a_page = {row.id for row in self._service.records.board().rows}
        is_served = opened.suite == self.served.name
        visible = self.labels.by_id() if is_served else {}
        experts = visible.get(trajectory_id) or experts_in(opened.dataset, entry, opened.targets)
        return replace(
            self._recorded_story(opened, entry),
            runs=opened.index.of_task(entry),
            experts=experts,
            are_labels_hidden=is_served and not self.served.shows_labels(entry.split),
            judges=judges_of(opened.dataset, entry, submitted, with_a_page, opened.targets),
            parts=self.parts(trajectory_id),
        )

    def parts(self, trajectory_id: str) -> tuple[RunPart, ...]:
        """Return the steps and other parts of a run of the served suite, if their labels may be shown."""
        run = self.served.find(trajectory_id)
        if run is None or not self.served.parts:
            return ()
        submitted = self._submitted.of_suite(self.served.name)
        return parts_of_run(self.served, run, self.labels.of_parts(), submitted)

    @_readable()
    def blind_story(self, trajectory_id: str) -> Story:
        """Return a trajectory for an annotator, without reading what experts and judges said about it."""
        opened = self.holding(trajectory_id)
        entry = replace(opened.entry(trajectory_id), agent="", labels=None)
        return self._recorded_story(opened, entry)

    def _recorded_story(self, opened: OpenedDataset, entry: TrajectoryEntry) -> Story:
        trajectory_id = entry.trajectory_id
        rows = opened.dataset.rows_of("steps", trajectory_id, STEP_COLUMNS)
        key = (opened.version, "step", trajectory_id)
        pictures = self._recorded.get(key, lambda: _screenshots(rows))  # the page will ask for them next
        sizes = {num: picture.size for num, picture in pictures.items() if picture.size}
        return Story(
            opened=opened,
            entry=entry,
            goal_images=tuple(sorted(self._pictures(opened, trajectory_id, "goal"))),
            steps=steps_of_story(rows, sizes),
            answer=opened.answer(trajectory_id),
        )

    @_readable()
    def picture(self, kind: PictureKind, trajectory_id: str, num: int | None, width: int | None) -> Picture:
        """Return a screenshot by the number of its step, or a goal image by its index.

        A ``num`` of None means the last picture; a ``width`` of None means the original size. Raise
        NoPicture, or BrokenPicture if the picture cannot be resized.
        """
        opened = self.holding(trajectory_id)

        def recorded() -> Picture:
            pictures = self._pictures(opened, trajectory_id, kind)
            chosen = max(pictures, default=None) if num is None else num
            if chosen is None or chosen not in pictures:
                raise NoPicture(f"{trajectory_id} has no {kind} picture {num}")
            return pictures[chosen]

        if width is None:
            return recorded()
        if width not in WIDTHS:
            raise KeyError(width)
        key = (opened.version, kind, trajectory_id, num, width)
        return self._resized.get(key, lambda: smaller(recorded(), width))

    @_readable()
    def tree(self, trajectory_id: str, num: int, form: TreeForm) -> str:
        column = _TREE_COLUMNS[form]
        for row in self.holding(trajectory_id).dataset.rows_of("steps", trajectory_id, ["num", column]):
            if row["num"] == num and row[column] is not None:
                return row[column]
        raise KeyError(num)

    @_readable()
    def reasoning(self, trajectory_id: str, judge: str) -> str:
        """Return a judge's reasoning on a trajectory, or ""; ``judge`` is a `JudgeVerdict.key`."""
        opened = self.holding(trajectory_id)
        for row in opened.dataset.rows_of("judgments", trajectory_id, ["judge", "reply"]):
            if row["judge"] == judge:
                return reasoning_in(row["reply"] or "")
        return reasoning_in(self._submitted.reasoning(opened.suite, judge, trajectory_id) or "")

    def _pictures(self, opened: OpenedDataset, trajectory_id: str, kind: PictureKind) -> Pictures:
        def read() -> Pictures:
            if kind == "goal":
                rows = opened.dataset.rows_of("trajectories_with_screenshot", trajectory_id, ["goal_images"])
                images = [image for row in rows for image in row["goal_images"] or ()]
                return {place: open_picture(image["bytes"]) for place, image in enumerate(images)}
            return _screenshots(opened.dataset.rows_of("steps", trajectory_id, ["num", "screenshot"]))

        return self._recorded.get((opened.version, kind, trajectory_id), read)


def _screenshots(rows: list[dict[str, Any]]) -> Pictures:
    return {row["num"]: open_picture(row["screenshot"]["bytes"]) for row in rows if row["screenshot"]}
