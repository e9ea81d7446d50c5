"""Check that ranks do not separate equally good judges: ``python -m bench.ranks`` (``--quick``: in seconds).

Boards of judges that are all equally good are drawn over the real test tasks: once with the same rates for
all, and once with one precision, recall or F1 and recalls from .05 to .90 (`equal_judges`). At most 5 % of
them may call any pair separated, by the step-down procedure, and with more than 128 judges by the critical
value of Tukey and Kramer.

The power of the ranks is how often they separate AER-C from NNetNav, which are 15.2 points of precision
apart, on a board of three judges and on a board of 30. With ``--verdicts FOLDER`` the real files are used
(``aer-c.jsonl``, ``nnetnav.jsonl``, ``rule-based.jsonl``), else verdicts are drawn at the rates of the
published counts. Also printed are the coverage of the 95 % intervals, and how often a paired comparison of
two equal judges excludes zero.

Verdicts are drawn from a latent normal model: a judge says yes if its rate exceeds the sum of an effect of
the task and of the trajectory on all judges, an effect of the task on this judge, and chance. With the
standard deviations below, drawn judges are as alike as the three real ones: the design effect of precision is
1.6 (real: 1.5 to 1.8), the correlation of two judges' resampled precisions is 0.6 (real: 0.4 to 0.7), and
that of their verdicts under one label is 0.2 to 0.3 (real: 0.0 to 0.3). The real labels are used if they are
available, else 27 % of the labels are successes.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.core.suites.targets import default_targets
from leaderboard.board.ranks import (
    TESTED_TOGETHER,
    Contender,
    RankingData,
    compared_share,
    compared_value,
    count_interval,
    metric_samples,
    rank_cells,
    separated_pairs,
)
from leaderboard.judge_precision.confusion import confusion_counts, metric_values
from leaderboard.judge_precision.intervals import FIGURES, cluster_intervals, percentile_intervals
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.labels.labels import LabelsInvalid, load_labels
from leaderboard.labels.source import LabelsUnavailable
from leaderboard.verdict_files import read_verdict_file

TASK_SD, TRAJECTORY_SD, OWN_TASK_SD = 0.6, 0.8, 0.5
PUBLISHED = {"aer-c": (212, 101, 83, 710), "nnetnav": (243, 220, 52, 591), "rule-based": (165, 32, 130, 779)}
"""The counts TP, FP, FN, TN that agree exactly with the paper's figures on test."""

FAMILYWISE = 0.05
_DRAWN_AT_ONCE = 600


@dataclass(frozen=True)
class Split:
    """Labels (n,) of 1, 0 or -1, and the number of each trajectory's task, from 0."""

    labels: np.ndarray
    tasks: np.ndarray
    n_tasks: int


def load_split(settings: Settings) -> tuple[Split, bool]:
    """Return the labels and tasks of the test trajectories, and whether the labels are real."""
    suite = load_suite()
    trajectories = suite.split("test")
    tasks, n_tasks = cluster_codes([f"{t.benchmark}/{t.task}" for t in trajectories], len(trajectories))
    try:
        return Split(load_labels(suite, "test", settings).primary["success"], tasks, n_tasks), True
    except (LabelsUnavailable, LabelsInvalid):
        drawn = np.random.default_rng(0).random(len(trajectories)) < 0.27
        return Split(drawn.astype(np.int8), tasks, n_tasks), False


def draw_verdicts(
    split: Split, rates: list[tuple[float, float]], generator: np.random.Generator
) -> np.ndarray:
    """Return the verdicts on one board, int8 (judges, n); ``rates`` are true and false positive rates."""
    n = len(split.labels)
    spread = sqrt(1 + TASK_SD**2 + TRAJECTORY_SD**2 + OWN_TASK_SD**2)
    of_rate = np.vectorize(lambda rate: NormalDist().inv_cdf(rate) * spread)
    true_rates, false_rates = np.array(rates).T
    border = np.where(split.labels == 1, of_rate(true_rates)[:, None], of_rate(false_rates)[:, None])
    common = generator.normal(0, TASK_SD, split.n_tasks)[split.tasks] + generator.normal(0, TRAJECTORY_SD, n)
    own = generator.normal(0, OWN_TASK_SD, (len(rates), split.n_tasks))[:, split.tasks]
    return (common + own + generator.normal(0, 1, own.shape) < border).astype(np.int8)


def task_counts(split: Split, verdicts: np.ndarray) -> np.ndarray:
    """Return TP, FP, FN and TN of every task: (judges, tasks, 4)."""
    found = [confusion_counts(column, split.labels, split.tasks, split.n_tasks)[:, :4] for column in verdicts]
    return np.stack(found)


