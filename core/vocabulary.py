"""The benchmark's words, spelled once: benchmarks, agents, labels, states, columns of a prediction file.

The columns of a prediction file in a submitter's words.
"""

from types import MappingProxyType
from typing import Final

BENCHMARKS: Final = ("assistantbench", "visualwebarena", "webarena", "workarena", "workarena++")
"""Reporting names (paper, section 3.2). Ids spell WorkArena++ with the folder ``workarena``."""

BENCHMARK_TITLES: Final = MappingProxyType(
    {
        "assistantbench": "AssistantBench",
        "visualwebarena": "VisualWebArena",
        "webarena": "WebArena",
        "workarena": "WorkArena",
        "workarena++": "WorkArena++",
    }
)
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

LABELS: Final = ("success", "side_effect", "repetition")
"""The labels that judges are scored on; the positive class is "the label is true"."""

LABEL_TITLES: Final = MappingProxyType(
    {"success": "Success", "side_effect": "Side effect", "repetition": "Repetition"}
)

LABEL_ALIASES: Final = MappingProxyType({"looping": "repetition"})

STATES: Final = ("ok", "unsure", "unparsed", "refused", "truncated", "too_long", "error")
"""How a judge's answer ended; only ``ok`` carries true or false, every other state is no verdict."""

PREDICTION_COLUMNS: Final = (
    "trajectory_id",
    "success",
    "side_effect",
    "repetition",
    "optimality",
    "score",
    "state",
    "reasoning",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "latency_s",
)
REQUIRED_PREDICTION_COLUMNS: Final = ("trajectory_id", "success")

NO_VERDICT = -1
"""How a typed column codes that there is no verdict."""

COLUMNS_TOLD: Final = MappingProxyType(
    {
        "trajectory_id": "As released: benchmark/agent/task. Required.",
        "success": "true, false or null. Required.",
        "side_effect": "Did the agent do something else besides? true, false or null.",
        "repetition": "Did it go in circles? true, false or null.",
        "optimality": "1 to 4, or null; kept, not ranked.",
        "score": "The judge’s own probability of success, 0 to 1: its calibration is shown.",
        "state": f"How the answer ended: {', '.join(STATES)}.",
        "reasoning": "The judge’s words.",
        "cost_usd": "Dollars for this trajectory: the board shows the cost of 1,000.",
        "input_tokens": "Whole number.",
        "output_tokens": "Whole number.",
        "latency_s": "Seconds for the answer.",
    }
)
