"""The quality of the labels: the ceiling that they set for judges, and what noise in them does to precision.

The ceiling is second annotators scored as a judge of the first, by the one metric. Where two experts agree no
better than that, a judge cannot be distinguished from a perfect one.

The noise is a simulation that keeps a judge's verdicts and flips every label with the probability with which
two annotators were seen to differ, as if another person had given the labels, and counts precision again. A
yes and a no have rates of their own: of the official labels a second person turned 6 of 39 yes and 6 of 66
no. So few doubles leave the rates themselves open, so that each draw also draws the rates, from what the
doubles allow (Beta distribution, Jeffreys' prior: Brown, Cai and DasGupta 2001, Statistical Science 16). The
flips know nothing of the judge; where people and judges stumble over the same trajectories, another person's
labels would cost the judge less than this band says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from arb.core.suites.questions import default_questions
from arb.core.vocabulary import LABELS
from leaderboard.board.board import BoardRow
from leaderboard.judge_precision.intervals import N_RESAMPLES, percentile_intervals
from leaderboard.judge_precision.scores import judge_scores
from leaderboard.labels.agreement import Agreement, Doubles, agreement_of, numbered
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.report import SEED, task_names


def second_annotator_scores(
    label_sets: Sequence[LabelSet], n_resamples: int = N_RESAMPLES
) -> dict[str, dict[str, Any] | None]:
    """For each label ``{"overall": CELL, "by_benchmark": {name: CELL}}`` of the second annotations.

    Over the trajectories of all the sets (such as dev and test of a suite) that two annotated, with 95 %
    intervals over tasks. Where one of the two was unsure the trajectory is left out (policy ``published``).
    None for a label that no trajectory has two answers to.
    """
    twice = [(labels, place) for labels in label_sets for place in np.flatnonzero(labels.annotated_twice)]
    benchmarks = [labels.trajectories[place].benchmark for labels, place in twice]
    names = {id(labels): task_names(labels) for labels in label_sets}
    tasks = [names[id(labels)][place] for labels, place in twice]
    found: dict[str, dict[str, Any] | None] = {}
    for label in LABELS:
        first = np.array([labels.first[label][place] for labels, place in twice], dtype=np.int8)
        second = np.array([labels.second[label][place] for labels, place in twice], dtype=np.int8)
        if not ((first >= 0) & (second >= 0)).any():
            found[label] = None
            continue
        scores = judge_scores(
            second,
            first,
            benchmarks=benchmarks,
            clusters=tasks,
            policy="published",
            n_resamples=n_resamples,
            seed=SEED,
        )
        found[label] = {"by_benchmark": scores.pop("by_benchmark"), "overall": scores}
    return found


def ceiling_row(
    label_sets: Sequence[LabelSet],
    date: str,
    authors: str = "",
    link: str = "",
    n_resamples: int = N_RESAMPLES,
) -> BoardRow | None:
    """The second annotators as a reference row of the board, with intervals over tasks; None without doubles.

    Its id is that of the shipped row of the official suite, which it replaces on a board. ``date`` is the
    day of the labels (ISO). No breakdown by agent: it would rest on a handful of trajectories each.
    """
    scores = second_annotator_scores(label_sets, n_resamples)
    if not any(scores.values()):
        return None
    counted = {labels.split: int(labels.annotated_twice.sum()) for labels in label_sets}
    total = sum(counted.values())
    parts = ", ".join(f"{count} {split}" for split, count in counted.items() if count)
    on_board = {"by_agent": {}, "rank": None, "best": False, "intervals": "tasks", "note": ""}
    return BoardRow(
        id=SECOND_ANNOTATOR, judge="Second annotator", kind="Human", authors=authors, link=link,
        date=date, provenance="reference", source=f"the annotations of {label_sets[0].suite}",
        note=f"A second annotator evaluated against the first on the {total} trajectories ({parts}) that two "
        "annotated; where one was unsure the trajectory is left out",
        labels={label: found and {**found, **on_board} for label, found in scores.items()},
    )  # fmt: skip


def summarise(labels: LabelSet) -> dict[str, Any]:
    """Trajectories, tasks, positives of each label by benchmark, and the agreement of second annotators."""
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    everything = np.ones(len(benchmarks), dtype=bool)
    agreement = {label: vars(annotator_agreement(labels, label)) for label in LABELS}
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
    found: dict[str, Any] = {"trajectories": int(rows.sum())}
    for label in LABELS:
        values = labels.primary[label][rows]
        found[label] = {"positives": int((values == 1).sum()), "n": int((values >= 0).sum())}
    return found


def annotator_agreement(labels: LabelSet, question: str) -> Agreement:
    """Agreement of first and second annotations of a label set, over trajectories that have both.

    On a question of the paper: those are what judges are scored on.
    """
    twice = labels.annotated_twice
    lowest = 1 if question == "optimality" else 0  # where codes of a label set begin; below, none was given
    codes = [values[question][twice].astype(np.int64) - lowest for values in (labels.first, labels.second)]
    trajectories = [labels.trajectories[place] for place in np.flatnonzero(twice)]
    tasks = numbered([f"{each.benchmark}/{each.task}" for each in trajectories])
    units = np.arange(len(trajectories))
    asked = {each.name: each for each in default_questions()}
    by_question = {question: np.concatenate(codes)}
    doubles = Doubles(np.tile(units, 2), tasks, asked, by_question, units, units + len(units))
    return agreement_of(doubles, question, n_resamples=N_RESAMPLES)


FEWEST_DOUBLES: Final = 30
"""A benchmark with fewer doubles of a class takes the rate of all: one answer would move its own by 3 %."""

N_DRAWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class DisagreementCount:
    """``differing`` of ``doubles`` in which two annotators both answered; ``rate`` as a fraction."""

    differing: int
    doubles: int

    @property
    def rate(self) -> float | None:
        """The share that differs; None without doubles."""
        return self.differing / self.doubles if self.doubles else None


@dataclass(frozen=True)
class DisagreementRates:
    """How often two annotators differ on a label: overall, by benchmark, and by the first one's answer.

    ``by_answer`` maps (benchmark, 1 or 0) and, for all benchmarks, (None, 1 or 0).
    """

    overall: DisagreementCount
    by_benchmark: Mapping[str, DisagreementCount]
    by_answer: Mapping[tuple[str | None, int], DisagreementCount]

    def of(self, benchmark: str | None, answer: int) -> DisagreementCount:
        """The doubles to simulate with: the benchmark's own where they are enough, else those of all."""
        own = self.by_answer.get((benchmark, answer))
        if own is not None and own.doubles >= FEWEST_DOUBLES:
            return own
        return self.by_answer.get((None, answer), DisagreementCount(0, 0))


