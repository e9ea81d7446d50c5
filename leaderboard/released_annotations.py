"""The released ``annotations.csv``: its columns and words, read and written. Text in, records out.

The one module that knows the format; files are opened by `labels` alone. A row is an annotation; the first
row of a trajectory is the primary one, later ones are second annotators'.
"""

import csv
import io
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from dataset_script.trajectory_ids import TrajectoryId
from leaderboard.annotations import QUESTIONS, UNSURE, Annotation, AnnotationsInvalid

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
_HEADER: Final = (
    "annotator_name", "benchmark", "task_id", "model_name", "exp_name",
    *(column for column, _, _ in _QUESTION_COLUMNS),
)  # fmt: skip
_COLUMN_OF: Final = MappingProxyType({question: column for column, question, _ in _QUESTION_COLUMNS})
_READ: Final = MappingProxyType(
    {
        question: MappingProxyType({word.lower(): answer for answer, word in words.items()})
        for _, question, words in _QUESTION_COLUMNS
    }
)
_WRITE: Final = MappingProxyType({question: words for _, question, words in _QUESTION_COLUMNS})


def parse_released(text: str) -> tuple[Annotation, ...]:
    """Every row as a record, in the order of the file; words in any case, with blanks around.

    Names of annotators and experiments are kept as they are written. ``annotator_name`` and ``exp_name`` may
    be absent. Raises AnnotationsInvalid with every bad cell (rows count from 2, after the header); whether a
    trajectory exists is for the suite to say.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    problems: list[str] = []
    found = []
    try:
        missing = {*_ID_COLUMNS, *_COLUMN_OF.values()} - set(reader.fieldnames or ())
        if missing:
            raise AnnotationsInvalid([f"the columns {', '.join(sorted(missing))} are missing"])
        for number, row in enumerate(reader, start=2):
            answers = {
                question: _READ[question].get((row[_COLUMN_OF[question]] or "").strip().lower())
                for question in QUESTIONS
            }
            problems += [
                f"row {number}, {_COLUMN_OF[question]}: not one of the words of the released format"
                for question, answer in answers.items()
                if answer is None
            ]
            spelled = "/".join((row[name] or "").strip() for name in _ID_COLUMNS)
            who, experiment = row.get("annotator_name") or None, row.get("exp_name") or ""
            found.append(Annotation(spelled, who, **answers, experiment=experiment))
    except csv.Error:
        raise AnnotationsInvalid([f"line {reader.line_num} cannot be read as CSV"]) from None
    if problems:
        raise AnnotationsInvalid(problems)
    return tuple(found)


def write_released(annotations: Sequence[Annotation]) -> str:
    """The records as a released file: its column order, words and line ends (CR LF).

    Comments, times and durations have no column there. Raises AnnotationsInvalid for an id without three
    parts, and for a question without an answer: the format has no word for it.
    """
    return _write(annotations, may_be_open=False)


def write_open(annotations: Sequence[Annotation]) -> str:
    """The same with nothing where a question is not answered: a file to fill in, not to be read as it is.

    Raises AnnotationsInvalid for an id without three parts.
    """
    return _write(annotations, may_be_open=True)


def _write(annotations: Sequence[Annotation], may_be_open: bool) -> str:
    problems = []
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\r\n")
    writer.writerow(_HEADER)
    for number, annotation in enumerate(annotations, start=1):
        words = [_WRITE[question].get(annotation.answer(question)) for _, question, _ in _QUESTION_COLUMNS]
        problems += [
            f"annotation {number}, {question}: not answered; the released format has no word for that"
            for (_, question, _), word in zip(_QUESTION_COLUMNS, words, strict=True)
            if word is None and not may_be_open
        ]
        try:
            parts = TrajectoryId.parse(annotation.trajectory_id)
        except ValueError as reason:
            problems.append(f"annotation {number}, trajectory_id: {reason}")
            continue
        described = (annotation.annotator or "", parts.folder, parts.task_id, parts.agent)
        writer.writerow([*described, annotation.experiment, *words])
    if problems:
        raise AnnotationsInvalid(problems)
    return output.getvalue()
