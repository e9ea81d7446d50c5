"""The report of `arb validate`: metrics of judges against labels, comparisons, agreement and warnings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from arb.core.console import counted
from arb.core.formats import FORMATS
from leaderboard.calibration import Calibration, calibrate
from leaderboard.paired import verdict_agreement
from leaderboard.validation.combination import (
    BestCombination,
    FittedThreshold,
    candidates_of,
    fit_threshold,
    search,
)
from leaderboard.validation.metrics import (
    METRICS,
    Metric,
    counts_by_group,
    difference,
    labels_needed,
    measure,
)
from leaderboard.validation.tables import JudgeAnswers, TableError, ValidationTable

LEVEL: Final = 0.95
METHOD: Final = "linearization over groups; Wilson's interval at the effective sample size, Student's t"
COMPARED: Final = ("precision", "recall", "f1", "accuracy")


def metrics_json(metrics: Mapping[str, Metric]) -> dict[str, object]:
    """Return metrics and their intervals as plain values, by name."""
    return {
        name: {"value": found.value, "ci": None if found.interval is None else list(found.interval)}
        for name, found in metrics.items()
    }


@dataclass(frozen=True)
class JudgeReport:
    """One judge's counts and metrics. Counts are numbers of rows, or sums of weights."""

    judge: str
    tp: float
    fp: float
    fn: float
    tn: float
    no_verdict: int
    metrics: Mapping[str, Metric]
    slices: Mapping[str, Mapping[str, Mapping[str, Metric]]]
    """Metrics, keyed by the columns of ``--by``, then by their values."""
    calibration: Calibration | None = None
    threshold: FittedThreshold | None = None
    needed: Mapping[str, int | None] | None = None
    """The total number of labels needed for a narrower interval, keyed by metric."""

    def to_json(self) -> dict[str, Any]:
        counts = {name: _whole(getattr(self, name)) for name in ("tp", "fp", "fn", "tn")}
        found: dict[str, Any] = {"judge": self.judge, **counts, "no_verdict": self.no_verdict}
        found |= metrics_json(self.metrics)
        if self.calibration is not None:
            found["auroc"], found["brier"] = self.calibration.auc, self.calibration.brier
            found["calibration"] = [asdict(each) for each in self.calibration.bins]
        if self.threshold is not None:
            found["threshold"] = asdict(self.threshold)
        if self.needed is not None:
            found["labels_needed"] = dict(self.needed)
        if self.slices:
            found["by"] = {
                column: {value: metrics_json(metrics) for value, metrics in values.items()}
                for column, values in self.slices.items()
            }
        return found


