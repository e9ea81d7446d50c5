"""The published dataset: its configurations and their columns, each with type and one sentence, in one place.

The Parquet files, the features that `datasets` sees, the builder's configurations and the tables of the
dataset card are all made from here. What is not listed is not published: no prompt of an agent or a judge,
no name of an annotator, no path of the machine that recorded, and no reward outside ``rewards``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from arb.core.console import markdown_text
from arb.core.suites.questions import Question
from arb.core.vocabulary import SPLITS, STATES

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``type`` is an Arrow type's name, ``class`` (see ``names``), ``image``, or a list.

    Lists are ``list`` (of ``item``, a type as above) and ``structs`` (of ``fields``). ``private`` marks what
    a judge of a blind dataset must not see: it is null there.
    """

    name: str
    type: str
    sentence: str
    names: tuple[str, ...] = ()
    item: str = ""
    fields: tuple["Column", ...] = ()
    private: bool = False

    @property
    def type_description(self) -> str:
        """The type as the card writes it."""
        if self.type == "class":
            return "class: " + ", ".join(f"{index} = {name}" for index, name in enumerate(self.names))
        if self.type == "list":
            return f"list of {self.item}"
        return f"list of {len(self.fields)} fields" if self.type == "structs" else self.type

    @property
    def is_text(self) -> bool:
        """Whether it holds text that somebody wrote or a page showed."""
        return self.type == "string"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One table of the dataset: what a row is, for whom, and its columns."""

    name: str
    row: str
    purpose: str
    columns: tuple[Column, ...]
    splits: tuple[str, ...] = SPLITS
    groups_by_trajectory: bool = False
    """Whether the rows of one trajectory make a Parquet row group of their own."""

    @property
    def has_images(self) -> bool:
        """Whether a column holds images: then shards may be large."""
        return any("image" in (column.type, column.item) for column in self.columns)


def described(columns: tuple[Column, ...]) -> dict[str, Any]:
    """The features of columns, in the words that every version of `datasets` since 2 reads."""
    return {column.name: _description(column) for column in columns}


def _description(column: Column) -> Any:
    if column.type == "class":
        return {"names": list(column.names), "_type": "ClassLabel"}
    if column.type == "structs":
        return [described(column.fields)]
    if column.type == "list":
        return [_description(Column("", column.item, ""))]
    return {"_type": "Image"} if column.type == "image" else {"dtype": column.type, "_type": "Value"}


def arrow_type(column: Column) -> "pa.DataType":
    """A column's type in Parquet."""
    import pyarrow as pa

    if column.type == "class":
        return pa.int64()
    if column.type == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if column.type == "structs":
        return pa.list_(pa.struct([(field.name, arrow_type(field)) for field in column.fields]))
    if column.type == "list":
        return pa.list_(arrow_type(Column("", column.item, "")))
    return pa.type_for_alias(column.type)


ID: Final = Column(
    "trajectory_id", "string", "`<benchmark>/<agent>/<task_id>`, in the spelling of the release."
)

STEP_FIELDS: Final = (
    Column("num", "int32", "The step's number, from 0."),
    Column("url", "string", "The address of the page that the agent saw."),
    Column(
        "action",
        "string",
        "What the agent did, chosen from what this step shows; null on the last step, which is the final "
        "observation.",
    ),
    Column("reasoning", "string", "What the agent wrote before the action; null on the last step."),
    Column(
        "last_action_error",
        "string",
        "What the browser said was wrong with the action of the step before this one (not with this one's); "
        "empty when it worked.",
    ),
    Column("focused_element", "string", "The id of the element that had the focus."),
    Column(
        "text",
        "string",
        "What was observed in words where it is no web page: a tool's result, a terminal's output; null "
        "otherwise.",
    ),
)

ADDED_LATER: Final = ("text", "answer")
"""Columns, and fields of `steps`, that a dataset built before they came does not have: null to readers."""

LABEL_COLUMNS: Final = ("success", "side_effect", "repetition", "optimality")
_SUCCESS: Final = ("unsuccessful", "successful")
_YES: Final = ("no", "yes")


