"""The datasets that are shown (a built one, and the shipped sample) and what pages ask of them: `Explorer`.

Everything is read-only, and one trajectory's row groups are read at a time, never a whole split's.
"""

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from arb.core.cache import ByteCache
from arb.core.settings import Settings
from arb.core.suite import Suite
from arb.core.suites.questions import Question, default_questions
from dataset_script import sample
from dataset_script.sources.base import SourceError
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
from space.pages.trajectories.story import STEP_COLUMNS, StoryStep, steps_of_story
from space.pages.trajectories.verdicts import (
    Expert,
    JudgeVerdict,
    SubmittedJudges,
    experts_of,
    judge_names,
    judges_of,
    with_submitted,
)
from submissions.app import SubmissionsApp

logger = logging.getLogger(__name__)

SAMPLE_DATA: Final = Path(sample.__file__).parent / "data"


class TrajectoriesUnavailable(Exception):
    """Files of the dataset that cannot be read now; the log says which, the message is for anyone."""


@dataclass(frozen=True)
class OpenedDataset:
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

    @cached_property
    def judges_on_test(self) -> frozenset[str]:
        """The rows of the board whose verdicts on test the dataset carries."""
        names = {RULE_BASED} if "test" in self.dataset.splits("rewards") else set()
        if "test" in self.dataset.splits("judgments"):
            names |= set(self.dataset.table("judgments", "test", ["judge"])["judge"].unique().to_pylist())
        return frozenset(row_id for name in names if (row_id := judge_names().get(name, ("", None))[1]))

    def entry(self, trajectory_id: str) -> TrajectoryEntry:
        """One trajectory's entry; raises KeyError for an id that the dataset does not have."""
        return self.index.by_id[trajectory_id]

    def answer(self, trajectory_id: str) -> str | None:
        """What the agent said at the end, where that is no action."""
        rows = self.dataset.rows_of("trajectories", trajectory_id, ["answer"])
        return rows[0].get("answer") if rows else None

    def steps(self, trajectory_id: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
        """The rows of a trajectory in `steps`; none where the dataset has no steps of it."""
        return self.dataset.rows_of("steps", trajectory_id, columns)


class Folder:
    """A dataset's folder. One that was built again is opened again; one that is damaged is not taken."""

    def __init__(self, path: Path, suite: Suite | None = None) -> None:
        self._path, self._suite = path, suite
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int], OpenedDataset] | None = None

    def now(self) -> OpenedDataset:
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

    def _open(self) -> OpenedDataset:
        dataset = PublishedDataset(self._path)
        version = hashlib.sha256((self._path / MANIFEST).read_bytes()).hexdigest()[:16]
        same = self._suite if self._suite and self._suite.name == dataset.suite else None
        return OpenedDataset(dataset, version, self._path == SAMPLE_DATA, build_index(dataset, same))


def dataset_folders(data_dir: Path, suite: Suite) -> tuple[Folder, ...]:
    """The built dataset where there is one, and the shipped sample, which is always there.

    A copy of the sample, as `make demo` puts it where the dataset will be, is no other dataset.
    """
    manifest = data_dir / MANIFEST
    is_other = manifest.is_file() and manifest.read_bytes() != (SAMPLE_DATA / MANIFEST).read_bytes()
    paths = [data_dir] if is_other else []
    return tuple(Folder(path, suite) for path in (*paths, SAMPLE_DATA))


PictureKind = Literal["step", "goal"]
TreeForm = Literal["full", "pruned"]
_TREE_COLUMNS: Final = {"full": "axtree", "pruned": "axtree_pruned"}


@dataclass(frozen=True, kw_only=True)
class Story:
    """A trajectory from its goal to its last observation, and what experts (dev) and judges said of it.

    A blind story has neither labels nor verdicts nor other runs. ``version`` is the dataset's.
    """

    version: str
    entry: TrajectoryEntry
    goal_images: tuple[int, ...]
    steps: tuple[StoryStep, ...]
    answer: str | None
    runs: tuple[TrajectoryEntry, ...] = ()
    experts: tuple[Expert, ...] = ()
    questions: tuple[Question, ...] = ()
    judges: tuple[JudgeVerdict, ...] = ()


