"""Loading labels. Only this module opens label files.

So that neither errors nor logs reveal a label, messages name rows and fields but never values, and the
``repr`` of a label set shows no label.
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
from arb.core.ids import Trajectory
from arb.core.settings import Settings
from arb.core.suite import Suite, SuiteError, load_dev_labels
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
WORKBOOK: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""The first bytes of Excel workbooks, newer and older ones."""


class LabelsInvalid(Exception):
    """Raised if a label file is invalid. The message lists all problems by row and field."""


@dataclass(frozen=True, repr=False)
class LabelSet:
    """The labels of one split, in the order of ``suite.split(split)``.

    ``first`` and ``second`` have the first and second annotators' answers, and ``primary`` has the labels:
    the decision if there is one, else the first answer. All three map questions to int8 arrays of shape (n,).
    Success, side_effect and repetition are 1 for yes, 0 for no, and -1 if unsure or not annotated. Optimality
    is 1 to 4, or 0 if not answered. For questions that the suite adds, the number is the index of the answer
    in ``Question.values``, or -1. ``annotated_twice`` is bool of shape (n,).
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
    """Load the labels of a split from the source in ARB_LABELS, or from the suite's published dev labels.

    With ``version_key`` the version is an HMAC, which does not confirm guesses of the labels. Raises
    LabelsUnavailable if the source cannot be reached, and LabelsInvalid if its content is invalid.
    """
    if split == "dev" and suite.dev_labels_path.is_file():
        return make_label_set(suite, split, _published(suite), "published")
    path = locate_labels(settings, fetch)
    source = settings.labels.partition(":")[0]
    rows = read_annotation_file(path, questions=suite.questions)
    return make_label_set(suite, split, rows, source, _first_row(path), version_key)


def load_annotations(
    suite: Suite, settings: Settings, split: str | None = None, file: Path | None = None,
    is_strict: bool = False,
) -> tuple[Annotation, ...]:  # fmt: skip
    """Return all annotations of a split, or of the whole suite if it is None, in file order.

    They come from ``file`` (CSV or Parquet) if it is given, else from where `load_labels` reads. For the
    whole suite that is only the source in ARB_LABELS, because published dev labels have other names for
    annotators. ``is_strict`` is that of `annotations.parse_released`. Raises the exceptions of `load_labels`.
    """
    name = "labels" if file is None else file.name
    if file is None and split == "dev" and suite.dev_labels_path.is_file():
        annotations, first_row = _published(suite), 1
    else:
        path = file or locate_labels(settings)
        annotations = read_annotation_file(path, name, suite.questions, is_strict and file is not None)
        first_row = _first_row(path)
    wanted = {t.trajectory_id for t in (suite.trajectories if split is None else suite.split(split))}
    found = _in_suite(suite, annotations, first_row, name)
    return tuple(a for a in found if a.trajectory_id in wanted)


def version_of(suite: Suite, annotations: Sequence[Annotation], version_key: bytes | None = None) -> str:
    """Return 12 hexadecimal digits that identify the annotations of a suite, on dev and test."""
    return _version(suite.trajectories, _by_trajectory(suite, suite.trajectories, annotations), version_key)


def write_annotations(
    annotations: Sequence[Annotation], path: Path, questions: Sequence[Question] = ()
) -> None:
    """Write annotations as Parquet if the file name ends in ``.parquet``, else as CSV.

    The file is written atomically, and only its owner can read it. Raises AnnotationsInvalid if the format
    cannot represent the annotations, and OSError.
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
    """Return the annotations in a file, whose suffix says whether it is a wheel, Parquet or CSV.

    Ids stay as written and need not be in a suite. ``questions`` are those of the suite. Raises
    LabelsUnavailable, LabelsInvalid.
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
    content = path.read_bytes()
    if content.startswith(WORKBOOK):
        raise LabelsInvalid(
            f'{path.name}: is an Excel workbook; in Excel, use "Save As" with the type "CSV UTF-8"'
        )
    return content.decode("utf-8-sig")


def _first_row(path: Path) -> int:
    """Return the number of a file's first row in messages: 2 for CSV, which has a header, else 1."""
    return 1 if path.suffix == PARQUET else 2


