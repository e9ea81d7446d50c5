"""The vocabulary: benchmarks, agents, metrics and states."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_NAMES: Final[Mapping[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8")
)
BENCHMARK_TITLES: Final = MappingProxyType(_NAMES["benchmarks"])
BENCHMARKS: Final = tuple(BENCHMARK_TITLES)
AGENT_TITLES: Final = MappingProxyType(_NAMES["agents"])
METRIC_TITLES: Final = MappingProxyType(_NAMES["metrics"])
"""The titles of the metrics of binary targets, keyed by the metric's name in the board's cells."""
EVIDENCE: Final = MappingProxyType(_NAMES["evidence"])
"""What the metrics in a row of the board can be based on."""

SPLITS: Final = ("dev", "test")

NO_VERDICT: Final = -1
"""The number that stands for a missing verdict."""

LOWER_IS_BETTER: Final = frozenset({"fpr", "mae"})


def is_low(metric: str) -> bool:
    """Return whether lower values of a metric are better."""
    return metric in LOWER_IS_BETTER


_OTHER_METRICS: Final = MappingProxyType({"mae": "MAE", "macro_f1": "macro F1", "spearman": "Spearman"})


def metric_name(metric: str) -> str:
    """Return a metric's name as used within a sentence: ``precision``, ``F1``, ``weighted kappa``."""
    if metric in _OTHER_METRICS:
        return _OTHER_METRICS[metric]
    title = METRIC_TITLES.get(metric) or metric.replace("_", " ")
    return title if title.isupper() else title.lower()


JUDGE_KINDS: Final = ("LLM judge", "Trained judge", "Ensemble", "Rule-based", "Human", "Other")
JUDGE_INPUTS: Final = (
    "tree",
    "screenshot",
    "tree and screenshot",
    "all screenshots",
    "steps only",
    "changes",
    "caption",
    "reward",
    "other",
)
"""The names for what a judge may see of a trajectory. ``reward`` is the result of the benchmark's own
rules."""

STATES: Final = ("ok", "unsure", "unparsed", "refused", "truncated", "too_long", "error")
"""The outcomes of judging a trajectory. Only ``ok`` comes with a verdict."""
