"""Judges on several suites: their boards side by side in one metric, and how well their order carries over.

Judges are the same if they use the same model (`model_key`) and see the same parts of a run. If a board has
several such judges, they are matched to judges of the same name on other boards; of those left, only the
first on each board is matched. Judges that are still unmatched are matched by model only, again only the
first on each board.

Figures of a board and of a pair of boards are cached, so only those of a new board are computed.

Kendall's tau-b (Kendall 1945, Biometrika 33) compares the order of the judges that two suites have in common.
Its interval resamples the tasks of each suite. A judge without verdicts has only counts, which are drawn from
binomial distributions. The ceiling of a suite is the mean tau between two halves of its tasks.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from arb.core.suites.targets import BINARY_METRICS, Target, scored
from arb.core.vocabulary import is_low
from leaderboard.board.board import Board
from leaderboard.board.ranks import RESAMPLES_OF_LARGE_BOARDS, count_interval
from leaderboard.board.rows import BoardRow
from leaderboard.judge_precision.confusion import metric_values
from leaderboard.judge_precision.intervals import percentile_intervals, resampled_counts
from leaderboard.score import Cell, Ends, interval_of, metric_of

COMMON_METRIC: Final = "balanced_accuracy"
FEWEST_COMMON: Final = 8
"""Tau is shown only if there are at least this many common judges."""
N_HALVES: Final = 200
RESAMPLES_OF_TAU: Final = 500
REFERENCES: Final = {"Always successful": "Always yes", "Never successful": "Never yes"}
"""The official suite's names of references, and the names under which the matrix lists them."""
SOURCES: Final = {"scored": "scored here", "self-reported": "reported"}
"""The name of a cell's source, keyed by the provenance of its row. Other provenances keep their names."""
_ENDINGS: Final = re.compile(r"-(instruct|preview|latest|20\d{6}|20\d\d-\d\d-\d\d)$")


@lru_cache(maxsize=1024)
def model_key(name: str) -> str:
    """Return a key that is equal for the usual spellings of a model's name; empty without a name.

    It ignores capitals, the provider before a slash, the separators, and the endings "instruct", "preview",
    "latest" and dates: ``openai/gpt-4o-2024-11-20`` and ``GPT-4o`` give ``gpt-4o``. Models of other sizes, or
    with words such as "mini" or "thinking", have other keys.
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.lower().rpartition("/")[2]).strip("-")
    while (shorter := _ENDINGS.sub("", key)) != key:
        key = shorter
    return key


@dataclass(frozen=True)
class SuiteBoard:
    """A suite with its board. Counts by task are used only if its labels are public.

    Boards with the same digest compare equal, so their figures are computed only once.
    """

    name: str
    title: str
    board: Board = field(compare=False)
    labels_are_public: bool
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", self.board.digest)

    @property
    def target(self) -> Target | None:
        """The first scored target with two answers, on which suites can be compared."""
        return next((target for target in scored(self.board.targets) if target.type == "binary"), None)


@dataclass(frozen=True)
class MatrixCell:
    """A judge's metric on a suite. ``is_model_match`` says whether the judge was matched by model only."""

    row_id: str
    judge: str
    value: float
    interval: Ends
    source: str
    is_model_match: bool = False


@dataclass(frozen=True)
class MatrixRow:
    """A judge and its cells, keyed by suite. ``inputs`` is what the judge sees, or empty if unknown."""

    judge: str
    model: str
    inputs: str
    cells: Mapping[str, MatrixCell]


@dataclass(frozen=True)
class OrderAgreement:
    """How well the order of judges carries over between two suites.

    Attributes:
        suites: The names of the suites.
        judges: The number of common judges.
        by_model: The number of common judges that are matched by model only.
        tau: Kendall's tau-b; None with fewer than `FEWEST_COMMON` judges, or if it is undefined.
        interval: The 95 % interval of tau; None if the counts of a judge are not known.
        from_counts: The suites on which a judge's counts are drawn at random, as its verdicts are not known.
        ceilings: For each suite, the mean tau between two halves of it; None if not known.
    """

    suites: tuple[str, ...]
    judges: int
    by_model: int
    tau: float | None = None
    interval: Ends = None
    from_counts: tuple[str, ...] = ()
    ceilings: tuple[float | None, ...] = (None, None)


