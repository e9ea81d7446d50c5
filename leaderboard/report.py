"""The score report of a judge's verdicts against one label set.

Every page and command that rates a judge shows this report, or a part of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from arb.core.formats import FORMATS
from arb.core.predictions.table import Predictions, is_answered
from arb.core.suites.targets import NO_ANSWER, STEP_METRICS, Target, main_target, scored
from leaderboard.judge_precision.confusion import confusion_counts
from leaderboard.judge_precision.intervals import FIGURES, N_RESAMPLES, cluster_intervals
from leaderboard.judge_precision.scores import cluster_codes, judge_scores
from leaderboard.labels.labels import LabelSet
from leaderboard.metrics import answers_of, by_cluster, measure, metrics_of
from leaderboard.score import Cell, Score

SEED = 0


def score_report(
    verdicts: Predictions, labels: LabelSet, policy: str = "strict", n_resamples: int = N_RESAMPLES
) -> dict[str, Any]:
    """Return the score report as a dict of plain values: metrics are fractions, None if undefined.

    The value of a target is None if the file has no verdict on it. Intervals are over tasks, from a fixed
    seed, so that the same file and label version always give the same report.
    """
    main = main_target(labels.targets)
    asked = np.array([item.level == main.level for item in labels.trajectories], dtype=bool)
    answered = is_answered(verdicts.codes(main.name))[asked]
    scores: dict[str, Score | None] = {}
    for target in scored(labels.targets):
        column = verdicts_of(verdicts, target.name)
        scores[target.name] = None
        if column is not None:
            scores[target.name] = score_verdicts(column, labels, target.name, policy, n_resamples)
    return {
        "format": FORMATS["score report"],
        "suite": labels.suite,
        "split": labels.split,
        "label_version": labels.version,
        "policy": policy,
        "coverage": float(answered.mean()) if len(answered) else None,
        "labels": scores,
    }


def verdicts_of(verdicts: Predictions, target: str) -> np.ndarray | None:
    """Return the verdicts on a target, or None if the file has no such column or no verdict in it."""
    column = verdicts.targets.get(target)
    return None if column is None or not is_answered(column).any() else column


def score_verdicts(
    column: np.ndarray,
    labels: LabelSet,
    target: str,
    policy: str = "strict",
    n_resamples: int = N_RESAMPLES,
    by_agent: bool = True,
) -> Score:
    """Return the score of verdicts on one target; ``column`` is in the order of the labels.

    If ``by_agent`` is false, the score has no cells by agent and by the subsets of the suite.
    """
    score = _score(column, labels, target, policy, n_resamples, by_agent)
    by_subset: dict[str, Cell] = {}
    for tag in sorted({tag for item in labels.trajectories for tag in item.tags}) if by_agent else ():
        rows = np.array([tag in item.tags for item in labels.trajectories])
        part = _score(column[rows], labels.only(rows), target, policy, n_resamples, False)
        by_subset["=".join(tag)] = part["overall"]
    if by_subset:
        score["by_subset"] = by_subset
    return score


def _score(
    column: np.ndarray, labels: LabelSet, target: str, policy: str, n_resamples: int, by_agent: bool
) -> Score:
    """Return the score of verdicts on one target, without the subsets of the suite."""
    asked = labels.target(target)
    # The intervals of a binary target's three usual metrics come with `judge_scores`.
    extra = {*STEP_METRICS, asked.main_metric} - {*FIGURES}
    others = [name for name in asked.metrics if asked.type != "binary" or name in extra]
    if asked.type != "binary":
        return _score_by(others, column, labels, asked, n_resamples, by_agent)
    scores = judge_scores(
        _with_rule(column, labels.primary[target], asked),
        labels.primary[target],
        benchmarks=[t.benchmark for t in labels.trajectories],
        agents=[t.agent for t in labels.trajectories] if by_agent else None,
        clusters=task_names(labels),
        policy="published" if asked.missing == "left out" else policy,
        n_resamples=n_resamples,
        seed=SEED,
    )
    if others:
        more: Any = _score_by(others, column, labels, asked, n_resamples, by_agent)
        scores = {**more["overall"], **scores}
        for group in ("by_benchmark", "by_agent"):
            for name, cell in scores.get(group, {}).items():
                cell.update({**more[group][name], **cell})
    by_benchmark, in_agents = scores.pop("by_benchmark"), scores.pop("by_agent", {})
    overall = cast(Cell, scores)  # the metric is also published on its own, so it cannot import the type
    return {"overall": overall, "by_benchmark": by_benchmark, "by_agent": in_agents}


def _with_rule(column: np.ndarray, labels: np.ndarray, target: Target) -> np.ndarray:
    """Return binary verdicts, with wrong answers for missing ones if the target counts these as wrong."""
    if target.missing != "wrong":
        return column
    return np.where((column == NO_ANSWER) & (labels != NO_ANSWER), 1 - labels, column).astype(np.int8)


def _score_by(
    metrics: Sequence[str],
    column: np.ndarray,
    labels: LabelSet,
    target: Target,
    n_resamples: int,
    by_agent: bool,
) -> Score:
    """Return the score on a target by some of its metrics."""
    formulas, items = {name: metrics_of(target)[name] for name in metrics}, labels.trajectories
    clusters, _ = cluster_codes(task_names(labels), len(items))
    runs = [item.trajectory_id for item in items]

    def cell(chosen: np.ndarray) -> Cell:
        answers = answers_of(target, labels.primary[target.name], column, clusters, runs, chosen)
        n, known = len(answers.labels), int(answers.has_verdict.sum())
        counts = {"n": n, "no_verdict": n - known, "coverage": known / n if n else None}
        return cast(Cell, {**counts, **measure(formulas, answers, n_resamples, SEED)})

    def cells(names: list[str]) -> dict[str, Cell]:
        of_items = np.array(names)
        return {name: cell(of_items == name) for name in sorted(set(names))}

    return {
        "overall": cell(np.ones(len(items), dtype=bool)),
        "by_benchmark": cells([item.benchmark for item in items]),
        "by_agent": cells([item.agent for item in items]) if by_agent else {},
    }


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


def counts_by_task(verdicts: Predictions, labels: LabelSet) -> Mapping[str, Sequence[Sequence[float]]]:
    """Return the counts of every task in sorted order, for each target with verdicts.

    They are [TP, FP] if the target is ranked by counts, else the sums of its main metric
    (`leaderboard.metrics`). Paired comparisons need these counts. They reveal much about labels, so they must
    not leave the server.
    """
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    found: dict[str, Any] = {}
    for target in scored(labels.targets):
        column = verdicts_of(verdicts, target.name)
        if column is None:
            continue
        runs = [item.trajectory_id for item in labels.trajectories]
        answers = answers_of(target, labels.primary[target.name], column, codes, runs)
        sums = metrics_of(target)[target.main_metric].sums(answers)
        counts = by_cluster(sums, answers.clusters, n_tasks)
        if target.is_ranked_by_counts:
            counts = counts[:, :2].astype(np.int64)
        found[target.name] = counts.tolist()
    return found


def labels_by_task(labels: LabelSet) -> Mapping[str, Sequence[Sequence[int]]]:
    """Return [positives, negatives] of every task for each label. They are as secret as `counts_by_task`."""
    codes, n_tasks = cluster_codes(task_names(labels), len(labels.trajectories))
    every_yes = np.ones(len(codes), dtype=np.int8)  # a TP on each positive, an FP on each negative
    return {
        target.name: confusion_counts(every_yes, labels.primary[target.name], codes, n_tasks)[:, :2].tolist()
        for target in scored(labels.targets)
        if target.is_ranked_by_counts
    }
