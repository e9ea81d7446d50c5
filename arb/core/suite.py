"""A suite: the trajectories of a dev and a test split, with rules, tasks and published dev labels.

A suite is public and has no test labels. Shipped suites are folders under ``suites/``. A custom suite is a
folder of the same form anywhere else. Only ``trajectories.csv`` is required:

- ``trajectories.csv``: trajectory_id, split.
- ``dev_labels.csv``: the published dev labels, which the dataset also contains.
- ``tasks.csv``: task, benchmark, split, sites, evaluation_types, difficulty, category. Sites and evaluation
  types are separated by spaces. Unknown values are empty. The official suite's tasks are from the PyPI wheel
  `agent-reward-bench` 0.1.2.
- ``about.md``: a text for the dataset's card.
- ``guidelines.md``: general guidelines for annotators, in Markdown.
- ``suite.toml``: profile, questions to annotators, rules and more, as explained in ``suites/suite.toml.j2``.
"""

import csv
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from arb.core.annotation import DECISION, Annotation
from arb.core.files import csv_text
from arb.core.ids import Trajectory, reading_key
from arb.core.suites.profile import PROFILE_KEYS, SuiteProfile, read_profile
from arb.core.suites.questions import (
    RELEASED_ANSWERS,
    UNSURE,
    Question,
    default_guidelines,
    default_questions,
    questions_sha256,
    read_questions,
)
from arb.core.vocabulary import LABELS, SPLITS


@dataclass(frozen=True)
class SuiteRules:
    """The rules of a suite; ``suites/suite.toml.j2`` explains each of them."""

    files_a_day: int = 2
    files_a_year: int = 20
    accounts_a_year: int = 20
    reserved_share: float = 0.5
    account_age_days: int = 0
    age_exempt: tuple[str, ...] = ()
    private_noise: float = 6.0
    public_noise: float = 3.0
    public_rows_a_year: int = 2
    round_days: int = 30
    fewest_positives: int = 30
    ranking_half: bool = True


def read_rules(table: Any) -> SuiteRules:
    """Return the rules in the table ``[rules]``, with defaults for missing ones.

    Raises ValueError with a message that lists every problem.
    """
    if not isinstance(table, Mapping):
        raise ValueError("rules: write them as a table, [rules]")
    known: dict[str, Any] = {field.name: field.default for field in fields(SuiteRules)}
    problems = [
        f"rules.{name}: there is no such rule; use one of {', '.join(known)}" for name in table.keys() - known
    ]
    found: dict[str, Any] = {}
    for name, default in known.items():
        if name in table:
            found[name] = tuple(table[name]) if isinstance(table[name], list) else table[name]
            if (problem := _problem(found[name], default)) is not None:
                problems.append(f"rules.{name}: {problem}")
            elif name == "reserved_share" and found[name] > 1:
                problems.append(f"rules.{name}: write a share from 0 to 1")
    if problems:
        raise ValueError("; ".join(sorted(problems)))
    return SuiteRules(**found)


def _problem(value: Any, default: Any) -> str | None:
    """Return what to write instead of a rule's value, or None if it has the type of the default."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1_000_000
    match default:
        case bool():
            return None if isinstance(value, bool) else "write true or false"
        case tuple():
            is_names = isinstance(value, tuple) and all(isinstance(name, str) for name in value)
            return None if is_names else 'write a list of names, such as ["ada", "bob"]'
        case float():
            return None if is_number else "write a number from 0 to 999,999"
        case _:
            return None if is_number and isinstance(value, int) else "write a whole number from 0 to 999,999"


SHIPPED = Path(__file__).parent / "suites"
OFFICIAL = "agent-reward-bench"
_KEYS = ("labels", "rules", "questions", "guidelines", *PROFILE_KEYS)
"""The keys of ``suite.toml``."""


class SuiteError(ValueError):
    """Raised for a suite that cannot be used; the message lists every problem and what to do."""


@dataclass(frozen=True)
class Suite:
    """A suite, with its trajectories in the order of their ids."""

    name: str
    trajectories: tuple[Trajectory, ...]
    dev_labels_path: Path
    tasks_path: Path
    about: str = ""
    """A text about the data in Markdown (``about.md``), for the dataset's card."""
    labels_are_public: bool = False
    """Whether anyone can get the test labels elsewhere, so that exact figures may be shown."""
    rules: SuiteRules = field(default_factory=SuiteRules)
    profile: SuiteProfile = field(default_factory=SuiteProfile)
    questions: tuple[Question, ...] = field(default_factory=default_questions)
    """The questions to annotators, in the order in which they are asked."""
    guidelines: str = field(default_factory=default_guidelines)
    """General guidelines for annotators, in Markdown. A question may have its own guide."""

    @property
    def is_official(self) -> bool:
        return self.name == OFFICIAL

    @property
    def own_questions(self) -> tuple[Question, ...]:
        """The suite's questions that have no column in the released format."""
        return tuple(question for question in self.questions if question.is_own)

    def question(self, name: str) -> Question | None:
        """Return the question with a name, or None if the suite does not ask it."""
        return next((question for question in self.questions if question.name == name), None)

    @property
    def question_titles(self) -> dict[str, str]:
        """Titles by question, also of the paper's questions that the suite does not ask."""
        return {each.name: each.title for each in (*default_questions(), *self.questions)}

    @cached_property
    def guidelines_sha256(self) -> str:
        """The SHA-256 (hex) of the questions and guidelines."""
        return questions_sha256(self.questions, self.guidelines)

    @cached_property
    def _by_key(self) -> Mapping[str, Trajectory]:
        return MappingProxyType({reading_key(t.trajectory_id): t for t in self.trajectories})

    def find(self, trajectory_id: str) -> Trajectory | None:
        """Return the trajectory with an id, in any spelling, or None if the suite does not have it."""
        return self._by_key.get(reading_key(trajectory_id))

    def shows_labels(self, split: str) -> bool:
        """Return whether single labels of a split may be shown: those of dev, and of test if they are public.

        Every page, response and command that shows a label, or an error that reveals one, follows this rule.
        """
        return split == "dev" or self.labels_are_public

    def split(self, name: str) -> tuple[Trajectory, ...]:
        """Return the trajectories of ``dev`` or ``test``, by id. Raises SuiteError for any other name."""
        if name not in SPLITS:
            raise SuiteError(f"there is no split {name!r}: use one of {', '.join(SPLITS)}")
        return tuple(t for t in self.trajectories if t.split == name)


