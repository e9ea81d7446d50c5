"""Gold items: finished trajectories with known answers, mixed into queues to see how annotators do.

The known answers are those that count when a maintainer marks the trajectory: the first annotation's with
decisions applied. Whoever gets one sees an item like any other; what they answer is no second annotation,
enters no label set, and its agreement with the known answers is for maintainers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.ids import TrajectoryId
from leaderboard.judge_precision.intervals import CONFIDENCE
from leaderboard.labels.agreement import FEWEST_DOUBLES
from leaderboard.labels.coefficients import difference_of_shares
from submissions.errors import SubmissionError
from submissions.labels.annotation_state import GOLD, AnnotationState, discussion_items, open_questions
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


def gold_candidates(state: AnnotationState) -> list[str]:
    """The trajectories that can be marked, by id: finished, with no open question, and not gold yet."""
    items = discussion_items(state, None, is_maintainer=True)
    open_ids = {each.item.trajectory_id for each in items if each.open}
    names = {name for name, who in state.saved if state.is_done(name, who) and not state.is_gold(name, who)}
    return sorted(names - open_ids - set(state.gold))


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
    known (an Unsure is not, unless it is the known answer).

    ``needs_training`` names the questions on which the share of these is credibly below that of all others:
    both have at least ``FEWEST_DOUBLES`` items, and the interval of the difference lies below 0, all such
    intervals together at 95 %.
    """

    annotator: str
    account: str
    done: int
    equal: Mapping[str, int]
    needs_training: tuple[str, ...]


def gold_agreement(state: AnnotationState) -> list[GoldAgreement]:
    """Of everybody who has finished a gold item, by id; for maintainers only."""
    done = [
        (who, name)
        for who in state.accounts
        for name in state.gold
        if state.is_gold(name, who) and state.is_done(name, who)
    ]
    people = np.array([who for who, _ in done])
    ids = [TrajectoryId.parse(name) for _, name in done]
    tasks = np.unique([f"{each.benchmark}/{each.task}" for each in ids], return_inverse=True)[1]
    is_equal = {
        question.name: np.array(
            [state.saved[name, who].answers.get(question.name) == state.gold[name].get(question.name)
             for who, name in done], dtype=bool,
        )
        for question in state.questions
    }  # fmt: skip
    error = (1 - CONFIDENCE) / max(1, len(set(people.tolist())) * len(is_equal))
    found = []
    for who in dict.fromkeys(people.tolist()):
        theirs = people == who
        n, m = int(theirs.sum()), int((~theirs).sum())
        below = tuple(
            question
            for question, equal in is_equal.items()
            if min(n, m) >= FEWEST_DOUBLES
            and difference_of_shares(equal, theirs, ~theirs, tasks, error)[1] < 0
        )
        counts = {question: int(equal[theirs].sum()) for question, equal in is_equal.items()}
        found.append(GoldAgreement(who, state.accounts[who], n, counts, below))
    return found


def _draw(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()
