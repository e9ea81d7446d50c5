"""A score: how well a judge answers one label. Scorers produce it, records store it, boards show it.

A score is plain JSON everywhere, so nothing has to convert it. A report (`leaderboard.report`) contains a
score for each label, with the suite, the split and the label version.

A recorded score names the version of the metric that computed it, so that it can still be recomputed and
compared after fields were added. Add a version here when you add, remove or redefine a field. If you redefine
a field, also remove it from the older versions, because today's code cannot reproduce it.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict  # comes with pydantic, which needs it before Python 3.12

Ends = list[float] | None
"""The low and high end of a 95 % interval."""


class Noise(TypedDict):
    """Standard deviations of the noise that is added to the numbers of true positives and of positives."""

    tp_sd: float
    positives_sd: float


class Cell(TypedDict):
    """Counts and metrics (fractions) of one group of trajectories. Undefined and unknown values are None."""

    n: int | None
    positives: int | None
    tp: int | None
    fp: int | None
    fn: int | None
    tn: int | None
    no_verdict: int | None
    coverage: float | None
    precision: float | None
    precision_ci: Ends
    recall: float | None
    recall_ci: Ends
    f1: float | None
    f1_ci: Ends
    accuracy: float | None
    balanced_accuracy: float | None
    npv: float | None
    tnr: float | None
    fpr: float | None
    kappa: float | None
    accuracy_ci: NotRequired[Ends]
    balanced_accuracy_ci: NotRequired[Ends]
    kappa_ci: NotRequired[Ends]
    noise: NotRequired[Noise]
    audit: NotRequired[str]
    note: NotRequired[str]


class Score(TypedDict):
    """A judge's cells for one label: over all trajectories, by benchmark and by agent.

    ``by_subset`` is present if the suite has other subsets; its keys are names such as ``difficulty=hard``.
    The other fields exist only in rows of a board. ``intervals`` says how the intervals were computed.
    ``rank`` has the keys place, low and high. ``n_separated`` and ``separated_from`` say from which other
    ranked rows the row is separated (see `leaderboard.board.ranks.Rank`); they are None without a rank.
    ``best`` marks the row that represents its judge. ``ranked_by`` is present if the rank comes from hidden
    figures.
    """

    overall: Cell
    by_benchmark: Mapping[str, Cell]
    by_agent: Mapping[str, Cell]
    by_subset: NotRequired[Mapping[str, Cell]]
    intervals: NotRequired[Literal["tasks", "approximate"] | None]
    note: NotRequired[str]
    rank: NotRequired[dict[str, int] | None]
    n_separated: NotRequired[int | None]
    separated_from: NotRequired[list[str] | None]
    best: NotRequired[bool]
    ranked_by: NotRequired[str]


def metric_of(cell: Mapping[str, Any], metric: str) -> float | None:
    """Return a metric of a cell by its name, or None if it is undefined or absent."""
    value: float | None = cell.get(metric)
    return value


def interval_of(cell: Mapping[str, Any], metric: str) -> Ends:
    """Return the 95 % interval of a metric of a cell, or None if it has none."""
    ends: Ends = cell.get(f"{metric}_ci")
    return ends


METRIC_VERSION: Final = 1

_REPORT: Final = ("suite", "split", "label_version", "policy", "coverage", "labels", "cost")
REPORT_FIELDS: Final[Mapping[int, frozenset[str]]] = {1: frozenset(_REPORT)}
"""The fields of a report, without ``format``, keyed by version. Reports have ``cost`` only if it is known."""
CELL_FIELDS: Final[Mapping[int, frozenset[str]]] = {1: Cell.__required_keys__}
"""The fields of one cell (overall, a benchmark, an agent), keyed by version."""


def is_known_version(version: int) -> bool:
    return version in CELL_FIELDS


def report_of_version(report: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a report with only the fields that reports have in the given version of the metric."""
    kept = {name: value for name, value in report.items() if name in REPORT_FIELDS[version]}
    labels = {label: score and _score(score, version) for label, score in report["labels"].items()}
    return {**kept, "labels": labels}


def _score(score: Mapping[str, Any], version: int) -> dict[str, Any]:
    def cell(found: Cell) -> dict[str, Any]:
        return {name: value for name, value in found.items() if name in CELL_FIELDS[version]}

    def cells(found: Mapping[str, Cell]) -> dict[str, dict[str, Any]]:
        return {name: cell(each) for name, each in found.items()}

    groups = ("by_benchmark", "by_agent", "by_subset")
    return {
        "overall": cell(score["overall"]),
        **{name: cells(score[name]) for name in groups if name in score},
    }
