"""AgentRewardBench in notebooks: functions that return the results of commands as pandas DataFrames.

    import arb
    arb.board()                                             # the leaderboard
    arb.judge("rule-based", "runs/rules", split="dev")      # run a judge: its prediction file
    arb.score("runs/rules/predictions.jsonl", split="dev")  # how well it judges
    arb.compare("mine.jsonl", "other.jsonl", split="dev")   # whether the difference can be told from chance
    arb.estimate(["judge.jsonl"], "labels.csv")             # agents' success rates from a few labels

Rates are fractions from 0 to 1. ``attrs`` of each DataFrame has what holds for all rows. A prediction file
may be given as its path or as a DataFrame with ``trajectory_id``, ``success`` and the format's other columns.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arb.notebook import board, compare, estimate, judge, score

__all__ = ["board", "compare", "estimate", "judge", "score"]


def __getattr__(name: str) -> Any:
    """Load the functions when one is first used: they need pandas, and every command imports ``arb``."""
    if name in __all__:
        return getattr(import_module("arb.notebook"), name)
    raise AttributeError(f"module 'arb' has no attribute {name!r}")
