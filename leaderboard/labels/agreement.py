"""Agreement between annotators of the same item (paper, section 3.3): coefficients, and a report.

An item is a run, or a step or another part of one, depending on the question. A double is two annotations of
one item by two people, so three people make three doubles. An answer is missing if it is Unsure or was not
given. A double with a missing answer does not count for that question. Questions whose answers are numbers
are left out, because these coefficients are for classes and grades.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any, Final

import numpy as np

from arb.core.annotation import Annotation, answered
from arb.core.ids import TrajectoryId
from arb.core.suites.targets import UNSURE, Target, default_targets
from leaderboard.judge_precision.confusion import ratio
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES
from leaderboard.labels.coefficients import (
    Level,
    agreement_intervals,
    coefficients,
    coincidence_matrices,
    confusion_table,
    difference_of_shares,
    doubles_wanted,
    rating_counts,
)

MISSING: Final = -1


@dataclass(frozen=True)
class Agreement:
    """Agreement on a question. Undefined values are None.

    Attributes:
        pairs: The number of doubles in which both people answered.
        percent: The share of equal answers, as a fraction.
        kappa: Cohen's kappa.
        alpha: Krippendorff's alpha; ordinal for ordered answers, else nominal.
        left_out: The number of doubles with a missing answer.
        ac1: Gwet's AC1, for questions to which nearly all answers are the same.
        kappa_ci: The 95 % interval [low, high] of kappa over tasks, or None if undefined or not requested.
            ``alpha_ci`` and ``ac1_ci`` are those of alpha and AC1.
    """

    pairs: int
    percent: float | None
    kappa: float | None
    alpha: float | None
    left_out: int = 0
    ac1: float | None = None
    kappa_ci: Sequence[float] | None = None
    alpha_ci: Sequence[float] | None = None
    ac1_ci: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Doubles:
    """Annotations and the doubles among them, as arrays.

    Attributes:
        units: The index of each annotation's item, (annotations,).
        tasks: An integer for each item that identifies its task, (items,).
        questions: The questions, keyed by name.
        codes: Answers, keyed by question, (annotations,): the index in ``Target.values``, or -1 if missing.
        first: The index of each double's earlier annotation, (doubles,).
        second: The index of each double's later annotation, (doubles,).
        benchmarks: The benchmark of each double.
        pairs: The annotators of each double, sorted by name, or None if one is unknown.
        periods: The week or batch of each double.
        swapped: Whether the earlier annotation is by the second annotator of the pair, (doubles,).
    """

    units: np.ndarray
    tasks: np.ndarray
    questions: Mapping[str, Target]
    codes: Mapping[str, np.ndarray]
    first: np.ndarray
    second: np.ndarray
    benchmarks: Sequence[str] = ()
    pairs: Sequence[tuple[str, str] | None] = ()
    periods: Sequence[str] = ()
    swapped: np.ndarray | None = None


def _by_name(questions: Sequence[Target]) -> dict[str, Target]:
    return {question.name: question for question in questions or default_targets()}


def find_doubles(annotations: Sequence[Annotation], questions: Sequence[Target] = ()) -> Doubles:
    """Return all pairs of annotations of one item by two people, sorted by the later annotation.

    ``questions`` are the suite's questions, by default the paper's.
    """
    counted = first_of_each_person(annotations)
    numbers: dict[tuple[str, str | None, str | None], int] = {}
    units = [numbers.setdefault(annotation.item, len(numbers)) for annotation in counted]
    by_unit: dict[int, list[int]] = {}
    places: list[tuple[int, int]] = []
    for place, unit in enumerate(units):
        earlier = by_unit.setdefault(unit, [])
        places += [(other, place) for other in earlier]
        earlier.append(place)
    first, second = np.array(places, dtype=np.int64).reshape(-1, 2).T
    asked = _by_name(questions)
    ids = [TrajectoryId.parse(trajectory_id) for trajectory_id, *_ in numbers]
    doubles = [(counted[one], counted[other]) for one, other in places]
    annotators = [(one.person, other.person) for one, other in doubles]
    return Doubles(
        units=np.array(units, dtype=np.int64),
        tasks=numbered([f"{each.benchmark}/{each.task}" for each in ids]),
        questions=asked,
        codes={name: _codes(counted, question) for name, question in asked.items()},
        first=first,
        second=second,
        benchmarks=[ids[units[place]].benchmark for place, _ in places],
        pairs=[(min(a, b), max(a, b)) if a is not None and b is not None else None for a, b in annotators],
        periods=_periods(doubles),
        swapped=np.array([a is not None and b is not None and a > b for a, b in annotators], dtype=bool),
    )


def first_of_each_person(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """Return the first annotation of each item by each person, without rows of decisions.

    Unknown annotators count as different people.
    """
    seen: set[tuple[object, str]] = set()
    found = []
    for annotation in answered(annotations):
        who = annotation.person
        if who is None or (annotation.item, who) not in seen:
            found.append(annotation)
            seen.add((annotation.item, who or ""))
    return tuple(found)


def numbered(names: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return a number for each name, int64 of shape (n,) from 0; equal names have equal numbers."""
    return np.unique(np.asarray(names), return_inverse=True)[1].astype(np.int64)


