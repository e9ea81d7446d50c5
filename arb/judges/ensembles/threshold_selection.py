"""Choose a threshold on the scores of a dev run, for a given aim, and test it on held-out data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from arb.core.console import percent
from leaderboard.calibration import sweep
from leaderboard.judge_precision.scores import cluster_codes, judge_scores

FIGURES: Final = ("precision", "recall", "f1")
FOLDS: Final = 5


class NoThresholdError(ValueError):
    """Raised if no threshold can be recommended. The message says why."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric to maximise, perhaps with a lower bound on another, as in "precision where recall >= 0.7"."""

    maximise: str
    keep: str | None = None
    at_least: float = 0.0

    def __str__(self) -> str:
        return self.maximise + (f" where {self.keep} >= {self.at_least:g}" if self.keep else "")


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold with its metrics on the rows on which it was chosen and, if possible, on held-out rows.

    ``plain`` has the metrics of the judge's own verdicts. Only `recommend_threshold` sets it.
    """

    value: float
    chosen_on: dict[str, Any]
    held_out: dict[str, Any] | None
    plain: dict[str, Any] | None = None


def read_aim(aim: str) -> Objective:
    """Return the aim given by ``--aim``. Raises ValueError if it is invalid."""
    figure, at, bound = aim.replace(" ", "").partition("@")
    if figure not in FIGURES:
        raise ValueError(f"--aim {figure}: use one of {', '.join(FIGURES)}")
    other = "precision" if figure == "recall" else "recall"
    if not at and figure == "f1":
        return Objective(figure)
    if not at:
        raise ValueError(
            f"--aim {figure} alone would sacrifice {other}; add a lower bound of {other}, such as --aim "
            f'"{figure}@{other}>=0.5"'
        )
    found = re.fullmatch(rf"({'|'.join(FIGURES)})>=(0(?:\.\d+)?|\.\d+|1(?:\.0+)?)", bound)
    if found is None or found[1] == figure:
        raise ValueError(
            f"--aim: {bound!r} is not a lower bound of another metric; write a metric and a fraction, such "
            f'as "{figure}@{other}>=0.5"'
        )
    return Objective(figure, found[1], float(found[2]))


def recommend_threshold(
    scores: np.ndarray, plain: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> ChosenThreshold:
    """Return the threshold of `choose_threshold` if it beats the judge's own verdicts on held-out data.

    Args:
        scores: Floats of shape (n,), with NaN for a row without a verdict.
        plain: The judge's own verdicts: 1, 0, or -1 without a verdict.
        labels: 1, 0, or -1 for unsure.
        tasks: The task of each row.
        aim: What the threshold should achieve.

    Raises:
        NoThresholdError: No threshold can be chosen, it cannot be tested on held-out data, or it is not
            better.
    """
    choice = choose_threshold(scores, labels, tasks, aim)
    plain_figures = judge_scores(plain, labels, clusters=tasks)
    if choice.held_out is None:
        raise NoThresholdError(
            f"no threshold is recommended for {aim}: it cannot be tested on held-out data. The test needs "
            f"{FOLDS} tasks or more, and a threshold that reaches the aim on every four fifths of them"
        )
    if not _beats(choice.held_out, plain_figures, aim):
        found = {"the best threshold": choice.held_out, "no threshold": plain_figures}
        sentences = (
            f"precision {percent(cell['precision'])} %, recall {percent(cell['recall'])} % and F1 "
            f"{percent(cell['f1'])} % with {name}"
            for name, cell in found.items()
        )
        raise NoThresholdError(
            f"no threshold is recommended for {aim}; on held-out data, the judge has {'; '.join(sentences)}"
        )
    return replace(choice, plain=plain_figures)


def _beats(held_out: Mapping[str, Any], plain: Mapping[str, Any], aim: Objective) -> bool:
    """Return whether held-out metrics are better for the aim than those of the judge's own verdicts.

    A higher F1 counts as better only if the precision is not lower, since judges are ranked by precision.
    """
    found, before = ({name: cell[name] or 0.0 for name in FIGURES} for cell in (held_out, plain))
    is_higher = found[aim.maximise] > before[aim.maximise]
    if aim.keep is None:
        return is_higher and found["precision"] >= before["precision"]
    is_kept = found[aim.keep] >= aim.at_least
    return is_kept and (is_higher or before[aim.keep] < aim.at_least)


def choose_threshold(
    scores: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> ChosenThreshold:
    """Return the threshold that best meets the aim on these rows. Raises NoThresholdError if none does.

    The arguments are those of `recommend_threshold`. A row without a verdict counts as a no, and rows with an
    unsure label are left out. The metrics in ``chosen_on`` are too high, since the threshold was fitted to
    these rows. For ``held_out``, the tasks are divided into five parts, and the threshold for each part is
    chosen on the other four. All intervals are clustered by task.
    """
    value = _best(scores, labels, aim)
    chosen_on = judge_scores(_verdicts(scores, value), labels, clusters=tasks)
    return ChosenThreshold(value, chosen_on, _held_out(scores, labels, tasks, aim))


def candidates(scores: np.ndarray) -> list[float]:
    """Return the thresholds to try: 0, and the midpoints between consecutive scores."""
    known = np.unique(scores[~np.isnan(scores)])
    return [0.0, *((known[:-1] + known[1:]) / 2).tolist()]


def _best(scores: np.ndarray, labels: np.ndarray, aim: Objective) -> float:
    scored = ~np.isnan(scores) & (labels >= 0)
    if len(np.unique(scores[scored])) < 2:
        raise NoThresholdError(
            "all labelled runs have the same score, or no score, so no threshold can separate them"
        )
    if not (labels == 1).any() or not (labels == 0).any():
        raise NoThresholdError("all labels of these runs are equal, so no threshold can be chosen")
    swept = sweep(scores, labels, candidates(scores[scored]))
    kept = [0.0 if aim.keep is None else getattr(each, aim.keep) or 0.0 for each in swept]
    fitting = [
        each
        for each, value in zip(swept, kept, strict=True)
        if getattr(each, aim.maximise) is not None and (aim.keep is None or value >= aim.at_least)
    ]
    if not fitting:
        most = max(kept, default=0.0)
        raise NoThresholdError(f"no threshold reaches {aim}; the highest {aim.keep} is {most:.3f}")
    best = max(fitting, key=lambda each: (getattr(each, aim.maximise), each.precision or 0.0, each.at))
    return best.at


def _held_out(
    scores: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> dict[str, Any] | None:
    codes, n_tasks = cluster_codes(tasks, len(scores))
    if n_tasks < FOLDS:
        return None
    verdicts = np.full(len(scores), -1, dtype=np.int8)
    for fold in range(FOLDS):
        inside = codes % FOLDS == fold
        try:
            value = _best(scores[~inside], labels[~inside], aim)
        except NoThresholdError:
            return None
        verdicts[inside] = _verdicts(scores, value)[inside]
    return judge_scores(verdicts, labels, clusters=tasks)


def _verdicts(scores: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.isnan(scores), -1, scores >= value).astype(np.int8)
