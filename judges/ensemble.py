"""A judge asked several times: its samples are put to a vote."""

from dataclasses import dataclass, replace
from typing import Final

from judges.askings import in_parallel, map_calls
from judges.base import JUDGE_ROLE, Call, JudgeSession, View
from judges.voting import VoteRule, combine_votes
from judges.wrapped import WrappedJudge

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

    @property
    def name(self) -> str:
        return f"{self.judge.name}{samples_suffix(self.n, self.rule)}"

    @property
    def calls(self) -> str:
        return str(self.n) if self.judge.calls == "1" else f"{self.judge.calls}, the verdict {self.n} times"

    def ask(self, view: View) -> JudgeSession:
        """All samples side by side; calls that are the same are made once."""
        answers = yield from in_parallel(
            _numbered(self.judge.ask(view), number, self.n) for number in range(self.n)
        )
        return combine_votes(answers, self.rule)


def samples_suffix(n: int, rule: str) -> str:
    return f", {n} samples, {rule}"


def _numbered(session: JudgeSession, number: int, n: int) -> JudgeSession:
    """The same session, with the calls for the verdict marked as those of one sample."""

    def call_of(call: Call) -> Call:
        is_shared = call.purpose in SHARED_PURPOSES or call.role.rpartition(".")[2] != JUDGE_ROLE
        return call if is_shared else replace(call, sample=call.sample * n + number)

    return (yield from map_calls(session, call_of))
