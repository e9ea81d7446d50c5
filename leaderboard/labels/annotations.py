"""An annotation, one person's answers on one trajectory, and the files that hold annotations.

Files: the released ``annotations.csv``, whose columns and words no other module knows (a row is an
annotation; the first row of a trajectory is the primary one, later ones are second annotators'); our Parquet,
which also holds comments, times and durations; a template to fill in without the page; and the published dev
labels of a suite, into which no label of test gets. A suite's own questions have a column of their name in
each. Text and bytes in, records out: `labels` opens files.

``questions`` are always the suite's; without any they are the paper's four. Of the released ones a file may
hold answers that the suite does not ask for: they are read.
"""

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from arb.core.ids import TrajectoryId
from arb.core.suite import DevLabels, Suite, Trajectory
from arb.core.suites.questions import RELEASED_ANSWERS, SUCCESS, UNSURE, Question, default_questions
from arb.core.vocabulary import LABELS

COMMENT_LENGTH: Final = 10_000
DECISION: Final = "decision"
"""The annotator of a row that nobody answered: what was decided, in front of a trajectory's answers."""


class AnnotationsInvalid(ValueError):
    """Annotations that cannot be used; ``problems`` names every row and field, and never an answer."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, repr=False)
class Annotation:
    """One person's answers on one trajectory, each a value of its question, "unsure", or None: not answered.

    ``annotator`` is an opaque id, None where it is not known. ``at`` is when the answers were given (aware of
    its time zone), ``seconds`` how long that took; None where not known. ``experiment`` is the released
    ``exp_name``, kept so that a released file can be written again, ``step`` the number of the step that
    decided success, where marked. ``own`` maps the suite's own questions to the answers that were given.
    """

    trajectory_id: str
    annotator: str | None = None
    success: str | None = None
    side_effect: str | None = None
    repetition: str | None = None
    optimality: str | None = None
    comment: str = ""
    at: datetime | None = None
    seconds: float | None = None
    experiment: str = ""
    step: int | None = None
    own: Mapping[str, str] = field(default_factory=dict, hash=False)

    def answer(self, question: str) -> str | None:
        """The answer to a question, by its name."""
        return getattr(self, question) if question in RELEASED_ANSWERS else self.own.get(question)

    def with_answers(self, answers: Mapping[str, str | None]) -> "Annotation":
        """The same with these answers in place of its own to the same questions."""
        released = {name: answer for name, answer in answers.items() if name in RELEASED_ANSWERS}
        own = {name: answer for name, answer in {**self.own, **answers}.items() if name not in released}
        return replace(self, **released, own={name: answer for name, answer in own.items() if answer})

    @property
    def person(self) -> str | None:
        """Who annotated, without the blanks that one name of the released data has; None where not known."""
        return (self.annotator or "").strip() or None

    @property
    def is_decision(self) -> bool:
        """Whether the row holds what was decided, and not what somebody answered."""
        return self.annotator == DECISION

    def __repr__(self) -> str:
        return f"Annotation({self.trajectory_id!r})"  # without its answers: it may stand in a log


def decided_row(row: Annotation, decided: Mapping[str, str | None]) -> Annotation:
    """Return the row of decisions about a trajectory, from its primary row; other answers stay as there."""
    primary = Annotation(row.trajectory_id, DECISION).with_answers(
        {name: row.answer(name) for name in (*RELEASED_ANSWERS, *row.own)}
    )
    return primary.with_answers(decided)


def answered(annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return only what people answered, without decisions."""
    return [annotation for annotation in annotations if not annotation.is_decision]


_COLUMNS: Final = tuple(field.name for field in fields(Annotation) if field.name != "own")


def _own(questions: Sequence[Question]) -> tuple[Question, ...]:
    return tuple(question for question in questions if question.is_own)