def _codes(annotations: Sequence[Annotation], question: Target) -> np.ndarray:
    places = {answer: place for place, answer in enumerate(question.values)}
    found = [places.get(annotation.answers.get(question.name, ""), MISSING) for annotation in annotations]
    return np.array(found, dtype=np.int64)


def agreement_of(
    doubles: Doubles,
    question: str,
    chosen: np.ndarray | None = None,
    swapped: np.ndarray | None = None,
    n_resamples: int = 0,
) -> Agreement:
    """Return the agreement on a question over all doubles, or over the chosen ones.

    ``chosen`` and ``swapped`` are bool of shape (doubles,). Percent and kappa are computed from doubles.
    Kappa's first rater gave the earlier annotation, or the later one where ``swapped`` is true. Alpha is
    computed from every annotation in these doubles. Without ``n_resamples`` there are no intervals.
    """
    chosen = np.ones(len(doubles.first), dtype=bool) if chosen is None else chosen
    first, second = doubles.first[chosen], doubles.second[chosen]
    asked, codes = doubles.questions[question], doubles.codes[question]
    n_categories = len(asked.values)
    one, other = codes[first], codes[second]
    if swapped is not None:
        one, other = np.where(swapped[chosen], other, one), np.where(swapped[chosen], one, other)
    # To keep the tables small, only the trajectories and tasks of these doubles are numbered.
    rows = np.unique(np.concatenate([first, second]))
    units, numbers = np.unique(doubles.units[rows], return_inverse=True)
    tasks = numbered(doubles.tasks[units])
    n_tasks, both = int(tasks.max(initial=-1)) + 1, (one >= 0) & (other >= 0)
    of_double = tasks[np.searchsorted(units, doubles.units[first])]
    tables = np.zeros((n_tasks, n_categories, n_categories))
    np.add.at(tables, (of_double[both], one[both], other[both]), 1)
    counts = rating_counts(numbers, codes[rows], len(units), n_categories)
    coincidences = coincidence_matrices(counts, tasks, n_tasks)
    level: Level = "ordinal" if asked.ordered else "nominal"
    pairs = int(both.sum())
    values: dict[str, Any] = dict(coefficients(tables, coincidences, level))
    values |= agreement_intervals(tables, coincidences, level, n_resamples)
    percent = ratio(int((one[both] == other[both]).sum()), pairs)
    return Agreement(pairs=pairs, percent=percent, left_out=len(first) - pairs, **values)


