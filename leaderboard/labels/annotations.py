"""The formats of annotation files. This module parses and writes their content; `labels` opens the files.

- The CSV format of the released ``annotations.csv``. Each row is an annotation; the first row of a trajectory
  is the primary one. Only this module knows the columns and words of this format.
- A CSV format for suites that have none of the released targets: ``trajectory_id``, ``step`` or ``part`` for
  labels of parts of runs, ``annotator``, and a column per target with its values.
- A Parquet format, which also has comments, times and durations.
- A CSV template for annotators who work offline.
- A suite's published dev labels.

In all of them, each question that a suite adds has a column of its name. ``questions`` are always those of
the suite, by default the paper's four. A file may also answer questions of the paper that the suite does not
ask.
"""

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from arb.core.annotation import Annotation
from arb.core.files import csv_text
from arb.core.formats import FORMATS
from arb.core.ids import Trajectory, TrajectoryId
from arb.core.suite import Suite
from arb.core.suites.targets import (
    RELEASED_ANSWERS,
    RELEASED_COLUMNS,
    RELEASED_WORDS,
    UNSURE,
    Target,
    default_targets,
    main_target,
)

COMMENT_LENGTH: Final = 10_000
MOST_ANNOTATIONS: Final = 9
"""The maximum number of annotations per trajectory in a file of dev labels."""


class AnnotationsInvalid(ValueError):
    """Raised if annotations are invalid. ``problems`` name rows and fields, but never an answer.

    ``rows`` has all rows that could be read, including those with problems.
    """

    def __init__(self, problems: Sequence[str], rows: Sequence[Annotation] = ()) -> None:
        self.problems, self.rows = tuple(problems), tuple(rows)
        super().__init__("; ".join(problems))


def _own(questions: Sequence[Target]) -> tuple[Target, ...]:
    return tuple(question for question in questions if question.is_own)


def _known(questions: Sequence[Target]) -> dict[str, Target]:
    """Return the questions that a file may answer, keyed by name: those of the paper and of the suite."""
    return {question.name: question for question in (*default_targets(), *_own(questions))}


def problems_of(annotation: Annotation, questions: Sequence[Target] = ()) -> list[str]:
    """Return the problems of an annotation. Each begins with a field's name, and none contains an answer."""
    problems = []
    try:
        TrajectoryId.parse(annotation.trajectory_id)
    except ValueError as reason:
        problems.append(f"trajectory_id: {reason}")
    for name in ("annotator", "experiment"):
        text = getattr(annotation, name)
        if text is not None and not text.isprintable():
            problems.append(f"{name}: remove the line breaks or invisible characters")
    if annotation.annotator is not None and not annotation.annotator.strip():
        problems.append("annotator: the name is blank; leave it out if it is unknown")
    known = _known(questions)
    problems += [
        f"{question.name}: use one of {', '.join(question.values)}, {UNSURE}, or leave it empty"
        for question in known.values()
        if not question.accepts(annotation.answers.get(question.name))
    ]
    problems += [
        f"{name[:40]}: there is no such question" for name in annotation.answers if name not in known
    ]
    if len(annotation.comment) > COMMENT_LENGTH:
        problems.append(f"comment: shorten it to {COMMENT_LENGTH:,} characters")
    if annotation.at is not None and annotation.at.utcoffset() is None:
        problems.append("at: add a time zone, such as +00:00")
    if annotation.seconds is not None and not (math.isfinite(annotation.seconds) and annotation.seconds >= 0):
        problems.append("seconds: use 0 or a positive number")
    if annotation.step is not None and annotation.step < 0:
        problems.append("step: use the number of a step, counted from 0")
    return problems


def with_opaque_annotators(annotations: Iterable[Annotation], prefix: str = "annotator-") -> list[Annotation]:
    """Return the annotations with the names replaced by ``annotator-1``, ``annotator-2`` … in file order.

    Names that differ only in surrounding spaces are treated as one person. Rows of decisions are not changed.
    """
    ids: dict[str, str] = {}
    found = []
    for annotation in annotations:
        name = annotation.person
        if name and not annotation.is_decision:
            name = ids.setdefault(name, f"{prefix}{len(ids) + 1}")
        found.append(replace(annotation, annotator=name))
    return found


_ID_COLUMNS: Final = ("benchmark", "model_name", "task_id")
_PLAIN_COLUMNS: Final = ("trajectory_id", "step", "part", "annotator")
_ABOUT_COLUMNS: Final = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name")


def is_released_header(line: str) -> bool:
    """Return whether the first line of a file names the columns of the released format."""
    return RELEASED_COLUMNS[main_target(default_targets()).name] in line


