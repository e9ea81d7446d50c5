"""The labels: the only module that opens a label file. No label leaves it but as arrays for the scorer.

Messages name rows and fields, never a value, and a label set's repr shows no label, so that neither an error
nor a log can carry one.
"""

import hashlib
import hmac
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.annotation import Annotation, answered
from arb.core.files import atomic_write
from arb.core.settings import Settings
from arb.core.suite import Suite, SuiteError, Trajectory, load_dev_labels
from arb.core.suites.questions import RELEASED_ANSWERS, Question
from arb.core.vocabulary import LABELS
from leaderboard.labels.annotations import (
    AnnotationsInvalid,
    parse_parquet,
    parse_released,
    write_parquet,
    write_released,
)
from leaderboard.labels.source import ANNOTATIONS_IN_WHEEL, LabelsUnavailable, locate_labels

NO_ANSWER: Final = -1
NO_OPTIMALITY: Final = 0
PARQUET: Final = ".parquet"


class LabelsInvalid(Exception):
    """A label file that cannot be used; the message lists every problem by row and field."""


@dataclass(frozen=True, repr=False)
class LabelSet:
    """The labels of one split, in the order of ``suite.split(split)``.

    ``primary``, ``first`` and ``second`` map success, side_effect and repetition to int8 arrays of shape
    (n,): 1 true, 0 false, -1 unsure or not annotated; ``optimality`` maps to 1 to 4, 0 for none; a question
    of the suite's own to the place of the answer in ``Question.values``, -1 for none. ``primary`` are the
    labels: what was decided, else what the first annotator answered (``first``). ``annotated_twice`` is bool
    of shape (n,).
    """

    suite: str
    split: str
    source: str
    version: str
    trajectories: tuple[Trajectory, ...]
    primary: Mapping[str, np.ndarray]
    second: Mapping[str, np.ndarray]
    annotated_twice: np.ndarray
    first: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"LabelSet({self.suite}/{self.split}, {len(self.trajectories)} rows, version {self.version})"


def load_labels(
    suite: Suite, split: str, settings: Settings, fetch: bool = True, version_key: bytes | None = None
) -> LabelSet:
    """The labels of a split: dev from the suite's published file where it has one, else from the source.

    With ``version_key`` the version is keyed: whoever guesses the labels cannot confirm the guess by it.
    Raises LabelsUnavailable when the source cannot be had, LabelsInvalid when it cannot be read.
    """
    if split == "dev" and suite.dev_labels_path.is_file():
        return make_label_set(suite, split, _published(suite), "published")
    path = locate_labels(settings, fetch)
    source = settings.labels.partition(":")[0]
    rows = read_annotation_file(path, questions=suite.questions)
    return make_label_set(suite, split, rows, source, _first_row(path), version_key)


def load_annotations(
    suite: Suite,
    settings: Settings,
    split: str | None = None,
    file: Path | None = None,
    is_strict: bool = False,
) -> tuple[Annotation, ...]:
    """Every annotation of a split, or of the whole suite, in the order of the file, by released ids.

    From ``file`` (the released CSV format or our Parquet) where one is given, else from where `load_labels`
    has them; the whole suite's come from the source alone, where one person has one name. With ``is_strict``
    every column of the file has to be known (`annotations.parse_released`). Raises as `load_labels` does.
    """
    if file is not None:
        annotations = read_annotation_file(file, file.name, suite.questions, is_strict)
        first_row = _first_row(file)
    elif split == "dev" and suite.dev_labels_path.is_file():
        annotations, first_row = _published(suite), 1
    else:
        path = locate_labels(settings)
        annotations = read_annotation_file(path, questions=suite.questions)
        first_row = _first_row(path)
    wanted = {t.trajectory_id for t in (suite.trajectories if split is None else suite.split(split))}
    found = _in_suite(suite, annotations, first_row, "labels" if file is None else file.name)
    return tuple(a for a in found if a.trajectory_id in wanted)


def version_of(suite: Suite, annotations: Sequence[Annotation], version_key: bytes | None = None) -> str:
    """12 hex digits that name what annotations say of all trajectories of a suite, dev and test."""
    return _version(suite.trajectories, _by_trajectory(suite, suite.trajectories, annotations), version_key)


def write_annotations(
    annotations: Sequence[Annotation], path: Path, questions: Sequence[Question] = ()
) -> None:
    """Write annotations whole or not at all: our Parquet where the name ends so, else the released CSV.

    Only its owner may read the file. Raises AnnotationsInvalid for what the format cannot hold, and OSError.
    """
    if path.suffix == PARQUET:
        content = write_parquet(annotations, questions)
    else:
        content = write_released(annotations, questions=questions).encode("utf-8")
    atomic_write(path, content, mode=0o600)


def _published(suite: Suite) -> tuple[Annotation, ...]:
    try:
        return load_dev_labels(suite)
    except SuiteError as error:
        raise LabelsInvalid(str(error)) from None


