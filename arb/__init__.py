"""AgentRewardBench for notebooks. Each function returns the result of a command as a pandas DataFrame.

    import arb
    arb.board()                                             # return the leaderboard
    arb.judge("rule-based", "runs/rules", split="dev")      # run a judge and return its predictions
    arb.score("runs/rules/predictions.jsonl", split="dev")  # compute precision, recall, F1 and kappa
    arb.compare("mine.jsonl", "other.jsonl", split="dev")   # test whether two judges differ
    arb.validate(labels, verdicts)                          # measure judges on a table of your own
    arb.estimate(["judge.jsonl"], "labels.csv")             # estimate agents' success rates from few labels
    arb.reward("rubric", model="gpt-4o", max_usd=5)         # return a reward function for training loops
    arb.inspect.scorer("rubric", model="gpt-4o")            # return a scorer for Inspect
    arb.scout.scanner("rubric", model="gpt-4o")             # return a scanner for Inspect Scout

Rates are fractions from 0 to 1. Values that apply to the whole table, such as the version of the labels, are
in its ``attrs``. Pass a prediction file as a path, or as a DataFrame with the same columns.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - in a checkout, no installer has checked it
    sys.exit(
        f"AgentRewardBench needs Python 3.11 or newer; {sys.executable} is Python {sys.version.split()[0]}."
    )

from arb.core import __version__

if TYPE_CHECKING:
    from arb import inspect, scout
    from arb.notebook import board, compare, estimate, judge, score, validate
    from arb.rewards import JudgeReward as reward

__all__ = [
    "__version__",
    "board",
    "compare",
    "estimate",
    "inspect",
    "judge",
    "reward",
    "score",
    "scout",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a function or module when it is first used, because it loads heavy libraries."""
    if name in ("inspect", "scout"):
        return import_module(f"arb.{name}")
    if name == "reward":
        return import_module("arb.rewards").JudgeReward
    if name in __all__:
        return getattr(import_module("arb.notebook"), name)
    raise AttributeError(f"module 'arb' has no attribute {name!r}")
