"""The targets of a suite: what annotators are asked about a run, a step or another part of a run.

They are tables ``[[targets]]`` in ``suite.toml``, which ``docs/new_suite.md`` explains with an example.
Judges answer a target in the column with its name, and are scored on it by its metrics. The first target is
the main one. Annotators may answer every target with Unsure.
"""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

UNSURE: Final = "unsure"
SUCCESS: Final = "success"
_RELEASED: Final = tomllib.loads(Path(__file__).with_name("released.toml").read_text(encoding="utf-8"))
RELEASED_COLUMNS: Final = MappingProxyType({name: found["column"] for name, found in _RELEASED.items()})
"""The columns of AgentRewardBench's targets in the released annotations, in order."""
RELEASED_WORDS: Final = MappingProxyType({name: found["words"] for name, found in _RELEASED.items()})
"""The word for each answer to AgentRewardBench's targets, and for Unsure, in the released annotations."""
RELEASED_YES_NO: Final = tuple(name for name, words in RELEASED_WORDS.items() if "yes" in words)
RELEASED_ANSWERS: Final = MappingProxyType(
    {
        name: tuple(value for value in RELEASED_WORDS[name] if value != UNSURE)
        for name in dict.fromkeys((*RELEASED_YES_NO, *RELEASED_WORDS))
    }
)
"""The answers to each of AgentRewardBench's targets. Targets with the answers yes and no come first."""

CONTRADICTIONS: Final = (
    ((SUCCESS, "yes"), ("optimality", "1")),
    ((SUCCESS, "no"), ("optimality", "4")),
    (("repetition", "yes"), ("optimality", "4")),
)
"""Pairs of answers to AgentRewardBench's targets that contradict each other."""

NO_ANSWER: Final = -1
"""The code of a missing answer."""

Level = Literal["run", "step", "part"]
TargetType = Literal["binary", "classes", "ordinal", "score"]
MissingRule = Literal["negative", "wrong", "left out"]
AggregateRule = Literal["first", "majority", "median", "adjudicated"]

