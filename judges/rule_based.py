"""The benchmarks' own rules as a judge (the paper's row "Rule-based", "Functional" in its appendix)."""

import math
from dataclasses import dataclass

from judges.base import Answer


@dataclass(frozen=True)
class RuleBasedJudge:
    """Follows the environment's reward. It is the only judge that gets the reward."""

    name: str = "Rule-based"
    inputs: str = "the environment's reward"
    calls: str = "0"
    source: str = "the benchmarks"

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Success above 0.5; the state ``error`` where no reward was recorded."""
        from dataset_script.sources.judgment_file import SUCCESS_ABOVE

        if cum_reward is None or math.isnan(cum_reward):
            return Answer("error")
        return Answer("ok", success=cum_reward > SUCCESS_ABOVE)
