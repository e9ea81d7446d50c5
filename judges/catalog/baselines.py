"""Judges that call no model: the benchmarks' own rules (the paper's row "Rule-based"), and constant answers.

The constant ones are the floor that every other judge has to leave behind.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from judges.types import Answer, JudgeSession, View, Wants


@dataclass(frozen=True)
class RuleBasedJudge:
    """Follows the environment's reward. It is the only judge that gets the reward."""

    name: str = "Rule-based"
    inputs: str = "the environment's reward"
    calls: str = "0"
    source: str = "the benchmarks"

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Success above 0.5; the state ``error`` where no reward was recorded."""
        from dataset_script.sources.released_files import SUCCESS_ABOVE

        if cum_reward is None or math.isnan(cum_reward):
            return Answer("error")
        return Answer("ok", success=cum_reward > SUCCESS_ABOVE)


@dataclass(frozen=True)
class ConstantJudge:
    """Gives the same answer to every trajectory.

    Its precision on success is the share of successful runs (26.7 % on test): what a coin with "yes" on both
    sides reaches.
    """

    name: str
    answer: bool
    inputs: str = "nothing"
    calls: str = "0"
    source: str = "reference"
    prompts_hash: str = ""
    wants: ClassVar[Wants] = Wants()
    models: ClassVar[Mapping[str, str]] = {}

    def ask(self, view: View) -> JudgeSession:
        yield from ()
        return Answer("ok", success=self.answer)
