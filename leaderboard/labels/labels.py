"""Loading labels. Only this module opens label files.

So that neither errors nor logs reveal a label, messages name rows and fields but never values, and the
``repr`` of a label set shows no label.
"""

import hashlib
import hmac
import itertools
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
from arb.core.ids import ItemKey, Trajectory, reading_key
from arb.core.settings import Settings
from arb.core.suite import Suite, SuiteError, load_dev_labels
from arb.core.suites.targets import RELEASED_ANSWERS, UNSURE, Target, default_targets, scored
from leaderboard.labels.annotations import (
    AnnotationsInvalid,
    parse_parquet,
    parse_released,
    write_parquet,
    write_released,
)
from leaderboard.labels.source import ANNOTATIONS_IN_WHEEL, LabelsUnavailable, locate_labels

PARQUET: Final = ".parquet"
WORKBOOK: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""The first bytes of Excel workbooks, in the newer and in the older format."""


class LabelsInvalid(Exception):
    """Raised if a label file is invalid. The message lists all problems by row and field."""


@dataclass(frozen=True, repr=False)
class LabelSet:
    """The labels of one split, in the order of ``suite.split(split)``.

    ``trajectories`` are the labelled items: runs, and steps or other parts of runs. ``first`` and ``second``
    have the first and second annotators' answers, and ``primary`` has the labels: the decision if there is
    one, else the first answer. All three map targets to arrays of shape (n,): int8 with the numbers of
    `Target.code`, or float64 for a score. Items of another level, and answers that are Unsure or missing, are
    -1 or nan. ``annotated_twice`` is bool of shape (n,).
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
    targets: tuple[Target, ...] = field(default_factory=default_targets)

    def target(self, name: str) -> Target:
        """Return the target called ``name``. Raises ValueError if judges are not scored on it."""
        known = {target.name: target for target in scored(self.targets)}
        if name not in known:
            raise ValueError(f"there is no target {name!r}; use one of {', '.join(known)}")
        return known[name]

    def only(self, rows: np.ndarray) -> "LabelSet":
        """Return the labels of ``rows`` (bool of shape (n,)), under the same version."""
        return replace(
            self,
            trajectories=tuple(itertools.compress(self.trajectories, rows)),
            primary={name: column[rows] for name, column in self.primary.items()},
            first={name: column[rows] for name, column in self.first.items()},
            second={name: column[rows] for name, column in self.second.items()},
            annotated_twice=self.annotated_twice[rows],
        )

    def __repr__(self) -> str:
        return f"LabelSet({self.suite}/{self.split}, {len(self.trajectories)} rows, version {self.version})"


def load_labels(
    suite: Suite, split: str, settings: Settings, fetch: bool = True, version_key: bytes | None = None
) -> LabelSet:
    """Load the labels of a split from the source in ARB_LABELS, or from the suite's published dev labels.

    With ``version_key`` the version is an HMAC, so that it cannot be used to confirm guesses of the labels.
    Raises LabelsUnavailable if the source cannot be reached, and LabelsInvalid if its content is invalid.
    """
    suite.split(split)  # raises SuiteError for an unknown name, before anything is read
    if split == "dev" and suite.dev_labels_path.is_file():
        return make_label_set(suite, split, _published(suite), "published", check=settings.suite_and_labels)
    path, source = _place_of_labels(suite, settings, fetch)
    annotations = read_annotation_file(path, suite, check=settings.suite_and_labels)
    return make_label_set(suite, split, annotations, source, version_key, settings.suite_and_labels)


def _place_of_labels(suite: Suite, settings: Settings, fetch: bool) -> tuple[Path, str]:
    """Return the file with the test labels and the kind of source.

    Labels that are part of the suite are used unless ARB_LABELS names another file.
    """
    if suite.why_closed is not None:
        raise LabelsUnavailable(suite.why_closed)
    own, kind = suite.test_labels_path, settings.labels.partition(":")[0]
    if own is not None and kind == "wheel" and not suite.is_official:
        return own, "published"
    if suite.name == "sample" and kind == "wheel":
        setting = settings.labels_from("csv:dataset_script/sample/annotations.csv")
        raise LabelsUnavailable(f"the wheel has no labels of the sample; set {setting} (in the checkout)")
    return locate_labels(settings, fetch), kind


