"""The questions that a suite asks annotators, with answers and guidelines.

They are tables ``[[questions]]`` in ``suite.toml``, which ``docs/new_suite.md`` explains with an example.
``success`` is required, because judges are scored on it. The answers to ``success``, ``side_effect``,
``repetition`` and ``optimality`` are fixed, because the released format has columns for them. Their titles,
texts and guides can be changed. Any question may be answered with Unsure.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from arb.core.vocabulary import LABEL_TITLES

UNSURE: Final = "unsure"
SUCCESS: Final = "success"
RELEASED_ANSWERS: Final = MappingProxyType(
    {
        SUCCESS: ("yes", "no"),
        "side_effect": ("yes", "no"),
        "repetition": ("yes", "no"),
        "optimality": ("1", "2", "3", "4"),
    }
)
"""The questions of the paper (section 3.1) and their answers. The released format has a column for each."""

MOST_ANSWERS: Final = 8
"""The most answers to a question. With this limit, the key for Unsure is still a digit."""
PAGE_KEYS: Final = "cdfgjkqstu"
"""The keys that annotators' pages use for other things than answers."""
RESERVED_NAMES: Final = frozenset(
    {
        "agent", "annotation", "annotator", "annotator_name", "at", "benchmark", "comment", "exp_name",
        "experiment", "flag", "looping", "model_name", "note", "own", "seconds", "split", "step", "task_id",
        "trajectory_id",
    }
)  # fmt: skip
"""Names of other columns, which a question must not have. Names with ``trajectory_`` are reserved too."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_KEY: Final = re.compile(r"[a-z0-9]")
_TEXT_LENGTH: Final = 10_000
_QUESTION_FIELDS: Final = ("name", "title", "text", "answers", "guide", "ordered")
_ANSWER_FIELDS: Final = ("value", "title", "key")


class QuestionsInvalid(ValueError):
    """Raised for invalid questions. ``problems`` are messages that name the question and the field."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """An answer to a question: its value in files, its title on pages, and the keyboard key for it."""

    value: str
    title: str
    key: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question to annotators, with a ``guide`` in Markdown on how to answer it.

    ``answers`` are in the order in which pages show them, without Unsure. If ``ordered``, they are grades.
    """

    name: str
    title: str
    text: str
    answers: tuple[AnswerChoice, ...]
    guide: str = ""
    ordered: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the suite has added this question, which has no column in the released format."""
        return self.name not in RELEASED_ANSWERS

    @property
    def values(self) -> tuple[str, ...]:
        """The values in the order of their codes, as declared, except that no comes before yes."""
        values = tuple(answer.value for answer in self.answers)
        return ("no", "yes") if set(values) == {"yes", "no"} else values

    @property
    def choices(self) -> tuple[AnswerChoice, ...]:
        """All answers that a person can choose, with Unsure at the end."""
        return (*self.answers, AnswerChoice(UNSURE, "Unsure", str(len(self.answers) + 1)))

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
        return value in (None, UNSURE) or value in self.values


def read_questions(content: Mapping[str, Any], guidelines: Path) -> dict[str, Any]:
    """Return the ``questions`` and ``guidelines`` of ``suite.toml`` and ``guidelines.md``, if they exist.

    Raises QuestionsInvalid with every problem.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    if "questions" in content:
        try:
            found["questions"] = parse_questions(content["questions"])
        except QuestionsInvalid as error:
            problems += error.problems
    if guidelines.is_file():
        try:
            found["guidelines"] = guidelines.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            problems.append(f"{guidelines.name}: is not UTF-8 text; save it as UTF-8")
    if "guidelines" in content:
        found["guidelines"] = content["guidelines"]
        problems += _text_problem(found["guidelines"], "guidelines", is_line=False)
        if guidelines.is_file():
            problems.append(f"guidelines: the file {guidelines.name} exists too; keep only one of them")
    if problems:
        raise QuestionsInvalid(problems)
    return found


def parse_questions(tables: Any) -> tuple[Question, ...]:
    """Return the questions of the tables ``[[questions]]``. Raises QuestionsInvalid with every problem."""
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise QuestionsInvalid(["questions: write each question as a table, [[questions]]"])
    problems: list[str] = []
    found = [_parse_question(table, _place(n, table), problems) for n, table in enumerate(tables, 1)]
    names = [table.get("name") for table in tables]
    problems += [
        f"{_place(number, table)}, name: an earlier question has this name; choose another name"
        for number, table in enumerate(tables, 1)
        if isinstance(table.get("name"), str) and table["name"] in names[: number - 1]
    ]
    if SUCCESS not in names:
        problems.append(
            f'questions: add a question with name = "{SUCCESS}" and the answers yes and no, '
            "because judges are scored on it"
        )
    if problems:
        raise QuestionsInvalid(problems)
    return tuple(found)


def _place(number: int, table: Mapping[str, Any]) -> str:
    name = table.get("name")
    return f"question {number} ({name[:40]})" if isinstance(name, str) and name else f"question {number}"


