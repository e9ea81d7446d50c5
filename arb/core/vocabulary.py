"""The vocabulary: benchmarks, agents, metrics and states."""

from types import MappingProxyType
from typing import Final

BENCHMARK_TITLES: Final = MappingProxyType(
    {
        "assistantbench": "AssistantBench",
        "visualwebarena": "VisualWebArena",
        "webarena": "WebArena",
        "workarena": "WorkArena",
        "workarena++": "WorkArena++",
    }
)
BENCHMARKS: Final = tuple(BENCHMARK_TITLES)
"""The benchmarks' names in reports (paper, section 3.2). Ids of WorkArena++ begin with ``workarena/``."""

BENCHMARK_SHORT_TITLES: Final = MappingProxyType(
    {
        "assistantbench": "AB",
        "visualwebarena": "VWA",
        "webarena": "WA",
        "workarena": "Work",
        "workarena++": "Wk++",
    }
)

AGENT_TITLES: Final = MappingProxyType(
    {
        "GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct": "Qwen2.5-VL",
        "GenericAgent-anthropic_claude-3.7-sonnet": "Claude 3.7 Sonnet",
        "GenericAgent-gpt-4o-2024-11-20": "GPT-4o",
        "GenericAgent-meta-llama_Llama-3.3-70B-Instruct": "Llama 3.3",
    }
)

SPLITS: Final = ("dev", "test")

NO_VERDICT: Final = -1
"""The number that stands for a missing verdict."""

METRIC_TITLES: Final = MappingProxyType(
    {
        "precision": "Precision",
        "recall": "Recall",
        "f1": "F1",
        "kappa": "Kappa",
        "accuracy": "Accuracy",
        "balanced_accuracy": "Balanced accuracy",
        "npv": "NPV",
        "tnr": "TNR",
        "fpr": "FPR",
    }
)
"""The titles of the metrics that compare judges, by name in the board's cells."""

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
"""The parts of a trajectory that a judge may see. ``reward`` is the result of the benchmark's own rules."""

EVIDENCE: Final = MappingProxyType(
    {
        "verdicts": "computed from verdicts",
        "unique counts": "one set of whole numbers fits the printed metrics",
        "several counts": "several sets of whole numbers fit the printed metrics",
        "no counts": "no whole numbers fit the printed metrics",
        "reported": "metrics as reported; nothing is derived from them",
    }
)
"""What the metrics in a row of the board are based on."""

STATES: Final = ("ok", "unsure", "unparsed", "refused", "truncated", "too_long", "error")
"""The outcomes of judging a trajectory. Only ``ok`` comes with a verdict."""