def is_plain(questions: Sequence[Target]) -> bool:
    """Return whether a suite's files need the plain format, because the released one cannot express them."""
    has_parts = any(question.level != "run" for question in questions)
    return has_parts or (bool(questions) and all(question.is_own for question in questions))


def _answer_in(cell: str, words: Mapping[str, str], question: Target) -> str | None:
    """Return the answer in a cell, or None if the cell is empty or has an unknown word."""
    word = cell.strip().lower()
    if question.type != "score":
        return words.get(word)
    return word if word == UNSURE or (question.accepts(word) and word) else None


def _answers_by_word(question: Target) -> dict[str, str]:
    """Return the answers, keyed by the words (in lower case) that stand for them in a file.

    An answer is written as its value, such as yes, or as its word in the released format. If the suite added
    the question, the title of the choice takes the place of that word.
    """
    if not question.is_own:
        words = {word.lower(): answer for answer, word in RELEASED_WORDS[question.name].items()}
        return {**words, **{answer: answer for answer in RELEASED_WORDS[question.name]}}
    titles = {choice.title.strip().lower(): choice.value for choice in question.choices}
    return {**titles, **{choice.value: choice.value for choice in question.choices}}


def parse_released(
    text: str, questions: Sequence[Target] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Return every row of a CSV file as an annotation, in file order.

    Cells are separated by commas or, as some versions of Excel write them, by semicolons or tabs. Answers are
    the released words or values such as yes, in any case and with spaces around them. Names of annotators and
    experiments stay as written. ``annotator_name`` and ``exp_name`` may be absent. If a suite has questions
    other than the paper's, only the column of the main target is required, because a file may be older than a
    question. Unknown columns are ignored, and so are answers that the suite no longer has. With
    ``is_strict``, for files that people write, unknown and missing columns and answers are errors. Raises
    AnnotationsInvalid with every bad cell; rows count from 2, after the header.
    """
    known = {RELEASED_COLUMNS.get(name, name): question for name, question in _known(questions).items()}
    needed = {RELEASED_COLUMNS.get(name, name) for name in _needed(questions, is_strict)}
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)  # no name of a column contains one of them
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    problems: list[str] = []
    found = []
    try:
        columns = set(reader.fieldnames or ())
        plain = is_plain(questions) and "trajectory_id" in columns
        needed |= {"trajectory_id"} if plain else {*_ID_COLUMNS}
        if is_strict:
            about = _PLAIN_COLUMNS if plain else _ABOUT_COLUMNS
            problems += _unknown_columns(columns - {*about, *known}, questions)
        if missing := needed - columns:
            raise AnnotationsInvalid([f"the columns {', '.join(sorted(missing))} are missing", *problems])
        asked = {column: question for column, question in known.items() if column in columns}
        words = {column: _answers_by_word(question) for column, question in asked.items()}
        for number, row in enumerate(reader, start=2):
            answers = {}
            step, part = ((row.get(name) or "").strip() or None for name in ("step", "part"))
            level = "step" if step else "part" if part else "run"
            for column, question in asked.items():
                cell = row[column]
                answer = _answer_in(cell or "", words[column], question)
                if answer is not None:
                    answers[question.name] = answer
                    if is_strict and plain and question.level != level:
                        problem = f"asks about a {question.level}, and the row is about a {level}"
                        problems.append(f"row {number}, {column}: {problem}; leave the cell empty")
                elif plain and not (cell or "").strip():
                    continue  # a target of another level
                elif is_strict or not question.is_own or cell is None:  # None if the row is too short
                    problems.append(f"row {number}, {column}: not {_known_words(question)}")
            if plain:
                spelled, who = (row["trajectory_id"] or "").strip(), row.get("annotator") or None
                found.append(Annotation(spelled, who, answers, of_step=step, of_part=part))
                continue
            spelled = "/".join((row[name] or "").strip() for name in _ID_COLUMNS)
            who, experiment = row.get("annotator_name") or None, row.get("exp_name") or ""
            found.append(Annotation(spelled, who, answers, experiment=experiment))
    except csv.Error:
        raise AnnotationsInvalid([f"line {reader.line_num} cannot be read as CSV"]) from None
    if problems:
        raise AnnotationsInvalid(problems, found)
    return tuple(found)


def _known_words(question: Target) -> str:
    if question.type == "score":
        return f"a number or {UNSURE}"
    words = (*question.values, UNSURE) if question.is_own else RELEASED_WORDS[question.name].values()
    return f"one of {', '.join(words)}"


def _needed(questions: Sequence[Target], is_strict: bool) -> list[str]:
    """Return the questions that a file must have. Unless ``is_strict``, newer questions may be missing."""
    questions = tuple(questions) or default_targets()
    if is_strict or questions == default_targets():
        return [question.name for question in questions]
    main = main_target(questions)
    return [] if main.is_own else [main.name]


def _unknown_columns(names: Iterable[str], questions: Sequence[Target]) -> list[str]:
    known = ", ".join((*RELEASED_COLUMNS.values(), *(question.name for question in _own(questions))))
    return [f"the column {name[:40]!r} is unknown; use {known} for answers" for name in sorted(names)]


def write_released(
    annotations: Sequence[Annotation], may_be_open: bool = False, questions: Sequence[Target] = ()
) -> str:
    """Return the annotations as CSV, with the column order, words and line ends (CR LF) of the released file.

    Questions that the suite adds follow as further columns, which may be empty. Comments, times and durations
    are not written. Raises AnnotationsInvalid for an id without three parts, and for a question of the paper
    without an answer, because the format has no word for that. With ``may_be_open`` such a cell is left
    empty, for people to fill in.
    """
    questions = questions or default_targets()
    if is_plain(questions):
        return _write_plain(annotations, questions)
    asked = {question.name for question in questions}
    released = [name for name in RELEASED_COLUMNS if name in asked]
    own = [question.name for question in _own(questions)]
    problems = []
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\r\n")
    writer.writerow([*_ABOUT_COLUMNS, *(RELEASED_COLUMNS[name] for name in released), *own])
    for number, annotation in enumerate(annotations, start=1):
        answers = annotation.answers
        words = [RELEASED_WORDS[name].get(answers.get(name, "")) for name in released]
        problems += [
            f"annotation {number}, {name}: add an answer, or write Parquet, where it may be missing"
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


def _write_plain(annotations: Sequence[Annotation], questions: Sequence[Target]) -> str:
    rows = [
        [
            *(each.trajectory_id, each.of_step or "", each.of_part or "", each.annotator or ""),
            *(each.answers.get(question.name, "") for question in questions),
        ]
        for each in annotations
    ]
    return csv_text((*_PLAIN_COLUMNS, *(question.name for question in questions)), rows)


def with_unsure(annotation: Annotation, questions: Sequence[Target]) -> Annotation:
    """Return the annotation with Unsure for questions of the paper that the suite added later.

    The released format has no other word for an unanswered question.
    """
    asked = {question.name: UNSURE for question in questions if not question.is_own}
    return annotation.with_answers({**asked, **annotation.answers})


def _schema(own: Sequence[Target]) -> pa.Schema:
    texts = ("trajectory_id", "annotator", *RELEASED_ANSWERS, "comment")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("at", pa.timestamp("us", tz="UTC")),
            ("seconds", pa.float64()),
            ("experiment", pa.string()),
            ("step", pa.int64()),
            *((question.name, pa.string()) for question in own),
            *((name, pa.string()) for name in _ITEM_FIELDS if any(each.level != "run" for each in own)),
        ],
        metadata={"format": str(FORMATS["annotation file"])},
    )


_ITEM_FIELDS: Final = ("of_step", "of_part")
_ABOUT_FIELDS: Final = (
    "trajectory_id", "annotator", "comment", "at", "seconds", "experiment", "step", *_ITEM_FIELDS
)  # fmt: skip


def write_parquet(annotations: Sequence[Annotation], questions: Sequence[Target] = ()) -> bytes:
    """Return the annotations as Parquet, in the given order, with times in UTC to the microsecond.

    Raises AnnotationsInvalid with every problem.
    """
    _refuse_bad(annotations, questions)
    rows = [{**{name: getattr(each, name) for name in _ABOUT_FIELDS}, **each.answers} for each in annotations]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_schema(_own(questions))), buffer, compression="zstd")
    return buffer.getvalue()


def parse_parquet(
    content: bytes, questions: Sequence[Target] = (), is_strict: bool = False
) -> tuple[Annotation, ...]:
    """Return every row of a trusted Parquet file as an annotation, in file order.

    Only the columns of the id and of the paper's questions are required. ``is_strict`` and missing questions
    are as in `parse_released`. Raises AnnotationsInvalid with every bad row; rows count from 1.
    """
    known = _known(questions)
    schema = _schema(_own(questions))
    try:
        table = pq.read_table(io.BytesIO(content))
        needed = [name for name in _needed(questions, is_strict) if not known[name].is_own]
        if missing := [name for name in ("trajectory_id", *needed) if name not in table.column_names]:
            raise AnnotationsInvalid([f"the columns {', '.join(missing)} are missing"])
        if is_strict and (unknown := set(table.column_names) - set(schema.names)):
            raise AnnotationsInvalid(_unknown_columns(unknown, questions))
        kept = pa.schema([field for field in schema if field.name in table.column_names])
        rows = table.select(kept.names).cast(kept).to_pylist()
    except (pa.ArrowException, OSError) as problem:
        # The message has only the type of the error, because its text may quote a value.
        what = type(problem).__name__
        raise AnnotationsInvalid(
            [f"cannot be read as Parquet annotations ({what}); export it again"]
        ) from None
    found = []
    for row in rows:
        answers = {name: row[name] for name in known if row.get(name) is not None}
        if not is_strict:  # drop answers that the suite no longer has
            for name in [name for name in answers if known[name].is_own]:
                if not known[name].accepts(answers[name]):
                    del answers[name]
        about = {name: row.get(name) for name in _ABOUT_FIELDS}
        for name in ("trajectory_id", "comment", "experiment"):
            about[name] = about[name] or ""
        if about["at"] is not None:
            about["at"] = about["at"].astimezone(UTC)
        found.append(Annotation(**about, answers=answers))
    _refuse_bad(found, questions)
    return tuple(found)


def _refuse_bad(annotations: Sequence[Annotation], questions: Sequence[Target]) -> None:
    problems = [
        f"row {number}, {problem}"
        for number, annotation in enumerate(annotations, start=1)
        for problem in problems_of(annotation, questions)
    ]
    if problems:
        raise AnnotationsInvalid(problems)


def drawn_share(
    trajectories: Sequence[Trajectory], share: float, seed: int, annotator: str
) -> tuple[Trajectory, ...]:
    """Return a random share of the trajectories, at least one, in their original order.

    The same seed always selects the same trajectories for an annotator. Each annotator gets a selection of
    their own. Raises ValueError unless the share is above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share must be above 0 and at most 1, such as 0.2; got {share}")
    number = max(1, int(share * len(trajectories) + 0.5))

    def draw(trajectory: Trajectory) -> bytes:
        return hashlib.sha256(f"{seed}/{annotator}/{trajectory.trajectory_id}".encode()).digest()

    ranked = sorted(trajectories, key=draw)
    drawn = {trajectory.trajectory_id for trajectory in ranked[:number]}
    return tuple(trajectory for trajectory in trajectories if trajectory.trajectory_id in drawn)


def template(trajectories: Sequence[Trajectory], annotator: str, questions: Sequence[Target] = ()) -> str:
    """Return a CSV file to fill in, with one row per run, step or part, sorted by task."""
    by_task = sorted(trajectories, key=lambda t: (t.benchmark, t.task, t.agent))
    open_ones = [Annotation(t.trajectory_id, annotator, of_step=t.step, of_part=t.part) for t in by_task]
    return write_released(open_ones, may_be_open=True, questions=questions)


def dev_labels_of(suite: Suite, annotations: Iterable[Annotation]) -> list[Annotation]:
    """Return the annotations of the suite's dev trajectories with opaque annotators.

    The annotations of each item are numbered from 1, and number 1 is the primary one. Raises
    AnnotationsInvalid if an item has more than `MOST_ANNOTATIONS`.
    """
    is_dev = {trajectory.trajectory_id for trajectory in suite.split("dev")}
    numbers: Counter[tuple[str, str | None, str | None]] = Counter()
    found = []
    for annotation in with_opaque_annotators(annotations):
        if annotation.trajectory_id in is_dev:
            item = annotation.trajectory_id, annotation.of_step, annotation.of_part
            numbers[item] += 1
            found.append(replace(annotation, annotation=numbers[item]))
    if problems := [
        f"{trajectory_id} has {number} annotations; remove all but {MOST_ANNOTATIONS}"
        for (trajectory_id, _, _), number in numbers.items()
        if number > MOST_ANNOTATIONS
    ]:
        raise AnnotationsInvalid(problems)
    return found


def repeated_rows(files: Iterable[tuple[str, Iterable[Annotation]]]) -> list[str]:
    """Return a message, without answers, for each trajectory that one person annotated in two files."""
    seen: dict[tuple[object, object], str] = {}
    problems = []
    for name, annotations in files:
        for annotation in annotations:
            who = annotation.person
            first = seen.setdefault((who, annotation.item), name)
            if who and first != name:
                problems.append(f"{annotation.trajectory_id}: {who} has rows in both {first} and {name}")
    return problems
