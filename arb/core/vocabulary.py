"""The vocabulary: benchmarks, agents, labels, states and the columns of a prediction file."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

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

_YES_NO: Final = MappingProxyType({"true": 1, "false": 0, "yes": 1, "no": 0})
_GRADES: Final = ("complete failure", "suboptimal", "somewhat optimal", "completely optimal")


@dataclass(frozen=True, slots=True)
class Target:
    """A question that judges answer, in a column of the same name in prediction files.

    ``level`` is what the question is about: a run, a step or another part of a run. ``words`` maps the words
    for answers to the numbers that are stored: 1 or 0 for a binary target, a grade from 1 for an ordinal one.
    """

    title: str
    type: Literal["binary", "ordinal"]
    words: Mapping[str, int]
    level: Literal["run", "step", "part"] = "run"

    @property
    def no_answer(self) -> int:
        """The number that is stored for a missing answer."""
        return NO_VERDICT if self.type == "binary" else 0


TARGETS: Final = MappingProxyType(
    {
        "success": Target(
            "Success", "binary", {**_YES_NO, "successful": 1, "unsuccessful": 0, "success": 1, "failure": 0}
        ),
        "side_effect": Target("Side effect", "binary", _YES_NO),
        "repetition": Target("Repetition", "binary", _YES_NO),
        "optimality": Target(
            "Optimality",
            "ordinal",
            {word: grade for grade, word in enumerate(_GRADES, 1)}
            | {f"{grade}. {word}": grade for grade, word in enumerate(_GRADES, 1)},
        ),
    }
)
"""The questions that judges answer in AgentRewardBench."""

LABELS: Final = tuple(name for name, target in TARGETS.items() if target.type == "binary")
"""The labels that judges are scored on. The positive class is true."""

LABEL_TITLES: Final = MappingProxyType({name: TARGETS[name].title for name in LABELS})

LABEL_ALIASES: Final = MappingProxyType({"looping": "repetition"})

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

LOWER_IS_BETTER: Final = frozenset({"fpr"})


def metric_name(metric: str) -> str:
    """Return a metric's name as used within a sentence: ``precision``, ``F1``."""
    title = METRIC_TITLES[metric]
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

ColumnKind = Literal["id", "target", "probability", "state", "text", "amount", "tokens"]
"""The kind of a column's values. An ``amount`` is a number of at least 0, ``tokens`` are whole numbers."""


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """A column of a prediction file, with advice on how to correct an invalid cell."""

    kind: ColumnKind
    description: str
    advice: str
    required: bool = False


_VERDICT_ADVICE: Final = "Write true, false or null (also 1/0, Yes/No)."
_TOKENS_ADVICE: Final = "Write a whole number of at least 0, or null."

PREDICTION_COLUMNS: Final = MappingProxyType(
    {
        "trajectory_id": PredictionColumn(
            "id",
            "As released: benchmark/agent/task. Required.",
            "Write the released id as text: <benchmark>/<agent>/<task_id>.",
            required=True,
        ),
        "success": PredictionColumn(
            "target",
            "true, false or null. Required.",
            "Write true, false or null (also 1/0, Yes/No, Successful/Unsuccessful).",
            required=True,
        ),
        "side_effect": PredictionColumn(
            "target",
            "Did the agent do something needless that can have unwanted effects? true, false or null.",
            _VERDICT_ADVICE,
        ),
        "repetition": PredictionColumn(
            "target", "Did the agent go in circles? true, false or null.", _VERDICT_ADVICE
        ),
        "optimality": PredictionColumn(
            "target", "1 to 4, or null. Stored, but not ranked.", "Write 1, 2, 3, 4 or null."
        ),
        "score": PredictionColumn(
            "probability",
            "The judge’s own probability of success, from 0 to 1. Pages show its calibration.",
            "Write a number from 0 to 1 with a decimal point, or null.",
        ),
        "state": PredictionColumn(
            "state",
            f"The outcome of judging: {', '.join(STATES)}.",
            f"Write one of {', '.join(STATES)}, or null.",
        ),
        "reasoning": PredictionColumn(
            "text", "The judge’s explanation.", "Write a text of at most 200,000 characters, or null."
        ),
        "cost_usd": PredictionColumn(
            "amount",
            "US dollars for this trajectory. The board shows the cost of 1,000 trajectories.",
            "Write dollars as a number of at least 0, or null.",
        ),
        "input_tokens": PredictionColumn("tokens", "The number of tokens sent to models.", _TOKENS_ADVICE),
        "output_tokens": PredictionColumn("tokens", "The number of tokens in replies.", _TOKENS_ADVICE),
        "latency_s": PredictionColumn(
            "amount",
            "How many seconds the judgment took.",
            "Write seconds as a number of at least 0, or null.",
        ),
    }
)
"""The columns of a prediction file in the order in which they are written."""

REQUIRED_PREDICTION_COLUMNS: Final = tuple(
    name for name, column in PREDICTION_COLUMNS.items() if column.required
)