@dataclass(frozen=True, slots=True)
class NoiseBand:
    """Fractions: the precision on the labels as they are, then the mean and the middle 95 % of the draws."""

    precision: float
    mean: float
    low: float
    high: float


def disagreement_rates(label_sets: Sequence[LabelSet], label: str) -> DisagreementRates:
    """The rates of one label over all trajectories of the sets that two annotated and answered."""
    found: dict[tuple[str | None, int], list[int]] = {}
    for labels in label_sets:
        first, second = labels.first[label], labels.second[label]
        for place in np.flatnonzero(labels.annotated_twice & (first >= 0) & (second >= 0)):
            for benchmark in (labels.trajectories[place].benchmark, None):
                counts = found.setdefault((benchmark, int(first[place])), [0, 0])
                counts[0] += int(first[place] != second[place])
                counts[1] += 1
    by_answer = {group: DisagreementCount(*counts) for group, counts in found.items()}
    names = sorted({benchmark for benchmark, _ in found if benchmark is not None})
    return DisagreementRates(
        _both_answers(by_answer, None),
        MappingProxyType({name: _both_answers(by_answer, name) for name in names}),
        MappingProxyType(by_answer),
    )


def _both_answers(
    by_answer: Mapping[tuple[str | None, int], DisagreementCount], benchmark: str | None
) -> DisagreementCount:
    counts = [by_answer.get((benchmark, answer), DisagreementCount(0, 0)) for answer in (0, 1)]
    return DisagreementCount(sum(c.differing for c in counts), sum(c.doubles for c in counts))


def precision_under_noise(
    tp: np.ndarray,
    fp: np.ndarray,
    of_yes: Sequence[DisagreementCount],
    of_no: Sequence[DisagreementCount],
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> NoiseBand | None:
    """The band of a judge with ``tp`` and ``fp`` (cells,), whole numbers.

    ``of_yes`` and ``of_no`` are the doubles of each cell by their first answer. A flipped yes turns a TP into
    an FP, a flipped no the other way round; what the judge called successful stays, so the expected precision
    is sum(tp (1 - rate of yes) + fp rate of no) / sum(tp + fp). In a draw the rates of all cells are high or
    low together: one cell may take the doubles of all benchmarks, which hold those of another, so that
    independent draws would count them twice. Seeded. None where the judge never says yes, and where labels
    that count have no doubles.
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
    low, high = percentile_intervals(drawn[:, None])[0]
    return NoiseBand(float(np.sum(tp)) / called_successful, float(drawn.mean()), low, high)


def noise_band(found: Mapping[str, Any] | None, rates: DisagreementRates) -> NoiseBand | None:
    """The band of one label of a score report or a board row: ``{"overall": CELL, "by_benchmark": {…}}``.

    By benchmark where the cells hold all of the overall counts, else overall. None where counts or rates
    are not known, and where the judge never says yes.
    """
    if found is None or found["overall"]["tp"] is None:
        return None
    cells = list(found["by_benchmark"].items())
    is_split_up = all(
        sum(cell[count] or 0 for _, cell in cells) == found["overall"][count] for count in ("tp", "fp")
    )
    if not is_split_up:
        cells = [(None, found["overall"])]
    tp, fp = (np.array([cell[count] or 0 for _, cell in cells], dtype=np.int64) for count in ("tp", "fp"))
    of_yes, of_no = ([rates.of(name, answer) for name, _ in cells] for answer in (1, 0))
    return precision_under_noise(tp, fp, of_yes, of_no)