def shipped_suites() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/trajectories.csv")))


def load_suite(name_or_folder: str | Path = OFFICIAL) -> Suite:
    """Read a shipped suite by its name, or a custom suite from its folder.

    Raises:
        SuiteError: The suite cannot be used. The message names the file and every invalid row.
    """
    is_shipped = str(name_or_folder) in shipped_suites()
    folder = SHIPPED / str(name_or_folder) if is_shipped else Path(name_or_folder)
    path = folder / "trajectories.csv"
    if not path.is_file():
        raise SuiteError(
            f"no suite {str(name_or_folder)!r}; use a shipped one ({', '.join(shipped_suites())}) or a "
            "folder that contains trajectories.csv (columns trajectory_id, split)"
        )
    about = folder / "about.md"
    name = folder.resolve().name
    return Suite(
        name=name,
        trajectories=_trajectories(path),
        dev_labels_path=folder / "dev_labels.csv",
        tasks_path=folder / "tasks.csv",
        about=about.read_text(encoding="utf-8").strip() if about.is_file() else "",
        **_configuration(folder, name),
    )


def _configuration(folder: Path, name: str) -> dict[str, Any]:
    """Return the fields of `Suite` that ``suite.toml`` and ``guidelines.md`` set.

    Raises SuiteError with a message that lists every problem.
    """
    path = folder / "suite.toml"
    content: dict[str, Any] = {}
    if path.is_file():
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SuiteError(f"{path.name}: cannot be read ({error}); save it as TOML in UTF-8") from error
    labels = content.get("labels", "private")
    found: dict[str, Any] = {"labels_are_public": labels == "public"}
    problems = [
        f"{key[:40]}: is not a known key; use one of {', '.join(_KEYS)}"
        for key in content
        if key not in _KEYS
    ]
    if labels not in ("public", "private"):
        problems.append(f'labels {labels!r}: write labels = "public" or labels = "private"')
    for read in (
        lambda: {"rules": read_rules(content.get("rules", {}))},
        lambda: {"profile": read_profile(content, name)},
        lambda: read_questions(content, folder / "guidelines.md"),
    ):
        try:
            found |= read()
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise SuiteError(f"{path.name}, {'; '.join(problems)}")
    return found


