"""A judge asked several times: its answers to one trajectory are put to a vote. Pure."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final, Literal

from arb.core.vocabulary import STATES
from arb.judges.contract import open_session
from arb.judges.types import JUDGE_ROLE, Answer, Call, JudgeSession, Reply, View
from arb.judges.wrappers import WrappedJudge, in_parallel, map_calls

VoteRule = Literal["all", "majority", "any"]
"""Which of the answers must say yes: every one, more than half, or one."""


def combine_votes(answers: Sequence[Answer], rule: VoteRule) -> Answer:
    """The answer of a vote.

    An answer without a verdict is an unknown vote: where it could change the outcome there is no
    verdict, else the outcome stands. The score is the mean probability of success over the answers with a
    verdict: their own scores where they have one, else 1 for yes and 0 for no. Side effect and repetition
    are put to the same vote, optimality is the median, the reasoning is the first of those that agree.
    """
    success = outcome([answer.success for answer in answers], rule)
    if success is None:
        return Answer(state_without_verdict(answers))
    agreeing = (answer for answer in answers if answer.success == success)
    grades = [answer.optimality for answer in answers if answer.optimality is not None]
    return Answer(
        "ok",
        success,
        side_effect=outcome([answer.side_effect for answer in answers], rule),
        repetition=outcome([answer.repetition for answer in answers], rule),
        optimality=median_low(grades) if grades else None,
        score=mean_score(answers),
        reasoning=next(agreeing, answers[0]).reasoning,
    )


def outcome(votes: Sequence[bool | None], rule: VoteRule) -> bool | None:
    """Yes or no by the rule; None when votes that are not known (None) could make it either."""
    yes = sum(vote is True for vote in votes)
    needed = {"all": len(votes), "majority": len(votes) // 2 + 1, "any": 1}[rule]
    if yes >= needed:
        return True
    unknown = sum(vote is None for vote in votes)
    return None if yes + unknown >= needed else False


def mean_score(answers: Sequence[Answer]) -> float | None:
    """The mean probability of success over the answers with a verdict; None without any."""
    known = [probability(answer) for answer in answers if answer.success is not None]
    return sum(known) / len(known) if known else None


def probability(answer: Answer) -> float:
    """An answer's score; without one, 1 for yes and 0 for no."""
    return float(bool(answer.success)) if answer.score is None else answer.score


def state_without_verdict(answers: Sequence[Answer]) -> str:
    """The state of a vote without outcome: ``error`` where one failed, since that can be made good; else the
    most frequent of those without a verdict.
    """
    states = Counter(answer.state for answer in answers if answer.success is None)
    return "error" if "error" in states else max(STATES, key=lambda state: states[state])


SHARED_PURPOSES: Final = ("caption", "change", "key points", "rating")
"""Purposes of calls that are asked once for all samples, as are those of other roles than the judge's."""


@dataclass(frozen=True)
class SampledJudge(WrappedJudge):
    """A judge asked ``n`` times; its answers are put to a vote by ``rule`` (see `voting.combine_votes`).

    Captions and the like are asked for once. Of what the judge asks for its verdict, each sample is a call of
    its own, all of them under way at once.
    """

    n: int
    rule: VoteRule = "majority"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n: {self.n} samples; give 1 or more")

    def name_with(self, names: Mapping[str, str]) -> str:
        return f"{names['']}{samples_suffix(self.n, self.rule)}"

    @property
    def calls(self) -> str:
        return str(self.n) if self.judge.calls == "1" else f"{self.judge.calls}, the verdict {self.n} times"

    def ask(self, view: View) -> JudgeSession:
        """All samples side by side; calls that are the same are made once."""
        sessions = (_numbered(open_session(self.judge, view), number, self.n) for number in range(self.n))
        answers = yield from _together(in_parallel(sessions))
        return combine_votes(answers, self.rule)


def samples_suffix(n: int, rule: str) -> str:
    return f", {n} samples, {rule}"


Round = Generator[Sequence[Call], Sequence[Reply], list[Answer]]


def _together(session: Round) -> Round:
    """The same session; calls of a round that ask the same know each other's numbers."""
    replies = None
    try:
        while True:
            calls = session.send(replies)
            questions = [replace(call, sample=0) for call in calls]
            numbers: dict[Call, tuple[int, ...]] = {}
            for call, question in zip(calls, questions, strict=True):
                numbers[question] = (*numbers.get(question, ()), call.sample)
            replies = yield [
                replace(call, together=numbers[question]) if len(numbers[question]) > 1 else call
                for call, question in zip(calls, questions, strict=True)
            ]
    except StopIteration as end:
        return end.value
    finally:
        session.close()


def _numbered(session: JudgeSession, number: int, n: int) -> JudgeSession:
    """The same session, with the calls for the verdict marked as those of one sample."""

    def call_of(call: Call) -> Call:
        is_shared = call.purpose in SHARED_PURPOSES or call.role.rpartition(".")[2] != JUDGE_ROLE
        return call if is_shared else replace(call, sample=call.sample * n + number)

    return (yield from map_calls(session, call_of))
