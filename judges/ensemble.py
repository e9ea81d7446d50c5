"""A judge asked several times: its samples are put to a vote."""

from dataclasses import dataclass, replace
from typing import Final

from judges.askings import changed, side_by_side
from judges.base import JUDGE_ROLE, Asking, Call, View
from judges.voting import Rule, voted
from judges.wrapped import Wrapped

PREPARATIONS: Final = ("caption", "change", "key points", "rating")
"""Purposes of calls that are asked once for all samples, as are those of other roles than the judge's."""


@dataclass(frozen=True)
class Sampled(Wrapped):
    """A judge asked ``n`` times; its answers are put to a vote by ``rule`` (see `voting.voted`).

    Captions and the like are asked for once. Of what the judge asks for its verdict, each sample is a call of
    its own, all of them under way at once.
    """

    n: int
    rule: Rule = "majority"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n: {self.n} samples; give 1 or more")

    @property
    def name(self) -> str:
        """The judge's, with the number of samples and the rule."""
        return f"{self.judge.name}{samples_suffix(self.n, self.rule)}"

    @property
    def calls(self) -> str:
        """How many calls a trajectory takes."""
        return str(self.n) if self.judge.calls == "1" else f"{self.judge.calls}, the verdict {self.n} times"

    def ask(self, view: View) -> Asking:
        """All samples side by side; calls that are the same are made once."""
        answers = yield from side_by_side(
            _numbered(self.judge.ask(view), number, self.n) for number in range(self.n)
        )
        return voted(answers, self.rule)


def samples_suffix(n: int, rule: str) -> str:
    """What `Sampled` adds to a judge's name."""
    return f", {n} samples, {rule}"


def _numbered(asking: Asking, number: int, n: int) -> Asking:
    """The same asking, the calls for the verdict as those of one sample."""

    def call_of(call: Call) -> Call:
        is_shared = call.purpose in PREPARATIONS or call.role.rpartition(".")[2] != JUDGE_ROLE
        return call if is_shared else replace(call, sample=call.sample * n + number)

    return (yield from changed(asking, call_of))
