"""The quality of the labels: the ceiling that they set for judges, and how noise in them affects precision.

The ceiling is the score of second annotators, evaluated like a judge against first annotators. A judge that
reaches it cannot be distinguished from a perfect one.

Label noise is simulated as if another person had given the labels: every label is flipped with the
probability with which two annotators differ, and the judge's precision is computed again. A yes and a no have
separate rates: in the official labels, second annotators changed 6 of 39 yes and 6 of 66 no. Because so few
doubles leave the rates uncertain, each simulation also draws the rates, from a Beta distribution with
Jeffreys' prior (Brown, Cai and DasGupta 2001, Statistical Science 16). Flips are independent of the judge. If
people and judges tend to be wrong on the same trajectories, the real effect is smaller than simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Final

import numpy as np

from arb.core.predictions.table import is_answered
from arb.core.suites.targets import scored
from leaderboard.board.rows import BoardRow
from leaderboard.judge_precision.intervals import N_RESAMPLES, percentile_intervals
from leaderboard.labels.agreement import Agreement, Doubles, agreement_of, numbered
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.report import score_verdicts
from leaderboard.score import Score


def second_annotator_scores(
    label_sets: Sequence[LabelSet], n_resamples: int = N_RESAMPLES
) -> dict[str, Score | None]:
    """Return the score of second annotations, evaluated against first ones, keyed by scored target.

    It covers the items of all label sets (such as dev and test) that two people annotated, except
    those on which one of them was unsure. The score has 95 % intervals over tasks, but no cells by agent. The
    score is None if no item has two answers.
    """
    twice = [labels.annotated_twice for labels in label_sets]
    items = [item for labels in label_sets for item in compress(labels.trajectories, labels.annotated_twice)]
    found: dict[str, Score | None] = {}
    for target in scored(label_sets[0].targets):
        name = target.name
        pairs = [(labels.first[name], labels.second[name]) for labels in label_sets]
        first, second = (
            np.concatenate([both[order][rows] for both, rows in zip(pairs, twice, strict=True)])
            for order in (0, 1)
        )
        known = replace(
            label_sets[0],
            trajectories=tuple(items),
            primary={name: first},
            targets=(replace(target, missing="left out"),),
        )
        found[name] = None
        if (is_answered(first) & is_answered(second)).any():
            found[name] = score_verdicts(second, known, name, n_resamples=n_resamples, by_agent=False)
    return found


def ceiling_row(
    label_sets: Sequence[LabelSet], date: str, authors: str = "", link: str = "",
    n_resamples: int = N_RESAMPLES,
) -> BoardRow | None:  # fmt: skip
    """Return the second annotators as a reference row of the board, or None if there are none.

    The row has the id of the published row of the official suite, which it replaces on a board. Its intervals
    are over tasks. It has no cells by agent, which would have only a few trajectories each. ``date`` is the
    ISO date of the labels.
    """
    scores = second_annotator_scores(label_sets, n_resamples)
    if not any(scores.values()):
        return None
    counted = {labels.split: int(labels.annotated_twice.sum()) for labels in label_sets}
    total = sum(counted.values())
    parts = ", ".join(f"{count} {split}" for split, count in counted.items() if count)
    on_board: dict[str, Score | None] = {}
    for label, score in scores.items():
        on_board[label] = score and {**score, "rank": None, "best": False, "intervals": "tasks", "note": ""}
    return BoardRow(
        id=SECOND_ANNOTATOR, judge="Second annotator", kind="Human", authors=authors, link=link,
        date=date, provenance="reference", source=f"the annotations of {label_sets[0].suite}",
        note=f"A second annotator evaluated against the first on the {total} trajectories ({parts}) that two "
        "annotated; where one was unsure the trajectory is left out",
        labels=on_board,
    )  # fmt: skip


def summarise(labels: LabelSet) -> dict[str, Any]:
    """Return the numbers of trajectories, tasks and labels, and the annotators' agreement.

    For a binary target, the number of positive labels is included.
    """
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    everything = np.ones(len(benchmarks), dtype=bool)
    agreement = {label: vars(annotator_agreement(labels, label)) for label in _with_answers(labels)}
    fields = ("pairs", "percent", "kappa", "kappa_ci", "alpha", "alpha_ci", "ac1", "ac1_ci")
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
        "agreement": {label: {name: found[name] for name in fields} for label, found in agreement.items()},
    }


def _counts(labels: LabelSet, rows: np.ndarray) -> dict[str, Any]:
    runs = {labels.trajectories[row].trajectory_id for row in np.flatnonzero(rows)}
    found: dict[str, Any] = {"trajectories": len(runs)}
    for target in scored(labels.targets):
        values = labels.primary[target.name][rows]
        positives = {"positives": int((values == 1).sum())} if target.type == "binary" else {}
        found[target.name] = {**positives, "n": int(is_answered(values).sum())}
    return found


def _with_answers(labels: LabelSet) -> list[str]:
    """Return the scored targets with a choice of answers, on which agreement can be measured."""
    return [target.name for target in scored(labels.targets) if target.type != "score"]


def annotator_agreement(labels: LabelSet, question: str) -> Agreement:
    """Return the agreement of first and second annotations on a target that is not a score."""
    twice = labels.annotated_twice
    codes = [values[question][twice].astype(np.int64) for values in (labels.first, labels.second)]
    trajectories = [labels.trajectories[place] for place in np.flatnonzero(twice)]
    tasks = numbered([f"{each.benchmark}/{each.task}" for each in trajectories])
    units = np.arange(len(trajectories))
    asked = {each.name: each for each in labels.targets}
    by_question = {question: np.concatenate(codes)}
    doubles = Doubles(np.tile(units, 2), tasks, asked, by_question, units, units + len(units))
    return agreement_of(doubles, question, n_resamples=N_RESAMPLES)


FEWEST_DOUBLES: Final = 30
"""A benchmark with fewer doubles for an answer uses the rate of all benchmarks, since a single double would
change its own rate by 3 %."""

N_DRAWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class DisagreementCount:
    """The number of doubles in which both annotators answered, and in how many of them they differ."""

    differing: int
    doubles: int

    @property
    def rate(self) -> float | None:
        """The share of doubles with different answers, as a fraction; None without doubles."""
        return self.differing / self.doubles if self.doubles else None


@dataclass(frozen=True)
class DisagreementRates:
    """How often two annotators differ on a target, by benchmark and by the first annotator's answer.

    The keys of ``by_answer`` are (benchmark, code of the answer), and (None, code) for all benchmarks.
    """

    by_answer: Mapping[tuple[str | None, int], DisagreementCount]

    def of(self, benchmark: str | None, answer: int) -> DisagreementCount:
        """Return the counts of a benchmark, or those of all benchmarks if it has too few doubles."""
        own = self.by_answer.get((benchmark, answer))
        if own is not None and own.doubles >= FEWEST_DOUBLES:
            return own
        return self.by_answer.get((None, answer), DisagreementCount(0, 0))

    def over_answers(self, benchmark: str | None = None) -> DisagreementCount:
        """Return the counts over all answers, of one benchmark or (if None) of all benchmarks."""
        counts = [count for (name, _), count in self.by_answer.items() if name == benchmark]
        return DisagreementCount(sum(c.differing for c in counts), sum(c.doubles for c in counts))

    @property
    def overall(self) -> DisagreementCount:
        return self.over_answers()

    @property
    def by_benchmark(self) -> dict[str, DisagreementCount]:
        names = sorted({benchmark for benchmark, _ in self.by_answer if benchmark is not None})
        return {name: self.over_answers(name) for name in names}


@dataclass(frozen=True, slots=True)
class NoiseBand:
    """A judge's precision, and its mean and central 95 % range under simulated label noise, as fractions."""

    precision: float
    mean: float
    low: float
    high: float


