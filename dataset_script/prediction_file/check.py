"""A prediction table against a suite's split: acceptable or not, and why. Reads no label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dataset_script.prediction_file.findings import Finding, error, shown, warning
from dataset_script.prediction_file.identity import NOWHERE, id_findings, positions_in
from dataset_script.prediction_file.table import Codes, Predictions
from dataset_script.suite import Suite, Trajectory
from dataset_script.vocabulary import BENCHMARKS, LABELS, NO_VERDICT

LOW_COVERAGE: Final = 0.9
_FEWEST_FOR_CONSTANT: Final = 10
"""Below this many verdicts, all of them alike says nothing."""


@dataclass(frozen=True, slots=True)
class BenchmarkSummary:
    """One reporting benchmark's part of a file.

    `expected` trajectories of the split, `rows` of the file that name one of them, `coverage` the share of
    the expected that got a success verdict, `success_share` the share of those verdicts that is true.
    """

    expected: int
    rows: int
    coverage: float
    success_share: float | None

    def to_json(self) -> dict[str, object]:
        """The summary under the names of the check report."""
        return {
            "expected": self.expected,
            "rows": self.rows,
            "coverage": self.coverage,
            "success_share": self.success_share,
        }


@dataclass(frozen=True, eq=False)
class CheckResult:
    """What a check found. `aligned` is there exactly when the file is acceptable: no finding is an error."""

    suite: str
    split: str
    acceptable: bool
    rows: int
    coverage: float
    success_share: float | None
    findings: tuple[Finding, ...]
    by_benchmark: Mapping[str, BenchmarkSummary]
    aligned: Predictions | None = None
    file_name: str | None = None

    def to_json(self) -> dict[str, object]:
        """The check report (product.md, "Score report"), ready for JSON."""
        return {
            "file": self.file_name,
            "suite": self.suite,
            "split": self.split,
            "acceptable": self.acceptable,
            "rows": self.rows,
            "coverage": self.coverage,
            "success_share": self.success_share,
            "findings": [finding.to_json() for finding in self.findings],
            "by_benchmark": {name: part.to_json() for name, part in self.by_benchmark.items()},
        }


def check(
    table: Predictions | None,
    findings: Sequence[Finding],
    suite: Suite,
    split: str,
    file_name: str | None = None,
) -> CheckResult:
    """Check what `read.read_predictions` gave against one split; its findings come first in the result.

    Raises SuiteError for a split that does not exist.
    """
    trajectories = suite.split(split)
    success, positions = _verdicts(table, trajectories)
    found = list(findings)
    if not trajectories:
        found.append(error("empty_split", f"the suite {shown(suite.name)} has no trajectory in {split}."))
    elif table is not None:
        found += id_findings(table, positions, suite, split, findings)
        found += _verdict_findings(table, positions, len(trajectories), findings)
    found.sort(key=lambda finding: finding.level != "error")
    acceptable = table is not None and not any(finding.level == "error" for finding in found)
    overall = _summary(success, positions, np.arange(len(trajectories)))
    return CheckResult(
        suite=suite.name,
        split=split,
        acceptable=acceptable,
        rows=table.rows if table is not None else 0,
        coverage=overall.coverage,
        success_share=overall.success_share,
        findings=tuple(found),
        by_benchmark=_by_benchmark(success, positions, trajectories),
        aligned=table.align(positions, trajectories) if acceptable else None,
        file_name=file_name,
    )


def _verdicts(
    table: Predictions | None, trajectories: Sequence[Trajectory]
) -> tuple[Codes, NDArray[np.int64]]:
    if table is None:
        return np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)
    positions = positions_in(table, trajectories)
    success = table.success if table.success is not None else np.full(table.rows, NO_VERDICT, dtype=np.int8)
    return success, positions


def _by_benchmark(
    success: Codes, positions: NDArray[np.int64], trajectories: Sequence[Trajectory]
) -> dict[str, BenchmarkSummary]:
    names = np.array([t.benchmark for t in trajectories], dtype=object)
    # The official order, then whatever a suite of one's own adds.
    present = set(names)
    order = [name for name in BENCHMARKS if name in present] + sorted(present - set(BENCHMARKS))
    return {name: _summary(success, positions, np.flatnonzero(names == name)) for name in order}


def _summary(success: Codes, positions: NDArray[np.int64], expected: NDArray[np.int64]) -> BenchmarkSummary:
    """The part of the file on the expected positions; a trajectory named twice is covered once."""
    here = np.isin(positions, expected)
    decided = here & (success != NO_VERDICT)
    covered = np.unique(positions[decided]).size
    return BenchmarkSummary(
        expected=int(expected.size),
        rows=int(here.sum()),
        coverage=covered / expected.size if expected.size else 0.0,
        success_share=float(success[decided].mean()) if decided.any() else None,
    )


def _verdict_findings(
    table: Predictions, positions: NDArray[np.int64], expected: int, earlier: Sequence[Finding]
) -> list[Finding]:
    if not table.complete:
        return []
    findings = [finding for label in LABELS for finding in _constant(label, getattr(table, label), positions)]
    unreadable = any(finding.level == "error" and finding.column == "success" for finding in earlier)
    if table.success is None or unreadable:
        return findings  # what is wrong with the column has been said
    covered = np.unique(positions[(positions != NOWHERE) & (table.success != NO_VERDICT)]).size
    if not (table.success != NO_VERDICT).any():
        said = "success: no row has a verdict. Fill in true or false where the judge has one."
        findings.append(error("no_verdicts", said, count=table.rows, column="success"))
    elif covered < LOW_COVERAGE * expected:
        said = (
            f"success: verdicts for {covered:,} of {expected:,} trajectories ({covered / expected:.1%}). "
            "The ranking counts the others as not successful."
        )
        findings.append(warning("low_coverage", said, count=expected - covered, column="success"))
    return findings


def _constant(label: str, verdicts: Codes | None, positions: NDArray[np.int64]) -> list[Finding]:
    if verdicts is None:
        return []
    decided = verdicts[(verdicts != NO_VERDICT) & (positions != NOWHERE)]
    if decided.size < _FEWEST_FOR_CONSTANT or decided.min() != decided.max():
        return []
    word = "true" if decided[0] else "false"
    said = f"{label}: all {decided.size:,} verdicts are {word}. Make sure that the judge meant it."
    return [warning("constant_verdicts", said, count=int(decided.size), column=label)]
