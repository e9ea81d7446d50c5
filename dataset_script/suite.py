"""A suite: the trajectories of a dev and a test split. Public knowledge; no label is in it.

A shipped suite is a folder under ``suites/``: ``trajectories.csv`` (trajectory_id, split),
``dev_labels.csv``, the published dev labels that the dataset carries too, ``tasks.csv`` (see `tasks`), and
``about.md``, what its dataset's card has to say, and ``suite.toml``: ``labels = "public"`` where anyone can
have the test labels anyway, ``"private"`` (also when there is no such file) where they are hidden, and its
``[rules]`` (see `suite_rules`). A maintainer's own suite is a folder of the same shape anywhere; only
``trajectories.csv`` has to be there.
"""

import csv
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dataset_script.suite_rules import SuiteRules, read_rules
from dataset_script.trajectory_ids import TrajectoryId, reading_key
from dataset_script.vocabulary import LABELS, SPLITS

SHIPPED = Path(__file__).parent / "suites"
OFFICIAL = "agent-reward-bench"


class SuiteError(ValueError):
    """A suite that cannot be used; the message lists every problem and says what to do."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run of an agent on a task."""

    trajectory_id: str
    benchmark: str
    agent: str
    task: str
    split: str


@dataclass(frozen=True)
class Suite:
    """Trajectories in the order of their released ids."""

    name: str
    trajectories: tuple[Trajectory, ...]
    dev_labels_path: Path
    tasks_path: Path
    about: str = ""
    """What a reader of its data has to know (``about.md``), in Markdown: the card carries it."""
    labels_are_public: bool = False
    """Whether anyone can have the test labels anyway: then figures may be shown in full detail."""
    rules: SuiteRules = field(default_factory=SuiteRules)

    @cached_property
    def _by_key(self) -> Mapping[str, Trajectory]:
        return MappingProxyType({reading_key(t.trajectory_id): t for t in self.trajectories})

    def find(self, trajectory_id: str) -> Trajectory | None:
        """The trajectory an id names, in any of its spellings; None when the suite has no such one."""
        return self._by_key.get(reading_key(trajectory_id))

    def split(self, name: str) -> tuple[Trajectory, ...]:
        """The trajectories of ``dev`` or ``test``, ordered by id; raises SuiteError for another name."""
        if name not in SPLITS:
            raise SuiteError(f"there is no split {name!r}: use one of {', '.join(SPLITS)}")
        return tuple(t for t in self.trajectories if t.split == name)


@dataclass(frozen=True, slots=True)
class DevLabels:
    """What one annotator said of one dev trajectory; None where the annotator was unsure.

    ``annotator`` is an opaque id such as ``annotator-2``, never a name; None where it is not known.
    """

    trajectory_id: str
    annotation: int
    success: bool | None
    side_effect: bool | None
    repetition: bool | None
    optimality: int | None
    annotator: str | None = None

    @property
    def is_primary(self) -> bool:
        """Whether this is the annotation that judges are scored on: the first one."""
        return self.annotation == 1


def shipped_suites() -> tuple[str, ...]:
    """Names of the suites that come with the code."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/trajectories.csv")))


def load_suite(name_or_folder: str | Path = OFFICIAL) -> Suite:
    """Read a shipped suite by name, or a suite of one's own from its folder.

    Raises SuiteError naming the file and every bad row.
    """
    folder = (
        SHIPPED / str(name_or_folder) if str(name_or_folder) in shipped_suites() else Path(name_or_folder)
    )
    path = folder / "trajectories.csv"
    if not path.is_file():
        raise SuiteError(
            f"no suite {str(name_or_folder)!r}: shipped are {', '.join(shipped_suites())}; "
            "a suite of your own is a folder with trajectories.csv (columns trajectory_id, split)"
        )
    rows, columns = read_rows(path)
    if not rows or not {"trajectory_id", "split"} <= columns:
        raise SuiteError(f"{path.name}: needs the columns trajectory_id and split, and at least one row")
    about = folder / "about.md"
    are_public, rules = _policy(folder / "suite.toml")
    return Suite(
        name=folder.resolve().name,
        trajectories=_trajectories(rows, path.name),
        dev_labels_path=folder / "dev_labels.csv",
        tasks_path=folder / "tasks.csv",
        about=about.read_text(encoding="utf-8").strip() if about.is_file() else "",
        labels_are_public=are_public,
        rules=rules,
    )


def _policy(path: Path) -> tuple[bool, SuiteRules]:
    """What ``suite.toml`` says: whether the labels are public, and the rules; without one, private ones."""
    said: dict[str, Any] = {}
    if path.is_file():
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SuiteError(f"{path.name}: cannot be read ({error}); save it as TOML in UTF-8") from error
    labels = said.get("labels", "private")
    problems = []
    if labels not in ("public", "private"):
        problems.append(f'labels {labels!r}: write labels = "public" or labels = "private"')
    try:
        rules = read_rules(said.get("rules", {}))
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise SuiteError(f"{path.name}, {'; '.join(problems)}")
    return labels == "public", rules


def read_rows(path: Path) -> tuple[list[dict[str, str]], set[str]]:
    """The rows of a CSV file and its columns; raises SuiteError when it is no text in UTF-8, or no CSV."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            return list(reader), set(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        raise SuiteError(f"{path.name}: cannot be read ({error}); save it as CSV in UTF-8") from error


