"""The columns of a prediction file: ids, the targets of its suite, and other fields of each judgment."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from arb.core.suites.targets import Target, default_targets, main_target
from arb.core.vocabulary import STATES

ColumnKind = Literal["id", "part", "target", "probability", "state", "text", "amount", "tokens"]
"""The kind of a column's values. An ``amount`` is a number of at least 0, and ``tokens`` is an integer."""


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """A column of a prediction file, with advice on how to correct an invalid cell."""

    kind: ColumnKind
    description: str
    advice: str
    is_required: bool = False
    target: Target | None = None


_COLUMNS: Final = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
_PARTS: Final = ("step", "part")


@cache
def prediction_columns(targets: tuple[Target, ...] = ()) -> Mapping[str, PredictionColumn]:
    """Return the columns of a prediction file in the order in which they are written.

    Without ``targets``, they are AgentRewardBench's.
    """
    targets = targets or default_targets()
    main = main_target(targets)
    levels = {target.level for target in targets}
    words = {"{main}": main.title.lower(), "{states}": ", ".join(STATES)}
    found: dict[str, PredictionColumn] = {}
    for name, about in _COLUMNS.items():
        if name == "score":
            found |= {each.name: _target_column(each, each is main and levels == {"run"}) for each in targets}
        if name not in _PARTS or name in levels:
            found[name] = _fixed_column(words, **about)
    return MappingProxyType(found)


def _fixed_column(words: Mapping[str, str], description: str, advice: str, **about: Any) -> PredictionColumn:
    for word, meaning in words.items():
        description, advice = description.replace(word, meaning), advice.replace(word, meaning)
    return PredictionColumn(description=description, advice=advice, **about)


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
    """Return the usual name of the column that a name in a file refers to. The name may be an alias."""
    for column, found in columns.items():
        if found.target is not None and name in found.target.aliases:
            return column
    return name