@dataclass(frozen=True)
class SuiteMatrix:
    """Everything that the page shows. ``left_out`` has the titles of the suites without a binary target."""

    metric: str
    metrics: tuple[str, ...]
    suites: tuple[str, ...]
    left_out: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    references: tuple[MatrixRow, ...]
    agreements: tuple[OrderAgreement, ...]


@dataclass(frozen=True, eq=False)
class SuiteColumn:
    """The rows of a suite's board for which ``metric`` is defined, in board order.

    Only the best submission of each judge is included. ``cells``, ``counts`` and ``pooled`` are keyed by row
    id. Each array in ``counts`` has shape (tasks, 4) and each in ``pooled`` shape (4,), with TP, FP, FN and
    TN. A row is absent from ``counts`` or ``pooled`` if these are not known.
    """

    suite: SuiteBoard
    metric: str
    rows: tuple[BoardRow, ...]
    cells: dict[str, MatrixCell]
    counts: dict[str, np.ndarray]
    pooled: dict[str, np.ndarray]


Line = dict[str, tuple[BoardRow, MatrixCell]]
"""A row of the matrix under construction: the row of the board and the cell, keyed by suite."""


def common_metrics(suites: Sequence[SuiteBoard]) -> tuple[str, ...]:
    """Return the metrics to choose from: balanced accuracy, and those that all suites show."""
    of_suites = [set(suite.target.metrics) for suite in suites if suite.target is not None]
    others = (name for name in BINARY_METRICS if of_suites and all(name in metrics for metrics in of_suites))
    return (COMMON_METRIC, *(name for name in others if name != COMMON_METRIC))


@lru_cache(maxsize=64)
def _column_of(suite: SuiteBoard, metric: str) -> SuiteColumn:
    """Return each judge's best row with the metric, and all references, with 95 % intervals."""
    label = suite.target.name if suite.target else ""
    overall: dict[str, Cell] = {}
    rows, counts = [], {}
    for row in suite.board.rows:
        score = row.labels.get(label)
        if score is None or metric_of(score["overall"], metric) is None:
            continue
        if score["best"] or row.provenance != "scored":
            rows.append(row)
            overall[row.id] = score["overall"]
            by_task = suite.board.counts_by_task(row.id, label) if suite.labels_are_public else None
            if by_task is not None:
                counts[row.id] = by_task
    column = SuiteColumn(suite, metric, tuple(rows), {}, counts, {})
    drawn: dict[str, Ends] = {}
    if counts:
        samples = np.stack(list(_resampled_tasks(column).values()), axis=1)
        drawn = dict(zip(counts, percentile_intervals(samples), strict=True))
    for row in rows:
        known = _pooled(overall[row.id])
        if known is not None and known.sum():
            column.pooled[row.id] = known
        value = metric_of(overall[row.id], metric) or 0.0
        interval = _interval(overall[row.id], metric, drawn.get(row.id)) if row.is_comparable else None
        source = SOURCES.get(row.provenance, row.provenance)
        column.cells[row.id] = MatrixCell(row.id, row.judge, value, interval, source)
    return column


def _interval(cell: Cell, metric: str, drawn: Ends) -> Ends:
    """Return the board's interval, or else ``drawn`` (from resampled tasks), or else one from counts."""
    if (known := interval_of(cell, metric)) is not None:
        return known
    if drawn is not None and drawn[0] < drawn[1]:  # resamples of a judge that is never wrong do not vary
        return drawn
    counts = _pooled(cell)
    if counts is None or cell.get("tp") is None:
        return None
    return count_interval(metric, *map(int, counts))


def _pooled(cell: Cell) -> np.ndarray | None:
    """Return the TP, FP, FN and TN nearest to a cell's recall and TNR, or None if unknown or noisy."""
    n, positives, recall, tnr = cell.get("n"), cell.get("positives"), cell.get("recall"), cell.get("tnr")
    if "noise" in cell or n is None or positives is None or recall is None or tnr is None:
        return None
    tp, tn = round(recall * positives), round(tnr * (n - positives))
    return np.array([tp, n - positives - tn, positives - tp, tn])