@dataclass(frozen=True, slots=True)
class PairReport:
    """Two judges on the same rows: the difference first - second of each metric."""

    first: str
    second: str
    differences: Mapping[str, Metric]

    def to_json(self) -> dict[str, Any]:
        return {"first": self.first, "second": self.second, **metrics_json(self.differences)}


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """The agreement of two label columns: share of equal labels and Cohen's kappa on ``n`` rows."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True)
class ValidationReport:
    """The report that `arb validate` prints. ``ceiling`` has the agreement between columns of labels."""

    n: int
    positives: int
    groups: int
    design: str
    judges: tuple[JudgeReport, ...]
    pairs: tuple[PairReport, ...]
    ceiling: tuple[LabelAgreement, ...]
    combination: BestCombination | None
    warnings: tuple[str, ...]
    half_width: float

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "format": FORMATS["validation report"],
            "level": LEVEL,
            "method": METHOD,
            "design": self.design,
            "n": self.n,
            "positives": self.positives,
            "groups": self.groups,
            "judges": [judge.to_json() for judge in self.judges],
            "pairs": [pair.to_json() for pair in self.pairs],
            "agreement": [asdict(each) for each in self.ceiling],
            "warnings": list(self.warnings),
        }
        if self.combination is not None:
            found["combination"] = {**asdict(self.combination), "price": self.combination.price}
        return found


def validate_table(table: ValidationTable, half_width: float = 0.05) -> ValidationReport:
    """Measure the judges of a table against its first label column.

    Args:
        table: The labelled rows.
        half_width: The report says how many labels are needed for an interval of ± this fraction.
    """
    counts = [
        counts_by_group(judge.verdicts, table.truth, table.groups, table.weights) for judge in table.judges
    ]
    pairs = []
    for (one, first), (other, second) in combinations(zip(table.judges, counts, strict=True), 2):
        found = {name: difference(name, first, second) for name in COMPARED}
        pairs.append(PairReport(one.name, other.name, found))
    ceiling = []
    for (one_name, labels), (other_name, more) in combinations(table.labels.items(), 2):
        agreed = verdict_agreement(labels, more)
        ceiling.append(LabelAgreement(one_name, other_name, agreed.n, agreed.percent, agreed.kappa))
    best = search(table, candidates_of(len(table.judges))) if len(table.judges) > 1 else None
    return ValidationReport(
        n=len(table.ids),
        positives=int((table.truth == 1).sum()),
        groups=int(table.groups.max(initial=-1)) + 1,
        design=_design(table),
        judges=tuple(_judge_report(judge, table, half_width) for judge in table.judges),
        pairs=tuple(pairs),
        ceiling=tuple(ceiling),
        combination=best[1] if best else None,
        warnings=(*table.notes, *_warnings(table)),
        half_width=half_width,
    )


def _judge_report(judge: JudgeAnswers, table: ValidationTable, half_width: float) -> JudgeReport:
    everywhere = np.ones(len(table.ids), dtype=bool)
    metrics, counts = _measured(judge, table, everywhere)
    tp, fp, fn, tn = counts.tolist()
    slices = {
        column: {str(value): _measured(judge, table, values == value)[0] for value in np.unique(values)}
        for column, values in table.slices.items()
    }
    scores = judge.scores
    return JudgeReport(
        judge=judge.name, tp=tp, fp=fp, fn=fn, tn=tn,
        no_verdict=int((judge.verdicts < 0).sum()),
        metrics=metrics,
        slices=slices,
        calibration=None if scores is None else calibrate(scores, table.truth, table.groups),
        threshold=fit_threshold(judge, table),
        needed={
            name: labels_needed(metrics[name], len(table.ids), half_width)
            for name in ("precision", "recall", "accuracy")
        },
    )  # fmt: skip


def _measured(
    judge: JudgeAnswers, table: ValidationTable, rows: np.ndarray
) -> tuple[dict[str, Metric], np.ndarray]:
    """Return the metrics on some rows, and the weighted counts TP, FP, FN, TN."""
    groups = np.unique(table.groups[rows], return_inverse=True)[1]
    columns = judge.verdicts[rows], table.truth[rows], groups
    weighted = counts_by_group(*columns, table.weights[rows])
    plain = counts_by_group(*columns, np.ones(int(rows.sum())))
    return {name: measure(name, weighted, plain) for name in METRICS}, weighted.sum(axis=0)


def _design(table: ValidationTable) -> str:
    rows = "labelled rows only" if table.unlabelled else "all rows are labelled"
    if np.ptp(table.weights) > 0:
        rows = "weighted rows"
    return f"{rows}; {'groups of rows' if table.is_grouped else 'rows'} are independent"


def _warnings(table: ValidationTable) -> list[str]:
    found = []
    if table.unlabelled and not np.ptp(table.weights) > 0:
        found.append(
            f"Labels are missing for {counted(table.unlabelled, 'row')}. Recall, F1, accuracy and kappa are "
            "right only if the labelled rows were drawn at random; if not, give weights (--weights, --draw)"
        )
    if np.ptp(table.weights) > 0 and any(judge.scores is not None for judge in table.judges):
        found.append("AUROC, the Brier score and the calibration plot count every row once, without weights")
    if not table.is_grouped:
        found.append(
            "rows count as independent. If several rows belong together, such as runs of one task, name "
            "their group (--group); otherwise the intervals are too narrow"
        )
    for judge in table.judges:
        missing = int((judge.verdicts < 0).sum())
        if missing:
            found.append(
                f"{judge.name} has no verdict on {counted(missing, 'row')}; a missing verdict counts as no"
            )
    return found


_REQUIREMENT: Final = re.compile(r"\s*(\w+)(?:\.(value|low|high))?\s*(>=|<=|>|<)\s*(\d+\.?\d*|\.\d+)\s*")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition that every judge must meet, such as ``precision.low>=0.8`` (``part`` is ``low``)."""

    text: str
    metric: str
    part: str
    sign: str
    border: float

    def holds(self, judge: JudgeReport) -> bool | None:
        """Return whether a judge meets the condition, or None if the figure is undefined."""
        measured = judge.metrics[self.metric]
        found = measured.value
        if self.part != "value":
            found = None if measured.interval is None else measured.interval[0 if self.part == "low" else 1]
        if found is None:
            return None
        return {
            ">=": found >= self.border,
            "<=": found <= self.border,
            ">": found > self.border,
            "<": found < self.border,
        }[self.sign]


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement. Raises TableError if the text is not one."""
    found = _REQUIREMENT.fullmatch(text)
    if found is None or found[1] not in METRICS:
        raise TableError(
            f"--require {text!r}: write a metric, a sign and a number, such as precision.low>=0.8 "
            f"(metrics: {', '.join(METRICS)}; parts: value, low, high)"
        )
    border = float(found[4])
    if border > 1:
        raise TableError(f"--require {text!r}: metrics are at most 1; write a fraction such as 0.8")
    return Requirement(text.strip(), found[1], found[2] or "value", found[3], border)


def disagreements(table: ValidationTable) -> list[dict[str, Any]]:
    """Return the rows that at least one judge gets wrong, the most informative first.

    Rows that more judges get wrong come first. Among these, rows with a score far from the label come first.
    """
    found = []
    for place, row in enumerate(table.ids):
        label = int(table.truth[place])
        wrong = [each for each in table.judges if (each.verdicts[place] == 1) != (label == 1)]
        if not wrong:
            continue
        far = 0.0
        line: dict[str, Any] = {"id": row, "label": label, "judges_wrong": len(wrong)}
        for judge in table.judges:
            verdict = int(judge.verdicts[place])
            line[judge.name] = "" if verdict < 0 else verdict
            if judge.scores is not None and not np.isnan(judge.scores[place]):
                line[f"{judge.name} score"] = float(judge.scores[place])
                far = max(far, abs(float(judge.scores[place]) - label))
        found.append((-len(wrong), -far, place, line))
    return [line for *_, line in sorted(found, key=lambda each: each[:3])]


def _whole(count: float) -> float | int:
    return int(count) if float(count).is_integer() else round(count, 6)


def draw_weights(strata: Sequence[tuple[int, Sequence[str]]], ids: Sequence[str]) -> np.ndarray:
    """Return how many runs each labelled run stands for: all runs of its stratum / labelled runs of it.

    Args:
        strata: For each stratum, its number of runs and the ids that were drawn from it.
        ids: The ids of the labelled rows.

    Raises:
        TableError: An id was not drawn.
    """
    labelled = set(ids)
    weight_of = {}
    for n_runs, drawn in strata:
        inside = [run for run in drawn if run in labelled]
        weight_of.update({run: n_runs / len(inside) for run in inside})
    others = [run for run in ids if run not in weight_of]
    if others:
        raise TableError(
            f"{len(others)} labelled ids are not in the draw, such as {', '.join(others[:5])}; give only the "
            "labels of the drawn runs, or leave out --draw"
        )
    return np.array([weight_of[run] for run in ids])
