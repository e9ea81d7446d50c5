"""Agreement between annotators of the same trajectories (paper, section 3.3), for one group of doubles.

A double is two annotations of one trajectory by two people; three people make three of them. An answer of
Unsure, or none, is missing: the double does not count for that question.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from dataset_script.vocabulary import LABELS
from leaderboard.annotations import ANSWERS, QUESTIONS, Annotation
from leaderboard.coefficients import (
    Level,
    cohen_kappa,
    confusion_table,
    krippendorff_alpha,
    percent_agreement,
    rating_counts,
)
from leaderboard.labels import LabelSet

ALPHA_LEVELS: Final[MappingProxyType[str, Level]] = MappingProxyType(
    {**dict.fromkeys(LABELS, "nominal"), "optimality": "ordinal"}
)
MISSING: Final = -1


@dataclass(frozen=True)
class Agreement:
    """``percent`` is the share of equal answers as a fraction, ``kappa`` Cohen's, ``alpha`` Krippendorff's.

    Alpha is nominal, for optimality ordinal. All are None where undefined. ``pairs`` is the number of doubles
    in which both answered; ``left_out`` of those in which one was unsure or did not answer.
    """

    pairs: int
    percent: float | None
    kappa: float | None
    alpha: float | None
    left_out: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Doubles:
    """Annotations and the doubles among them.

    ``units`` (annotations,) is the trajectory of each as a number; ``codes`` maps each question to int64 of
    that shape, the place of the answer in ``ANSWERS``, -1 where missing. ``first`` and ``second`` (doubles,)
    are the places of the two annotations, the earlier in the file first.
    """

    annotations: tuple[Annotation, ...]
    units: np.ndarray
    codes: MappingProxyType[str, np.ndarray]
    first: np.ndarray
    second: np.ndarray


def find_doubles(annotations: Sequence[Annotation]) -> Doubles:
    """Every two annotations of one trajectory by two people, ordered by the later of the two in the file."""
    counted = first_of_each_person(annotations)
    numbers: dict[str, int] = {}
    units = [numbers.setdefault(annotation.trajectory_id, len(numbers)) for annotation in counted]
    by_unit: dict[int, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for place, unit in enumerate(units):
        earlier = by_unit.setdefault(unit, [])
        pairs += [(other, place) for other in earlier]
        earlier.append(place)
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    codes = {question: _codes(counted, question) for question in QUESTIONS}
    return Doubles(counted, np.array(units, dtype=np.int64), MappingProxyType(codes), first, second)


def first_of_each_person(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """Without a person's later annotations of a trajectory: the first one counts, as it does for the labels.

    Annotators that are not known are taken for different people.
    """
    seen: set[tuple[str, str]] = set()
    found = []
    for annotation in annotations:
        who = person(annotation)
        if who is None or (annotation.trajectory_id, who) not in seen:
            found.append(annotation)
            seen.add((annotation.trajectory_id, who or ""))
    return tuple(found)


def person(annotation: Annotation) -> str | None:
    """Who annotated, without the blanks that one name of the released data has; None where not known."""
    return (annotation.annotator or "").strip() or None


def _codes(annotations: Sequence[Annotation], question: str) -> np.ndarray:
    places = {answer: place for place, answer in enumerate(ANSWERS[question])}
    found = [places.get(annotation.answer(question), MISSING) for annotation in annotations]
    return np.array(found, dtype=np.int64)


def agreement_of(
    doubles: Doubles, question: str, chosen: np.ndarray | None = None, swapped: np.ndarray | None = None
) -> Agreement:
    """Agreement on a question over all doubles, or the ``chosen`` ones: bool of shape (doubles,).

    Percent and kappa are over doubles; kappa takes the earlier annotation for the first rater's, where
    ``swapped`` (bool, same shape) is true the later one. Alpha is over trajectories, with every annotation
    that stands in one of these doubles.
    """
    chosen = np.ones(len(doubles.first), dtype=bool) if chosen is None else chosen
    first, second = doubles.first[chosen], doubles.second[chosen]
    codes, n_categories = doubles.codes[question], len(ANSWERS[question])
    one, other = codes[first], codes[second]
    if swapped is not None:
        one, other = np.where(swapped[chosen], other, one), np.where(swapped[chosen], one, other)
    table = confusion_table(one, other, n_categories)
    rows = np.unique(np.concatenate([first, second]))
    units, numbers = np.unique(doubles.units[rows], return_inverse=True)
    counts = rating_counts(numbers, codes[rows], len(units), n_categories)
    return Agreement(
        pairs=int(table.sum()),
        percent=percent_agreement(table),
        kappa=cohen_kappa(table),
        alpha=krippendorff_alpha(counts, ALPHA_LEVELS[question]),
        left_out=len(first) - int(table.sum()),
    )


def annotator_agreement(labels: LabelSet, question: str) -> Agreement:
    """Agreement of first and second annotations of a label set, over trajectories that have both."""
    twice = labels.annotated_twice
    lowest = 1 if question == "optimality" else 0  # where codes of a label set begin; below, none was given
    codes = [values[question][twice].astype(np.int64) - lowest for values in (labels.primary, labels.second)]
    n_categories = len(ANSWERS[question])
    table = confusion_table(*codes, n_categories)
    units = np.arange(len(codes[0]))
    counts = sum(rating_counts(units, values, len(units), n_categories) for values in codes)
    pairs = int(table.sum())
    alpha = krippendorff_alpha(counts, ALPHA_LEVELS[question])
    left_out = len(units) - pairs
    return Agreement(pairs, percent_agreement(table), cohen_kappa(table), alpha, left_out)
