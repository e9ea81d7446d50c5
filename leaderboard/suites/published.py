"""Rows of judges that come with a suite: with their verdicts, or only with metrics as published.

A line of ``published.csv`` has a judge's metrics in percent, rounded to one decimal, on all runs or on a
subset. Its recall allows at most one number of true positives if there are fewer than 1,000 successes, and
its TNR at most one number of true negatives. Accuracy has to follow from both. The printed balanced accuracy
may be the mean of the recalls before or after rounding. If counts fit on all runs and on each subset, other
metrics such as precision are derived from them. Rows without such counts have only the printed metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, cast

import numpy as np
from pydantic import BeforeValidator, NonNegativeFloat, NonNegativeInt, PositiveInt

from arb.core.suite import Suite, SuiteError
from leaderboard.board.ranks import count_interval
from leaderboard.board.rows import STRICT, BoardRow, VerdictScores, on_board
from leaderboard.costs import Cost
from leaderboard.judge_precision.confusion import figures
from leaderboard.paper.audit import Counts, numerators, read_tenths
from leaderboard.paper.models import Weights, model_fields
from leaderboard.paper.published_files import read_lines
from leaderboard.score import Cell

METRICS: Final = ("accuracy", "recall", "tnr", "balanced_accuracy")
N_DRAWS: Final = 200_000
_UNKNOWN: Final = ("tp", "fp", "fn", "tn", "precision", "f1", "npv", "fpr", "kappa", "no_verdict", "coverage")

Tenths = Annotated[int, BeforeValidator(read_tenths)]
"""A percentage as printed, in tenths of a percent."""
Dollars = Annotated[NonNegativeFloat | None, BeforeValidator(lambda text: text or None)]


@dataclass(frozen=True, slots=True)
class PrintedMetrics:
    """A line of ``published.csv``: a judge's metrics on all runs, or on the ``subset`` that it names."""

    judge: str
    weights: Weights
    subset: str
    n: PositiveInt
    positives: NonNegativeInt
    accuracy: Tenths
    recall: Tenths
    tnr: Tenths
    balanced_accuracy: Tenths
    usd_per_1000: Dollars

    def possible_counts(self) -> list[Counts]:
        """Return all counts from which these metrics can be printed; see the module's docstring."""
        negatives, right = self.n - self.positives, numerators(self.accuracy, self.n)
        return [
            Counts(tp, negatives - tn, self.positives - tp, tn)
            for tp in numerators(self.recall, self.positives)
            for tn in numerators(self.tnr, negatives)
            if tp + tn in right and (self._is_mean_of_rounded() or self.is_mean_of_exact(tp, tn))
        ]

    def _is_mean_of_rounded(self) -> bool:
        return abs(self.recall + self.tnr - 2 * self.balanced_accuracy) <= 1

    def is_mean_of_exact(self, tp: int, tn: int) -> bool:
        """Return whether the balanced accuracy of these counts, rounded once, is the printed one."""
        p, q = self.positives, self.n - self.positives
        return abs(1000 * (tp * q + tn * p) - 2 * p * q * self.balanced_accuracy) <= p * q


class FitSummary(NamedTuple):
    """The number of judges, and how many of them have counts that fit: on all runs, and also on subsets.

    The last two fields are the numbers that would be expected by chance (see `summarise_fits`).
    """

    judges: int
    on_all_runs: int
    together: int
    by_chance_on_all_runs: float
    by_chance_together: float


@lru_cache(maxsize=4)
def read_published_metrics(path: Path) -> Mapping[str, tuple[PrintedMetrics, ...]]:
    """Return each judge's lines, the one on all runs first. Raises SuiteError with every problem."""
    problems: list[str] = []
    found: dict[str, list[PrintedMetrics]] = {}
    for where, line in read_lines(path, PrintedMetrics, problems):
        lines = found.setdefault(line.judge, [])
        if line.positives > line.n:
            problems.append(f"{where}, positives: use at most n")
        if bool(lines) != bool(line.subset) or line.subset in [each.subset for each in lines]:
            problems.append(f"{where}, subset: a judge needs one line without subset, then one per subset")
        lines.append(line)
    if problems or not found:
        raise SuiteError("; ".join(problems) or f"{path.name}: add at least one judge")
    return {judge: tuple(lines) for judge, lines in found.items()}


def counts_together(lines: Sequence[PrintedMetrics]) -> list[Counts] | None:
    """Return a judge's counts on each of its lines, or None unless exactly one set of counts fits each line.

    The result is also None if a count on a subset is larger than the same count on all runs.
    """
    possible = [line.possible_counts() for line in lines]
    if any(len(counts) != 1 for counts in possible):
        return None
    counts = [each[0] for each in possible]
    is_part = (all(part <= whole for part, whole in zip(each, counts[0], strict=True)) for each in counts)
    return counts if all(is_part) else None