BATCH: Final = 20
"""The number of doubles in a period if annotations have no time. Smaller batches would be too uncertain."""
GROUP_RESAMPLES: Final = 2_000
"""The number of resamples for a group of doubles. It is low, because a page waits for many groups."""
FEWEST_DOUBLES: Final = 10
"""An annotator is compared with the others only if both sides have at least this many doubles."""


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """How often one annotator agrees with others, and how often the others agree with each other.

    ``percent`` and ``others_percent`` are fractions, or None without doubles. ``difference_ci`` is the
    interval (low, high) of ``percent`` minus ``others_percent``. In 95 of 100 reports, all of these intervals
    contain the true difference. The interval is None if either share rests on fewer than ``FEWEST_DOUBLES``
    doubles. The annotator ``needs_training`` if the interval is below 0.
    """

    annotator: str
    doubles: int
    percent: float | None
    others_doubles: int
    others_percent: float | None
    difference_ci: tuple[float, float] | None
    needs_training: bool


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """The agreement of two annotators. Kappa treats ``first`` as the first rater."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class NamedAgreement:
    """The agreement over the doubles of one period.

    ``name`` is the ISO week (UTC) of the later of the two annotations, such as ``2026-W07``, or a batch of
    doubles, such as ``1-20``.
    """

    name: str
    agreement: Agreement


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement on one question.

    ``by_pair`` is sorted by the annotators' names. ``confusion`` counts the doubles by their two answers, in
    the order of ``answers``, with one row per answer of the earlier annotation. ``wanted`` has the result of
    `doubles_wanted`, keyed by coefficient.
    """

    overall: Agreement
    by_benchmark: Mapping[str, Agreement]
    by_pair: tuple[PairAgreement, ...]
    by_annotator: tuple[AnnotatorAgreement, ...]
    over_time: tuple[NamedAgreement, ...]
    answers: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    wanted: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, repr=False)
class OpenItem:
    """An item to discuss, because annotators gave different answers or were unsure.

    ``disagreeing`` and ``unsure`` name the questions. ``answers`` maps every question to the answers in the
    order of ``annotators``. An item reveals labels, so show it only to people who may see them.
    """

    trajectory_id: str
    benchmark: str
    annotators: tuple[str | None, ...]
    disagreeing: tuple[str, ...]
    unsure: tuple[str, ...]
    answers: Mapping[str, tuple[str | None, ...]]
    step: str | None = None
    part: str | None = None

    def __repr__(self) -> str:
        return f"OpenItem({self.trajectory_id!r})"


@dataclass(frozen=True)
class AgreementReport:
    """Agreement on every question, with the numbers of annotations, items, annotators and doubles.

    ``trajectories`` is the number of all items. ``doubled`` is the number with at least two annotations.
    """

    annotations: int
    trajectories: int
    annotators: int
    doubles: int
    doubled: int
    questions: Mapping[str, QuestionAgreement]


def agreement_report(annotations: Sequence[Annotation], questions: Sequence[Target] = ()) -> AgreementReport:
    """Return the agreement report of a split's or suite's annotations, which must be in file order.

    ``questions`` are the suite's questions, by default the paper's. Agreement over time is by week if every
    double has a time, else by batches of ``BATCH`` doubles.
    """
    annotations = answered(annotations)
    asked = [question for question in _by_name(questions).values() if question.type != "score"]
    of_level = {}
    for level in dict.fromkeys(annotation.level for annotation in annotations):
        rows = [annotation for annotation in annotations if annotation.level == level]
        of_level[level] = find_doubles(rows, asked)
    nothing = find_doubles((), asked)
    found = [of_level.get(question.level, nothing) for question in asked]
    annotators = {annotation.person for annotation in annotations} - {None}
    return AgreementReport(
        annotations=len(annotations),
        trajectories=sum(len(np.unique(doubles.units)) for doubles in of_level.values()),
        annotators=len(annotators),
        doubles=sum(len(doubles.first) for doubles in of_level.values()),
        doubled=sum(len(np.unique(doubles.units[doubles.first])) for doubles in of_level.values()),
        questions={
            question.name: _question(doubles, question.name)
            for question, doubles in zip(asked, found, strict=True)
        },
    )


def open_items(annotations: Sequence[Annotation], questions: Sequence[Target] = ()) -> tuple[OpenItem, ...]:
    """Return the items with different answers, or with any Unsure, sorted by id."""
    names = tuple(_by_name(questions))
    by_item: dict[tuple[str, str | None, str | None], list[Annotation]] = {}
    for annotation in first_of_each_person(annotations):
        by_item.setdefault(annotation.item, []).append(annotation)
    found = []
    ordered = sorted(by_item.items(), key=lambda found: [part or "" for part in found[0]])
    for (trajectory_id, step, part), rows in ordered:
        answers = {question: tuple(row.answers.get(question) for row in rows) for question in names}
        definite = {question: set(words) - {None, UNSURE} for question, words in answers.items()}
        disagreeing = tuple(question for question in names if len(definite[question]) > 1)
        unsure = tuple(question for question in names if UNSURE in answers[question])
        if disagreeing or unsure:
            benchmark = TrajectoryId.parse(trajectory_id).benchmark
            annotators = tuple(row.person for row in rows)
            found.append(
                OpenItem(trajectory_id, benchmark, annotators, disagreeing, unsure, answers, step, part)
            )
    return tuple(found)


