"""The content of files with annotations, as text and bytes; `labels` opens the files.

- The released ``annotations.csv``. Only this module knows its columns and words. A row is an annotation, and
  the first row of a trajectory is the primary one.
- Our Parquet format, which also has comments, times and durations.
- A template to fill in without the page.
- A suite's published dev labels, which never contain a label of test.

In each of these, a suite's own questions have a column with their name. ``questions`` are always those of the
suite, by default the paper's four. A file may contain answers to released questions that the suite
does not ask.
"""

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from arb.core.annotation import Annotation
from arb.core.ids import Trajectory, TrajectoryId
from arb.core.suite import Suite
from arb.core.suites.questions import RELEASED_ANSWERS, SUCCESS, UNSURE, Question, default_questions

COMMENT_LENGTH: Final = 10_000
MOST_ANNOTATIONS: Final = 9
"""The most annotations that a trajectory may have in a file of dev labels."""


class AnnotationsInvalid(ValueError):
    """Raised when annotations cannot be used; ``problems`` names rows and fields, but never an answer."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


def _own(questions: Sequence[Question]) -> tuple[Question, ...]:
    return tuple(question for question in questions if question.is_own)


def _known(questions: Sequence[Question]) -> dict[str, Question]:
    """Return the questions that a file may answer: those of the paper and the suite's own, by name."""
    return {question.name: question for question in (*default_questions(), *_own(questions))}


def problems_of(annotation: Annotation, questions: Sequence[Question] = ()) -> list[str]:
    """Return the problems of an annotation, field by field. No message repeats an answer."""
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
        problems.append("annotator: is blank; leave it out if it is not known")
    known = _known(questions)
    problems += [
        f"{question.name}: write {', '.join(question.values)}, {UNSURE} or nothing"
        for question in known.values()
        if not question.accepts(annotation.answers.get(question.name))
    ]
    problems += [
        f"{name[:40]}: there is no such question" for name in annotation.answers if name not in known
    ]
    if len(annotation.comment) > COMMENT_LENGTH:
        problems.append(f"comment: is over {COMMENT_LENGTH:,} characters; shorten it")
    if annotation.at is not None and annotation.at.utcoffset() is None:
        problems.append("at: has no time zone; write it with one, such as +00:00")
    if annotation.seconds is not None and not (math.isfinite(annotation.seconds) and annotation.seconds >= 0):
        problems.append("seconds: write 0 or a greater number")
    if annotation.step is not None and annotation.step < 0:
        problems.append("step: write the number of a step, counted from 0")
    return problems


def with_opaque_annotators(annotations: Iterable[Annotation], prefix: str = "annotator-") -> list[Annotation]:
    """Return the annotations with ``annotator-1``, ``annotator-2`` … as names, by first appearance.

    Names that differ only in blanks around them are one person. Rows of decisions stay unchanged.
    """
    ids: dict[str, str] = {}
    found = []
    for annotation in annotations:
        name = annotation.person
        if name and not annotation.is_decision:
            name = ids.setdefault(name, f"{prefix}{len(ids) + 1}")
        found.append(replace(annotation, annotator=name))
    return found


_YES_NO: Final = MappingProxyType({"yes": "Yes", "no": "No", UNSURE: "Unsure"})
_GRADES: Final = MappingProxyType(
    {
        "1": "1. Complete Failure",
        "2": "2. Suboptimal",
        "3": "3. Somewhat Optimal",
        "4": "4. Completely Optimal",
        UNSURE: "Unsure",
    }
)
_WORDS: Final = MappingProxyType(
    {
        SUCCESS: MappingProxyType({"yes": "Successful", "no": "Unsuccessful", UNSURE: "Unsure"}),
        "side_effect": _YES_NO,
        "optimality": _GRADES,
        "repetition": _YES_NO,
    }
)
"""The released word for each answer, by question in the order of the columns."""
_COLUMNS: Final = MappingProxyType(
    {
        SUCCESS: "trajectory_success",
        "side_effect": "trajectory_side_effect",
        "optimality": "trajectory_optimality",
        "repetition": "trajectory_looping",
    }
)
_ID_COLUMNS: Final = ("benchmark", "model_name", "task_id")
_ABOUT_COLUMNS: Final = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name")


def is_released_header(line: str) -> bool:
    """Return whether the first line of a file names the columns of the released format."""
    return _COLUMNS[SUCCESS] in line


def _answers_by_word(question: Question) -> dict[str, str]:
    """Return answers by word in lower case. The words of own questions are their titles and values."""
    if not question.is_own:
        return {word.lower(): answer for answer, word in _WORDS[question.name].items()}
    titles = {choice.title.strip().lower(): choice.value for choice in question.choices}
    return {**titles, **{choice.value: choice.value for choice in question.choices}}