def drawn_boards(
    split: Split,
    boards: list[list[tuple[float, float]]],
    seed: int,
    fixed: np.ndarray | None = None,
    metric: str = "precision",
) -> Iterator[list[Contender]]:
    """Yield boards of judges drawn at these rates, each preceded by the judges with the ``fixed`` counts.

    ``fixed`` has the shape (judges, tasks, 4). Many boards share one set of resamples, to save time.
    """
    generator = np.random.default_rng(seed)
    size = max(1, _DRAWN_AT_ONCE // max(map(len, boards)))
    for start in range(0, len(boards), size):
        counts = []
        for rates in boards[start : start + size]:
            drawn = task_counts(split, draw_verdicts(split, rates, generator))
            counts.append(drawn if fixed is None else np.concatenate([fixed, drawn]))
        yield from contenders_of_boards(counts, metric)


def contenders_of_boards(boards: list[np.ndarray], metric: str = "precision") -> Iterator[list[Contender]]:
    """Yield the contenders of each board, made from its counts (judges, tasks, 4)."""
    samples = iter(metric_samples([judge for board in boards for judge in board], metric))
    for board in boards:
        contenders = []
        for tp, fp, fn, tn in board.sum(axis=1).tolist():
            shown = float(metric_values(metric, *np.array([[tp], [fp], [fn], [tn]]))[0])
            ends = count_interval(metric, tp, fp, fn, tn)
            interval = ends and [compared_share(metric, end) for end in ends]
            contenders.append(
                Contender(float(compared_value(metric, tp, fp, fn, tn)), interval, next(samples), shown)
            )
        yield contenders


LEVELS = {"precision": (0.5, 0.7, 0.85), "recall": (0.05, 0.3, 0.6, 0.9), "f1": (0.09, 0.3, 0.5)}
"""The common values of a metric on the boards of `equal_judges`."""

HIGHEST_RATE = 0.95


def equal_judges(metric: str, level: float, n_judges: int, positives: float) -> list[tuple[float, float]]:
    """Return rates of judges with the same value of a metric, and recalls spread from .05 to .90.

    If the metric is recall, the judges differ in their false positive rate instead. Recalls that would need a
    false positive rate above `HIGHEST_RATE` are left out. ``positives`` is the share of successes.
    """
    if metric == "recall":
        return [(level, rate) for rate in np.linspace(0.02, 0.4, n_judges)]
    lowest = level / (2 - level) + 0.01 if metric == "f1" else 0.05  # F1 has at least this recall
    recalls = np.linspace(lowest, 0.9, 500)
    precisions = level * recalls / (2 * recalls - level) if metric == "f1" else np.full(500, level)
    false_rates = recalls * (1 - precisions) / precisions * positives / (1 - positives)
    possible = np.flatnonzero(false_rates <= HIGHEST_RATE)
    chosen = possible[np.linspace(0, len(possible) - 1, n_judges).astype(int)]
    return list(zip(recalls[chosen].tolist(), false_rates[chosen].tolist(), strict=True))


def unequal_recall_share(split: Split, metric: str, n_judges: int, n_boards: int, seed: int = 0) -> float:
    """Return the share of boards of `equal_judges` that separate any pair by the metric."""
    positives = float(np.mean(split.labels == 1))
    levels = LEVELS[metric]
    boards = [equal_judges(metric, levels[n % len(levels)], n_judges, positives) for n in range(n_boards)]
    found = drawn_boards(split, boards, seed, metric=metric)
    return float(np.mean([separated_pairs(board).any() for board in found]))


def null_share(split: Split, n_judges: int, n_boards: int, seed: int = 0) -> float:
    """Return the share of boards of equally good judges (with the rates of AER-C) that separate any pair."""
    boards = [[rates_of(PUBLISHED["aer-c"])] * n_judges] * n_boards
    if n_judges > TESTED_TOGETHER:
        generator = np.random.default_rng(seed)
        drawn = (task_counts(split, draw_verdicts(split, rates, generator)) for rates in boards)
        return float(np.mean([separates_any(counts) for counts in drawn]))
    return float(np.mean([separated_pairs(board).any() for board in drawn_boards(split, boards, seed)]))


def separates_any(counts: np.ndarray) -> bool:
    """Return whether a board that is too large for the step-down procedure separates any pair of judges.

    ``counts`` has the shape (judges, tasks, 4); see `leaderboard.board.ranks`.
    """
    cells = {
        f"{place}": {"precision": tp / (tp + fp), "precision_ci": count_interval("precision", tp, fp, fn, tn)}
        for place, (tp, fp, fn, tn) in enumerate(counts.sum(axis=1).tolist())
    }
    by_task = {name: {"success": judge[:, :2]} for name, judge in zip(cells, counts, strict=True)}
    best_first = dict(sorted(cells.items(), key=lambda each: -each[1]["precision"]))
    ranks = rank_cells(best_first, default_targets()[0], "precision", RankingData(by_task))
    return any(rank.low > 1 for rank in ranks.values())


def rates_of(counts: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return (true positive rate, false positive rate) from the counts TP, FP, FN and TN."""
    tp, fp, fn, tn = counts
    return tp / (tp + fn), fp / (fp + tn)


def power(
    split: Split, n_judges: int, n_boards: int, verdicts: np.ndarray | None = None, seed: int = 1
) -> float:
    """Return the share of boards that rank AER-C, the first judge, above NNetNav, the second.

    A board has the three judges of `PUBLISHED`, then judges with the rates of AER-C. ``verdicts`` (3, n) are
    the real verdicts of the three; without them, verdicts are drawn at their rates.
    """
    others = [rates_of(PUBLISHED["aer-c"])] * (n_judges - len(PUBLISHED))
    if verdicts is None:
        boards = drawn_boards(split, [[*map(rates_of, PUBLISHED.values()), *others]] * n_boards, seed)
    elif others:
        boards = drawn_boards(split, [others] * n_boards, seed, task_counts(split, verdicts))
    else:
        boards = contenders_of_boards([task_counts(split, verdicts)])
    return float(np.mean([separated_pairs(board)[0, 1] for board in boards]))


def coverage(split: Split, n_draws: int, seed: int = 2) -> dict[str, float]:
    """Return how often the 95 % interval of each metric covers its value over all tasks.

    A judge with the rates of AER-C is evaluated on as many tasks as there are, drawn with replacement. The
    intervals are those of `cluster_intervals` over the drawn tasks.
    """
    generator = np.random.default_rng(seed)
    counts = task_counts(split, draw_verdicts(split, [rates_of(PUBLISHED["aer-c"])], generator))[0]
    truth = {name: float(metric_values(name, *counts.sum(axis=0)[:, None])[0]) for name in FIGURES}
    drawn = generator.integers(0, split.n_tasks, (n_draws, split.n_tasks))
    covered = dict.fromkeys(FIGURES, 0)
    for start in range(0, n_draws, 100):
        cells = counts[drawn[start : start + 100], :3].transpose(1, 0, 2)  # (tasks, draws, TP FP FN)
        for found in cluster_intervals(cells, 10_000, seed=0):
            for name in FIGURES:
                low, high = found[f"{name}_ci"]
                covered[name] += low <= truth[name] <= high
    return {name: count / n_draws for name, count in covered.items()}


def paired_type_1_error(split: Split, n_pairs: int, seed: int = 3) -> float:
    """Return how often the paired 95 % interval of the difference of two equal judges excludes zero."""
    excluded = 0
    boards = [[rates_of(PUBLISHED["aer-c"])] * 2] * n_pairs
    for first, second in drawn_boards(split, boards, seed):
        low, high = percentile_intervals((first.samples - second.samples)[:, None])[0]
        excluded += not low <= 0 <= high
    return excluded / n_pairs


def real_verdicts(folder: Path, settings: Settings) -> np.ndarray:
    """Return the success verdicts (3, n) in the files of a folder, in the order of `PUBLISHED`."""
    suite = load_suite()
    files = [folder / f"{name}.jsonl" for name in PUBLISHED]
    return np.stack(
        [read_verdict_file(file, suite, "test", settings.max_upload_bytes).codes("success") for file in files]
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the shares; return 1 if more boards separate equal judges than chance explains."""
    parser = argparse.ArgumentParser(prog="python -m bench.ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--boards", type=int, default=200, help="boards for each number of judges")
    parser.add_argument("--judges", type=int, nargs="+", default=[13, 30, 200], help="judges on a board")
    parser.add_argument(
        "--verdicts", type=Path, help="folder with the real verdict files of the three judges"
    )
    parser.add_argument("--quick", action="store_true", help="simulate 20 boards and 100 draws")
    options = parser.parse_args(arguments)
    settings = Settings()
    split, are_real = load_split(settings)
    n_boards, n_draws = (20, 100) if options.quick else (options.boards, 1_000)
    labels = "real labels" if are_real else "labels drawn at 27 %, since the real ones are not here"
    print(f"{len(split.labels):,} test trajectories of {split.n_tasks} tasks, {labels}")
    most = FAMILYWISE + 2 * sqrt(FAMILYWISE * (1 - FAMILYWISE) / n_boards)
    shares = [null_share(split, n_judges, n_boards) for n_judges in options.judges]
    for n_judges, share in zip(options.judges, shares, strict=True):
        print(f"  {n_judges:3} equal judges: a pair is separated on {share:6.1%} of {n_boards} boards"
              f"   (at most {FAMILYWISE:.0%}; {most:.1%} with noise)")  # fmt: skip
    for metric in LEVELS:
        for n_judges in (each for each in options.judges if each <= TESTED_TOGETHER):
            share = unequal_recall_share(split, metric, n_judges, n_boards)
            shares.append(share)
            print(f"  {n_judges:3} unequal judges of one {metric:9}: a pair is separated on {share:6.1%}")
    verdicts = real_verdicts(options.verdicts, settings) if options.verdicts else None
    source = "real verdicts" if options.verdicts else "drawn at their published rates"
    for n_judges in (3, 30):
        share = power(split, n_judges, n_boards, verdicts)
        print(f"  AER-C above NNetNav ({source}) among {n_judges:2} judges: separated on {share:.1%}")
    for name, share in coverage(split, n_draws).items():
        print(f"  95 % interval of {name:9} covers in {share:.1%} of {n_draws:,} draws of tasks")
    share = paired_type_1_error(split, n_draws)
    print(f"  paired comparison of two equal judges excludes zero in {share:.1%} of {n_draws:,}")
    return 0 if all(share <= most for share in shares) else 1


if __name__ == "__main__":
    sys.exit(main())
