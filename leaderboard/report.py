"""The score report of a prediction file against one label set, and what the judge cost.

Every page and command that shows how good a judge is shows (a part of) this report. The file's columns of
dollars, tokens and seconds give the costs; unknown is None, never a silent 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from arb.core.vocabulary import LABELS
from leaderboard.judge_precision.confusion import confusion_counts
from leaderboard.judge_precision.intervals import N_RESAMPLES, cluster_intervals
from leaderboard.judge_precision.scores import cluster_codes, judge_scores
from leaderboard.labels.labels import LabelSet

if TYPE_CHECKING:
    from arb.core.predictions.table import Predictions
    from arb.core.suite import Suite


class VerdictFileError(ValueError):
    """A file that cannot be used; the message lists every error in it."""


def read_verdict_file(path: Path, suite: Suite, split: str, max_bytes: int) -> Predictions:
    """The verdicts of a file in the order of the split. Raises VerdictFileError; reads no label."""
    from arb.core.predictions import read_predictions
    from arb.core.predictions.check import check
    from arb.core.predictions.raw import ReadingLimits

    limits = ReadingLimits(max_bytes=max_bytes)
    try:
        with path.open("rb") as opened:
            content = opened.read(limits.max_bytes + 1)
    except OSError as error:
        raise VerdictFileError(f"{path} cannot be read: {error.strerror}") from error
    table, findings = read_predictions(content, limits)
    result = check(table, findings, suite, split)
    if not result.acceptable:
        errors = [f"  {finding.message}" for finding in result.findings if finding.level == "error"]
        raise VerdictFileError("\n".join([f"{path.name} cannot be scored on {split}:", *errors]))
    return result.aligned


def read_verdict_files(
    paths: Mapping[str, Path], suite: Suite, split: str, max_bytes: int
) -> dict[str, Predictions]:
    """Read files by their judges' names. Raises VerdictFileError with the errors of all of them."""
    found, problems = {}, []
    for name, path in paths.items():
        try:
            found[name] = read_verdict_file(path, suite, split, max_bytes)
        except VerdictFileError as problem:
            problems.append(str(problem))
    if problems:
        raise VerdictFileError("\n".join(problems))
    return found


SEED = 0


def score_report(
    verdicts: Predictions, labels: LabelSet, policy: str = "strict", n_resamples: int = N_RESAMPLES
) -> dict:
    """The report of product.md, "Score report": fractions, None where undefined.

    A label that the file has no verdict for is None. Intervals are over tasks, from a fixed seed, so that one
    file and one label version always give the same report.
    """
    success = np.asarray(verdicts.success)
    return {
        "suite": labels.suite,
        "split": labels.split,
        "label_version": labels.version,
        "policy": policy,
        "coverage": float((success >= 0).mean()) if len(success) else None,
        "labels": {
            label: _label_report(verdicts_of(verdicts, label), labels, label, policy, n_resamples)
            for label in LABELS
        },
    }


def verdicts_of(verdicts: Predictions, label: str) -> np.ndarray | None:
    """The column of a label, or None when it is absent or holds no verdict at all."""
    column = getattr(verdicts, label)
    return None if column is None or not (np.asarray(column) >= 0).any() else np.asarray(column)


def _label_report(column: np.ndarray | None, labels: LabelSet, label: str, policy: str, n_resamples: int):
    if column is None:
        return None
    scores = judge_scores(
        column,
        labels.primary[label],
        benchmarks=[t.benchmark for t in labels.trajectories],
        agents=[t.agent for t in labels.trajectories],
        clusters=task_names(labels),
        policy=policy,
        n_resamples=n_resamples,
        seed=SEED,
    )
    by_benchmark, by_agent = scores.pop("by_benchmark"), scores.pop("by_agent")
    return {"overall": scores, "by_benchmark": by_benchmark, "by_agent": by_agent}


def fpr_interval(
    column: np.ndarray, labels: LabelSet, label: str, policy: str = "strict"
) -> list[float] | None:
    """The 95 % interval of the false positive rate over tasks, on the same resamples as the report's.

    ``column`` has verdicts in the order of the labels. None where the rate is undefined or rests on one task.
    """
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    counts = confusion_counts(column, labels.primary[label], codes, n_tasks, policy)
    fp, tn = counts[:, 1], counts[:, 3]
    # FP / (FP + TN) has the form of a precision, TP / (TP + FP)
    as_precision = np.stack([fp, tn, np.zeros_like(fp)], axis=1)[:, None, :]
    return cluster_intervals(as_precision, N_RESAMPLES, SEED)[0]["precision_ci"]