def agreement_json(report: AgreementReport, items: Sequence[OpenItem] | None = None) -> dict[str, Any]:
    """Return the report as JSON. ``items`` are the trajectories to discuss, or None if labels are hidden."""
    found = {**asdict(report), "items": None}
    if items is not None:  # an item that is a run has neither step nor part
        rows = [asdict(item).items() for item in items]
        found["items"] = [{name: value for name, value in row if value is not None} for row in rows]
    return found


def _periods(pairs: Sequence[tuple[Annotation, Annotation]]) -> list[str]:
    times = [max(one.at, other.at) for one, other in pairs if one.at and other.at]
    if len(times) == len(pairs):
        return [at.astimezone(UTC).strftime("%G-W%V") for at in times]
    starts = [place - place % BATCH for place in range(len(pairs))]
    return [f"{start + 1}-{min(start + BATCH, len(pairs))}" for start in starts]


def _where(groups: Sequence[object], name: object) -> np.ndarray:
    return np.array([group == name for group in groups], dtype=bool)


def _question(doubles: Doubles, question: str) -> QuestionAgreement:
    codes, asked = doubles.codes[question], doubles.questions[question]
    table = confusion_table(codes[doubles.first], codes[doubles.second], len(asked.values))
    overall = agreement_of(doubles, question, n_resamples=N_RESAMPLES)

    def within(
        groups: Sequence[object], name: object, n_resamples: int, swapped: np.ndarray | None = None
    ) -> Agreement:
        return agreement_of(doubles, question, _where(groups, name), swapped, n_resamples)

    pairs = sorted({both for both in doubles.pairs if both is not None})
    # Weeks sort as text, and batches by their first number.
    periods = sorted(set(doubles.periods), key=lambda name: (name.find("-"), name))
    intervals = {"kappa": overall.kappa_ci, "alpha": overall.alpha_ci, "ac1": overall.ac1_ci}
    return QuestionAgreement(
        overall=overall,
        by_benchmark={
            name: within(doubles.benchmarks, name, N_RESAMPLES) for name in sorted(set(doubles.benchmarks))
        },
        by_pair=tuple(
            PairAgreement(*both, within(doubles.pairs, both, GROUP_RESAMPLES, doubles.swapped))
            for both in pairs
        ),
        by_annotator=_annotators(doubles, question),
        over_time=tuple(
            NamedAgreement(name, within(doubles.periods, name, GROUP_RESAMPLES)) for name in periods
        ),
        answers=asked.values,
        confusion=tuple(tuple(row) for row in table.tolist()),
        wanted={name: doubles_wanted(overall.pairs, ends) for name, ends in intervals.items()},
    )


def _annotators(doubles: Doubles, question: str) -> tuple[AnnotatorAgreement, ...]:
    """Compare each annotator with the others. Doubles with an unknown annotator are left out."""
    one, other = (doubles.codes[question][places] for places in (doubles.first, doubles.second))
    counted = (one >= 0) & (other >= 0) & ~_where(doubles.pairs, None)
    tasks = doubles.tasks[doubles.units[doubles.first]]
    annotators = sorted({who for both in doubles.pairs if both for who in both})
    error = (1 - CONFIDENCE) / max(1, len(annotators) * len(doubles.questions))
    found = []
    for who in annotators:
        has_part = np.array([both is not None and who in both for both in doubles.pairs], dtype=bool)
        theirs, rest = counted & has_part, counted & ~has_part
        n, m = int(theirs.sum()), int(rest.sum())
        is_enough = min(n, m) >= FEWEST_DOUBLES
        interval = difference_of_shares(one == other, theirs, rest, tasks, error) if is_enough else None
        shares = [ratio(int(((one == other) & side).sum()), int(side.sum())) for side in (theirs, rest)]
        is_below = interval is not None and interval[1] < 0
        found.append(AnnotatorAgreement(who, n, shares[0], m, shares[1], interval, is_below))
    return tuple(found)
