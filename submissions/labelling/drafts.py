"""What an annotator sends: answers, partial ones too, checked before they become a record. Pure.

Problems name questions and fields, never what was answered.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from leaderboard.annotations import ANSWERS, COMMENT_LENGTH, QUESTION_TITLES, QUESTIONS, UNSURE
from submissions.acts import is_utf8
from submissions.refusals import SubmissionError

LONGEST_SECONDS: Final = 7 * 24 * 3600.0


class SavedElsewhere(SubmissionError):
    """The annotation was changed from another window or device since this one read it."""

    def __init__(self) -> None:
        super().__init__("this annotation was changed in another window or on another device; load it again")


@dataclass(frozen=True, repr=False)
class Draft:
    """Answers on one trajectory as they are now, by question; one without an answer may be left out."""

    answers: Mapping[str, str | None] = field(default_factory=dict)
    comment: str = ""
    seconds: float = 0.0
    is_done: bool = False

    def __repr__(self) -> str:
        return "Draft()"  # without its answers: it may stand in a log

    def body(self) -> dict[str, Any]:
        """What a record keeps of it. Raises SubmissionError with every problem."""
        if problems := self._problems():
            raise SubmissionError("; ".join(problems))
        return {
            "answers": {question: self.answers.get(question) for question in QUESTIONS},
            "comment": self.comment.strip(),
            "seconds": round(float(self.seconds), 1),
            "is_done": self.is_done,
        }

    def _problems(self) -> list[str]:
        problems = []
        if self.answers.keys() - set(QUESTIONS):
            problems.append(f"there is an unknown question; use {', '.join(QUESTIONS)}")
        problems += [
            f"{question}: write {', '.join(ANSWERS[question])}, {UNSURE} or nothing"
            for question in QUESTIONS
            if self.answers.get(question) not in (None, UNSURE, *ANSWERS[question])
        ]
        if len(self.comment) > COMMENT_LENGTH:
            problems.append(f"comment: is over {COMMENT_LENGTH:,} characters; shorten it")
        if not is_utf8(self.comment):
            problems.append("comment: contains invalid Unicode; write it again")
        if not (math.isfinite(self.seconds) and 0 <= self.seconds <= LONGEST_SECONDS):
            problems.append("seconds: write a number from 0 to those of a week")
        missing = [QUESTION_TITLES[question] for question in QUESTIONS if not self.answers.get(question)]
        if self.is_done and missing:
            problems.append(f"not answered yet: {', '.join(missing)}; answer, or choose Unsure")
        return problems
