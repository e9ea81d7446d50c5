"""An annotation: what one person said of one trajectory, as a record, and the words that it may hold."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from dataset_script.trajectory_ids import TrajectoryId
from dataset_script.vocabulary import LABEL_TITLES, LABELS

QUESTIONS: Final = (*LABELS, "optimality")
"""What an annotator is asked: the three labels, and how direct the way was, in four grades."""

QUESTION_TITLES: Final = MappingProxyType({**LABEL_TITLES, "optimality": "Optimality"})

UNSURE: Final = "unsure"

ANSWERS: Final = MappingProxyType(
    {**dict.fromkeys(LABELS, ("no", "yes")), "optimality": ("1", "2", "3", "4")}
)
"""The definite answers to each question, in their order; ``UNSURE`` is allowed to all."""

OPTIMALITY_TITLES: Final = MappingProxyType(
    {"1": "Complete failure", "2": "Suboptimal", "3": "Somewhat optimal", "4": "Completely optimal"}
)
COMMENT_LENGTH: Final = 10_000


class AnnotationsInvalid(ValueError):
    """Annotations that cannot be used; ``problems`` names every row and field, and never an answer."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers on one trajectory, each one of ``ANSWERS``, "unsure", or None: not answered.

    ``annotator`` is an opaque id, None where it is not known. ``at`` is when the answers were given (aware of
    its time zone), ``seconds`` how long that took; None where not known. ``experiment`` is the released
    ``exp_name``, kept so that a released file can be written again.
    """

    trajectory_id: str
    annotator: str | None = None
    success: str | None = None
    side_effect: str | None = None
    repetition: str | None = None
    optimality: str | None = None
    comment: str = ""
    at: datetime | None = None
    seconds: float | None = None
    experiment: str = ""

    def answer(self, question: str) -> str | None:
        """The answer to one of ``QUESTIONS``."""
        return getattr(self, question)

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # without its answers: it may stand in a log


COLUMNS: Final = tuple(field.name for field in fields(Annotation))


def problems_of(annotation: Annotation) -> list[str]:
    """What is wrong with a record, field by field; empty when nothing is. No message repeats an answer."""
    problems = []
    try:
        TrajectoryId.parse(annotation.trajectory_id)
    except ValueError as reason:
        problems.append(f"trajectory_id: {reason}")
    for name in ("annotator", "experiment"):
        text = getattr(annotation, name)
        if text is not None and not text.isprintable():
            problems.append(f"{name}: holds line breaks or invisible characters; write it on one line")
    if annotation.annotator is not None and not annotation.annotator.strip():
        problems.append("annotator: is blank; leave it out where it is not known")
    problems += [
        f"{question}: write {', '.join(ANSWERS[question])}, {UNSURE} or nothing"
        for question in QUESTIONS
        if annotation.answer(question) not in (None, UNSURE, *ANSWERS[question])
    ]
    if len(annotation.comment) > COMMENT_LENGTH:
        problems.append(f"comment: is over {COMMENT_LENGTH:,} characters; shorten it")
    if annotation.at is not None and annotation.at.utcoffset() is None:
        problems.append("at: has no time zone; write it with one, such as +00:00")
    if annotation.seconds is not None and not (math.isfinite(annotation.seconds) and annotation.seconds >= 0):
        problems.append("seconds: write a number from 0")
    return problems


def with_opaque_annotators(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """The same annotations with ``annotator-1``, ``annotator-2`` … for names, by first appearance.

    Two spellings that differ in blanks around them are one person.
    """
    ids: dict[str, str] = {}
    found = []
    for annotation in annotations:
        name = (annotation.annotator or "").strip()
        opaque = ids.setdefault(name, f"annotator-{len(ids) + 1}") if name else None
        found.append(replace(annotation, annotator=opaque))
    return tuple(found)