def load_annotations(
    suite: Suite, settings: Settings, split: str | None = None, file: Path | None = None,
    is_strict: bool = False,
) -> tuple[Annotation, ...]:  # fmt: skip
    """Return all annotations of a split, or of the whole suite if it is None, in file order.

    They come from ``file`` (CSV or Parquet) if it is given, else from where `load_labels` reads. For the
    whole suite that is only the source in ARB_LABELS, because published dev labels have other names for
    annotators. For ``is_strict`` see `annotations.parse_released`. Raises the exceptions of `load_labels`.
    """
    if file is not None:
        annotations = read_annotation_file(file, suite, file.name, is_strict)
    elif split == "dev" and suite.dev_labels_path.is_file():
        annotations = _published(suite)
    else:
        path, _ = _place_of_labels(suite, settings, fetch=True)
        annotations = read_annotation_file(path, suite, check=settings.suite_and_labels)
    wanted = {t.trajectory_id for t in (suite.trajectories if split is None else suite.split(split))}
    return tuple(a for a in annotations if a.trajectory_id in wanted)


def version_of(suite: Suite, annotations: Sequence[Annotation], version_key: bytes | None = None) -> str:
    """Return 12 hexadecimal digits that identify the annotations of a suite, on dev and test."""
    return _version(suite.trajectories, _by_trajectory(suite, suite.trajectories, annotations), version_key)


def write_annotations(
    annotations: Sequence[Annotation], path: Path, questions: Sequence[Target] = ()
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
    path: Path, suite: Suite, name: str = "labels", is_strict: bool = False, check: str = "ARB_SUITE"
) -> tuple[Annotation, ...]:
    """Return the annotations in a file: a wheel, Parquet or CSV, depending on its suffix.

    Raises LabelsUnavailable, or LabelsInvalid with a message that calls the file ``name``. If no row is on a
    trajectory of the suite, the message says to check the variables that ``check`` names.
    """
    first_row = 1 if path.suffix == PARQUET else 2
    problems: tuple[str, ...] = ()
    try:
        if path.suffix == PARQUET:
            rows = parse_parquet(path.read_bytes(), suite.targets, is_strict)
        else:
            rows = parse_released(_text_of(path), suite.targets, is_strict)
    except UnicodeDecodeError:
        raise LabelsInvalid(f"{path.name} is not UTF-8 text; save it as UTF-8 CSV") from None
    except OSError as error:
        raise LabelsUnavailable(
            f"{path.name} cannot be read ({error.strerror}); check that this user may read it"
        ) from None
    except (KeyError, zipfile.BadZipFile):
        raise LabelsUnavailable(f"{path.name} cannot be read; fetch it again") from None
    except AnnotationsInvalid as invalid:
        rows, problems = invalid.rows, invalid.problems
    found, unknown = _in_suite(suite, rows, first_row, is_strict)
    if unknown and not found:
        raise LabelsInvalid(f"{name}: no row is on a trajectory of the suite {suite.name}; check {check}")
    if problems or unknown:
        raise LabelsInvalid(f"{name}: {'; '.join((*problems, *unknown))}")
    return found


def _text_of(path: Path) -> str:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(ANNOTATIONS_IN_WHEEL).decode("utf-8")
    content = path.read_bytes()
    if content.startswith(WORKBOOK):
        raise LabelsInvalid(
            f'{path.name} is an Excel workbook; in Excel, use "Save As" with the type "CSV UTF-8"'
        )
    return content.decode("utf-8-sig")


def _in_suite(
    suite: Suite, annotations: Sequence[Annotation], first_row: int = 1, is_strict: bool = False
) -> tuple[tuple[Annotation, ...], list[str]]:
    """Return the annotations with the suite's spelling of ids, and a message for each unknown id.

    ``first_row`` is the number of the first row in messages: 2 for CSV, which has a header. With
    ``is_strict``, there is also a message for each step or part that the suite does not ask about, and for
    each person who answers a question on the same item in two rows.
    """
    found, unknown = [], []
    row_of: dict[tuple[str | None, ...], int] = {}
    for number, annotation in enumerate(annotations, start=first_row):
        trajectory = suite.find(annotation.trajectory_id)
        if trajectory is None:
            spelled = annotation.trajectory_id[:200]
            unknown.append(f"row {number}: {spelled!r} is not in the suite {suite.name}")
            continue
        annotation = replace(annotation, trajectory_id=trajectory.trajectory_id)
        found.append(annotation)
        if is_strict and annotation.person and not annotation.is_decision:
            keys = [(annotation.person, *annotation.item, target) for target in annotation.answers]
            earlier = {row_of.setdefault(key, number) for key in keys} - {number}
            unknown += [
                f"rows {first} and {number}: one annotator answers the same question twice; remove one"
                for first in sorted(earlier)
            ]
        steps, parts = suite.asked_in(trajectory.trajectory_id)
        for level, item, asked in ("step", annotation.of_step, steps), ("part", annotation.of_part, parts):
            if is_strict and item is not None and item not in asked:
                unknown.append(f"row {number}, {level} {item[:80]!r}: the suite does not ask about it")
    return tuple(found), unknown