def parse_released(
    text: str, questions: Sequence[Question] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Return every row of a released file as an annotation, in the order of the file.

    Words may be in any case and have blanks around them. Names of annotators and experiments stay as written.
    ``annotator_name``, ``exp_name`` and the columns of own questions may be absent. If a suite has questions
    other than the paper's, only the column of success is required, since a file may be older than a
    question. Unknown columns are ignored, and so are answers that an own question does not have (any more).
    With ``is_strict``, for files that people write, these and missing columns and answers are errors. Raises
    AnnotationsInvalid with every bad cell; rows count from 2, after the header.
    """
    known = {_COLUMNS.get(name, name): question for name, question in _known(questions).items()}
    needed = {*_ID_COLUMNS, *(_COLUMNS.get(name, name) for name in _needed(questions, is_strict))}
    reader = csv.DictReader(io.StringIO(text, newline=""))
    problems: list[str] = []
    found = []
    try:
        columns = set(reader.fieldnames or ())
        if is_strict:
            problems += _unknown_columns(columns - {*_ABOUT_COLUMNS, *known}, questions)
        if missing := needed - columns:
            raise AnnotationsInvalid([f"the columns {', '.join(sorted(missing))} are missing", *problems])
        asked = {column: question for column, question in known.items() if column in columns}
        words = {column: _answers_by_word(question) for column, question in asked.items()}
        for number, row in enumerate(reader, start=2):
            answers = {}
            for column, question in asked.items():
                cell = row[column]
                answer = words[column].get((cell or "").strip().lower())
                if answer is not None:
                    answers[question.name] = answer
                elif (
                    is_strict or not question.is_own or cell is None
                ):  # a cell is None if the row is too short
                    what = "answers to this question" if question.is_own else "words of the released format"
                    problems.append(f"row {number}, {column}: not one of the {what}")
            spelled = "/".join((row[name] or "").strip() for name in _ID_COLUMNS)
            who, experiment = row.get("annotator_name") or None, row.get("exp_name") or ""
            found.append(Annotation(spelled, who, answers, experiment=experiment))
    except csv.Error:
        raise AnnotationsInvalid([f"line {reader.line_num} cannot be read as CSV"]) from None
    if problems:
        raise AnnotationsInvalid(problems)
    return tuple(found)


def _needed(questions: Sequence[Question], is_strict: bool) -> list[str]:
    """Return the names of the questions that a file must have. Unless strict, it may lack newer ones."""
    questions = tuple(questions) or default_questions()
    if is_strict or questions == default_questions():
        return [question.name for question in questions]
    return [SUCCESS]


def _unknown_columns(names: Iterable[str], questions: Sequence[Question]) -> list[str]:
    known = ", ".join((*_COLUMNS.values(), *(question.name for question in _own(questions))))
    return [
        f"the column {name[:40]!r} is unknown; answers are in the columns {known}" for name in sorted(names)
    ]


def write_released(
    annotations: Sequence[Annotation], may_be_open: bool = False, questions: Sequence[Question] = ()
) -> str:
    """Return the annotations as a released file, with its column order, words and line ends (CR LF).

    Own questions follow as columns with their values; a cell is empty if the question was not asked.
    Comments, times and durations are not written. Raises AnnotationsInvalid for an id without three parts,
    and for a released question without an answer, since the format has no word for it. With ``may_be_open``
    such a cell stays empty: the file is a form to fill in.
    """
    questions = questions or default_questions()
    asked = {question.name for question in questions}
    released = [name for name in _COLUMNS if name in asked]
    own = [question.name for question in _own(questions)]
    problems = []
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\r\n")
    writer.writerow([*_ABOUT_COLUMNS, *(_COLUMNS[name] for name in released), *own])
    for number, annotation in enumerate(annotations, start=1):
        answers = annotation.answers
        words = [_WORDS[name].get(answers.get(name, "")) for name in released]
        problems += [
            f"annotation {number}, {name}: has no answer; answer it, or write Parquet, which allows that"
            for name, word in zip(released, words, strict=True)
            if word is None and not may_be_open
        ]
        try:
            parts = TrajectoryId.parse(annotation.trajectory_id)
        except ValueError as reason:
            problems.append(f"annotation {number}, trajectory_id: {reason}")
            continue
        about = (annotation.annotator or "", parts.folder, parts.task_id, parts.agent, annotation.experiment)
        writer.writerow([*about, *words, *(answers.get(name) for name in own)])
    if problems:
        raise AnnotationsInvalid(problems)
    return output.getvalue()


def with_unsure(annotation: Annotation, questions: Sequence[Question]) -> Annotation:
    """Return the annotation with Unsure for the suite's released questions that it does not answer.

    They were added to the suite later. The released format has no other word for an unanswered question.
    """
    asked = {question.name: UNSURE for question in questions if not question.is_own}
    return annotation.with_answers({**asked, **annotation.answers})


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


_ABOUT_FIELDS: Final = ("trajectory_id", "annotator", "comment", "at", "seconds", "experiment", "step")


def write_parquet(annotations: Sequence[Annotation], questions: Sequence[Question] = ()) -> bytes:
    """Return the annotations as Parquet, in their order, with times in UTC to the microsecond.

    Raises AnnotationsInvalid with every problem of every annotation.
    """
    _refuse_bad(annotations, questions)
    rows = [{**{name: getattr(each, name) for name in _ABOUT_FIELDS}, **each.answers} for each in annotations]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_schema(_own(questions))), buffer, compression="zstd")
    return buffer.getvalue()


def parse_parquet(
    content: bytes, questions: Sequence[Question] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Return every row of a trusted Parquet file as an annotation, in the order of the file.

    Only the columns of the id and the answers are required. Own questions and ``is_strict`` work as in
    `parse_released`. Raises AnnotationsInvalid with every bad row; rows count from 1.
    """
    known = _known(questions)
    schema = _schema(_own(questions))
    try:
        table = pq.read_table(io.BytesIO(content))
        needed = [
            "trajectory_id",
            *(name for name in _needed(questions, is_strict) if not known[name].is_own),
        ]
        if missing := [name for name in needed if name not in table.column_names]:
            raise AnnotationsInvalid([f"the columns {', '.join(missing)} are missing"])
        if is_strict and (unknown := set(table.column_names) - set(schema.names)):
            raise AnnotationsInvalid(_unknown_columns(unknown, questions))
        kept = pa.schema([field for field in schema if field.name in table.column_names])
        rows = table.select(kept.names).cast(kept).to_pylist()
    except (pa.ArrowException, OSError) as problem:
        # Give only the type of the problem, since its text may quote a value.
        what = type(problem).__name__
        raise AnnotationsInvalid(
            [f"cannot be read as Parquet annotations ({what}); export it again"]
        ) from None
    found = []
    for row in rows:
        answers = {name: row[name] for name in known if row.get(name) is not None}
        if not is_strict:  # drop answers that an own question does not have (any more)
            answers = {
                name: answer
                for name, answer in answers.items()
                if not known[name].is_own or known[name].accepts(answer)
            }
        found.append(_record(row, answers))
    _refuse_bad(found, questions)
    return tuple(found)


def _record(row: Mapping[str, Any], answers: Mapping[str, str]) -> Annotation:
    at = row.get("at")
    return Annotation(
        trajectory_id=row.get("trajectory_id") or "",
        annotator=row.get("annotator"),
        answers=answers,
        comment=row.get("comment") or "",
        at=None if at is None else at.astimezone(UTC),
        seconds=row.get("seconds"),
        experiment=row.get("experiment") or "",
        step=row.get("step"),
    )


def _refuse_bad(annotations: Sequence[Annotation], questions: Sequence[Question]) -> None:
    problems = [
        f"row {number}, {problem}"
        for number, annotation in enumerate(annotations, start=1)
        for problem in problems_of(annotation, questions)
    ]
    if problems:
        raise AnnotationsInvalid(problems)


def drawn_share(trajectories: Sequence[Trajectory], share: float, seed: int) -> tuple[Trajectory, ...]:
    """Draw a share of the trajectories (at least one) by a hash of the seed and the id.

    The result keeps their order. Raises ValueError if the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share must be above 0 and at most 1, such as 0.2; got {share}")
    number = max(1, int(share * len(trajectories) + 0.5))
    ranked = sorted(trajectories, key=lambda t: hashlib.sha256(f"{seed}/{t.trajectory_id}".encode()).digest())
    drawn = {trajectory.trajectory_id for trajectory in ranked[:number]}
    return tuple(trajectory for trajectory in trajectories if trajectory.trajectory_id in drawn)


def template(trajectories: Sequence[Trajectory], annotator: str, questions: Sequence[Question] = ()) -> str:
    """Return a released file with one row per trajectory, the runs on one task together, and no answers."""
    by_task = sorted(trajectories, key=lambda t: (t.benchmark, t.task, t.agent))
    open_ones = [Annotation(t.trajectory_id, annotator) for t in by_task]
    return write_released(open_ones, may_be_open=True, questions=questions)


def dev_labels_of(suite: Suite, annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return the annotations of the suite's dev trajectories, numbered from 1 (the primary one).

    Annotators get opaque ids by their first appearance among all annotations. Raises AnnotationsInvalid if a
    trajectory has more than `MOST_ANNOTATIONS`.
    """
    is_dev = {trajectory.trajectory_id for trajectory in suite.split("dev")}
    numbers: Counter[str] = Counter()
    found = []
    for annotation in with_opaque_annotators(annotations):
        if annotation.trajectory_id in is_dev:
            numbers[annotation.trajectory_id] += 1
            found.append(replace(annotation, annotation=numbers[annotation.trajectory_id]))
    if problems := [
        f"{trajectory_id}: has {number} annotations; dev labels may have {MOST_ANNOTATIONS}"
        for trajectory_id, number in numbers.items()
        if number > MOST_ANNOTATIONS
    ]:
        raise AnnotationsInvalid(problems)
    return found


def repeated_rows(files: Iterable[tuple[str, Iterable[Annotation]]]) -> list[str]:
    """Return a message, without answers, for each trajectory that one person annotated in two files."""
    seen: dict[tuple[str | None, str], str] = {}
    problems = []
    for name, annotations in files:
        for annotation in annotations:
            who = annotation.person
            first = seen.setdefault((who, annotation.trajectory_id), name)
            if who and first != name:
                problems.append(f"{annotation.trajectory_id}: {who} has a row in {first} and one in {name}")
    return problems