def read_annotation_file(
    path: Path, name: str = "labels", questions: Sequence[Question] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """The annotations of a file, by its ending: the wheel, our Parquet, else the released CSV.

    Of any trajectories, under the ids as written; ``questions`` are the suite's. Raises LabelsUnavailable,
    LabelsInvalid.
    """
    try:
        if path.suffix == PARQUET:
            return parse_parquet(path.read_bytes(), questions, is_strict)
        return parse_released(_text_of(path), questions, is_strict)
    except UnicodeDecodeError:
        raise LabelsInvalid(f"{path.name}: is not UTF-8 text; save it as UTF-8 CSV") from None
    except (OSError, KeyError, zipfile.BadZipFile):
        raise LabelsUnavailable(f"{path.name}: cannot be read; fetch it again") from None
    except AnnotationsInvalid as problems:
        raise LabelsInvalid(f"{name}: {problems}") from None


def _text_of(path: Path) -> str:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(ANNOTATIONS_IN_WHEEL).decode("utf-8")
    with path.open(encoding="utf-8-sig", newline="") as file:  # newline: a name may hold a line break
        return file.read()


def _first_row(path: Path) -> int:
    """The number of a file's first row in messages: a CSV's header is row 1."""
    return 1 if path.suffix == PARQUET else 2


def _in_suite(
    suite: Suite, annotations: Sequence[Annotation], first_row: int, name: str = "labels"
) -> tuple[Annotation, ...]:
    """The annotations under the suite's spelling of their ids; raises LabelsInvalid naming every stranger."""
    found, unknown = [], []
    for number, annotation in enumerate(annotations, start=first_row):
        trajectory = suite.find(annotation.trajectory_id)
        if trajectory is None:
            spelled = annotation.trajectory_id[:200]
            unknown.append(f"row {number}: {spelled!r} is not in the suite {suite.name}")
        else:
            found.append(replace(annotation, trajectory_id=trajectory.trajectory_id))
    if unknown and not found:
        raise LabelsInvalid(f"{name}: no trajectory of the suite {suite.name} is in it; check ARB_SUITE")
    if unknown:
        raise LabelsInvalid(f"{name}: " + "; ".join(unknown))
    return tuple(found)


def _values(annotation: Annotation) -> list[int]:
    """Return the codes of a label set, in the order of RELEASED_ANSWERS."""
    return [_code(name, values, annotation) for name, values in RELEASED_ANSWERS.items()]


def _code(question: str, values: Sequence[str], annotation: Annotation | None) -> int:
    answer = annotation.answers.get(question) if annotation else None
    if answer not in values:
        return nothing_of(question)
    if question in LABELS:
        return int(answer == "yes")
    if question == "optimality":
        return int(answer)
    return values.index(answer)


def nothing_of(question: str) -> int:
    """The code of a label set where a question has no answer."""
    return NO_OPTIMALITY if question == "optimality" else NO_ANSWER


def make_label_set(
    suite: Suite,
    split: str,
    rows: Sequence[Annotation],
    source: str = "annotations",
    first_row: int = 1,
    version_key: bytes | None = None,
) -> LabelSet:
    """Make the labels of a split from annotations; raises LabelsInvalid if none is of the split."""
    trajectories = suite.split(split)
    named = {t.trajectory_id for t in map(suite.find, (row.trajectory_id for row in rows)) if t is not None}
    if not any(t.trajectory_id in named for t in trajectories):
        what = f"no label of the {split} split of the suite {suite.name} is in it"
        raise LabelsInvalid(f"labels ({source}): {what}; check ARB_SUITE and ARB_LABELS")
    annotations = _by_trajectory(suite, trajectories, rows, first_row)
    answers = [answered(found) for found in annotations]
    return LabelSet(
        suite=suite.name,
        split=split,
        source=source,
        version=_version(trajectories, annotations, version_key),
        trajectories=trajectories,
        primary=_arrays([found[0] if found else None for found in annotations], suite.own_questions),
        first=_arrays([found[0] if found else None for found in answers], suite.own_questions),
        second=_arrays([found[1] if len(found) > 1 else None for found in answers], suite.own_questions),
        annotated_twice=np.array([len(found) > 1 for found in answers], dtype=bool),
    )


def _by_trajectory(
    suite: Suite, trajectories: Sequence[Trajectory], rows: Sequence[Annotation], first_row: int = 1
) -> list[list[Annotation]]:
    """The annotations of each trajectory in the order of the file: the first is the primary one."""
    by_id: dict[str, list[Annotation]] = {}
    for annotation in _in_suite(suite, rows, first_row):
        by_id.setdefault(annotation.trajectory_id, []).append(annotation)
    return [by_id.get(t.trajectory_id, []) for t in trajectories]


def _arrays(chosen: Sequence[Annotation | None], own: Sequence[Question]) -> Mapping[str, np.ndarray]:
    """Return the codes of one annotation per trajectory by question: released ones, then the suite's own."""
    values = dict(RELEASED_ANSWERS) | {question.name: question.values for question in own}
    arrays = {
        name: np.array([_code(name, answers, each) for each in chosen], dtype=np.int8)
        for name, answers in values.items()
    }
    for array in arrays.values():
        array.setflags(write=False)
    return MappingProxyType(arrays)


def _version(
    trajectories: Sequence[Trajectory], annotations: Sequence[Sequence[Annotation]], key: bytes | None
) -> str:
    """12 hex digits of the SHA-256, or HMAC, of every annotation in id order: same content, same version.

    Answers to own questions follow the others where there are any, so that adding a question to a suite
    changes no version that there is. A decision counts in place of the first annotator's answer.
    """
    content_of = []
    for trajectory, found in zip(trajectories, annotations, strict=True):
        rows: list[list[Any]] = []
        for annotation in found[:1] + answered(found)[1:]:
            own = sorted(item for item in annotation.answers.items() if item[0] not in RELEASED_ANSWERS)
            rows.append([*_values(annotation), *([own] if own else [])])
        content_of.append([trajectory.trajectory_id, rows])
    content = json.dumps(content_of, separators=(",", ":")).encode()
    digest = hashlib.sha256(content) if key is None else hmac.new(key, content, hashlib.sha256)
    return digest.hexdigest()[:12]
