"""An annotation: one person's answers about one trajectory, in files of annotations and of dev labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

DECISION: Final = "decision"
"""The annotator of a row of decisions, which comes before the answers about a trajectory."""


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers about one trajectory.

    ``answers`` maps questions to one of their values or "unsure"; unanswered questions are left out.
    ``annotator`` is an opaque id, ``at`` the time of the answers (with a time zone), ``seconds`` how long
    they took, ``step`` the number of the step that decided success; each is None if unknown. ``experiment``
    is the released ``exp_name``, kept so that a released file can be written again. ``annotation`` is the
    number among the annotations of the trajectory in a file of dev labels.
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
        """Return a copy with other answers to some questions; None removes an answer."""
        changed = {**self.answers, **answers}
        return replace(self, answers={name: answer for name, answer in changed.items() if answer})

    @property
    def person(self) -> str | None:
        """The annotator without the spaces that one name in the released data has; None if unknown."""
        return (self.annotator or "").strip() or None

    @property
    def is_primary(self) -> bool:
        """Whether judges are scored on it: it is the first annotation in a file of dev labels."""
        return self.annotation == 1

    @property
    def is_decision(self) -> bool:
        """Whether the row has decisions instead of a person's answers."""
        return self.annotator == DECISION

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # without answers, since logs may have it


def decided_row(row: Annotation, decided: Mapping[str, str | None]) -> Annotation:
    """Return a trajectory's row of decisions: those given, and otherwise the answers of its primary row."""
    return Annotation(row.trajectory_id, DECISION, row.answers).with_answers(decided)


def answered(annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return the annotations by people, without decisions."""
    return [annotation for annotation in annotations if not annotation.is_decision]
