"""Measure how fast the metric is: ``python -m bench.metric`` (``--quick`` for a look that takes seconds).

1. The full report of a test file: 10,000 resamples of 300 tasks, overall, for 5 benchmarks and for 4 agents.
   It is compared with the same resamples scored by scikit-learn's functions, which are run for a few
   resamples and scaled up. On these few, both must give the same intervals before anything is timed.
2. A million predictions through our metric's ``compute``, compared with ``compute`` of evaluate's base class.

Verdicts and labels are made up for the suite's public tasks. No labels are read.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from arb.core.suite import load_suite
from leaderboard.judge_precision.intervals import FIGURES, resampling_weights
from leaderboard.judge_precision.scores import cluster_codes, judge_scores

AT_LEAST_TIMES_FASTER = 100
REPORT_SECONDS = 0.5
MILLION_SECONDS = 2.0


def made_up_columns(seed: int = 0) -> dict[str, np.ndarray]:
    """Return columns for ``judge_scores``: 27 % of runs are successes, the judge is right on 85 %."""
    trajectories = load_suite().split("test")
    generator = np.random.default_rng(seed)
    labels = (generator.random(len(trajectories)) < 0.27).astype(int)
    return {
        "predictions": np.where(generator.random(len(labels)) < 0.85, labels, 1 - labels),
        "references": labels,
        "benchmarks": np.array([t.benchmark for t in trajectories]),
        "agents": np.array([t.agent for t in trajectories]),
        "clusters": np.array([f"{t.benchmark}/{t.task}" for t in trajectories]),
    }


def scikit_learn_intervals(columns: dict[str, np.ndarray], n_resamples: int) -> list[dict[str, list[float]]]:
    """Return the intervals of every cell, with each resample scored from scratch by scikit-learn."""
    from sklearn.metrics import f1_score, precision_score, recall_score

    scorers = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    tasks, n_tasks = cluster_codes(columns["clusters"], len(columns["clusters"]))
    members = [np.ones(len(tasks), dtype=bool)]
    for part in ("benchmarks", "agents"):
        members += [columns[part] == name for name in np.unique(columns[part])]
    samples = np.full((len(members), len(FIGURES), n_resamples), np.nan)
    weights = np.concatenate(list(resampling_weights(n_tasks, n_resamples, seed=0))).astype(int)
    for number, drawn in enumerate(weights):
        rows = np.repeat(np.arange(len(tasks)), drawn[tasks])
        for cell, member in enumerate(members):
            chosen = rows[member[rows]]
            labels, verdicts = columns["references"][chosen], columns["predictions"][chosen]
            for place, figure in enumerate(FIGURES):
                samples[cell, place, number] = scorers[figure](labels, verdicts, zero_division=np.nan)
    low, high = np.nanquantile(samples, [0.025, 0.975], axis=2)
    return [
        {f"{figure}_ci": [low[cell, place], high[cell, place]] for place, figure in enumerate(FIGURES)}
        for cell in range(len(members))
    ]


def same_intervals(columns: dict[str, np.ndarray], expected: list[dict], n_resamples: int) -> bool:
    scores = judge_scores(**columns, n_resamples=n_resamples)
    cells = [scores, *scores["by_benchmark"].values(), *scores["by_agent"].values()]
    pairs = zip(cells, expected, strict=True)
    return all(np.allclose(cell[key], theirs[key]) for cell, theirs in pairs for key in theirs)


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds of the shortest of ``repeats`` runs."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def bench_report(n_resamples: int, n_theirs: int) -> bool:
    columns = made_up_columns()
    scikit_learn_intervals(columns, 1)  # so that importing scikit-learn is not timed
    theirs_found: list = []
    theirs = seconds(lambda: theirs_found.extend(scikit_learn_intervals(columns, n_theirs)))
    theirs *= n_resamples / n_theirs
    if not same_intervals(columns, theirs_found, n_theirs):
        print("The two ways give different intervals, so their times cannot be compared.")
        return False
    ours = seconds(lambda: judge_scores(**columns, n_resamples=n_resamples), repeats=5)
    n_tasks = len(np.unique(columns["clusters"]))
    rows = len(columns["references"])
    print(f"full report, {rows:,} rows, {n_tasks} tasks, 10 cells, {n_resamples:,} resamples")
    print(f"  judge_scores            {ours:10.3f} s   (target under {REPORT_SECONDS} s)")
    print(
        f"  scikit-learn            {theirs:10.1f} s   (scaled up from {n_theirs} resamples; same intervals)"
    )
    print(f"  ratio                   {theirs / ours:10,.0f} x   (target at least {AT_LEAST_TIMES_FASTER} x)")
    return theirs / ours >= AT_LEAST_TIMES_FASTER and ours < REPORT_SECONDS


def bench_compute(rows: int) -> bool:
    import evaluate

    from leaderboard.judge_precision.judge_precision import JudgePrecision

    generator = np.random.default_rng(0)
    columns = {"predictions": generator.integers(-1, 2, rows), "references": generator.integers(0, 2, rows)}
    with tempfile.TemporaryDirectory() as folder:
        metric = JudgePrecision(cache_dir=folder)
        ours = seconds(lambda: metric.compute(**columns), repeats=3)
        lists = {name: values.tolist() for name, values in columns.items()}
        ours_on_lists = seconds(lambda: metric.compute(**lists), repeats=3)
        theirs = seconds(lambda: evaluate.Metric.compute(metric, **columns))
    print(f"compute, {rows:,} predictions, no resampling")
    print(f"  ours, numpy columns     {ours:10.3f} s   (target under {MILLION_SECONDS} s)")
    print(f"  ours, lists             {ours_on_lists:10.3f} s")
    print(f"  evaluate's own way      {theirs:10.3f} s")
    return max(ours, ours_on_lists) < MILLION_SECONDS


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a target is missed. ``--quick`` checks no targets."""
    parser = argparse.ArgumentParser(prog="python -m bench.metric", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="use few resamples and rows, and no targets")
    quick = parser.parse_args(arguments).quick
    held = [bench_report(500, 2) if quick else bench_report(10_000, 100)]
    held.append(bench_compute(10_000 if quick else 1_000_000))
    if quick:
        return 0
    print("All targets are met." if all(held) else "At least one target was MISSED.")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
