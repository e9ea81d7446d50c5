"""Ask a judge several times and take a vote over its answers."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final, Literal

from arb.core.vocabulary import STATES
from arb.judges.contract import open_session
from arb.judges.types import JUDGE_ROLE, Answer, Call, JudgeSession, StepAnswers, View
from arb.judges.wrappers import WrappedJudge, in_parallel, map_calls, map_stages

VoteRule = Literal["all", "majority", "any"]
"""How many answers must say yes: all, more than half, or at least one."""


def combine_votes(answers: Sequence[Answer], rule: VoteRule) -> Answer:
    """Return the answer that results from a vote.

    If answers without a verdict could have changed the outcome, the result has no verdict either. The score
    is the mean `probability` of the answers with a verdict. The same rule decides about side effects and
    repetition. The optimality is the lower median, and the answer about each step is the most frequent one.
    The reasoning is that of the first answer with the resulting verdict.
    """
    success, steps = outcome([answer.success for answer in answers], rule), _most_frequent(answers)
    if success is None:
        return Answer("ok", steps=steps) if steps else Answer(state_without_verdict(answers))
    known = [probability(answer) for answer in answers if answer.success is not None]
    agreeing = (answer for answer in answers if answer.success == success)
    grades = [answer.optimality for answer in answers if answer.optimality is not None]
    return Answer(
        "ok",
        success,
        side_effect=outcome([answer.side_effect for answer in answers], rule),
        repetition=outcome([answer.repetition for answer in answers], rule),
        optimality=median_low(grades) if grades else None,
        score=sum(known) / len(known),
        reasoning=next(agreeing, answers[0]).reasoning,
        steps=steps,
    )


def _most_frequent(answers: Sequence[Answer]) -> StepAnswers | None:
    """Return the most frequent answer about each step (in a tie, the first). None if there are no answers."""
    votes: defaultdict[int, defaultdict[str, Counter[str | bool | int]]]
    votes = defaultdict(lambda: defaultdict(Counter))
    for answer in answers:
        for number, by_target in (answer.steps or {}).items():
            for target, value in by_target.items():
                votes[number][target][value] += 1
    return {
        number: {target: counted.most_common(1)[0][0] for target, counted in by_target.items()}
        for number, by_target in votes.items()
    } or None


def outcome(votes: Sequence[bool | None], rule: VoteRule) -> bool | None:
    """Return the outcome of a vote, or None if the missing votes (None) could change it."""
    yes = sum(vote is True for vote in votes)
    needed = {"all": len(votes), "majority": len(votes) // 2 + 1, "any": 1}[rule]
    if yes >= needed:
        return True
    unknown = sum(vote is None for vote in votes)
    return None if yes + unknown >= needed else False


def probability(answer: Answer) -> float:
    """Return an answer's score. Without a score, return 1 for a yes and 0 for a no."""
    return float(bool(answer.success)) if answer.score is None else answer.score


def state_without_verdict(answers: Sequence[Answer]) -> str:
    """Return the state of a vote that has no outcome: the most frequent state of answers without a verdict.

    If any answer failed, it is ``error``, since failed answers can be retried.
    """
    states = Counter(answer.state for answer in answers if answer.success is None)
    return "error" if "error" in states else max(STATES, key=lambda state: states[state])


SHARED_PURPOSES: Final = ("caption", "change", "criteria", "key points", "rating")
"""The purposes of calls that all samples share. Calls of roles other than the judge's are shared, too."""


@dataclass(frozen=True)
class SampledJudge(WrappedJudge):
    """A judge that is asked ``n`` times, with a vote over its answers (see `combine_votes`).

    Captions and other shared texts (`SHARED_PURPOSES`) are requested only once.
    """

    n: int
    rule: VoteRule = "majority"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n is {self.n}; use 1 or more samples")

    def name_with(self, names: Mapping[str, str]) -> str:
        return f"{names['']}{samples_suffix(self.n, self.rule)}"

    @property
    def calls(self) -> str:
        return str(self.n) if self.judge.calls == "1" else f"{self.judge.calls}, the verdict {self.n} times"

    def ask(self, view: View) -> JudgeSession:
        """Ask for all samples in parallel, and make equal calls only once."""
        sessions = (_numbered(open_session(self.judge, view), number, self.n) for number in range(self.n))
        answers = yield from map_stages(in_parallel(sessions), _together)
        return combine_votes(answers, self.rule)


def samples_suffix(n: int, rule: str) -> str:
    return f", {n} samples, {rule}"


def _together(calls: Sequence[Call]) -> list[Call]:
    """In each call of a stage, set ``together`` to the sample numbers of all calls that are equal to it."""
    questions = [replace(call, sample=0) for call in calls]
    numbers: defaultdict[Call, tuple[int, ...]] = defaultdict(tuple)
    for call, question in zip(calls, questions, strict=True):
        numbers[question] += (call.sample,)
    return [
        replace(call, together=numbers[question]) if len(numbers[question]) > 1 else call
        for call, question in zip(calls, questions, strict=True)
    ]


def _numbered(session: JudgeSession, number: int, n: int) -> JudgeSession:
    """Run a session for sample ``number`` of ``n``, with new sample numbers in its calls for the verdict."""

    def call_of(call: Call) -> Call:
        is_shared = call.purpose in SHARED_PURPOSES or call.role.rpartition(".")[2] != JUDGE_ROLE
        return call if is_shared else replace(call, sample=call.sample * n + number)

    return (yield from map_calls(session, call_of))