def disagreement_rates(label_sets: Sequence[LabelSet], label: str) -> DisagreementRates:
    """Return how often annotators differ on a target, over all items with two answers."""
    found: dict[tuple[str | None, int], list[int]] = {}
    for labels in label_sets:
        first, second = labels.first[label], labels.second[label]
        for place in np.flatnonzero(labels.annotated_twice & (first >= 0) & (second >= 0)):
            for benchmark in (labels.trajectories[place].benchmark, None):
                counts = found.setdefault((benchmark, int(first[place])), [0, 0])
                counts[0] += int(first[place] != second[place])
                counts[1] += 1
    return DisagreementRates({group: DisagreementCount(*counts) for group, counts in found.items()})


def precision_under_noise(
    tp: np.ndarray, fp: np.ndarray, of_yes: Sequence[DisagreementCount], of_no: Sequence[DisagreementCount],
    n_draws: int = N_DRAWS, seed: int = 0,
) -> NoiseBand | None:  # fmt: skip
    """Return the noise band of a judge's precision, or None if the judge never says yes or rates are unknown.

    A flipped yes turns a TP into an FP, and a flipped no turns an FP into a TP. The judge's verdicts do not
    change, so the expected precision is sum(tp (1 - rate of yes) + fp rate of no) / sum(tp + fp). In each
    draw, the rates of all cells are high together or low together. Independent draws would be wrong, because
    cells may share doubles: small benchmarks use those of all benchmarks.

    ``tp`` and ``fp`` are integers of shape (cells,). ``of_yes`` and ``of_no`` count the doubles of each
    cell whose first answer is yes or no.
    """
    called_successful = int(np.sum(tp) + np.sum(fp))
    if not called_successful:
        return None
    generator = np.random.default_rng(seed)
    right = np.zeros(n_draws, dtype=np.int64)
    for counts, of_answer, is_kept in ((tp, of_yes, True), (fp, of_no, False)):
        order = generator.permutation(n_draws)
        rates: dict[DisagreementCount, np.ndarray] = {}
        for n, doubles in zip(counts, of_answer, strict=True):
            if n and not doubles.doubles:
                return None
            if n and doubles not in rates:
                ends = doubles.differing + 0.5, doubles.doubles - doubles.differing + 0.5
                rates[doubles] = np.sort(generator.beta(*ends, size=n_draws))[order]
            if n:
                right += generator.binomial(n, 1 - rates[doubles] if is_kept else rates[doubles])
    drawn = right / called_successful
    interval = percentile_intervals(drawn[:, None])[0]
    if interval is None:
        return None
    return NoiseBand(float(np.sum(tp)) / called_successful, float(drawn.mean()), interval[0], interval[1])


def noise_band(score: Score | None, rates: DisagreementRates) -> NoiseBand | None:
    """Return the noise band of a judge's score on one label.

    It is computed from the cells by benchmark if they add up to the overall counts, else from the overall
    cell. It is None if counts or rates are unknown, or if the judge never says yes.
    """
    if score is None or score["overall"]["tp"] is None:
        return None
    overall = score["overall"]
    names: list[str | None] = list(score["by_benchmark"])
    cells = list(score["by_benchmark"].values())
    sums = sum(cell["tp"] or 0 for cell in cells), sum(cell["fp"] or 0 for cell in cells)
    if sums != (overall["tp"], overall["fp"]):
        names, cells = [None], [overall]
    tp = np.array([cell["tp"] or 0 for cell in cells], dtype=np.int64)
    fp = np.array([cell["fp"] or 0 for cell in cells], dtype=np.int64)
    of_yes, of_no = ([rates.of(name, answer) for name in names] for answer in (1, 0))
    return precision_under_noise(tp, fp, of_yes, of_no)
