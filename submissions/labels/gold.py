"""Gold items: finished trajectories with known answers, mixed into queues to see how annotators do.

The known answers are those that count when a maintainer marks the trajectory: the first annotation's with
decisions applied. Whoever gets one sees an item like any other; what they answer is no second annotation,
enters no label set, and its agreement with the known answers is for maintainers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from submissions.errors import SubmissionError
from submissions.labels.annotation_state import GOLD, AnnotationState, open_questions
from submissions.labels.assignment import Assignment


def known_answers(state: AnnotationState, trajectory_id: str) -> dict[str, str]:
    """The answers that count now. Raises SubmissionError where there are none yet, or a question is open."""
    finished = state.finished(trajectory_id)
    if not finished:
        raise SubmissionError("nobody has finished this trajectory, so that no answers are known")
    if open_questions(state, trajectory_id):
        raise SubmissionError("a question of this trajectory is open: decide it first")
    decided = {question: found.answer for question, found in state.decided(trajectory_id).items()}
    return {**finished[0][1].answers, **decided}


def with_gold(
    state: AnnotationState, assignments: Sequence[Assignment], share: float, seed: int
) -> list[Assignment]:
    """New assignments with gold items among them, in an order of chance.

    Each annotator gets ``share`` (0 to 1, rounded half up) of their new assignments on top, of gold items
    that they have not met; fewer where there are no more.
    """
    found = list(assignments)
    for who in sorted({each[1] for each in assignments}):
        unmet = [name for name in state.gold if not state.has_met(name, who)]
        unmet = [name for name in unmet if not any(each[:2] == (name, who) for each in assignments)]
        unmet.sort(key=lambda name: _draw(seed, f"{who} {name}"))
        n_new = sum(each[1] == who for each in assignments)
        found += [(name, who, GOLD) for name in unmet[: int(share * n_new + 0.5)]]
    return sorted(found, key=lambda each: _draw(seed, f"{each[2]} {each[0]}"))


@dataclass(frozen=True)
class GoldAgreement:
    """How an annotator answered gold items: how many are done, and how many answers to each question are as
    known (an Unsure is not, unless it is the known answer)."""

    annotator: str
    account: str
    done: int
    equal: Mapping[str, int]


def gold_agreement(state: AnnotationState) -> list[GoldAgreement]:
    """Of everybody who has finished a gold item, by id; for maintainers only."""
    found = []
    for who, account in state.accounts.items():
        pairs = [
            (state.saved[name, who].answers, answers)
            for name, answers in state.gold.items()
            if state.is_gold(name, who) and state.is_done(name, who)
        ]
        if pairs:
            equal = {
                question.name: sum(
                    given.get(question.name) == known.get(question.name) for given, known in pairs
                )
                for question in state.questions
            }
            found.append(GoldAgreement(who, account, len(pairs), equal))
    return found


def _draw(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()
