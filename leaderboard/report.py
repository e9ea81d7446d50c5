"""The score report of a judge's verdicts against one label set.

Every page and command that rates a judge shows this report, or a part of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from arb.core.predictions.table import Predictions
from arb.core.vocabulary import LABELS
from leaderboard.judge_precision.confusion import confusion_counts
from leaderboard.judge_precision.intervals import N_RESAMPLES, cluster_intervals
from leaderboard.judge_precision.scores import cluster_codes, judge_scores
from leaderboard.labels.labels import LabelSet
from leaderboard.score import Cell, Score

SEED = 0


def score_report(
    verdicts: Predictions, labels: LabelSet, policy: str = "strict", n_resamples: int = N_RESAMPLES
) -> dict[str, Any]:
    """Return the score report as a dict of plain values: metrics are fractions, None if undefined.

    The value of a label is None if the file has no verdict on it. Intervals are over tasks, from a fixed
    seed, so that the same file and label version always give the same report.
    """
    success = np.asarray(verdicts.success)
    scores: dict[str, Score | None] = {}
    for label in LABELS:
        column = verdicts_of(verdicts, label)
        scores[label] = None
        if column is not None:
            scores[label] = score_verdicts(column, labels, label, policy, n_resamples)
    return {
        "suite": labels.suite,
        "split": labels.split,
        "label_version": labels.version,
        "policy": policy,
        "coverage": float((success >= 0).mean()) if len(success) else None,
        "labels": scores,
    }


def verdicts_of(verdicts: Predictions, label: str) -> np.ndarray | None:
    """Return the verdicts on a label, or None if the file has no such column or no verdict in it."""
    column = getattr(verdicts, label)
    return None if column is None or not (np.asarray(column) >= 0).any() else np.asarray(column)


def score_verdicts(
    column: np.ndarray,
    labels: LabelSet,
    label: str,
    policy: str = "strict",
    n_resamples: int = N_RESAMPLES,
    by_agent: bool = True,
) -> Score:
    """Return the score of verdicts on one label; ``column`` is in the order of the labels.

    If ``by_agent`` is false, the score has no cells by agent.
    """
    scores = judge_scores(
        column,
        labels.primary[label],
        benchmarks=[t.benchmark for t in labels.trajectories],
        agents=[t.agent for t in labels.trajectories] if by_agent else None,
        clusters=task_names(labels),
        policy=policy,
        n_resamples=n_resamples,
        seed=SEED,
    )
    return score_from(scores)


def score_from(scores: dict[str, Any]) -> Score:
    """Return the result of `judge_scores` as a `Score`, with the overall figures in a separate cell."""
    by_benchmark, by_agent = scores.pop("by_benchmark"), scores.pop("by_agent", {})
    overall = cast(Cell, scores)  # the metric is also published on its own, so it cannot import the type
    return {"overall": overall, "by_benchmark": by_benchmark, "by_agent": by_agent}


def fpr_interval(
    column: np.ndarray, labels: LabelSet, label: str, policy: str = "strict"
) -> list[float] | None:
    """Return the 95 % interval of the false positive rate, from the report's resamples of tasks.

    ``column`` has verdicts in the order of the labels. The interval is None if the rate is undefined or
    rests on one task.
    """
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    counts = confusion_counts(column, labels.primary[label], codes, n_tasks, policy)
    fp, tn = counts[:, 1], counts[:, 3]
    # FP / (FP + TN) has the form of a precision, TP / (TP + FP)
    as_precision = np.stack([fp, tn, np.zeros_like(fp)], axis=1)[:, None, :]
    return cluster_intervals(as_precision, N_RESAMPLES, SEED)[0]["precision_ci"]


def task_names(labels: LabelSet) -> list[str]:
    """Return the task of each trajectory as ``benchmark/task``; the bootstrap resamples these."""
    return [f"{t.benchmark}/{t.task}" for t in labels.trajectories]


def counts_by_task(verdicts: Predictions, labels: LabelSet) -> Mapping[str, Sequence[Sequence[int]]]:
    """Return [TP, FP] of every task in sorted order, for each label with verdicts.

    Paired comparisons need these counts. They reveal much about labels, so they must not leave the server.
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
    """Return [positives, negatives] of every task for each label. They are as secret as `counts_by_task`."""
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    every_yes = np.ones(len(codes), dtype=np.int8)  # a TP on each positive, an FP on each negative
    return {
        label: confusion_counts(every_yes, labels.primary[label], codes, n_tasks)[:, :2].tolist()
        for label in LABELS
    }
