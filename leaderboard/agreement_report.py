"""How far annotators agree: by question, benchmark, two people and time; which items they disagree on.

A pure function of annotations, for the command and the pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dataset_script.trajectory_ids import TrajectoryId
from leaderboard.agreement import Agreement, Doubles, agreement_of, find_doubles, first_of_each_person, person
from leaderboard.annotations import ANSWERS, QUESTIONS, UNSURE, Annotation
from leaderboard.coefficients import confusion_table

BATCH: Final = 20
"""Doubles in a batch where the annotations carry no time: fewer say nothing."""


@dataclass(frozen=True, slots=True)
class TwoPeople:
    """Two annotators, by name in order, and how far they agree; kappa takes ``first`` for the first rater."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Period:
    """A week (``2026-W07``, ISO, UTC, by the later annotation), or a batch of doubles (``1-20``)."""

    name: str
    agreement: Agreement


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement on one question.

    ``confusion`` counts doubles by both answers, rows the earlier annotation's, in the order of ``ANSWERS``.
    """

    overall: Agreement
    by_benchmark: Mapping[str, Agreement]
    by_pair: tuple[TwoPeople, ...]
    over_time: tuple[Period, ...]
    confusion: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, repr=False)
class OpenItem:
    """A trajectory whose label is open: people gave different answers (``disagreeing``), or one was unsure.

    Both name questions. ``answers`` maps every question to the answers in the order of ``annotators`` and of
    the file. It tells labels: show it only where they may be seen.
    """

    trajectory_id: str
    benchmark: str
    annotators: tuple[str | None, ...]
    disagreeing: tuple[str, ...]
    unsure: tuple[str, ...]
    answers: Mapping[str, tuple[str | None, ...]]

    def __repr__(self) -> str:
        return f"OpenItem({self.trajectory_id!r})"


@dataclass(frozen=True)
class AgreementReport:
    """``doubles`` is the number of pairs of annotations, ``doubled`` of trajectories with at least two."""

    annotations: int
    trajectories: int
    annotators: int
    doubles: int
    doubled: int
    questions: Mapping[str, QuestionAgreement]


def agreement_report(annotations: Sequence[Annotation]) -> AgreementReport:
    """Agreement of the annotations of one split or suite, in the order of their file.

    Over time means by week where every annotation of a double says when, else by batches of ``BATCH``.
    """
    doubles = find_doubles(annotations)
    people = {who for annotation in annotations if (who := person(annotation)) is not None}
    groups = _Groups.of(doubles)
    return AgreementReport(
        annotations=len(annotations),
        trajectories=len(np.unique(doubles.units)),
        annotators=len(people),
        doubles=len(doubles.first),
        doubled=len(np.unique(doubles.units[doubles.first])),
        questions=MappingProxyType(
            {question: _question(doubles, groups, question) for question in QUESTIONS}
        ),
    )


def open_items(annotations: Sequence[Annotation]) -> tuple[OpenItem, ...]:
    """The trajectories to talk about, by id: answers that differ, and every Unsure, single ones too."""
    by_id: dict[str, list[Annotation]] = {}
    for annotation in first_of_each_person(annotations):
        by_id.setdefault(annotation.trajectory_id, []).append(annotation)
    found = []
    for trajectory_id, given in sorted(by_id.items()):
        answers = {question: tuple(a.answer(question) for a in given) for question in QUESTIONS}
        definite = {question: set(words) - {None, UNSURE} for question, words in answers.items()}
        disagreeing = tuple(question for question in QUESTIONS if len(definite[question]) > 1)
        unsure = tuple(question for question in QUESTIONS if UNSURE in answers[question])
        if disagreeing or unsure:
            benchmark = TrajectoryId.parse(trajectory_id).benchmark
            people = tuple(person(a) for a in given)
            found.append(
                OpenItem(trajectory_id, benchmark, people, disagreeing, unsure, MappingProxyType(answers))
            )
    return tuple(found)


def agreement_json(report: AgreementReport, items: Sequence[OpenItem] | None = None) -> dict[str, Any]:
    """The report as one JSON object; with ``items`` where the labels may be seen, null where not."""
    found = {name: value for name, value in vars(report).items() if name != "questions"}
    found["questions"] = {
        question: {
            "overall": asdict(result.overall),
            "by_benchmark": {name: asdict(cell) for name, cell in result.by_benchmark.items()},
            "by_pair": [asdict(pair) for pair in result.by_pair],
            "over_time": [asdict(period) for period in result.over_time],
            "answers": list(ANSWERS[question]),
            "confusion": [list(row) for row in result.confusion],
        }
        for question, result in report.questions.items()
    }
    fields = ("trajectory_id", "benchmark", "annotators", "disagreeing", "unsure")
    found["items"] = items if items is None else [
        {**{name: getattr(item, name) for name in fields}, "answers": dict(item.answers)} for item in items
    ]  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """What groups each double is in: benchmark, people in order of name (None: not known), period."""

    benchmarks: tuple[str, ...]
    people: tuple[tuple[str, str] | None, ...]
    swapped: np.ndarray
    periods: tuple[str, ...]

    @classmethod
    def of(cls, doubles: Doubles) -> "_Groups":
        places = zip(doubles.first.tolist(), doubles.second.tolist(), strict=True)
        pairs = [(doubles.annotations[one], doubles.annotations[other]) for one, other in places]
        named = [(person(one), person(other)) for one, other in pairs]
        return cls(
            tuple(TrajectoryId.parse(one.trajectory_id).benchmark for one, _ in pairs),
            tuple((min(both), max(both)) if all(both) else None for both in named),
            np.array([all(both) and both[0] > both[1] for both in named], dtype=bool),
            _periods(pairs),
        )


def _periods(pairs: Sequence[tuple[Annotation, Annotation]]) -> tuple[str, ...]:
    times = [max(one.at, other.at) for one, other in pairs if one.at and other.at]
    if len(times) == len(pairs):
        return tuple(_week(at) for at in times)
    starts = [place - place % BATCH for place in range(len(pairs))]
    return tuple(f"{start + 1}-{min(start + BATCH, len(pairs))}" for start in starts)


def _week(at: datetime) -> str:
    year, week, _ = at.astimezone(UTC).isocalendar()
    return f"{year:04}-W{week:02}"


def _order_of_period(name: str) -> tuple[int, str]:
    """Weeks as they are; batches by their first number, which shorter means smaller."""
    start = name.partition("-")[0]
    return len(start), name


def _where(groups: Sequence, name: object) -> np.ndarray:
    return np.array([group == name for group in groups], dtype=bool)


def _question(doubles: Doubles, groups: _Groups, question: str) -> QuestionAgreement:
    codes = doubles.codes[question]
    table = confusion_table(codes[doubles.first], codes[doubles.second], len(ANSWERS[question]))
    return QuestionAgreement(
        overall=agreement_of(doubles, question),
        by_benchmark=MappingProxyType(
            {
                name: agreement_of(doubles, question, _where(groups.benchmarks, name))
                for name in sorted(set(groups.benchmarks))
            }
        ),
        by_pair=tuple(
            TwoPeople(*both, agreement_of(doubles, question, _where(groups.people, both), groups.swapped))
            for both in sorted(set(groups.people) - {None})
        ),
        over_time=tuple(
            Period(name, agreement_of(doubles, question, _where(groups.periods, name)))
            for name in sorted(set(groups.periods), key=_order_of_period)
        ),
        confusion=tuple(tuple(row) for row in table.tolist()),
    )
