"""The columns of a prediction file: ids, the targets of its suite, and facts about each judgment."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from arb.core.suites.targets import Target, default_targets, main_target
from arb.core.vocabulary import STATES

ColumnKind = Literal["id", "part", "target", "probability", "state", "text", "amount", "tokens"]
"""The kind of a column's values. An ``amount`` is a number of at least 0, ``tokens`` are whole numbers."""


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """A column of a prediction file, with advice on how to correct an invalid cell."""

    kind: ColumnKind
    description: str
    advice: str
    is_required: bool = False
    target: Target | None = None


_TOKENS_ADVICE: Final = "Write a whole number of at least 0, or null."
_ID: Final = PredictionColumn(
    "id",
    "As released: benchmark/agent/task. Required.",
    "Write the released id as text: <benchmark>/<agent>/<task_id>.",
    is_required=True,
)
_PARTS: Final = MappingProxyType(
    {
        "step": PredictionColumn(
            "part",
            "The step of the trajectory that the row is about, or null for the whole trajectory.",
            "Write the number of the step as in the suite, or null.",
        ),
        "part": PredictionColumn(
            "part",
            "The part of the trajectory that the row is about, or null for the whole trajectory.",
            "Write the name of the part as in the suite, or null.",
        ),
    }
)
_FACTS: Final = MappingProxyType(
    {
        "score": PredictionColumn(
            "probability",
            "The judge’s own probability of {main}, from 0 to 1. Pages show its calibration.",
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


@cache
def prediction_columns(targets: tuple[Target, ...] = ()) -> Mapping[str, PredictionColumn]:
    """Return the columns of a prediction file in the order in which they are written.

    Without ``targets``, they are AgentRewardBench's.
    """
    targets = targets or default_targets()
    main = main_target(targets)
    found = {"trajectory_id": _ID}
    levels = {target.level for target in targets}
    found |= {name: column for name, column in _PARTS.items() if name in levels}
    found |= {target.name: _target_column(target, target is main and levels == {"run"}) for target in targets}
    for name, column in _FACTS.items():
        description = column.description.replace("{main}", main.title.lower())
        found[name] = PredictionColumn(column.kind, description, column.advice)
    return MappingProxyType(found)


def _target_column(target: Target, is_required: bool) -> PredictionColumn:
    if target.type == "score":
        values = "a number"
    elif target.type == "binary" and set(target.values) == {"yes", "no"}:
        values = "true, false"
    else:
        values = ", ".join(target.values)
    also = ""
    if values == "true, false":
        others = "/".join(alias.capitalize() for answer in target.answers for alias in answer.aliases[:1])
        also = f" (also 1/0, Yes/No{', ' if others else ''}{others})"
    description = f"{target.text} {values} or null."
    if is_required:
        description += " Required."
    elif not target.metrics:
        description += " Stored, but not ranked."
    return PredictionColumn("target", description, f"Write {values} or null{also}.", is_required, target)


def column_of(name: str, columns: Mapping[str, PredictionColumn]) -> str:
    """Return the column that a name in a file means; some targets have older names too."""
    for column, found in columns.items():
        if found.target is not None and name in found.target.aliases:
            return column
    return name