class Explorer:
    """Read-only access to the trajectories that can be shown. One instance a process; safe for threads.

    Its methods raise KeyError for what no dataset has, and TrajectoriesUnavailable when files cannot be read.
    """

    def __init__(self, settings: Settings, service: SubmissionsApp) -> None:
        self._service = service
        self._folders = dataset_folders(settings.data_dir, service.suite)
        self._submitted = SubmittedJudges(service)
        # Whoever looks at one picture of a trajectory soon asks for the next one.
        self._recorded: ByteCache[Pictures] = ByteCache(
            RECORDED_BYTES, lambda pictures: sum(len(each.content) for each in pictures.values()) + 1_000
        )
        self._resized: ByteCache[Picture] = ByteCache(
            RESIZED_BYTES, lambda picture: len(picture.content) + 200
        )
        self._counted: ByteCache[VoteCounts] = ByteCache(4, lambda _: 1)

    @property
    def served(self) -> Suite:
        """The suite whose judges are scored here; other datasets are shown to be looked at."""
        return self._service.suite

    def datasets(self) -> tuple[OpenedDataset, ...]:
        """The datasets by suite, the one that is shown unasked first."""
        with _readable():
            found = [folder.now() for folder in self._folders]
            return tuple({opened.suite: opened for opened in reversed(found)}.values())[::-1]

    def of_suite(self, suite: str = "") -> OpenedDataset:
        """The dataset of a suite; the first one where no such suite is shown."""
        datasets = self.datasets()
        return next((opened for opened in datasets if opened.suite == suite), datasets[0])

    def holding(self, trajectory_id: str) -> OpenedDataset:
        """The dataset that has a trajectory; raises KeyError where none has it."""
        for opened in self.datasets():
            if trajectory_id in opened.index.by_id:
                return opened
        raise KeyError(trajectory_id)

    def vote_counts(self, opened: OpenedDataset) -> VoteCounts:
        """How judges voted on each trajectory; counted anew when dataset or board are others."""
        with _readable():
            submitted = self._submitted.of_suite(opened.suite)
            judges = [judge for judge in submitted if judge.row.id not in opened.judges_on_test]
            key = (opened.version, *(judge.row.id for judge in judges))
            return self._counted.get(key, lambda: with_submitted(opened.published_votes, judges))

    def story(self, trajectory_id: str) -> Story:
        """One trajectory, its texts and the places of its outlines; pictures and trees come apart."""
        with _readable():
            opened = self.holding(trajectory_id)
            entry = opened.entry(trajectory_id)
            submitted = self._submitted.of_suite(opened.suite)
            with_a_page = {row.id for row in self._service.records.board().rows}
            # Annotators of another suite than the served one are asked the paper's questions.
            is_served = opened.suite == self.served.name
            questions = self.served.questions if is_served else default_questions()
            return replace(
                self._recorded_story(opened, entry),
                runs=opened.index.of_task(entry),
                experts=experts_of(opened.dataset, entry, questions),
                questions=questions,
                judges=judges_of(opened.dataset, entry, submitted, with_a_page),
            )

    def blind_story(self, trajectory_id: str) -> Story:
        """One trajectory for somebody who shall judge it: what experts and judges said is not even read."""
        with _readable():
            opened = self.holding(trajectory_id)
            entry = replace(opened.entry(trajectory_id), agent="", labels=None)
            return self._recorded_story(opened, entry)

    def _recorded_story(self, opened: OpenedDataset, entry: TrajectoryEntry) -> Story:
        """What was recorded of a trajectory, without what anybody said of it."""
        trajectory_id = entry.trajectory_id
        rows = opened.steps(trajectory_id, STEP_COLUMNS)
        key = (opened.version, "step", trajectory_id)
        pictures = self._recorded.get(key, lambda: _screenshots(rows))  # the page asks for them next
        sizes = {num: picture.size for num, picture in pictures.items() if picture.size}
        return Story(
            version=opened.version,
            entry=entry,
            goal_images=tuple(sorted(self._pictures(opened, trajectory_id, "goal"))),
            steps=steps_of_story(rows, sizes),
            answer=opened.answer(trajectory_id),
        )

    def picture(self, kind: PictureKind, trajectory_id: str, num: int | None, width: int | None) -> Picture:
        """A screenshot by the number of its step, or a goal image by its place; made smaller to ``width``.

        ``num`` of None is the last one there is; ``width`` is one of WIDTHS, or None for the picture as it
        was recorded. Raises BrokenPicture, and NoPicture for a trajectory that has no such picture.
        """
        with _readable():
            opened = self.holding(trajectory_id)

            def recorded() -> Picture:
                pictures = self._pictures(opened, trajectory_id, kind)
                chosen = max(pictures, default=None) if num is None else num
                if chosen not in pictures:
                    raise NoPicture(f"{trajectory_id} has no {kind} picture {num}")
                return pictures[chosen]

            if width is None:
                return recorded()
            if width not in WIDTHS:
                raise KeyError(width)
            key = (opened.version, kind, trajectory_id, num, width)
            return self._resized.get(key, lambda: smaller(recorded(), width))

    def tree(self, trajectory_id: str, num: int, form: TreeForm) -> str:
        """The accessibility tree of a step, in full or pruned."""
        with _readable():
            column = _TREE_COLUMNS[form]
            for row in self.holding(trajectory_id).steps(trajectory_id, ("num", column)):
                if row["num"] == num and row[column] is not None:
                    return row[column]
            raise KeyError(num)

    def reasoning(self, trajectory_id: str, judge: str) -> str | None:
        """What a judge of the story wrote, by its key there; None where it wrote nothing."""
        with _readable():
            opened = self.holding(trajectory_id)
            for row in opened.dataset.rows_of("judgments", trajectory_id, ["judge", "reply"]):
                if row["judge"] == judge:
                    return row["reply"]
            return self._submitted.reasoning(opened.suite, judge, trajectory_id)

    def _pictures(self, opened: OpenedDataset, trajectory_id: str, kind: PictureKind) -> Pictures:
        def read() -> Pictures:
            if kind == "goal":
                rows = opened.dataset.rows_of("trajectories_with_screenshot", trajectory_id, ["goal_images"])
                images = [image for row in rows for image in row["goal_images"] or ()]
                return {place: open_picture(image["bytes"]) for place, image in enumerate(images)}
            return _screenshots(opened.steps(trajectory_id, ("num", "screenshot")))

        return self._recorded.get((opened.version, kind, trajectory_id), read)


def _screenshots(rows: list[dict[str, Any]]) -> Pictures:
    return {row["num"]: open_picture(row["screenshot"]["bytes"]) for row in rows if row["screenshot"]}


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong with the dataset's files is for the log; a reader is told that they cannot be read."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, IndexError, ArrowException, SourceError) as error:
        logger.exception("the dataset's files cannot be read")
        raise TrajectoriesUnavailable("the files of the dataset cannot be read now") from error