@lru_cache(maxsize=16)
def make_matrix(suites: tuple[SuiteBoard, ...], metric: str) -> SuiteMatrix:
    """Return the matrix; the judges on most suites come first, then those with the best mean."""
    comparable = [_column_of(suite, metric) for suite in suites if suite.target is not None]
    lines = sorted(_matched(comparable), key=lambda line: _order(line, metric))
    references: dict[str, dict[str, MatrixCell]] = {}
    for column in comparable:
        for row in column.rows:
            if row.provenance == "reference":
                name = REFERENCES.get(row.judge, row.judge)
                references.setdefault(name, {})[column.suite.name] = column.cells[row.id]
    return SuiteMatrix(
        metric=metric,
        metrics=common_metrics(suites),
        suites=tuple(column.suite.name for column in comparable),
        left_out=tuple(suite.title for suite in suites if suite.target is None),
        rows=tuple(map(_row_of, lines)),
        references=tuple(MatrixRow(name, "", "", cells) for name, cells in references.items()),
        agreements=tuple(_agreement(a, b, lines) for a, b in combinations(comparable, 2)),
    )


def _row_of(line: Line) -> MatrixRow:
    row = next(iter(line.values()))[0]
    return MatrixRow(row.judge, row.model, row.inputs, {name: cell for name, (_, cell) in line.items()})


def _order(line: Line, metric: str) -> tuple[float, float, str]:
    mean = sum(cell.value for _, cell in line.values()) / len(line)
    return -len(line), mean if is_low(metric) else -mean, min(row.id for row, _ in line.values())


def _matched(columns: Sequence[SuiteColumn]) -> list[Line]:
    """Return a line for each judge, matched by model and inputs, and then by model only."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for column in columns:
        name = column.suite.name
        rest: dict[tuple[str, str], list[BoardRow]] = {}
        for row in column.rows:
            key = _key(row), row.inputs or f"unknown on {name}"
            twin = next((line for line in groups.get(key, []) if _is_twin(row, name, line)), None)
            if row.provenance != "reference" and twin is not None:
                twin[name] = row, column.cells[row.id]
            elif row.provenance != "reference":
                rest.setdefault(key, []).append(row)
        for key, rows in rest.items():
            lines = groups.setdefault(key, [])
            free = next((line for line in lines if name not in line), None)
            new = [{name: (row, column.cells[row.id])} for row in rows]
            if free is not None:
                free |= new.pop(0)
            lines += new
    found: list[Line] = []
    first_of_model: dict[str, Line] = {}
    for (model, _), lines in groups.items():
        for line in lines:
            first = first_of_model.setdefault(model, line)
            if first is line or first.keys() & line.keys():
                found.append(line)
            else:
                first |= {
                    name: (row, replace(cell, is_model_match=True)) for name, (row, cell) in line.items()
                }
    return found


def _key(row: BoardRow) -> str:
    """Return the key of the row's model, or of the judge's name if it has no model."""
    return model_key(row.model) or f"judge {row.judge.lower()}"


def _is_twin(row: BoardRow, suite: str, line: Line) -> bool:
    """Return whether the line has a judge of the row's name, but no row on this suite yet."""
    return suite not in line and any(other.judge == row.judge for other, _ in line.values())


def _agreement(a: SuiteColumn, b: SuiteColumn, lines: Sequence[Line]) -> OrderAgreement:
    names = a.suite.name, b.suite.name
    common = [(line[names[0]], line[names[1]]) for line in lines if set(names) <= line.keys()]
    by_model = sum(any(cell.is_model_match for _, cell in pair) for pair in common)
    if len(common) < FEWEST_COMMON:
        return OrderAgreement(names, len(common), by_model)
    ids_of_a, ids_of_b = zip(*((first.id, second.id) for (first, _), (second, _) in common), strict=True)
    return replace(_compared(a, b, ids_of_a, ids_of_b), by_model=by_model)


@lru_cache(maxsize=64)
def _compared(
    a: SuiteColumn, b: SuiteColumn, ids_of_a: tuple[str, ...], ids_of_b: tuple[str, ...]
) -> OrderAgreement:
    """Return how far two suites agree on the order of the judges, which are given by their row ids."""
    sides = (a, ids_of_a), (b, ids_of_b)
    values = [np.array([column.cells[row_id].value for row_id in ids]) for column, ids in sides]
    tau = float(kendall_tau(*values))
    drawn = [_resampled(column, ids) for column, ids in sides]
    interval = None
    if drawn[0] is not None and drawn[1] is not None:
        taus = kendall_tau(drawn[0][:RESAMPLES_OF_TAU], drawn[1][:RESAMPLES_OF_TAU])
        interval = percentile_intervals(taus[:, None])[0]
    return OrderAgreement(
        suites=(a.suite.name, b.suite.name),
        judges=len(ids_of_a),
        by_model=0,
        tau=None if np.isnan(tau) else tau,
        interval=interval,
        from_counts=tuple(column.suite.name for column, ids in sides if not set(ids) <= column.counts.keys()),
        ceilings=tuple(_ceiling(column, ids) for column, ids in sides),
    )