def problems_of(annotation: Annotation, questions: Sequence[Question] = ()) -> list[str]:
    """What is wrong with a record, field by field; empty when nothing is. No message repeats an answer."""
    problems = []
    try:
        TrajectoryId.parse(annotation.trajectory_id)
    except ValueError as reason:
        problems.append(f"trajectory_id: {reason}")
    for name in ("annotator", "experiment"):
        text = getattr(annotation, name)
        if text is not None and not text.isprintable():
            problems.append(f"{name}: holds line breaks or invisible characters; write it on one line")
    if annotation.annotator is not None and not annotation.annotator.strip():
        problems.append("annotator: is blank; leave it out where it is not known")
    known = (*default_questions(), *_own(questions))
    problems += [
        f"{question.name}: write {', '.join(question.values)}, {UNSURE} or nothing"
        for question in known
        if not question.accepts(annotation.answer(question.name))
    ]
    problems += [
        f"{name[:40]}: there is no such question"
        for name in annotation.own.keys() - {question.name for question in known}
    ]
    if len(annotation.comment) > COMMENT_LENGTH:
        problems.append(f"comment: is over {COMMENT_LENGTH:,} characters; shorten it")
    if annotation.at is not None and annotation.at.utcoffset() is None:
        problems.append("at: has no time zone; write it with one, such as +00:00")
    if annotation.seconds is not None and not (math.isfinite(annotation.seconds) and annotation.seconds >= 0):
        problems.append("seconds: write a number from 0")
    if annotation.step is not None and annotation.step < 0:
        problems.append("step: write the number of a step, from 0")
    return problems


