"""Search for the combination of judges that is best on a table, and say what having searched costs.

The best of several candidates looks better than it is. Its value on held-out groups (cross-fitting) shows
what to expect: each fold is judged by the combination that was best on the other folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

import numpy as np

from leaderboard.validation.metrics import counts_by_group, value_of
from leaderboard.validation.tables import JudgeAnswers, ValidationTable

FOLDS: Final = 5
MOST_JUDGES: Final = 12
"""With more judges, only single judges and the majority of all are candidates."""


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
        """Return the combined verdicts, int8 (n,): 1, or 0 for a no or no verdict.

        ``columns`` is (n, judges) with 1, 0 or -1 for none; ``scores`` is (n, judges) with NaN for none.
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
    """The combination with the highest F1, its F1 on the same rows, and F1 on held-out groups."""

    title: str
    candidates: int
    f1: float
    held_out_f1: float | None

    @property
    def price(self) -> float | None:
        """How much of F1 is due to having chosen the best of the candidates on the same rows."""
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


def best_combination(table: ValidationTable) -> BestCombination | None:
    """Return the best single judge or vote, or None if F1 is undefined for all candidates."""
    found = search(table, candidates_of(len(table.judges)))
    return None if found is None else found[1]


def search(
    table: ValidationTable, found: Sequence[Combination]
) -> tuple[Combination, BestCombination] | None:
    """Return the best of the candidates ``found`` with its F1, or None if F1 is undefined for all of them."""
    columns = np.stack([judge.verdicts for judge in table.judges], axis=1)
    unknown = np.full(len(table.ids), np.nan)
    scores = np.stack([unknown if each.scores is None else each.scores for each in table.judges], axis=1)
    votes = [candidate.verdicts(columns, scores) for candidate in found]

    def f1(verdicts: np.ndarray, rows: np.ndarray) -> float | None:
        one_group = np.zeros(int(rows.sum()), dtype=np.int64)
        counts = counts_by_group(verdicts[rows], table.truth[rows], one_group, table.weights[rows])
        return value_of("f1", counts.sum(axis=0))

    def best(rows: np.ndarray) -> int | None:
        values = [f1(each, rows) for each in votes]
        known = [place for place, value in enumerate(values) if value is not None]
        return max(known, key=lambda place: values[place] or 0.0) if known else None

    everywhere = np.ones(len(table.ids), dtype=bool)
    chosen = best(everywhere)
    value = None if chosen is None else f1(votes[chosen], everywhere)
    if chosen is None or value is None:
        return None
    fold_of = folds_of(table.groups)
    held_out = np.zeros(len(table.ids), dtype=np.int8)
    for fold in range(FOLDS):
        place = best(fold_of != fold)
        held_out[fold_of == fold] = votes[chosen if place is None else place][fold_of == fold]
    title = found[chosen].title([judge.name for judge in table.judges])
    return found[chosen], BestCombination(title, len(found), value, f1(held_out, everywhere))


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """The threshold on a judge's score with the highest F1, and F1 of thresholds chosen on other folds."""

    value: float
    f1: float
    held_out_f1: float | None


def fit_threshold(judge: JudgeAnswers, table: ValidationTable) -> FittedThreshold | None:
    """Return the best threshold on a judge's scores, cross-fitted over groups; None if F1 is undefined."""
    if judge.scores is None:
        return None
    scores = np.where(np.isnan(judge.scores), -1.0, judge.scores)  # below every threshold
    known = np.unique(scores[scores >= 0])
    thresholds = known if len(known) <= 200 else np.quantile(known, np.linspace(0, 1, 200))

    def best(rows: np.ndarray) -> tuple[float, float] | None:
        found: tuple[float, float] | None = None
        for threshold in thresholds:
            value = _f1_at(float(threshold), scores, table, rows)
            if value is not None and (found is None or value > found[1]):
                found = float(threshold), value
        return found

    everywhere = np.ones(len(scores), dtype=bool)
    chosen = best(everywhere)
    if chosen is None:
        return None
    fold_of = folds_of(table.groups)
    at = np.full(len(scores), chosen[0])
    for fold in range(FOLDS):
        others = best(fold_of != fold)
        if others is not None:
            at[fold_of == fold] = others[0]
    return FittedThreshold(*chosen, _f1_at(at, scores, table, everywhere))


def _f1_at(
    threshold: float | np.ndarray, scores: np.ndarray, table: ValidationTable, rows: np.ndarray
) -> float | None:
    yes, labels, weights = (scores >= threshold)[rows], table.truth[rows], table.weights[rows]
    tp, fp = (float(weights[yes & (labels == answer)].sum()) for answer in (1, 0))
    fn = float(weights[~yes & (labels == 1)].sum())
    return value_of("f1", (tp, fp, fn, 0.0))
