"""AgentRewardBench in notebooks: functions that return the results of commands as pandas DataFrames.

    import arb
    arb.board()                                             # the leaderboard
    arb.judge("rule-based", "runs/rules", split="dev")      # run a judge: its prediction file
    arb.score("runs/rules/predictions.jsonl", split="dev")  # how well it judges
    arb.compare("mine.jsonl", "other.jsonl", split="dev")   # whether the difference can be told from chance
    arb.estimate(["judge.jsonl"], "labels.csv")             # agents' success rates from a few labels

Rates are fractions from 0 to 1. The ``attrs`` of a DataFrame have the values that are the same for all rows.
Pass a prediction file as a path, or as a DataFrame with its columns (``trajectory_id``, ``success`` …).
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - in a checkout, no installer has checked it
    sys.exit(
        f"AgentRewardBench needs Python 3.11 or newer; {sys.executable} is Python {sys.version.split()[0]}."
    )

if TYPE_CHECKING:
    from arb.notebook import board, compare, estimate, judge, score

__all__ = ["board", "compare", "estimate", "judge", "score"]


def __getattr__(name: str) -> Any:
    """Return a function of `arb.notebook`. It is imported only now, since it needs pandas."""
    if name in __all__:
        return getattr(import_module("arb.notebook"), name)
    raise AttributeError(f"module 'arb' has no attribute {name!r}")
