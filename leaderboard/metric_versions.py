"""The versions of the metric, and the fields of the score report that each of them had.

A recorded score names its version, so that it can be computed again and compared after the report has grown.
Add a version here whenever fields are added, removed or computed differently. A field that is computed
differently is left out of the versions before, since today's code cannot compute it as they did.
"""

from collections.abc import Mapping
from typing import Any, Final

METRIC_VERSION: Final = 1

_REPORT: Final = ("suite", "split", "label_version", "policy", "coverage", "labels", "cost")
_CELL: Final = (
    "n", "positives", "tp", "fp", "fn", "tn", "no_verdict", "precision", "precision_ci", "recall",
    "recall_ci", "f1", "f1_ci", "accuracy", "balanced_accuracy", "npv", "tnr", "fpr", "kappa", "coverage",
)  # fmt: skip
REPORT_FIELDS: Final[Mapping[int, frozenset[str]]] = {1: frozenset(_REPORT)}
"""The fields of a report, by version; ``cost`` only if the file gives costs."""
CELL_FIELDS: Final[Mapping[int, frozenset[str]]] = {1: frozenset(_CELL)}
"""The figures of one cell (overall, a benchmark, an agent), by version."""


def is_known_version(version: int) -> bool:
    """Return whether this code knows the fields of a version."""
    return version in CELL_FIELDS


def report_of_version(report: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a report with only the fields that a version of the metric had."""
    kept = {name: value for name, value in report.items() if name in REPORT_FIELDS[version]}
    return {
        **kept,
        "labels": {label: found and _label(found, version) for label, found in report["labels"].items()},
    }


def _label(found: Mapping[str, Any], version: int) -> dict[str, Any]:
    groups = {
        group: {name: _cell(cell, version) for name, cell in found[group].items()}
        for group in ("by_benchmark", "by_agent")
    }
    return {"overall": _cell(found["overall"], version), **groups}


def _cell(cell: Mapping[str, Any], version: int) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name in CELL_FIELDS[version]}
