"""Where two judges disagree, and where they are wrong together: McNemar's test, kappa, shared errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboard.judge_precision.confusion import confusion_counts, kappa_from_counts, ratio


@dataclass(frozen=True, slots=True)
class McNemar:
    """Of ``n`` labelled runs both judges got ``both_right`` right, and so on; ``p`` is exact and two-sided.

    ``p`` asks whether ``only_first`` and ``only_second`` could come from a fair coin. It takes runs for
    independent; runs of several agents on one task are not, so it is smaller than it should be.
    """

    n: int
    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Two judges on the ``n`` runs on which both gave a verdict; no label is used.

    ``percent`` is the share of equal verdicts as a fraction, ``kappa`` Cohen's; None where undefined.
    """

    n: int
    both_yes: int
    only_first_yes: int
    only_second_yes: int
    both_no: int
    percent: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class SharedErrors:
    """Runs that both judges get wrong: false alarms (false positives) and misses (false negatives).

    ``by_chance`` is how many it would be if their errors had nothing to do with each other:
    FP1 FP2 / negatives + FN1 FN2 / positives. ``jaccard`` is the share of shared ones among the errors of
    either; None where neither has any.
    """

    first: int
    second: int
    false_alarms: int
    misses: int
    by_chance: float
    jaccard: float | None

    @property
    def shared(self) -> int:
        """Runs that both get wrong."""
        return self.false_alarms + self.misses


@dataclass(frozen=True, slots=True)
class JointErrors:
    """How many of the chosen judges a run fools: place k counts the runs that exactly k get wrong.

    ``negatives`` counts runs whose label is false (wrong: a false alarm), ``positives`` the others (a miss).
    """

    negatives: tuple[int, ...]
    positives: tuple[int, ...]


def mcnemar(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> McNemar:
    """McNemar's counts and exact p of two judges; int8 of shape (n,), 1, 0, -1 each.

    Rows whose label is -1 are left out; a missing verdict counts as "no" (policy ``strict``).
    """
    right_first, right_second = (~is_wrong(verdicts, labels) for verdicts in (first, second))
    labelled = labels >= 0
    only_first = int((labelled & right_first & ~right_second).sum())
    only_second = int((labelled & ~right_first & right_second).sum())
    both_right = int((labelled & right_first & right_second).sum())
    n = int(labelled.sum())
    both_wrong = n - both_right - only_first - only_second
    return McNemar(n, both_right, only_first, only_second, both_wrong, exact_p(only_first, only_second))


def exact_p(only_first: int, only_second: int) -> float:
    """P of ``only_first + only_second`` throws of a fair coin falling at least as unevenly, either way.

    Source: McNemar 1947, exact binomial form. In whole numbers, so that no small p is lost; 1 for no throw.
    """
    n = only_first + only_second
    ways = tail = 1  # to choose k of n, from k = 0 on
    for k in range(min(only_first, only_second)):
        ways = ways * (n - k) // (k + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**n)


def verdict_agreement(first: np.ndarray, second: np.ndarray) -> VerdictAgreement:
    """Agreement of two judges' verdicts; int8 of shape (n,), 1, 0, -1 each."""
    both = (first >= 0) & (second >= 0)
    one_group = np.zeros(int(both.sum()), dtype=np.int64)
    # The second judge stands where labels do: FP is a yes of the first alone.
    tp, fp, fn, tn, _ = (int(count) for count in confusion_counts(first[both], second[both], one_group, 1)[0])
    n = tp + fp + fn + tn
    return VerdictAgreement(n, tp, fp, fn, tn, ratio(tp + tn, n), kappa_from_counts(tp, fp, fn, tn))


def shared_errors(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> SharedErrors:
    """How far the errors of two judges are the same runs; arguments as for `mcnemar`."""
    wrong_first, wrong_second = is_wrong(first, labels), is_wrong(second, labels)
    by_chance = 0.0
    together = []
    for answer in (0, 1):
        runs = labels == answer
        found = [int((wrong & runs).sum()) for wrong in (wrong_first, wrong_second)]
        by_chance += found[0] * found[1] / int(runs.sum()) if runs.any() else 0.0
        together.append(int((wrong_first & wrong_second & runs).sum()))
    errors = int(wrong_first.sum()), int(wrong_second.sum())
    jaccard = ratio(sum(together), sum(errors) - sum(together))
    return SharedErrors(*errors, together[0], together[1], by_chance, jaccard)


def fooled(judges: Sequence[np.ndarray], labels: np.ndarray) -> JointErrors:
    """How many runs fool none, one, … all of the judges."""
    how_many = np.sum([is_wrong(verdicts, labels) for verdicts in judges], axis=0)
    counts = [np.bincount(how_many[labels == answer], minlength=len(judges) + 1) for answer in (0, 1)]
    return JointErrors(*(tuple(int(count) for count in found) for found in counts))


def is_wrong(verdicts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which labelled rows a judge gets wrong, bool of shape (n,); a missing verdict is a "no"."""
    return (labels >= 0) & ((verdicts == 1) != (labels == 1))
