"""The ceiling of the metric: second annotators scored as a judge of the first, by the one metric.

Where two experts agree no better than that, a judge cannot be told from a perfect one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dataset_script.vocabulary import LABELS
from leaderboard.agreement import annotator_agreement
from leaderboard.board import BoardRow
from leaderboard.judge_precision.intervals import N_RESAMPLES
from leaderboard.judge_precision.scores import judge_scores
from leaderboard.labels import LabelSet
from leaderboard.published_rows import SECOND_ANNOTATOR
from leaderboard.report import SEED, task_names


def second_annotator_scores(
    label_sets: Sequence[LabelSet], n_resamples: int = N_RESAMPLES
) -> dict[str, dict[str, Any] | None]:
    """For each label ``{"overall": CELL, "by_benchmark": {name: CELL}}`` of the second annotations.

    Over the trajectories of all the sets (such as dev and test of a suite) that two annotated, with 95 %
    intervals over tasks. Where one of the two was unsure the trajectory is left out (policy ``published``).
    None for a label that no trajectory has two answers to.
    """
    places = [np.flatnonzero(labels.annotated_twice) for labels in label_sets]
    trajectories = [
        labels.trajectories[place]
        for labels, found in zip(label_sets, places, strict=True)
        for place in found
    ]
    tasks = [
        names[place]
        for names, found in zip(map(task_names, label_sets), places, strict=True)
        for place in found
    ]
    found: dict[str, dict[str, Any] | None] = {}
    for label in LABELS:
        first = _joined(
            [labels.primary[label][rows] for labels, rows in zip(label_sets, places, strict=True)]
        )
        second = _joined(
            [labels.second[label][rows] for labels, rows in zip(label_sets, places, strict=True)]
        )
        if not ((first >= 0) & (second >= 0)).any():
            found[label] = None
            continue
        scores = judge_scores(
            second,
            first,
            benchmarks=[t.benchmark for t in trajectories],
            clusters=tasks,
            policy="published",
            n_resamples=n_resamples,
            seed=SEED,
        )
        found[label] = {"by_benchmark": scores.pop("by_benchmark"), "overall": scores}
    return found


def _joined(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(columns) if columns else np.empty(0, dtype=np.int8)


def ceiling_row(
    label_sets: Sequence[LabelSet],
    date: str,
    authors: str = "",
    link: str = "",
    n_resamples: int = N_RESAMPLES,
) -> BoardRow | None:
    """The second annotators as a reference row of the board, with intervals over tasks; None without doubles.

    Its id is that of the shipped row of the official suite, which it replaces on a board. ``date`` is the
    day of the labels (ISO). No breakdown by agent: it would rest on a handful of runs each.
    """
    scores = second_annotator_scores(label_sets, n_resamples)
    if not any(scores.values()):
        return None
    counted = {labels.split: int(labels.annotated_twice.sum()) for labels in label_sets}
    total = sum(counted.values())
    parts = ", ".join(f"{count} {split}" for split, count in counted.items() if count)
    return BoardRow(
        id=SECOND_ANNOTATOR, judge="Second annotator", account="", kind="Reference", inputs="", model="",
        authors=authors, link=link, date=date, provenance="reference",
        source=f"the annotations of {label_sets[0].suite}", attempts=None, test_labels_used=None,
        file_sha256=None,
        note=f"A second annotator held against the first on the {total} trajectories ({parts}) that two "
        "annotated; where one was unsure the trajectory is left out",
        labels={label: _on_board(found) for label, found in scores.items()},
    )  # fmt: skip


def _on_board(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {**found, "by_agent": {}, "rank": None, "best": False, "intervals": "tasks", "note": ""}


def summarise(labels: LabelSet) -> dict[str, Any]:
    """Trajectories, tasks, positives of each label by benchmark, and the agreement of second annotators."""
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    everything = np.ones(len(benchmarks), dtype=bool)
    return {
        "suite": labels.suite,
        "split": labels.split,
        "source": labels.source,
        "label_version": labels.version,
        "tasks": len({(t.benchmark, t.task) for t in labels.trajectories}),
        "overall": _counts(labels, everything),
        "by_benchmark": {
            name: _counts(labels, benchmarks == name) for name in sorted(set(benchmarks.tolist()))
        },
        "agreement": {label: _second_annotators(labels, label) for label in LABELS},
    }


def _counts(labels: LabelSet, rows: np.ndarray) -> dict[str, Any]:
    found: dict[str, Any] = {"trajectories": int(rows.sum())}
    for label in LABELS:
        values = labels.primary[label][rows]
        found[label] = {"positives": int((values == 1).sum()), "n": int((values >= 0).sum())}
    return found


def _second_annotators(labels: LabelSet, label: str) -> dict[str, Any]:
    agreement = annotator_agreement(labels, label)
    return {"pairs": agreement.pairs, "percent": agreement.percent, "kappa": agreement.kappa}