def _in_suite(
    suite: Suite, annotations: Sequence[Annotation], first_row: int, name: str = "labels"
) -> tuple[Annotation, ...]:
    """Return the annotations with the suite's spelling of ids. Raises LabelsInvalid for unknown ids."""
    found, unknown = [], []
    for number, annotation in enumerate(annotations, start=first_row):
        trajectory = suite.find(annotation.trajectory_id)
        if trajectory is None:
            spelled = annotation.trajectory_id[:200]
            unknown.append(f"row {number}: {spelled!r} is not in the suite {suite.name}")
        else:
            found.append(replace(annotation, trajectory_id=trajectory.trajectory_id))
    if unknown and not found:
        raise LabelsInvalid(f"{name}: no row is on a trajectory of the suite {suite.name}; check ARB_SUITE")
    if unknown:
        raise LabelsInvalid(f"{name}: " + "; ".join(unknown))
    return tuple(found)


def _code(question: str, values: Sequence[str], annotation: Annotation | None) -> int:
    """Return the answer to a question as the number that stands for it in a `LabelSet`."""
    answer = annotation.answers.get(question) if annotation else None
    if answer is None or answer not in values:
        return nothing_of(question)
    if question in LABELS:
        return int(answer == "yes")
    if question == "optimality":
        return int(answer)
    return values.index(answer)


def nothing_of(question: str) -> int:
    """Return the number that means a missing answer to a question in a label set."""
    return NO_OPTIMALITY if question == "optimality" else NO_ANSWER


def make_label_set(
    suite: Suite,
    split: str,
    rows: Sequence[Annotation],
    source: str = "annotations",
    first_row: int = 1,
    version_key: bytes | None = None,
) -> LabelSet:
    """Make the labels of a split from annotations. Raises LabelsInvalid if none belongs to the split."""
    trajectories = suite.split(split)
    named = {t.trajectory_id for t in map(suite.find, (row.trajectory_id for row in rows)) if t is not None}
    if not any(t.trajectory_id in named for t in trajectories):
        raise LabelsInvalid(
            f"labels ({source}): there is no label of the {split} split of the suite {suite.name}; check "
            "ARB_SUITE and ARB_LABELS"
        )
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
    """Return the annotations of each trajectory in file order; the first one is primary."""
    by_id: dict[str, list[Annotation]] = {}
    for annotation in _in_suite(suite, rows, first_row):
        by_id.setdefault(annotation.trajectory_id, []).append(annotation)
    return [by_id.get(t.trajectory_id, []) for t in trajectories]


def _arrays(chosen: Sequence[Annotation | None], own: Sequence[Question]) -> Mapping[str, np.ndarray]:
    """Return one annotation's answers per trajectory as arrays, by question."""
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
    """Return 12 hexadecimal digits of the SHA-256 or HMAC of all annotations.

    A decision replaces the first annotator's answer. Answers to questions that the suite adds are included
    only if there are any, so that a new question does not change existing versions.
    """
    content_of = []
    for trajectory, found in zip(trajectories, annotations, strict=True):
        rows: list[list[Any]] = []
        for annotation in (*found[:1], *answered(found)[1:]):
            own = sorted(item for item in annotation.answers.items() if item[0] not in RELEASED_ANSWERS)
            released = [_code(name, values, annotation) for name, values in RELEASED_ANSWERS.items()]
            rows.append([*released, *([own] if own else [])])
        content_of.append([trajectory.trajectory_id, rows])
    content = json.dumps(content_of, separators=(",", ":")).encode()
    digest = hashlib.sha256(content) if key is None else hmac.new(key, content, hashlib.sha256)
    return digest.hexdigest()[:12]