MOST_ANSWERS: Final = 8
"""The maximum number of answers to a question. With this limit, the key for Unsure is still a digit."""
PAGE_KEYS: Final = "cdfgjkqstu"
"""The keys that annotators' pages use for purposes other than answers."""
RESERVED_NAMES: Final = frozenset(
    {
        "agent", "annotation", "annotator", "annotator_name", "at", "benchmark", "comment", "exp_name",
        "experiment", "flag", "looping", "model_name", "note", "own", "part", "seconds", "split", "step",
        "task_id", "trajectory_id",
    }
)  # fmt: skip
"""Names of other columns, which a question must not have. Names that begin with ``trajectory_`` are reserved
too."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUE: Final = re.compile(r"-?[a-z0-9][a-z0-9_-]{0,39}")
_KEY: Final = re.compile(r"[a-z0-9]")
_TEXT_LENGTH: Final = 10_000
_TARGET_FIELDS: Final = (
    "name", "title", "text", "answers", "values", "guide", "type", "level", "positive", "errors", "missing",
    "aggregate", "main", "metrics", "aliases",
)  # fmt: skip
_ANSWER_FIELDS: Final = ("value", "title", "key", "aliases")

BINARY_METRICS: Final = (
    "precision", "recall", "f1", "accuracy", "balanced_accuracy", "npv", "tnr", "fpr", "kappa",
)  # fmt: skip
METRICS: Final[Mapping[TargetType, tuple[str, ...]]] = MappingProxyType(
    {
        "binary": BINARY_METRICS,
        "classes": ("accuracy", "macro_f1", "kappa"),
        "ordinal": ("weighted_kappa", "accuracy", "mae", "spearman"),
        "score": ("mae", "spearman"),
    }
)
"""For each type of target, the metrics that it may have. By default, the first one is the main metric."""
STEP_METRICS: Final = ("first_error_accuracy",)
"""Additional metrics for a target that declares ``errors``."""


class TargetsInvalid(ValueError):
    """Raised for invalid questions. ``problems`` has messages that name the question and the field."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """An answer to a target: its value in files, its title on pages, and the keyboard key for it.

    Prediction files may also contain its ``aliases``.
    """

    value: str
    title: str
    key: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A question about an item, with a ``guide`` in Markdown on how to answer it.

    Attributes:
        answers: The answers in the order in which pages show them, without Unsure; empty for a score.
        type: ``binary`` for two classes, one of them positive, ``ordinal`` for grades in order, ``classes``
            for answers without an order, and ``score`` for a number.
        level: What an item is: a run, a step of a run, or another named part of it.
        positive: The values that count as positive; only for a binary target.
        errors: The values that mean that a step is wrong, for the metrics that look for the first error.
        missing: How a judge's missing answer counts: as the negative class (only for a binary target), as
            wrong, or not at all.
        aggregate: How several answers become one label when labels are published.
        metrics: The metrics that boards show. The first one is the main metric, which boards are sorted by.
            Without metrics, judges are not scored on the target.
        aliases: Other names of the target's column in prediction files.
    """

    name: str
    title: str
    text: str
    answers: tuple[AnswerChoice, ...] = ()
    guide: str = ""
    type: TargetType = "binary"
    level: Level = "run"
    positive: tuple[str, ...] = ("yes",)
    errors: tuple[str, ...] = ()
    missing: MissingRule = "negative"
    aggregate: AggregateRule = "first"
    metrics: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether the answers are grades."""
        return self.type == "ordinal"

    @property
    def is_own(self) -> bool:
        """Whether the released format has no column for this target."""
        return self.name not in RELEASED_ANSWERS

    @property
    def noun(self) -> str:
        """The word that pages use for one item that the target asks about."""
        return "trajectory" if self.level == "run" else self.level

    @property
    def nouns(self) -> str:
        """The plural of `noun`."""
        return "trajectories" if self.level == "run" else f"{self.level}s"

    @property
    def is_outcome(self) -> bool:
        """Whether this is a binary question about whole runs, such as whether the run succeeded."""
        return self.type == "binary" and self.level == "run"

    @property
    def main_metric(self) -> str:
        return self.metrics[0]

    @property
    def is_ranked_by_counts(self) -> bool:
        """Whether the main metric is a function of TP, FP, FN and TN."""
        return self.type == "binary" and self.main_metric not in STEP_METRICS

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values as declared, except that no comes before yes."""
        values = tuple(answer.value for answer in self.answers)
        return ("no", "yes") if set(values) == {"yes", "no"} else values

    @property
    def choices(self) -> tuple[AnswerChoice, ...]:
        """All answers that a person can choose, with Unsure at the end."""
        return (*self.answers, AnswerChoice(UNSURE, "Unsure", str(len(self.answers) + 1)))

    def code(self, value: str | None) -> int:
        """Return the number that stands for a value in arrays, or -1 for no answer and Unsure.

        It is 1 for a positive and 0 for a negative value of a binary target, else the index in `values`.
        """
        if value not in self.values:
            return NO_ANSWER
        return int(value in self.positive) if self.type == "binary" else self.values.index(value)

    def value_of(self, code: int) -> str | None:
        """Return the first value with this `code`, or None if no value has it."""
        return next((value for value in self.values if code >= 0 and self.code(value) == code), None)

    @property
    def n_codes(self) -> int:
        return 2 if self.type == "binary" else len(self.values)

    @cached_property
    def words(self) -> Mapping[str, int]:
        """The code of every word that prediction files may contain, in lower case."""
        found: dict[str, int] = {}
        for answer in self.answers:
            code = self.code(answer.value)
            numbered = (f"{code + 1}. {answer.title}",) if self.ordered else ()
            truth = {"yes": ("true",), "no": ("false",)}.get(answer.value, ())
            for word in (answer.value, answer.title, *numbered, *truth, *answer.aliases):
                found.setdefault(word.casefold(), code)
        if self.type == "binary" and not {"0", "1"} & found.keys():
            found |= {"1": 1, "0": 0}
        return found  # a plain dict, since a target is sent to other processes

    def answer_title(self, value: str | None) -> str:
        """Return an answer's title, or its value if it is no longer offered, or a dash for None."""
        return next((answer.title for answer in self.choices if answer.value == value), value or "–")

    def answer_words(self, value: str | None) -> str:
        """Return an answer's title, with its number if the answers are ordered ("2. Suboptimal")."""
        title = self.answer_title(value)
        if self.ordered and value in self.values:
            return f"{self.values.index(value) + 1}. {title}"
        return title

    def accepts(self, value: str | None) -> bool:
        """Return whether a value is one of the answers, Unsure, or None (not answered)."""
        if self.type == "score" and value is not None:
            return value == UNSURE or _is_finite(value)
        return value in (None, UNSURE) or value in self.values


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_targets(content: Mapping[str, Any], guidelines: Path) -> dict[str, Any]:
    """Return the ``targets`` and ``guidelines`` of ``suite.toml`` and ``guidelines.md``, if they exist.

    Raises TargetsInvalid with every problem.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    if "targets" in content:
        try:
            found["targets"] = parse_targets(content["targets"])
        except TargetsInvalid as error:
            problems += error.problems
    if guidelines.is_file():
        try:
            found["guidelines"] = guidelines.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            problems.append(f"{guidelines.name}: is not UTF-8 text; save it as UTF-8")
    if "guidelines" in content:
        found["guidelines"] = content["guidelines"]
        if problem := _text_problem(found["guidelines"], is_line=False):
            problems.append(f"guidelines: {problem}")
        if guidelines.is_file():
            problems.append(f"guidelines: the file {guidelines.name} exists too; keep only one of them")
    if problems:
        raise TargetsInvalid(problems)
    return found


@dataclass(frozen=True)
class _Table:
    """The TOML table of a target or an answer. A field with an invalid value gets its default."""

    content: Mapping[str, Any]
    place: str
    problems: list[str]

    def refuse(self, field: str, advice: str) -> None:
        self.problems.append(f"{self.place}, {field}: {advice}")

    def refuse_others(self, known: Sequence[str]) -> None:
        for name in self.content:
            if name not in known:
                self.refuse(name[:40], f"there is no such field; use one of {', '.join(known)}")

    def text(self, field: str, default: str, is_line: bool = True) -> str:
        if field not in self.content:
            return default
        problem = _text_problem(self.content[field], is_line)
        if problem:
            self.refuse(field, problem)
        return default if problem else self.content[field]

    def one_of(self, field: str, choices: Sequence[Any], default: Any = None) -> Any:
        """Return a field's value, by default the first of the choices."""
        value = self.content.get(field, default or choices[0])
        if value in choices:
            return value
        self.refuse(field, f"write one of {', '.join(choices)}")
        return choices[0]

    def some_of(self, field: str, choices: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names in a field, each of which must be one of the choices."""
        names = self.content.get(field, list(default))
        if isinstance(names, list) and all(name in choices for name in names):
            return tuple(names)
        self.refuse(field, f"write a list of some of {', '.join(choices)}")
        return ()

    def words(self, field: str) -> tuple[str, ...]:
        """Return the words in a field, or an empty tuple if the field is missing or invalid."""
        words = self.content.get(field, [])
        if isinstance(words, list) and all(isinstance(word, str) and word.strip() for word in words):
            return tuple(words)
        self.refuse(field, "write a list of words in quotes")
        return ()


def parse_targets(tables: Any) -> tuple[Target, ...]:
    """Return the targets of the tables ``[[targets]]``. Raises TargetsInvalid with every problem."""
    if not isinstance(tables, list) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise TargetsInvalid(["targets: write each target as a table, [[targets]]"])
    problems: list[str] = []
    found, names = [], set[str]()
    for number, content in enumerate(tables, 1):
        name = content.get("name")
        name = name if isinstance(name, str) else ""
        table = _Table(content, f"target {number} ({name[:40]})" if name else f"target {number}", problems)
        if name in names:
            table.refuse("name", "an earlier target has this name; choose another name")
        names |= {name} - {""}
        found.append(_parse_target(table))
    if not any(target.metrics for target in found):
        problems.append("targets: judges are scored on none of them; leave out metrics = [] in one of them")
    if problems:
        raise TargetsInvalid(problems)
    return tuple(found)


def _values_in(content: Mapping[str, Any]) -> set[Any]:
    """Return the values that a table declares as answers. Values that are not strings are left out."""
    answers = content.get("answers", content.get("values"))
    if not isinstance(answers, list):
        return set()
    values = [each.get("value") if isinstance(each, Mapping) else each for each in answers]
    return {value for value in values if isinstance(value, str)}


def _parse_target(table: _Table) -> Target:
    """Return the target in a table. It must not be used if the table has problems."""
    table.refuse_others(_TARGET_FIELDS)
    name = table.content.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        table.refuse("name", "use at most 40 lower-case letters, digits and _, beginning with a letter")
        name = ""
    elif name in RESERVED_NAMES or name.startswith("trajectory_"):
        table.refuse("name", "this name is reserved for another column; choose another name")
    title = table.text("title", name.replace("_", " ").capitalize())
    text = table.text("text", title)
    guide = table.text("guide", "", is_line=False) if table.content.get("guide") != "" else ""
    is_binary = _values_in(table.content) == {"yes", "no"} or "positive" in table.content
    kind = table.one_of("type", get_args(TargetType), "binary" if is_binary else "classes")
    answers = () if kind == "score" else _parse_answers(table, name)
    values = tuple(answer.value for answer in answers)
    positive, errors = table.some_of("positive", values), table.some_of("errors", values)
    if kind == "binary" and not positive:
        positive = ("yes",)
        if values and "yes" not in values:
            table.refuse("positive", f"name the values that count as positive, such as {values[:1]}")
    rules = get_args(MissingRule) if kind == "binary" else get_args(MissingRule)[1:]
    aggregate = table.one_of("aggregate", get_args(AggregateRule))
    has_median = kind in ("ordinal", "score")
    if (aggregate == "median" and not has_median) or (aggregate == "majority" and kind == "score"):
        table.refuse("aggregate", f"write {'median' if has_median else 'majority'} for type {kind}")
    known = METRICS[kind] + (STEP_METRICS if errors else ())
    metrics = table.some_of("metrics", known, default=known)
    if "main" in table.content:
        main = table.one_of("main", known)
        metrics = (main, *(metric for metric in metrics if metric != main))
    return Target(
        name=name,
        title=title,
        text=text,
        answers=answers,
        guide=guide.strip(),
        type=kind,
        level=table.one_of("level", get_args(Level)),
        positive=positive if kind == "binary" else (),
        errors=errors,
        missing=table.one_of("missing", rules),
        aggregate=aggregate,
        metrics=metrics,
        aliases=table.words("aliases"),
    )


def _parse_answers(target: _Table, name: str) -> tuple[AnswerChoice, ...]:
    tables = target.content.get("answers")
    if tables is None and isinstance(target.content.get("values"), list):
        tables = [{"value": value} for value in target.content["values"]]
    if (
        not isinstance(tables, list)
        or not all(isinstance(table, Mapping) for table in tables)
        or not 2 <= len(tables) <= MOST_ANSWERS
    ):
        example = '{ value = "polite", title = "Polite", key = "1" }'
        target.refuse("answers", f"write a list of 2 to {MOST_ANSWERS} answers, such as {example}")
        return ()
    found, words, keys = [], {UNSURE}, {str(len(tables) + 1): "Unsure"}
    for number, content in enumerate(tables, 1):
        table = _Table(content, f"{target.place}, answer {number}", target.problems)
        table.refuse_others(_ANSWER_FIELDS)
        value, key = content.get("value"), content.get("key", str(number))
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            table.refuse("value", "use at most 40 lower-case letters, digits, _ and -, in quotes")
            value = ""
        title = table.text("title", value.replace("_", " ").capitalize())
        own = {value, title.strip().lower()} - {""}
        if own & words:
            problem = "an earlier answer, or Unsure, has this value or title; use another one"
            target.refuse(f"answer {number}", problem)
        words |= own
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            table.refuse("key", "write one lower-case letter or digit, in quotes")
        elif key in PAGE_KEYS:
            table.refuse("key", f"the page already uses {key}; choose another key")
        elif key in keys:
            table.refuse("key", f"{key} is already the key for {keys[key]}; choose another key")
        else:
            keys[key] = f"answer {number}"
        found.append(AnswerChoice(value, title, key, table.words("aliases")))
    fixed = RELEASED_ANSWERS.get(name)
    if fixed and {answer.value for answer in found} != set(fixed):
        target.refuse("answers", f"write the values of the released format: {', '.join(fixed)}")
    return tuple(found)


def _text_problem(value: Any, is_line: bool = True) -> str | None:
    """Return what is wrong with a text, or None."""
    if not isinstance(value, str) or not value.strip():
        return "write a text in quotes"
    if len(value) > _TEXT_LENGTH:
        return f"is over {_TEXT_LENGTH:,} characters; shorten it"
    if is_line and not value.isprintable():
        return "contains line breaks or invisible characters; write it on one line"
    return None


_SHIPPED: Final = Path(__file__).parent


def main_target(targets: Sequence[Target]) -> Target:
    """Return the target by which judges are ranked first: success, or else the first that is scored."""
    found = scored(targets) or targets
    return next((target for target in found if target.name == SUCCESS), found[0])


def verdict_target(targets: Sequence[Target]) -> Target:
    """Return the target that a judge answers by saying whether a run succeeded: the main target.

    Raises ValueError if the main target is not a binary question about whole runs.
    """
    main = main_target(targets)
    if not main.is_outcome:
        raise ValueError(
            f"this needs a suite whose main target is binary and of level run, but {main.name} is "
            f"{main.type}, of level {main.level}"
        )
    return main


def outcome_target(targets: Sequence[Target]) -> Target:
    """Return the outcome target by which agents are rated: the main target, or else the first that is scored.

    Raises ValueError if the suite scores no outcome.
    """
    outcomes = [target for target in (main_target(targets), *scored(targets)) if target.is_outcome]
    if not outcomes:
        raise ValueError(
            "agents are rated by a binary target of level run, and the suite scores none; it has "
            + ", ".join(f"{target.name} ({target.type}, {target.level})" for target in targets)
        )
    return outcomes[0]


def scored(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets that judges are scored on."""
    return tuple(target for target in targets if target.metrics)


@cache
def default_targets() -> tuple[Target, ...]:
    """Return the default targets of a suite: the paper's four, in this project's words."""
    content = (_SHIPPED / "targets.toml").read_text(encoding="utf-8")
    return parse_targets(tomllib.loads(content)["targets"])


@cache
def default_guidelines() -> str:
    """Return the default guidelines of a suite, in Markdown."""
    return (_SHIPPED / "guidelines.md").read_text(encoding="utf-8").strip()


def questions_sha256(questions: Sequence[Target], guidelines: str) -> str:
    """Return the SHA-256 (hex) of questions and guidelines. Keyboard keys do not change it."""
    asked = [
        [q.name, q.title, q.text, [[a.value, a.title] for a in q.answers], q.guide, q.ordered]
        + ([q.level] if q.level != "run" else [])
        for q in questions
    ]
    content = json.dumps([asked, guidelines], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