def read_rows(path: Path, needed: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return the rows of a CSV file.

    Raises:
        SuiteError: The file is not CSV in UTF-8, or lacks one of the ``needed`` columns.
        OSError: The file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or ()
            if absent := [name for name in needed if name not in columns]:
                raise SuiteError(f"{path.name}: the columns {', '.join(absent)} are missing; add them")
            return list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SuiteError(f"{path.name}: cannot be read ({error}); save it as CSV in UTF-8") from error


def _trajectories(path: Path) -> tuple[Trajectory, ...]:
    """Return the trajectories in a suite's file, sorted by id."""
    rows = read_rows(path)
    if not rows or not {"trajectory_id", "split"} <= rows[0].keys():
        raise SuiteError(f"{path.name}: needs the columns trajectory_id and split, and at least one row")
    problems: list[str] = []
    by_key: dict[str, Trajectory] = {}
    splits: dict[tuple[str, str], set[str]] = defaultdict(set)
    for number, row in enumerate(rows, start=2):
        spelled, split = row["trajectory_id"] or "", row["split"]
        try:
            run = Trajectory.of(spelled, split)
        except ValueError as error:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: {error}")
            continue
        if split not in SPLITS:
            problems.append(f"row {number}, split {split!r}: use one of {', '.join(SPLITS)}")
        elif by_key.setdefault(reading_key(spelled), run) is not run:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: an earlier row has it; keep one")
        else:
            splits[run.benchmark, run.task].add(split)
    problems += [
        f"task {task}: its runs are in both splits; put them into one split"
        for (_, task), found in splits.items()
        if len(found) > 1
    ]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(sorted(by_key.values(), key=lambda run: run.trajectory_id))


_WORDS = MappingProxyType({"true": "yes", "false": "no"})
"""The answers that the words in ``dev_labels.csv`` stand for, in the columns of `LABELS`."""
_NUMBERS = tuple("123456789")
_ANNOTATOR = re.compile(rf"annotator-\d{{1,4}}|{DECISION}")


def load_dev_labels(suite: Suite) -> tuple[Annotation, ...]:
    """Return the annotations in ``dev_labels.csv``, if it exists, sorted by trajectory and number.

    An empty cell means Unsure if the question is one of the paper's. The columns ``annotator`` (opaque ids)
    and those of the suite's own questions are optional.

    Raises:
        SuiteError: The message names the file and every invalid row, but no label. Rows of test trajectories
            are invalid, because the file is published.
    """
    path = suite.dev_labels_path
    if not path.is_file():
        return ()
    problems: list[str] = []
    asked = [question.name for question in suite.questions if not question.is_own]
    found: dict[tuple[str, int], Annotation] = {}
    for number, row in enumerate(read_rows(path, ("trajectory_id", "annotation", *asked)), start=2):
        label = _read_dev_label(suite, row)
        if not isinstance(label, Annotation):
            problems += [f"row {number}, {problem}" for problem in label]
            continue
        key = label.trajectory_id, label.annotation
        if found.setdefault(key, label) is not label:
            problems.append(f"row {number}: annotation {key[1]} of {key[0]} is given twice; keep one row")
    if not problems:  # otherwise annotation 1 may be in an invalid row
        ids = sorted({name for name, _ in found})
        problems += [f"{name}: has no annotation 1; add it" for name in ids if (name, 1) not in found]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(found[key] for key in sorted(found))


def _read_dev_label(suite: Suite, row: Mapping[str, str | None]) -> Annotation | list[str]:
    """Return the annotation in a row of ``dev_labels.csv``, or a list of the row's problems."""
    spelled, number = row["trajectory_id"] or "", row["annotation"]
    trajectory = suite.find(spelled)
    problems: list[str] = []
    if trajectory is None:
        problems.append(f"trajectory_id {spelled[:80]!r}: not in the suite {suite.name}")
    elif trajectory.split != "dev":
        problems.append(f"trajectory_id {spelled[:80]!r}: is a test trajectory; remove this row")
    if number not in _NUMBERS:
        problems.append("annotation: write a number from 1 (the primary annotation) to 9")
    released = {
        name: tuple(_WORDS) if name in LABELS else values for name, values in RELEASED_ANSWERS.items()
    }
    answers = {}
    for name, words in (released | {each.name: each.values for each in suite.own_questions}).items():
        word = row.get(name, "")
        if word not in ("", *words):
            problems.append(f"{name}: write one of {', '.join(words)}, or leave it empty")
        elif word:
            answers[name] = _WORDS[word] if name in LABELS else word
        elif name in RELEASED_ANSWERS:
            answers[name] = UNSURE
    annotator = row.get("annotator") or None
    if annotator is not None and not _ANNOTATOR.fullmatch(annotator):
        problems.append("annotator: write an id such as annotator-1, not a name, or leave it empty")
    if problems or trajectory is None or number is None:
        return problems
    return Annotation(trajectory.trajectory_id, annotator, answers, annotation=int(number))


def render_dev_labels(labels: Iterable[Annotation], questions: Sequence[Question] = ()) -> str:
    """Return the text of ``dev_labels.csv``, sorted by trajectory and annotation.

    Unsure is an empty cell. The suite's own questions are the last columns. By default, the paper's questions
    are used.
    """
    questions = questions or default_questions()
    asked = {question.name for question in questions}
    released = [name for name in RELEASED_ANSWERS if name in asked]
    own = [question.name for question in questions if question.is_own]
    words = {answer: word for word, answer in _WORDS.items()}
    rows = []
    for label in sorted(labels, key=lambda label: (label.trajectory_id, label.annotation)):
        cells = {name: answer for name, answer in label.answers.items() if answer != UNSURE}
        cells |= {name: words[cells[name]] for name in LABELS if name in cells}
        rows.append(
            [
                *(label.trajectory_id, label.annotation),
                *(cells.get(name, "") for name in released),
                label.annotator or "",
                *(cells.get(name, "") for name in own),
            ]
        )
    return csv_text(("trajectory_id", "annotation", *released, "annotator", *own), rows)