def _trajectories(rows: list[dict[str, str]], file_name: str) -> tuple[Trajectory, ...]:
    problems: list[str] = []
    by_key: dict[str, Trajectory] = {}
    for number, row in enumerate(rows, start=2):
        spelled, split = row["trajectory_id"] or "", row["split"]
        try:
            parts = TrajectoryId.parse(spelled)
        except ValueError as error:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: {error}")
            continue
        if split not in SPLITS:
            problems.append(f"row {number}, split {split!r}: use one of {', '.join(SPLITS)}")
        elif reading_key(spelled) in by_key:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: named twice; keep one row")
        else:
            by_key[reading_key(spelled)] = Trajectory(
                str(parts), parts.benchmark, parts.agent, parts.task, split
            )
    problems += _tasks_in_both_splits(by_key.values())
    if problems:
        raise SuiteError(f"{file_name}: " + "; ".join(problems))
    return tuple(sorted(by_key.values(), key=lambda t: t.trajectory_id))


def _tasks_in_both_splits(trajectories) -> list[str]:
    splits: dict[tuple[str, str], set[str]] = {}
    for trajectory in trajectories:
        splits.setdefault((trajectory.benchmark, trajectory.task), set()).add(trajectory.split)
    return [
        f"task {task}: in dev and in test; a task belongs to one split"
        for (_, task), found in splits.items()
        if len(found) > 1
    ]


_LABEL_WORDS = MappingProxyType({"true": True, "false": False, "": None})
_ANNOTATION_WORDS = MappingProxyType({str(number): number for number in range(1, 10)})
_OPTIMALITY_WORDS = MappingProxyType({"1": 1, "2": 2, "3": 3, "4": 4, "": None})
_DEV_LABEL_COLUMNS = tuple(field.name for field in fields(DevLabels) if field.name != "annotator")
_ANNOTATOR = re.compile(r"annotator-\d{1,4}")


def load_dev_labels(suite: Suite) -> tuple[DevLabels, ...]:
    """Every annotation of the suite's dev trajectories, by released id, the primary one (1) first.

    Empty when the suite has no ``dev_labels.csv``. Raises SuiteError naming the file and every bad row; a
    label of a test trajectory is one, since this file is published. No message repeats a label. The column
    ``annotator`` may be absent, and holds opaque ids.
    """
    path = suite.dev_labels_path
    if not path.is_file():
        return ()
    rows, columns = read_rows(path)
    if absent := [name for name in _DEV_LABEL_COLUMNS if name not in columns]:
        raise SuiteError(f"{path.name}: the columns {', '.join(absent)} are absent")
    problems: list[str] = []
    by_key: dict[tuple[str, int], DevLabels] = {}
    for number, row in enumerate(rows, start=2):
        found = _dev_labels(suite, row)
        if isinstance(found, list):
            problems += [f"row {number}, {problem}" for problem in found]
        elif (key := (found.trajectory_id, found.annotation)) in by_key:
            problems.append(f"row {number}: annotation {key[1]} of {key[0]} is given twice; keep one row")
        else:
            by_key[key] = found
    if not problems:  # an annotation 1 may stand in a row that was refused above
        named = {trajectory_id for trajectory_id, _ in by_key}
        problems += [f"{name}: has no annotation 1" for name in sorted(named) if (name, 1) not in by_key]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(by_key[key] for key in sorted(by_key))


def _dev_labels(suite: Suite, row: dict[str, str | None]) -> DevLabels | list[str]:
    """One row read, or what is wrong with it."""
    spelled = row["trajectory_id"] or ""
    trajectory = suite.find(spelled)
    problems: list[str] = []
    if trajectory is None:
        problems.append(f"trajectory_id {spelled[:80]!r}: not in the suite {suite.name}")
    elif trajectory.split != "dev":
        problems.append(f"trajectory_id {spelled[:80]!r}: a test trajectory; its labels must not stand here")
    if row["annotation"] not in _ANNOTATION_WORDS:
        problems.append("annotation: write 1 (primary), 2, … 9")
    problems += [f"{name}: write true, false or nothing" for name in LABELS if row[name] not in _LABEL_WORDS]
    if row["optimality"] not in _OPTIMALITY_WORDS:
        problems.append("optimality: write 1, 2, 3, 4 or nothing")
    annotator = row.get("annotator") or None
    if annotator is not None and not _ANNOTATOR.fullmatch(annotator):
        problems.append("annotator: write annotator-1, annotator-2, …, or nothing; names are not published")
    if problems or trajectory is None:
        return problems
    return DevLabels(
        trajectory.trajectory_id,
        _ANNOTATION_WORDS[row["annotation"] or ""],
        *(_LABEL_WORDS[row[name] or ""] for name in LABELS),
        optimality=_OPTIMALITY_WORDS[row["optimality"] or ""],
        annotator=annotator,
    )