@lru_cache(maxsize=4)
def summarise_fits(path: Path) -> FitSummary:
    """Return how many judges of a file have counts that fit, and how many would fit by chance.

    The chance is computed for judges that were measured on other runs: all values of recall and TNR are
    equally likely, and accuracy follows from the two.
    """
    judges = read_published_metrics(path).values()
    chances = [[chance_of_fit(line.n, line.positives) for line in lines] for lines in judges]
    return FitSummary(
        judges=len(judges),
        on_all_runs=sum(len(lines[0].possible_counts()) == 1 for lines in judges),
        together=sum(counts_together(lines) is not None for lines in judges),
        by_chance_on_all_runs=sum(chance[0] for chance in chances),
        by_chance_together=sum(map(prod, chances)),
    )


@lru_cache(maxsize=16)
def chance_of_fit(n: int, positives: int) -> float:
    """Return the probability that random rates, rounded as printed, fit integer counts of ``n`` runs."""
    negatives = n - positives
    recall, tnr = np.random.default_rng(0).random((2, N_DRAWS))
    tp, tn = np.rint(recall * positives), np.rint(tnr * negatives)
    exact = (recall, tnr, (recall * positives + tnr * negatives) / n)
    whole = (tp / max(positives, 1), tn / max(negatives, 1), (tp + tn) / n)
    fits = [np.rint(1000 * a) == np.rint(1000 * b) for a, b in zip(exact, whole, strict=True)]
    return float(np.logical_and.reduce(fits).mean())


def published_metric_rows(suite: Suite) -> tuple[BoardRow, ...]:
    """Return the board's rows for a suite with published metrics, or none for other suites."""
    if suite.published_path is None:
        return ()
    return tuple(_row(suite, lines) for lines in read_published_metrics(suite.published_path).values())


def _row(suite: Suite, lines: Sequence[PrintedMetrics]) -> BoardRow:
    first, counts, links = lines[0], counts_together(lines), dict(suite.profile.links)
    cells = [_cell(line, None if counts is None else counts[i]) for i, line in enumerate(lines)]
    note = "the counts fit only if the balanced accuracy is the mean of rounded recalls"
    is_exact = counts is None or all(
        line.is_mean_of_exact(found.tp, found.tn) for line, found in zip(lines, counts, strict=True)
    )
    usd = first.usd_per_1000
    source = f"published by {suite.profile.title}"
    cost: Cost | None = None
    if usd is not None:
        cost = {"usd_per_1000": usd, "rows": first.n, "of": first.n, "is_at_least": False, "basis": source}
    described: dict[str, Any] = {"weights": first.weights, **model_fields(first.judge)}
    return BoardRow(
        id=f"published/{first.judge.lower()}", judge=first.judge, model=first.judge, kind="LLM judge",
        link=links.get("source", ""), date=suite.profile.date, provenance="published", source=source,
        protocol="as published by the suite's authors", split="test", n=first.n,
        evidence="no counts" if counts is None else "unique counts", note="" if is_exact else note,
        labels={suite.main_target.name: {
            "overall": cells[0],
            "by_benchmark": {line.subset: cell for line, cell in zip(lines[1:], cells[1:], strict=True)},
            "by_agent": {}, "rank": None, "best": False, "intervals": "approximate", "note": "",
        }},
        cost=cost, **described,
    )  # fmt: skip


def _cell(line: PrintedMetrics, counts: Counts | None) -> Cell:
    """Return metrics with approximate intervals, from the counts or as printed."""
    negatives = line.n - line.positives
    # Without fitting counts, the intervals are those of the nearest ones.
    tp, tn = round(line.recall * line.positives / 1000), round(line.tnr * negatives / 1000)
    nearest = Counts(tp, negatives - tn, line.positives - tp, tn)
    known = METRICS if counts is None else (*METRICS, "precision", "f1")
    intervals = {f"{name}_ci": count_interval(name, *nearest) for name in known}
    if counts is not None:
        known_cell = figures(*counts, policy="published")
        return cast(Cell, {**known_cell, **intervals, "audit": "unique", "note": ""})
    printed = {name: getattr(line, name) / 1000 for name in METRICS}
    unknown = dict.fromkeys((*_UNKNOWN, "precision_ci", "f1_ci"))
    shared = {"n": line.n, "positives": line.positives, "audit": "none", "note": ""}
    return cast(Cell, {**unknown, **shared, **printed, **intervals})


def verdict_row(suite: Suite, row_id: str, scores: VerdictScores) -> BoardRow:
    """Return the row of a judge whose verdicts are in the suite's folder, in a file named after the judge."""
    judge, links = row_id.removeprefix("published/"), dict(suite.profile.links)
    labels = {target: score and on_board(score) for target, score in scores.labels.items()}
    n = next((score["overall"]["n"] for score in labels.values() if score), None)
    return BoardRow(
        id=row_id, judge=judge, model=judge, kind="LLM judge", link=links.get("code", ""),
        date=suite.profile.date, provenance="published", source=f"verdicts of {suite.profile.title}",
        protocol=STRICT, split="test", n=n, labels=labels, **model_fields(judge),
    )  # fmt: skip