def _metric(metric: str, counts: np.ndarray) -> np.ndarray:
    """Return a metric for an array of counts of shape (..., 4)."""
    return metric_values(metric, *np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0))


def _seed(column: SuiteColumn) -> int:
    """Return the suite's own seed, so that its resamples are the same in every pair of suites."""
    return zlib.crc32(column.suite.name.encode())


@lru_cache(maxsize=32)
def _resampled_tasks(column: SuiteColumn) -> dict[str, np.ndarray]:
    """Return the metric on each resample of the tasks, keyed by row id.

    Only judges with verdicts are included. Each array has shape (resamples,).
    """
    by_task = np.concatenate([*column.counts.values()], axis=1)
    drawn = resampled_counts(by_task, RESAMPLES_OF_LARGE_BOARDS, _seed(column))
    return dict(zip(column.counts, _metric(column.metric, drawn.reshape(len(drawn), -1, 4)).T, strict=True))


def _resampled(column: SuiteColumn, ids: Sequence[str]) -> np.ndarray | None:
    """Return resamples of the metric, of shape (resamples, judges); None if a judge's counts are unknown."""
    generator = np.random.default_rng(_seed(column))
    of_tasks = _resampled_tasks(column) if column.counts else {}
    found = []
    for row_id in ids:
        pooled = column.pooled.get(row_id)
        if row_id in of_tasks:
            found.append(of_tasks[row_id])
        elif pooled is None:
            return None
        else:
            drawn = generator.multinomial(pooled.sum(), pooled / pooled.sum(), RESAMPLES_OF_LARGE_BOARDS)
            found.append(_metric(column.metric, drawn))
    return np.stack(found, axis=1)


@lru_cache(maxsize=64)
def _ceiling(column: SuiteColumn, ids: tuple[str, ...]) -> float | None:
    """Return the mean tau between random halves of the tasks; None if undefined or counts are not known.

    If the verdicts of a judge are not known, its runs are split at random instead.
    """
    if not set(ids) <= {*column.counts, *column.pooled}:
        return None
    generator = np.random.default_rng(0)
    with_verdicts = [row_id for row_id in ids if row_id in column.counts]
    half, whole = np.zeros((2, N_HALVES, len(ids), 4))
    if with_verdicts:
        by_task = np.concatenate([column.counts[row_id] for row_id in with_verdicts], axis=1)
        is_in_half = generator.permuted(np.tile(np.arange(len(by_task)) % 2, (N_HALVES, 1)), axis=1)
        places = [ids.index(row_id) for row_id in with_verdicts]
        drawn = is_in_half.astype(np.float64) @ by_task  # exact, and faster than with whole numbers
        half[:, places] = drawn.reshape(N_HALVES, -1, 4)
        whole[:, places] = by_task.sum(axis=0).reshape(-1, 4)
    for place, row_id in enumerate(ids):
        if row_id not in column.counts:
            pooled = column.pooled[row_id]
            whole[:, place] = pooled
            half[:, place] = generator.multivariate_hypergeometric(pooled, pooled.sum() // 2, N_HALVES)
    taus = kendall_tau(_metric(column.metric, half), _metric(column.metric, whole - half))
    return None if np.isnan(taus).all() else float(np.nanmean(taus))


def kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b along the last axis; NaN if all values of x or of y are equal."""
    *shape, judges = x.shape
    x, y = (np.ascontiguousarray(each.reshape(-1, judges).T) for each in (x, y))
    same, untied, untied_in_y = np.zeros((3, x.shape[1]), dtype=np.int64)
    for apart in range(1, judges):  # sums over thousands of judges fit into int16
        signs = [_signs(each[apart:], each[:-apart]) for each in (x, y)]
        same += (signs[0] * signs[1]).sum(axis=0, dtype=np.int16)
        untied += np.abs(signs[0]).sum(axis=0, dtype=np.int16)
        untied_in_y += np.abs(signs[1]).sum(axis=0, dtype=np.int16)
    with np.errstate(invalid="ignore"):
        return (same / np.sqrt(untied * untied_in_y)).reshape(shape)


def _signs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sign of a - b as int8, with 0 if one of them is NaN."""
    return (a > b).view(np.int8) - (a < b).view(np.int8)