def _answers(who: str, null: str) -> tuple[Column, ...]:
    """The four questions, with who answers them and what null means."""
    return (
        Column("success", "class", f"{who}: did the agent reach the goal? {null}", _SUCCESS),
        Column(
            "side_effect", "class", f"{who}: did unnecessary actions risk an unintended effect? {null}", _YES
        ),
        Column("repetition", "class", f"{who}: did the agent go in circles without progress? {null}", _YES),
        Column(
            "optimality",
            "int8",
            f"{who}: 1 complete failure, 2 suboptimal, 3 somewhat optimal, 4 completely optimal. {null}",
        ),
    )


COLUMNS: Final = (
    ID,
    Column("benchmark", "string", "The benchmark for reporting; WorkArena's second level is `workarena++`."),
    Column("agent", "string", "The agent, as its id spells it.", private=True),
    Column("model", "string", "The language model behind the agent, as recorded.", private=True),
    Column("task_id", "string", "The task, as released for this agent."),
    Column("goal", "string", "What the agent was asked to do, in words."),
    Column("n_steps", "int32", "The length of `steps`: one more than the agent's actions."),
    Column(
        "steps",
        "structs",
        "What the agent saw and did, in order; the last is the final observation.",
        fields=STEP_FIELDS,
    ),
    Column("final_axtree", "string", "The accessibility tree of the final page, in full."),
    Column("final_axtree_pruned", "string", "The same tree in its pruned form."),
    Column("answer", "string", "What the agent said at the end, where that is no action; null otherwise."),
    *_answers("The expert's label", "Null on test, and where the expert was unsure."),
)

_SCREENSHOT_COLUMNS: Final = (
    Column("final_screenshot", "image", "The final page as a picture; null where none was recorded."),
    Column(
        "goal_images",
        "list",
        "The pictures that belong to the goal, where the source has them.",
        item="image",
    ),
)

STEP_COLUMNS: Final = (
    ID,
    *STEP_FIELDS,
    Column("axtree", "string", "The accessibility tree of the page, in full."),
    Column("axtree_pruned", "string", "The same tree in its pruned form."),
    Column("screenshot", "image", "The page as a picture; null where none was recorded."),
    Column(
        "box",
        "list",
        "Left, top, width and height, in pixels of the screenshot, of the element that the action names; "
        "null when it names none, or one that was not on the page.",
        item="float64",
    ),
)

ANNOTATION_COLUMNS: Final = (
    ID,
    Column("annotation", "int8", "1 is the annotation that judges are scored on, 2 a second annotator's."),
    Column("annotator", "string", "Who annotated, as an opaque id; null where that is not known."),
    *_answers("The expert's answer", "Null where the expert was unsure."),
)

JUDGMENT_COLUMNS: Final = (
    ID,
    Column("judge", "string", "The judge, as the source's folder spells it; `functional` is rule-based."),
    Column("judge_model", "string", "The language model behind the judge; null for the rule-based one."),
    Column(
        "has_screenshot", "bool", "Whether the judge was shown the final screenshot; null if not recorded."
    ),
    Column(
        "has_axtree",
        "bool",
        "Whether the judge was shown the final accessibility tree; null if not recorded.",
    ),
    Column("state", "string", f"How the answer ended: {', '.join(STATES)}."),
    *_answers("The judge's verdict", "Null when it gave none that can be read."),
    Column("reply", "string", "The raw reply; null when there was none."),
)

REWARD_COLUMNS: Final = (
    ID,
    Column("cum_reward", "float64", "The reward that the benchmark's own rules gave; may be a fraction."),
    Column(
        "rule_based",
        "class",
        "The rule-based verdict: successful when `cum_reward` is above 0.5. Null when there is no reward.",
        _SUCCESS,
    ),
)

TASK_COLUMNS: Final = (
    Column("task", "string", "The task, in one spelling for all agents."),
    Column("benchmark", "string", "The benchmark for reporting; WorkArena's second level is `workarena++`."),
    Column("split", "string", "The split that every trajectory of the task belongs to."),
    Column("sites", "list", "The sites it plays on; empty where the metadata names none.", item="string"),
    Column(
        "evaluation_types", "list", "How its rules check the outcome; empty as for `sites`.", item="string"
    ),
    Column("difficulty", "string", "Its difficulty, where the metadata grades it."),
    Column("category", "string", "Its kind, where the metadata groups tasks (WorkArena)."),
)

