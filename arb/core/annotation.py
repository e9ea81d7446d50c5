"""Annotations: a person's answers about a trajectory, as stored in annotation files and dev labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

DECISION: Final = "decision"
"""The annotator's name in a row of maintainers' decisions. Decisions take precedence over people's
answers."""


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers about one trajectory, or about a step or part of it. None means unknown.

    Attributes:
        annotator: An opaque id.
        answers: The answer to each question, or "unsure". Unanswered questions are left out.
        at: When the answers were given, with a time zone.
        seconds: How long the person took to answer, in seconds.
        experiment: The value of ``exp_name`` in a released file.
        step: The number of the step that decided the outcome.
        annotation: The annotation's number among the annotations of the same item, from 1.
        of_step: The number of the step that the answers are about, as a string, or None.
        of_part: The name of another part of the run that the answers are about, or None.
    """

    trajectory_id: str
    annotator: str | None = None
    answers: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str = ""
    at: datetime | None = None
    seconds: float | None = None
    experiment: str = ""
    step: int | None = None
    annotation: int = 1
    of_step: str | None = None
    of_part: str | None = None

    def with_answers(self, answers: Mapping[str, str | None]) -> "Annotation":
        """Return a copy with some answers replaced by ``answers``. A value of None removes the answer."""
        changed = {**self.answers, **answers}
        return replace(self, answers={name: answer for name, answer in changed.items() if answer})

    @property
    def level(self) -> Literal["run", "step", "part"]:
        """What the answers are about: a whole ``run``, a ``step`` or another ``part`` of a run."""
        return "step" if self.of_step is not None else "run" if self.of_part is None else "part"

    @property
    def item(self) -> tuple[str, str | None, str | None]:
        """What the answers are about: the id of a run, with a step or part if they are about only that."""
        return self.trajectory_id, self.of_step, self.of_part

    @property
    def person(self) -> str | None:
        """The annotator's name without surrounding spaces (a released name has some); None if unknown."""
        return (self.annotator or "").strip() or None

    @property
    def item_name(self) -> str:
        """The item in words: ``shop/agent/shop.1, step 3``."""
        parts = (("step", self.of_step), ("part", self.of_part))
        return ", ".join(
            [self.trajectory_id, *(f"{name} {part}" for name, part in parts if part is not None)]
        )

    @property
    def is_primary(self) -> bool:
        """Whether judges are scored on this annotation. Only the first one of a trajectory counts."""
        return self.annotation == 1

    @property
    def is_decision(self) -> bool:
        """Whether the answers are maintainers' decisions instead of a person's."""
        return self.annotator == DECISION

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # no answers, because it may be logged


def decided_row(row: Annotation, decided: Mapping[str, str | None]) -> Annotation:
    """Return a row of decisions: a copy of the primary annotation ``row`` with the ``decided`` answers."""
    decision = replace(row, annotator=DECISION, comment="", at=None, seconds=None, experiment="", step=None)
    return replace(decision, annotation=1).with_answers(decided)


def answered(annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return the annotations that are people's answers, not decisions."""
    return [annotation for annotation in annotations if not annotation.is_decision]