def _parse_question(table: Mapping[str, Any], place: str, problems: list[str]) -> Question:
    """Return a question and add its problems to ``problems``. A question with problems must not be used."""
    problems += _unknown_fields(table, _QUESTION_FIELDS, place)
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append(
            f"{place}, name: use at most 40 lower-case letters, digits and _, beginning with a letter"
        )
        name = ""
    elif name in RESERVED_NAMES or name.startswith("trajectory_"):
        problems.append(f"{place}, name: this name is reserved for another column; choose another name")
    title = table.get("title", LABEL_TITLES.get(name) or name.replace("_", " ").capitalize())
    text, guide = table.get("text"), table.get("guide", "")
    if name or "title" in table:  # without a name there is no default title
        problems += _text_problem(title, f"{place}, title")
    problems += _text_problem(text, f"{place}, text")
    if guide != "":
        problems += _text_problem(guide, f"{place}, guide", is_line=False)
    ordered = table.get("ordered", name == "optimality")
    if not isinstance(ordered, bool):
        problems.append(f"{place}, ordered: write true or false")
    answers = _parse_answers(table.get("answers"), name, place, problems)
    text = text if isinstance(text, str) else ""
    guide = guide.strip() if isinstance(guide, str) else ""
    return Question(name, title, text, answers, guide, ordered)


def _parse_answers(tables: Any, name: str, place: str, problems: list[str]) -> tuple[AnswerChoice, ...]:
    if (
        not isinstance(tables, list)
        or not all(isinstance(table, Mapping) for table in tables)
        or not 2 <= len(tables) <= MOST_ANSWERS
    ):
        problems.append(
            f"{place}, answers: write a list of 2 to {MOST_ANSWERS} answers, such as "
            '{ value = "polite", title = "Polite", key = "1" }'
        )
        return ()
    found, words, keys = [], {UNSURE}, {str(len(tables) + 1): "Unsure"}
    for number, table in enumerate(tables, 1):
        where = f"{place}, answer {number}"
        problems += _unknown_fields(table, _ANSWER_FIELDS, where)
        value, key = table.get("value"), table.get("key", str(number))
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            problems.append(f"{where}, value: use at most 40 lower-case letters, digits, _ and -, in quotes")
            value = ""
        title = table.get("title", value.replace("_", " ").capitalize())
        if value or "title" in table:
            title_problems = _text_problem(title, f"{where}, title")
            problems += title_problems
            own = {value, "" if title_problems else title.strip().lower()} - {""}
            if own & words:
                problems.append(
                    f"{where}: an earlier answer, or Unsure, has this value or title; use another one"
                )
            words |= own
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            problems.append(f"{where}, key: write one lower-case letter or digit, in quotes")
        elif key in PAGE_KEYS:
            problems.append(f"{where}, key: the page already uses {key}; choose another key")
        elif key in keys:
            problems.append(f"{where}, key: {key} is already the key for {keys[key]}; choose another key")
        else:
            keys[key] = f"answer {number}"
        found.append(AnswerChoice(value, title, key))
    fixed = RELEASED_ANSWERS.get(name)
    if fixed and {answer.value for answer in found} != set(fixed):
        problems.append(f"{place}, answers: write the values of the released format: {', '.join(fixed)}")
    return tuple(found)


def _unknown_fields(table: Mapping[str, Any], known: Sequence[str], place: str) -> list[str]:
    return [
        f"{place}, {name[:40]}: there is no such field; use one of {', '.join(known)}"
        for name in table
        if name not in known
    ]


def _text_problem(value: Any, place: str, is_line: bool = True) -> list[str]:
    if not isinstance(value, str) or not value.strip():
        return [f"{place}: write a text in quotes"]
    if len(value) > _TEXT_LENGTH:
        return [f"{place}: is over {_TEXT_LENGTH:,} characters; shorten it"]
    if is_line and not value.isprintable():
        return [f"{place}: contains line breaks or invisible characters; write it on one line"]
    return []


_SHIPPED: Final = Path(__file__).parent


@cache
def default_questions() -> tuple[Question, ...]:
    """Return the default questions of a suite: the paper's four, in this project's words."""
    content = (_SHIPPED / "questions.toml").read_text(encoding="utf-8")
    return parse_questions(tomllib.loads(content)["questions"])


@cache
def default_guidelines() -> str:
    """Return the default guidelines of a suite, in Markdown."""
    return (_SHIPPED / "guidelines.md").read_text(encoding="utf-8").strip()


def questions_sha256(questions: Sequence[Question], guidelines: str) -> str:
    """Return the SHA-256 (hex) of questions and guidelines. Keyboard keys do not change it."""
    asked = [
        [q.name, q.title, q.text, [[a.value, a.title] for a in q.answers], q.guide, q.ordered]
        for q in questions
    ]
    content = json.dumps([asked, guidelines], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
