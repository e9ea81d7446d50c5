"""Find the combination of judges that is best on a table, and how much its F1 owes to the search.

The best of several candidates looks better than it is. Its value on held-out groups (cross-fitting) shows
what to expect: each fold is judged by the combination that was best on the other folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, NamedTuple

import numpy as np

from leaderboard.validation.metrics import value_of
from leaderboard.validation.tables import JudgeAnswers, ValidationTable

FOLDS: Final = 5
MOST_JUDGES: Final = 12
"""With more judges than this, only single judges and the majority of all judges are candidates."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A combination of judges, given by their indexes.

    Attributes:
        rule: A vote (``one``, ``all``, ``any`` or ``majority``), or ``then``: the second judge decides if the
            first has no verdict or a score in ``uncertain`` (both ends included).
    """

    rule: Literal["one", "all", "any", "majority", "then"]
    judges: tuple[int, ...]
    uncertain: tuple[float, float] = (0.0, 1.0)

    def verdicts(self, columns: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the combined verdicts, int8 of shape (n,): 1 for yes, 0 for no or a missing verdict.

        ``columns`` has the judges' verdicts, (n, judges): 1, 0, or -1 if missing. ``scores`` has their scores
        in the same shape, NaN if missing.
        """
        if self.rule == "then":
            first, second = self.judges
            low, high = self.uncertain
            asks = (columns[:, first] < 0) | ((scores[:, first] >= low) & (scores[:, first] <= high))
            return (np.where(asks, columns[:, second], columns[:, first]) == 1).astype(np.int8)
        yes = (columns[:, self.judges] == 1).sum(axis=1)
        needed = {"all": len(self.judges), "any": 1, "one": 1, "majority": len(self.judges) // 2 + 1}[
            self.rule
        ]
        return (yes >= needed).astype(np.int8)

    def title(self, names: Sequence[str]) -> str:
        if self.rule == "then":
            return " then ".join(names[judge] for judge in self.judges)
        listed = ", ".join(names[judge] for judge in self.judges)
        return listed if self.rule == "one" else f"{self.rule} of {listed}"


@dataclass(frozen=True, slots=True)
class BestCombination:
    """The combination with the highest F1. ``f1`` is on all rows, ``held_out_f1`` on held-out groups."""

    title: str
    candidates: int
    f1: float
    held_out_f1: float | None

    @property
    def price(self) -> float | None:
        """How much of F1 comes only from choosing the candidate on the same rows; None if unknown."""
        return None if self.held_out_f1 is None else self.f1 - self.held_out_f1


def candidates_of(n_judges: int) -> list[Combination]:
    found = [Combination("one", (judge,)) for judge in range(n_judges)]
    if n_judges <= MOST_JUDGES:
        for pair in combinations(range(n_judges), 2):
            found += [Combination("all", pair), Combination("any", pair)]
    if n_judges >= 3:
        found.append(Combination("majority", tuple(range(n_judges))))
    return found


def folds_of(groups: np.ndarray, n_folds: int = FOLDS) -> np.ndarray:
    """Return the fold of each row; the rows of a group are in one fold, and folds are about equally large."""
    sizes = np.bincount(groups)
    fold_of_group = np.zeros(len(sizes), dtype=np.int64)
    filled = np.zeros(n_folds)
    for group in np.random.default_rng(0).permutation(len(sizes)):
        fold = int(np.argmin(filled))
        fold_of_group[group] = fold
        filled[fold] += sizes[group]
    return fold_of_group[groups]


def search(
    table: ValidationTable, found: Sequence[Combination]
) -> tuple[Combination, BestCombination] | None:
    """Return the best of the candidates ``found`` with its F1, or None if F1 is undefined for all of them."""
    columns = np.stack([judge.verdicts for judge in table.judges], axis=1)
    unknown = np.full(len(table.ids), np.nan)
    scores = np.stack([unknown if each.scores is None else each.scores for each in table.judges], axis=1)
    best = cross_fit([candidate.verdicts(columns, scores) for candidate in found], table)
    if best is None:
        return None
    chosen = found[best.place]
    title = chosen.title([judge.name for judge in table.judges])
    return chosen, BestCombination(title, len(found), best.f1, best.held_out_f1)


class CrossFit(NamedTuple):
    """The index of the best candidate, its F1, and F1 on rows that were not used to choose candidates."""

    place: int
    f1: float
    held_out_f1: float | None


def cross_fit(candidates: Sequence[np.ndarray], table: ValidationTable) -> CrossFit | None:
    """Find the candidate with the highest F1. Return None if F1 is undefined for all candidates.

    Each candidate is an array of verdicts, int8 of shape (n,). For the F1 on held-out rows, each fold uses
    the candidate that is best on the other folds.
    """

    def f1(verdicts: np.ndarray, rows: np.ndarray) -> float | None:
        yes, positive = (verdicts == 1)[rows], (table.truth == 1)[rows]
        weights = table.weights[rows]
        hits, yeses, positives = (weights[mask].sum() for mask in (yes & positive, yes, positive))
        return value_of("f1", (hits, yeses - hits, positives - hits, 0.0))

    def best(rows: np.ndarray) -> tuple[int, float] | None:
        found: tuple[int, float] | None = None
        for place, verdicts in enumerate(candidates):
            value = f1(verdicts, rows)
            if value is not None and (found is None or value > found[1]):
                found = place, value
        return found

    everywhere = np.ones(len(table.ids), dtype=bool)
    chosen = best(everywhere)
    if chosen is None:
        return None
    fold_of = folds_of(table.groups)
    held_out = np.zeros(len(table.ids), dtype=np.int8)
    for fold in range(FOLDS):
        place, _ = best(fold_of != fold) or chosen
        held_out[fold_of == fold] = candidates[place][fold_of == fold]
    return CrossFit(*chosen, f1(held_out, everywhere))


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """The threshold on a judge's score with the highest F1, and F1 of thresholds chosen on other folds."""

    value: float
    f1: float
    held_out_f1: float | None


def fit_threshold(judge: JudgeAnswers, table: ValidationTable) -> FittedThreshold | None:
    """Return the best threshold on a judge's scores, or None if there are no scores or no defined F1."""
    if judge.scores is None:
        return None
    scores = np.where(np.isnan(judge.scores), -1.0, judge.scores)  # below every threshold
    known = np.unique(scores[scores >= 0])
    thresholds = known if len(known) <= 200 else np.quantile(known, np.linspace(0, 1, 200))

    found = cross_fit([(scores >= threshold).astype(np.int8) for threshold in thresholds], table)
    return None if found is None else FittedThreshold(float(thresholds[found.place]), *found[1:])