def with_opaque_annotators(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """The same annotations with ``annotator-1``, ``annotator-2`` … for names, by first appearance.

    Two spellings that differ in blanks around them are one person.
    """
    ids: dict[str, str] = {}
    found = []
    for annotation in annotations:
        name = None if annotation.is_decision else annotation.person
        opaque = ids.setdefault(name, f"annotator-{len(ids) + 1}") if name else None
        found.append(annotation if annotation.is_decision else replace(annotation, annotator=opaque))
    return tuple(found)


_YES_NO = MappingProxyType({"yes": "Yes", "no": "No", UNSURE: "Unsure"})
_OPTIMALITY = MappingProxyType(
    {
        "1": "1. Complete Failure",
        "2": "2. Suboptimal",
        "3": "3. Somewhat Optimal",
        "4": "4. Completely Optimal",
        UNSURE: "Unsure",
    }
)
# Column of the file, question of ours, the file's word for each answer.
_QUESTION_COLUMNS: Final = (
    (
        "trajectory_success",
        "success",
        MappingProxyType({"yes": "Successful", "no": "Unsuccessful", UNSURE: "Unsure"}),
    ),
    ("trajectory_side_effect", "side_effect", _YES_NO),
    ("trajectory_optimality", "optimality", _OPTIMALITY),
    ("trajectory_looping", "repetition", _YES_NO),
)
_ID_COLUMNS: Final = ("benchmark", "model_name", "task_id")
_ABOUT_COLUMNS: Final = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name")
_COLUMN_OF: Final = MappingProxyType({question: column for column, question, _ in _QUESTION_COLUMNS})
_READ: Final = MappingProxyType(
    {
        question: MappingProxyType({word.lower(): answer for answer, word in words.items()})
        for _, question, words in _QUESTION_COLUMNS
    }
)
_WRITE: Final = MappingProxyType({question: words for _, question, words in _QUESTION_COLUMNS})


def is_released_header(line: str) -> bool:
    """Whether the first line of a file names the columns of the released format."""
    return _COLUMN_OF["success"] in line


def parse_released(
    text: str, questions: Sequence[Question] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Every row as a record, in the order of the file; words in any case, with blanks around.

    Names of annotators and experiments are kept as they are written. ``annotator_name``, ``exp_name`` and the
    columns of own questions may be absent, and where a suite has questions other than the paper's, those of
    all but success: a file may be older than a question. What a file holds beside these, and answers to own
    questions that these do not have (any more), is passed over; with ``is_strict``, for what people write, it
    is refused, and so is a missing column or answer. Raises AnnotationsInvalid with every bad cell (rows
    count from 2, after the header); whether a trajectory exists is for the suite to say.
    """
    needed = {*_ID_COLUMNS, *(_COLUMN_OF[name] for name in _needed(questions, is_strict))}
    own = {question.name: _own_words(question) for question in _own(questions)}
    reader = csv.DictReader(io.StringIO(text, newline=""))
    problems: list[str] = []
    found = []
    try:
        columns = set(reader.fieldnames or ())
        if is_strict:
            problems += _unknown_columns(columns - {*_ABOUT_COLUMNS, *_COLUMN_OF.values(), *own}, own)
        if missing := (needed | (own.keys() if is_strict else set())) - columns:
            raise AnnotationsInvalid([f"the columns {', '.join(sorted(missing))} are missing", *problems])
        for number, row in enumerate(reader, start=2):
            released = {
                question: _READ[question].get((row[column] or "").strip().lower())
                for question, column in _COLUMN_OF.items()
                if column in columns
            }
            problems += [
                f"row {number}, {_COLUMN_OF[question]}: not one of the words of the released format"
                for question, answer in released.items()
                if answer is None
            ]
            answers = {
                name: words.get((row[name] or "").strip().lower())
                for name, words in own.items()
                if name in columns
            }
            problems += [
                f"row {number}, {name}: not one of the answers to this question"
                for name, answer in answers.items()
                if answer is None and (is_strict or row[name] is None)  # None: the row is cut short
            ]
            spelled = "/".join((row[name] or "").strip() for name in _ID_COLUMNS)
            who, experiment = row.get("annotator_name") or None, row.get("exp_name") or ""
            given = {name: answer for name, answer in answers.items() if answer}
            found.append(Annotation(spelled, who, **released, experiment=experiment, own=given))
    except csv.Error:
        raise AnnotationsInvalid([f"line {reader.line_num} cannot be read as CSV"]) from None
    if problems:
        raise AnnotationsInvalid(problems)
    return tuple(found)


def _needed(questions: Sequence[Question], is_strict: bool) -> list[str]:
    """The released questions that a file must have; without ``is_strict`` it may be older than the others."""
    questions = tuple(questions) or default_questions()
    needs_all = is_strict or questions == default_questions()
    return [q.name for q in questions if not q.is_own and (needs_all or q.name == SUCCESS)]


def _own_words(question: Question) -> Mapping[str, str]:
    """The answer for each word of a file: titles as on the page, or values."""
    titles = {choice.title.strip().lower(): choice.value for choice in question.choices}
    return {**titles, **{choice.value: choice.value for choice in question.choices}}


def _unknown_columns(names: Iterable[str], own: Iterable[str]) -> list[str]:
    known = ", ".join((*_COLUMN_OF.values(), *own))
    return [
        f"the column {name[:40]!r} is not known; the questions have the columns {known}"
        for name in sorted(names)
    ]


def write_released(
    annotations: Sequence[Annotation], may_be_open: bool = False, questions: Sequence[Question] = ()
) -> str:
    """The records as a released file: its column order, words and line ends (CR LF).

    Own questions follow as columns, with their values; such a cell is empty where nobody was asked. Comments,
    times and durations have no column there. Raises AnnotationsInvalid for an id without three parts, and for
    a released question without an answer: the format has no word for it. With ``may_be_open`` such a cell is
    empty: a file to fill in, not to be read as it is.
    """
    questions = questions or default_questions()
    asked = {question.name for question in questions}
    released = [(column, name) for column, name, _ in _QUESTION_COLUMNS if name in asked]
    own = [question.name for question in _own(questions)]
    problems = []
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\r\n")
    writer.writerow([*_ABOUT_COLUMNS, *(column for column, _ in released), *own])
    for number, annotation in enumerate(annotations, start=1):
        words = [_WRITE[name].get(annotation.answer(name)) for _, name in released]
        problems += [
            f"annotation {number}, {name}: not answered; the released format has no word for that"
            for (_, name), word in zip(released, words, strict=True)
            if word is None and not may_be_open
        ]
        try:
            parts = TrajectoryId.parse(annotation.trajectory_id)
        except ValueError as reason:
            problems.append(f"annotation {number}, trajectory_id: {reason}")
            continue
        described = (annotation.annotator or "", parts.folder, parts.task_id, parts.agent)
        own_words = (annotation.own.get(name) for name in own)
        writer.writerow([*described, annotation.experiment, *words, *own_words])
    if problems:
        raise AnnotationsInvalid(problems)
    return output.getvalue()


def with_unsure(annotation: Annotation, questions: Sequence[Question]) -> Annotation:
    """With Unsure to released questions that the annotator was not asked, since they came to the suite later:
    the released format has no other word."""
    asked = {question.name: UNSURE for question in questions if not question.is_own}
    unasked = {name: unsure for name, unsure in asked.items() if annotation.answer(name) is None}
    return annotation.with_answers(unasked) if unasked else annotation


def _schema(own: Sequence[Question]) -> pa.Schema:
    texts = ("trajectory_id", "annotator", *RELEASED_ANSWERS, "comment")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("at", pa.timestamp("us", tz="UTC")),
            ("seconds", pa.float64()),
            ("experiment", pa.string()),
            ("step", pa.int64()),
            *((question.name, pa.string()) for question in own),
        ]
    )


def write_parquet(annotations: Sequence[Annotation], questions: Sequence[Question] = ()) -> bytes:
    """The records as Parquet, in their order; times in UTC, to the microsecond.

    Raises AnnotationsInvalid with every problem of every record.
    """
    _refuse_bad(annotations, questions)
    rows = [{**{name: getattr(each, name) for name in _COLUMNS}, **each.own} for each in annotations]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_schema(_own(questions))), buffer, compression="zstd")
    return buffer.getvalue()


def parse_parquet(
    content: bytes, questions: Sequence[Question] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Every row as a record, in the order of the file; columns beside the id and the answers may be absent.

    For trusted files; own questions and ``is_strict`` as in `parse_released`. Raises AnnotationsInvalid with
    every bad row (they count from 1).
    """
    own = _own(questions)
    schema = _schema(own)
    try:
        table = pq.read_table(io.BytesIO(content))
        needed = ("trajectory_id", *_needed(questions, is_strict))
        if missing := [name for name in needed if name not in table.column_names]:
            raise AnnotationsInvalid([f"the columns {', '.join(missing)} are missing"])
        names = [question.name for question in own]
        if is_strict and (unknown := set(table.column_names) - set(schema.names)):
            raise AnnotationsInvalid(_unknown_columns(unknown, names))
        kept = pa.schema([field for field in schema if field.name in table.column_names])
        rows = table.select(kept.names).cast(kept).to_pylist()
    except (pa.ArrowException, OSError) as problem:
        # The first line alone: the rest may quote a value.
        what = type(problem).__name__
        raise AnnotationsInvalid(
            [f"cannot be read as Parquet annotations ({what}); write it again"]
        ) from None
    found = tuple(_annotation(row, names) for row in rows)
    if not is_strict:
        found = tuple(_with_offered_answers(annotation, own) for annotation in found)
    _refuse_bad(found, questions)
    return found


def _with_offered_answers(annotation: Annotation, own: Sequence[Question]) -> Annotation:
    """Without answers to own questions that these do not have (any more)."""
    offered = {q.name for q in own if q.accepts(annotation.own.get(q.name))}
    return replace(annotation, own={name: value for name, value in annotation.own.items() if name in offered})


def _annotation(row: dict[str, Any], own_names: Iterable[str]) -> Annotation:
    at = row.get("at")
    own = {name: answer for name in own_names if (answer := row.pop(name, None)) is not None}
    texts = {name: row.get(name) or "" for name in ("trajectory_id", "comment", "experiment")}
    return Annotation(**{**row, **texts, "at": at and at.astimezone(UTC), "own": own})


def _refuse_bad(annotations: Sequence[Annotation], questions: Sequence[Question]) -> None:
    problems = [
        f"row {number}, {problem}"
        for number, annotation in enumerate(annotations, start=1)
        for problem in problems_of(annotation, questions)
    ]
    if problems:
        raise AnnotationsInvalid(problems)


def drawn_share(trajectories: Sequence[Trajectory], share: float, seed: int) -> tuple[Trajectory, ...]:
    """A share of the trajectories, rounded and at least one, drawn by a hash of the seed and the id.

    In their own order. Raises ValueError for a share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share is above 0 and at most 1, such as 0.2, not {share}")
    number = max(1, int(share * len(trajectories) + 0.5))
    ranked = sorted(trajectories, key=lambda t: hashlib.sha256(f"{seed}/{t.trajectory_id}".encode()).digest())
    drawn = {trajectory.trajectory_id for trajectory in ranked[:number]}
    return tuple(trajectory for trajectory in trajectories if trajectory.trajectory_id in drawn)


def template(trajectories: Sequence[Trajectory], annotator: str, questions: Sequence[Question] = ()) -> str:
    """A released file with a row a trajectory, the runs on one task together, and every answer open."""
    by_task = sorted(trajectories, key=lambda t: (t.benchmark, t.task, t.agent))
    open_ones = [Annotation(t.trajectory_id, annotator) for t in by_task]
    return write_released(open_ones, may_be_open=True, questions=questions)


_ANSWERS = {"yes": True, "no": False}
MOST_ANNOTATIONS = 9


def dev_labels_of(suite: Suite, annotations: Iterable[Annotation]) -> tuple[DevLabels, ...]:
    """What the annotations say of the suite's dev trajectories, the first of each as its primary one.

    Annotators have opaque ids, by their first appearance among all annotations; what was Unsure, or not
    answered, is None. Raises AnnotationsInvalid where a trajectory has more annotations than can be kept.
    """
    is_dev = {trajectory.trajectory_id for trajectory in suite.split("dev")}
    numbers: Counter[str] = Counter()
    found = []
    for annotation in with_opaque_annotators(annotations):
        if annotation.trajectory_id not in is_dev:
            continue
        numbers[annotation.trajectory_id] += 1
        optimality = annotation.optimality or ""
        found.append(
            DevLabels(
                annotation.trajectory_id,
                numbers[annotation.trajectory_id],
                *(_ANSWERS.get(annotation.answer(label) or "") for label in LABELS),
                optimality=int(optimality) if optimality.isdigit() else None,
                annotator=annotation.annotator,
                own={name: answer for name, answer in annotation.own.items() if answer != UNSURE},
            )
        )
    if problems := [
        f"{trajectory_id}: has {number} annotations; dev labels keep {MOST_ANNOTATIONS}"
        for trajectory_id, number in numbers.items()
        if number > MOST_ANNOTATIONS
    ]:
        raise AnnotationsInvalid(problems)
    return tuple(found)


def repeated_rows(files: Iterable[tuple[str, Iterable[Annotation]]]) -> list[str]:
    """Where one person has a row on a trajectory in two files; no message repeats an answer."""
    seen: dict[tuple[str | None, str], str] = {}
    problems = []
    for name, annotations in files:
        for annotation in annotations:
            who = annotation.person
            first = seen.setdefault((who, annotation.trajectory_id), name)
            if who and first != name:
                problems.append(f"{annotation.trajectory_id}: {who} has a row in {first} and one in {name}")
    return problems