def task_names(labels: LabelSet) -> list[str]:
    """The task of each row, unique across benchmarks: the cluster of the bootstrap."""
    return [f"{t.benchmark}/{t.task}" for t in labels.trajectories]


def counts_by_task(verdicts: Predictions, labels: LabelSet) -> Mapping[str, Sequence[Sequence[int]]]:
    """For each label with verdicts, [TP, FP] of every task in sorted order: what a paired comparison needs.

    They say much about the labels: for the records of the server only.
    """
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    found = {}
    for label in LABELS:
        column = verdicts_of(verdicts, label)
        if column is not None:
            counts = confusion_counts(column, labels.primary[label], codes, n_tasks)
            found[label] = counts[:, :2].tolist()
    return found


def labels_by_task(labels: LabelSet) -> Mapping[str, Sequence[Sequence[int]]]:
    """For each label [positives, negatives] of every task, in the order of `counts_by_task`; as secret."""
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    every_yes = np.ones(len(codes), dtype=np.int8)  # right on each positive, wrong on each negative
    return {
        label: confusion_counts(every_yes, labels.primary[label], codes, n_tasks)[:, :2].tolist()
        for label in LABELS
    }


TRAJECTORIES: Final = 1_000


def cost_of(cost_usd: ArrayLike | None) -> Mapping[str, float | int] | None:
    """The mean cost of a row, for 1,000 of them, over the rows whose cost is known.

    ``cost_usd`` has shape (n,), dollars, NaN where a row gives none. Gives ``{"usd_per_1000", "rows",
    "of"}``: how many rows of how many gave a cost. None where no row did: unknown is not free.
    """
    if cost_usd is None:
        return None
    costs = np.asarray(cost_usd, dtype=float)
    known = costs[np.isfinite(costs)]
    if not len(known):
        return None
    per_1000 = round(TRAJECTORIES * float(known.mean()), 6)
    return {"usd_per_1000": per_1000, "rows": len(known), "of": len(costs)}


def with_cost(report: Mapping[str, Any], cost_usd: ArrayLike | None) -> dict[str, Any]:
    """A score report with ``cost`` beside its labels where the file gives costs, else as it is."""
    cost = cost_of(cost_usd)
    return {**report, "cost": cost} if cost else dict(report)


@dataclass(frozen=True, slots=True)
class RunningCosts:
    """Means over the trajectories that give a number; None where none does, never a silent 0.

    ``usd_per_1000`` is dollars for 1,000 trajectories; ``priced`` of ``n`` trajectories have a cost. Tokens
    are a mean for one trajectory, ``median_seconds`` the median latency.
    """

    n: int
    priced: int
    usd_per_1000: float | None
    input_tokens: float | None
    output_tokens: float | None
    median_seconds: float | None

    @property
    def are_known(self) -> bool:
        """Whether the file says anything about costs."""
        known = (self.usd_per_1000, self.input_tokens, self.output_tokens, self.median_seconds)
        return any(value is not None for value in known)


def running_costs(expenses: Predictions, n: int) -> RunningCosts:
    """Return the costs of a judge that gave verdicts on ``n`` trajectories."""
    cost = cost_of(expenses.cost_usd)
    seconds = _known(expenses.latency_s)
    tokens = [_known(column) for column in (expenses.input_tokens, expenses.output_tokens)]
    return RunningCosts(
        n=n,
        priced=int(cost["rows"]) if cost else 0,
        usd_per_1000=float(cost["usd_per_1000"]) if cost else None,
        input_tokens=float(tokens[0].mean()) if len(tokens[0]) else None,
        output_tokens=float(tokens[1].mean()) if len(tokens[1]) else None,
        median_seconds=float(np.median(seconds)) if len(seconds) else None,
    )


def _known(column: np.ndarray | None) -> np.ndarray:
    """Without the rows that have no number."""
    return np.empty(0) if column is None else column[~np.isnan(column)]
