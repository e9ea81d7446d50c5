"""An annotation: one person's answers about one trajectory, in files of annotations and of dev labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

DECISION: Final = "decision"
"""The annotator of a row that nobody answered: what was decided, in front of a trajectory's answers."""


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers about one trajectory.

    ``answers`` maps questions to a value of theirs or "unsure"; a question without an answer is left out.
    ``annotator`` is an opaque id, None if unknown. ``at`` says when the answers were given (with a time
    zone), ``seconds`` how long that took, ``step`` the number of the step that decided success; each is None
    if unknown. ``experiment`` is the released ``exp_name``, kept so that a released file can be written
    again. ``annotation`` is its number among those of the trajectory in a file of dev labels.
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
        """Return the same with these answers in place of those to the same questions; None removes one."""
        changed = {**self.answers, **answers}
        return replace(self, answers={name: answer for name, answer in changed.items() if answer})

    @property
    def person(self) -> str | None:
        """Who annotated, without the blanks that one name of the released data has; None if unknown."""
        return (self.annotator or "").strip() or None

    @property
    def is_primary(self) -> bool:
        """Whether judges are scored on it: the first row of a trajectory in a file of dev labels."""
        return self.annotation == 1

    @property
    def is_decision(self) -> bool:
        """Whether the row holds what was decided, and not what somebody answered."""
        return self.annotator == DECISION

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # without its answers: it may stand in a log


def decided_row(row: Annotation, decided: Mapping[str, str | None]) -> Annotation:
    """Return the row of decisions about a trajectory, from its primary row; other answers stay as there."""
    return Annotation(row.trajectory_id, DECISION, row.answers).with_answers(decided)


def answered(annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return only what people answered, without decisions."""
    return [annotation for annotation in annotations if not annotation.is_decision]