DEFAULT: Final = "trajectories"
ANNOTATIONS: Final = "annotations"

CONFIGURATIONS: Final = MappingProxyType(
    {
        configuration.name: configuration
        for configuration in (
            Configuration(DEFAULT, "a trajectory, text only", "judges that read", COLUMNS),
            Configuration(
                "trajectories_with_screenshot",
                "the same, with the final screenshot",
                "judges that look at the end",
                (*COLUMNS, *_SCREENSHOT_COLUMNS),
            ),
            Configuration(
                "steps",
                "a step, with its trees and screenshot",
                "judges that look at everything",
                STEP_COLUMNS,
                groups_by_trajectory=True,
            ),
            Configuration(
                ANNOTATIONS,
                "an annotation of a dev trajectory, second annotators included",
                "agreement, training",
                ANNOTATION_COLUMNS,
                splits=("dev",),
            ),
            Configuration(
                "judgments",
                "what a published judge answered: verdict and raw reply",
                "re-parsing, comparing, ensembles without a key",
                JUDGMENT_COLUMNS,
            ),
            Configuration(
                "rewards",
                "a trajectory's reward by the benchmark's own rules",
                "the rule-based row; **not for judges**",
                REWARD_COLUMNS,
            ),
            Configuration("tasks", "a task", "breakdowns by site, evaluation and difficulty", TASK_COLUMNS),
        )
    }
)
"""Every configuration by name, the default one first."""


def columns_of(configuration: str, questions: Sequence[Question] = ()) -> tuple[Column, ...]:
    """The columns of a configuration of a suite with these questions: own ones are in `annotations` alone."""
    own = questions if configuration == ANNOTATIONS else ()
    return (*CONFIGURATIONS[configuration].columns, *(_own_column(each) for each in own if each.is_own))


def _own_column(question: Question) -> Column:
    words = ", ".join(f"{answer.value} ({answer.title})" for answer in question.answers)
    sentence = f"The expert's answer: {question.text} One of {words}. Null where the expert was unsure."
    return Column(question.name, "string", markdown_text(sentence))


def features(configuration: str = DEFAULT, questions: Sequence[Question] = ()) -> "Features":
    """The columns of a configuration as `datasets` knows them, in any of its versions from 2.

    A label is stored as its index: 1 is the positive class, so that the metric takes the column as it is.
    ``questions`` are the suite's.
    """
    from datasets import Features

    return Features.from_dict(described(columns_of(configuration, questions)))


def arrow_schema(
    configuration: str = DEFAULT, *, is_older: bool = False, questions: Sequence[Question] = ()
) -> "pa.Schema":
    """The Parquet schema of a configuration; equal to ``features(…).arrow_schema`` but for the metadata.

    The metadata carries the features in the words that every version of `datasets` since 2 reads. Types are
    declared, not inferred, so a column that holds only nulls keeps its own. ``is_older``: without what was
    `ADDED_LATER`.
    """
    import pyarrow as pa

    columns = columns_of(configuration, questions)
    columns = _as_before(columns) if is_older else columns
    carried = json.dumps({"info": {"features": described(columns)}})
    return pa.schema([(c.name, arrow_type(c)) for c in columns], metadata={"huggingface": carried})


def _as_before(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns without those, and without those of their fields, that were added later."""
    return tuple(
        replace(column, fields=_as_before(column.fields))
        for column in columns
        if column.name not in ADDED_LATER
    )


def complete_row(row: Mapping[str, Any], columns: tuple[Column, ...]) -> dict[str, Any]:
    """A row as it is read, with null for what was added to the schema after its file was written."""
    absent = {column.name: None for column in columns if column.name in ADDED_LATER}
    lists = {
        column.name: [complete_row(item, column.fields) for item in row[column.name]]
        for column in columns
        if column.type == "structs" and row[column.name] is not None
    }
    return absent | dict(row) | lists
