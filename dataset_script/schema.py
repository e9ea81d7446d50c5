"""The configurations (tables) of the published dataset and their columns, as declared in `schema.toml`.

The Parquet files, the features of `datasets` and the dataset card follow from this declaration. Nothing else
is published: no prompts, no names of annotators, no paths on a machine, and no rewards outside ``rewards``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from arb.core.console import markdown_text
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import Target
from arb.core.vocabulary import SPLITS, STATES

with lazy_imports():
    import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a configuration.

    ``type`` is an Arrow type, ``class`` (with class ``names``), ``image``, ``list`` (of type ``item``) or
    ``structs`` (a list of structs with ``fields``). ``sentence`` describes the column on the dataset card. A
    ``private`` column is null in a blind dataset.
    """

    name: str
    type: str
    sentence: str
    names: tuple[str, ...] = ()
    item: str = ""
    fields: tuple[Column, ...] = ()
    private: bool = False

    @property
    def type_description(self) -> str:
        """The type in words, for the dataset card."""
        if self.type == "class":
            return "class: " + ", ".join(f"{index} = {name}" for index, name in enumerate(self.names))
        if self.type == "list":
            return f"list of {self.item}"
        return f"list of {len(self.fields)} fields" if self.type == "structs" else self.type


@dataclass(frozen=True, slots=True)
class Configuration:
    """A table of the dataset. ``row`` and ``purpose`` say on the card what a row is and what it is for."""

    name: str
    row: str
    purpose: str
    key: tuple[str, ...]
    """The columns that together identify a row. The table may lack some of them."""
    columns: tuple[Column, ...]
    splits: tuple[str, ...] = SPLITS
    groups_by_trajectory: bool = False
    """Whether each Parquet row group holds the rows of one trajectory."""

    @property
    def has_images(self) -> bool:
        """Whether any column has images. Shards with images may be larger."""
        return any("image" in (column.type, column.item) for column in self.columns)


def described(columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return the columns as features in JSON form, which `datasets` reads from version 2 on."""
    return {column.name: _description(column) for column in columns}


def _description(column: Column) -> Any:
    if column.type == "class":
        return {"names": list(column.names), "_type": "ClassLabel"}
    if column.type == "structs":
        return [described(column.fields)]
    if column.type == "list":
        return [_description(Column("", column.item, ""))]
    return {"_type": "Image"} if column.type == "image" else {"dtype": column.type, "_type": "Value"}


def arrow_type(column: Column) -> pa.DataType:
    if column.type == "class":
        return pa.int64()
    if column.type == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if column.type == "structs":
        return pa.list_(pa.struct([(field.name, arrow_type(field)) for field in column.fields]))
    if column.type == "list":
        return pa.list_(arrow_type(Column("", column.item, "")))
    return pa.type_for_alias(column.type)


DEFAULT: Final = "trajectories"
ANNOTATIONS: Final = "annotations"

_DECLARED: Final = tomllib.loads(Path(__file__).with_name("schema.toml").read_text(encoding="utf-8"))


def _columns(group: str, words: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns of a group in schema.toml; ``words`` replace the placeholders in their sentences."""
    columns = []
    for declared in _DECLARED["columns"][group]:
        more: dict[str, Any] = {"sentence": declared["sentence"].format(states=", ".join(STATES), **words)}
        if "names" in declared:
            more["names"] = tuple(declared["names"])
        if "fields" in declared:
            more["fields"] = _columns(declared["fields"], {})
        columns.append(Column(**declared | more))
    return tuple(columns)


def _configuration(declared: dict[str, Any]) -> Configuration:
    words = {name: declared.pop(name, "") for name in ("who", "null")}
    columns = [column for group in declared.pop("groups") for column in _columns(group, words)]
    key, splits = tuple(declared.pop("key")), tuple(declared.pop("splits", SPLITS))
    return Configuration(**declared, key=key, columns=tuple(columns), splits=splits)


CONFIGURATIONS: Final = MappingProxyType(
    {declared["name"]: _configuration(declared) for declared in _DECLARED["configurations"]}
)
"""Every configuration by name, the default one first."""

_ITEM_COLUMNS: Final = _columns("item", {})
STEP_FIELDS: Final = _columns("observation", {})
LABEL_COLUMNS: Final = tuple(column["name"] for column in _DECLARED["columns"]["answers"])


def columns_of(configuration: str, questions: Sequence[Target] = ()) -> tuple[Column, ...]:
    """Return a configuration's columns.

    For `annotations`, these include a column for each of the suite's own questions, and the columns ``step``
    and ``part`` if there are questions about steps or other parts of runs.
    """
    columns = CONFIGURATIONS[configuration].columns
    if configuration != ANNOTATIONS:
        return columns
    levels = {question.level for question in questions}
    items = [column for column in _ITEM_COLUMNS if column.name in levels]
    return (*columns, *items, *(_own_column(each) for each in questions if each.is_own))


def _own_column(question: Target) -> Column:
    words = ", ".join(f"{answer.value} ({answer.title})" for answer in question.answers)
    sentence = f"The expert's answer: {question.text} One of {words}. Null if the expert was unsure."
    return Column(question.name, "string", markdown_text(sentence))


def features(configuration: str = DEFAULT, questions: Sequence[Target] = ()) -> Features:
    """Return the columns of a configuration as `datasets.Features`, for version 2 or later.

    Labels are class indexes, and 1 is the positive class, so the metric accepts the column unchanged.
    """
    from datasets import Features  # noqa: PLC0415 - heavy, and builds do not need it

    return Features.from_dict(described(columns_of(configuration, questions)))


def arrow_schema(configuration: str = DEFAULT, questions: Sequence[Target] = ()) -> pa.Schema:
    """Return the Parquet schema of a configuration, with its features for `datasets` as metadata."""
    columns = columns_of(configuration, questions)
    carried = json.dumps({"info": {"features": described(columns)}})
    return pa.schema([(c.name, arrow_type(c)) for c in columns], metadata={"huggingface": carried})