def make_label_set(
    suite: Suite,
    split: str,
    rows: Sequence[Annotation],
    source: str = "annotations",
    version_key: bytes | None = None,
    check: str = "ARB_SUITE and ARB_LABELS",
) -> LabelSet:
    """Make the labels of a split from annotations.

    Raises LabelsUnavailable if the split is empty, and LabelsInvalid if no annotation belongs to the split.
    In the second case, the message says to check the variables that ``check`` names.
    """
    trajectories = suite.items(split)
    if not trajectories:
        raise LabelsUnavailable(f"the suite {suite.name} has no {split} split")
    named = {t.trajectory_id for t in map(suite.find, (row.trajectory_id for row in rows)) if t is not None}
    if not any(t.trajectory_id in named for t in trajectories):
        raise LabelsInvalid(
            f"labels ({source}): there is no label of the {split} split of the suite {suite.name}; "
            f"check {check}"
        )
    annotations = _by_trajectory(suite, trajectories, rows)
    answers = [answered(found) for found in annotations]
    return LabelSet(
        suite=suite.name,
        split=split,
        source=source,
        version=_version(trajectories, annotations, version_key),
        trajectories=trajectories,
        primary=_arrays([found[0] if found else None for found in annotations], suite.targets),
        first=_arrays([found[0] if found else None for found in answers], suite.targets),
        second=_arrays([found[1] if len(found) > 1 else None for found in answers], suite.targets),
        annotated_twice=np.array([len(found) > 1 for found in answers], dtype=bool),
        targets=suite.targets,
    )


def _by_trajectory(
    suite: Suite, trajectories: Sequence[Trajectory], rows: Sequence[Annotation]
) -> list[list[Annotation]]:
    """Return the annotations of each trajectory in file order; the first one is primary."""
    by_item: dict[ItemKey, list[Annotation]] = {}
    known, unknown = _in_suite(suite, rows)
    if unknown:
        raise LabelsInvalid(f"labels: {'; '.join(unknown)}")
    for annotation in known:
        key = reading_key(annotation.trajectory_id), annotation.of_step, annotation.of_part
        by_item.setdefault(key, []).append(annotation)
    return [by_item.get(item.key, []) for item in trajectories]


def _arrays(chosen: Sequence[Annotation | None], targets: Sequence[Target]) -> Mapping[str, np.ndarray]:
    """Return the answers in ``chosen``, one annotation per item, as arrays keyed by target."""
    arrays: dict[str, np.ndarray] = {}
    for target in targets:
        answers = [each.answers.get(target.name) if each else None for each in chosen]
        if target.type == "score":
            numbers = [np.nan if answer in (None, UNSURE) else float(answer or "nan") for answer in answers]
            arrays[target.name] = np.array(numbers, dtype=np.float64)
        else:
            arrays[target.name] = np.array([target.code(answer) for answer in answers], dtype=np.int8)
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
    for item, found in zip(trajectories, annotations, strict=True):
        rows: list[list[Any]] = []
        for annotation in (*found[:1], *answered(found)[1:]):
            own = sorted(item for item in annotation.answers.items() if item[0] not in RELEASED_ANSWERS)
            released = [_released_number(name, annotation) for name in RELEASED_ANSWERS]
            rows.append([*released, *([own] if own else [])])
        parts = [part for part in (item.step, item.part) if part is not None]
        content_of.append([item.trajectory_id, *parts, rows])
    content = json.dumps(content_of, separators=(",", ":")).encode()
    digest = hashlib.sha256(content) if key is None else hmac.new(key, content, hashlib.sha256)
    return digest.hexdigest()[:12]


def _released_number(name: str, annotation: Annotation) -> int:
    """Return an answer as a number: a grade (0 if missing), or 1 for yes, 0 for no and -1 for others."""
    answer, values = annotation.answers.get(name), RELEASED_ANSWERS[name]
    if "yes" not in values:
        return int(answer) if answer and answer in values else 0
    return {"yes": 1, "no": 0}.get(answer or "", -1)
