"""An annotation: one person's answers about one trajectory, in files of annotations and of dev labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

DECISION: Final = "decision"
"""The annotator's name in a row of decisions, which comes before people's answers about the trajectory."""


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers about one trajectory.

    ``answers`` maps questions to one of their values or "unsure"; unanswered questions are left out.
    ``annotator`` is an opaque id, ``at`` the time of the answers (with a time zone), ``seconds`` how long
    they took, ``step`` the number of the step that decided success; each is None if unknown. ``experiment``
    is the released ``exp_name``, kept so that a released file can be written again. ``annotation`` is the
    annotation's number, from 1, among those of the trajectory in a file of dev labels.
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

    def with_answers(self, answers: Mapping[str, str | None]) -> "Annotation":
        """Return a copy in which ``answers``, by question, replace earlier ones; None removes an answer."""
        changed = {**self.answers, **answers}
        return replace(self, answers={name: answer for name, answer in changed.items() if answer})

    @property
    def person(self) -> str | None:
        """The annotator's name, stripped because a released name has spaces around it; None if unknown."""
        return (self.annotator or "").strip() or None

    @property
    def is_primary(self) -> bool:
        """Whether judges are scored on this annotation, the first of its trajectory in the dev labels."""
        return self.annotation == 1

    @property
    def is_decision(self) -> bool:
        """Whether the row has decisions instead of a person's answers."""
        return self.annotator == DECISION

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # without answers, since it may be logged


def decided_row(row: Annotation, decided: Mapping[str, str | None]) -> Annotation:
    """Return a row of decisions: the ``decided`` answers, else those of ``row``, the primary annotation."""
    return Annotation(row.trajectory_id, DECISION, row.answers).with_answers(decided)


def answered(annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return the annotations without rows of decisions."""
    return [annotation for annotation in annotations if not annotation.is_decision]
