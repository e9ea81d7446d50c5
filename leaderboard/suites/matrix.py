"""Judges on several suites: their boards side by side in one metric, and how well their order carries over.

Judges are the same if they use the same model (`model_key`) and see the same parts of a run. If a board has
several such judges, those of the same name share a row of the matrix; of the others, only the first on each
board does. What is left is matched by the model alone, again only the first on each board.

Kendall's tau-b (Kendall 1945, Biometrika 33) compares the order of the judges that two suites have in common.
Its interval resamples the tasks of each suite. A judge without verdicts has only counts, which are drawn from
binomial distributions. The ceiling of a suite is the mean tau between two halves of its tasks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, NamedTuple

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
"""Tau is shown from this number of common judges on."""
N_HALVES: Final = 200
REFERENCES: Final = {"Always successful": "Always yes", "Never successful": "Never yes"}
"""Names of the official suite's references, and those under which the matrix lists them."""
SOURCES: Final = {"scored": "scored here", "self-reported": "reported"}
"""The source of a cell by the provenance of its row, if it has another name."""
_ENDINGS: Final = re.compile(r"-(instruct|preview|latest|20\d{6}|20\d\d-\d\d-\d\d)$")
_AT_ONCE: Final = 100


def model_key(name: str) -> str:
    """Return a key that is equal for the usual spellings of a model's name; empty without a name.

    It ignores capitals, the provider before a slash, the separators, and the endings "instruct", "preview",
    "latest" and dates: ``openai/gpt-4o-2024-11-20`` and ``GPT-4o`` give ``gpt-4o``. Sizes and words such as
    "mini" or "thinking" make another model.
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.lower().rpartition("/")[2]).strip("-")
    while (shorter := _ENDINGS.sub("", key)) != key:
        key = shorter
    return key


@dataclass(frozen=True, eq=False)
class SuiteBoard:
    """A suite with its board. Only if its labels are public, counts by task are used."""

    name: str
    title: str
    board: Board
    labels_are_public: bool

    @property
    def target(self) -> Target | None:
        """The first target with two answers that judges are scored on: the one that can be compared."""
        return next((target for target in scored(self.board.targets) if target.type == "binary"), None)


@dataclass(frozen=True)
class MatrixCell:
    """A judge's metric on a suite. ``is_model_match`` marks one that shares only the model with its row."""

    row_id: str
    judge: str
    value: float
    interval: Ends
    source: str
    is_model_match: bool = False


@dataclass(frozen=True)
class MatrixRow:
    """A judge and its cells by suite. ``inputs`` is what it sees, or empty if unknown."""

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
        by_model: How many of them are matched by the model alone.
        tau: Kendall's tau-b; None with fewer than `FEWEST_COMMON` judges, or if it is undefined.
        interval: Its 95 % interval; None if the counts of a judge are not known.
        from_counts: The suites for which the counts of a judge were drawn, as its verdicts are not known.
        ceilings: For each suite, the mean tau between two halves of it.
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
    """Everything that the page shows; ``left_out`` has the suites without a binary target."""

    metric: str
    metrics: tuple[str, ...]
    suites: tuple[str, ...]
    left_out: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    references: tuple[MatrixRow, ...]
    agreements: tuple[OrderAgreement, ...]


class SuiteColumn(NamedTuple):
    """A suite's rows with a metric in the order of its board.

    ``cells``, ``counts`` (tasks, 4) and ``pooled`` (4,) are by row id; counts are TP, FP, FN and TN.
    """

    suite: SuiteBoard
    rows: tuple[BoardRow, ...]
    cells: Mapping[str, MatrixCell]
    counts: Mapping[str, np.ndarray]
    pooled: Mapping[str, np.ndarray]


Line = dict[str, tuple[BoardRow, MatrixCell]]
"""A row of the matrix while it is made: a row of the board and its cell by suite."""


def common_metrics(suites: Sequence[SuiteBoard]) -> tuple[str, ...]:
    """Return the metrics to choose from: balanced accuracy, and those that all suites show."""
    of_suites = [set(suite.target.metrics) for suite in suites if suite.target is not None]
    others = (name for name in BINARY_METRICS if of_suites and all(name in metrics for metrics in of_suites))
    return (COMMON_METRIC, *(name for name in others if name != COMMON_METRIC))


def column_of(suite: SuiteBoard, metric: str) -> SuiteColumn:
    """Return each judge's best row with the metric, and all references, with 95 % intervals.

    Resampling takes most of the time, so callers should keep the result for each board.
    """
    target = suite.target
    if target is None:
        return SuiteColumn(suite, (), {}, {}, {})
    overall: dict[str, Cell] = {}
    rows, counts = [], {}
    for row in suite.board.rows:
        score = row.labels.get(target.name)
        if score is None or metric_of(score["overall"], metric) is None:
            continue
        if score["best"] or row.provenance != "scored":
            rows.append(row)
            overall[row.id] = score["overall"]
            by_task = suite.board.counts_by_task(row.id, target.name) if suite.labels_are_public else None
            if by_task is not None:
                counts[row.id] = by_task
    drawn: dict[str, Ends] = {}
    if counts:
        stacked = np.stack(list(counts.values()), axis=1)
        totals = resampled_counts(stacked.reshape(len(stacked), -1), RESAMPLES_OF_LARGE_BOARDS, seed=0)
        samples = _metric(metric, totals.reshape(len(totals), -1, 4))
        drawn = dict(zip(counts, percentile_intervals(samples), strict=True))
    cells, pooled = {}, {}
    for row in rows:
        known = _pooled(overall[row.id])
        if known is not None and known.sum():
            pooled[row.id] = known
        value = metric_of(overall[row.id], metric) or 0.0
        interval = _interval(overall[row.id], metric, drawn.get(row.id)) if row.is_comparable else None
        source = SOURCES.get(row.provenance, row.provenance)
        cells[row.id] = MatrixCell(row.id, row.judge, value, interval, source)
    return SuiteColumn(suite, tuple(rows), cells, counts, pooled)


def _interval(cell: Cell, metric: str, drawn: Ends) -> Ends:
    """Return the interval on the board, from resampled tasks, or else approximated from counts."""
    if (known := interval_of(cell, metric)) is not None:
        return known
    if drawn is not None and drawn[0] < drawn[1]:  # resamples of a judge that is never wrong do not vary
        return drawn
    counts = _pooled(cell)
    if counts is None or cell.get("tp") is None:
        return None
    return count_interval(metric, *map(int, counts))


def _pooled(cell: Cell) -> np.ndarray | None:
    """Return TP, FP, FN and TN of a cell, or the nearest ones to its printed recall and TNR, or None."""
    n, positives, recall, tnr = cell.get("n"), cell.get("positives"), cell.get("recall"), cell.get("tnr")
    if "noise" in cell or n is None or positives is None or recall is None or tnr is None:
        return None
    tp, tn = round(recall * positives), round(tnr * (n - positives))
    return np.array([tp, n - positives - tn, positives - tp, tn])


def make_matrix(columns: Sequence[SuiteColumn], metric: str) -> SuiteMatrix:
    """Return the matrix; the judges on most suites come first, then those with the best mean."""
    comparable = [column for column in columns if column.suite.target is not None]
    lines = sorted(_matched(comparable), key=lambda line: _order(line, metric))
    references: dict[str, dict[str, MatrixCell]] = {}
    for column in comparable:
        for row in column.rows:
            if row.provenance == "reference":
                name = REFERENCES.get(row.judge, row.judge)
                references.setdefault(name, {})[column.suite.name] = column.cells[row.id]
    return SuiteMatrix(
        metric=metric,
        metrics=common_metrics([column.suite for column in comparable]),
        suites=tuple(column.suite.name for column in comparable),
        left_out=tuple(column.suite.title for column in columns if column.suite.target is None),
        rows=tuple(map(_row_of, lines)),
        references=tuple(MatrixRow(name, "", "", cells) for name, cells in references.items()),
        agreements=tuple(_agreement(a, b, lines, metric) for a, b in combinations(comparable, 2)),
    )


def _row_of(line: Line) -> MatrixRow:
    row = next(iter(line.values()))[0]
    return MatrixRow(row.judge, row.model, row.inputs, {name: cell for name, (_, cell) in line.items()})


def _order(line: Line, metric: str) -> tuple[float, float, str]:
    mean = sum(cell.value for _, cell in line.values()) / len(line)
    return -len(line), mean if is_low(metric) else -mean, min(row.id for row, _ in line.values())


def _matched(columns: Sequence[SuiteColumn]) -> list[Line]:
    """Return a line for each judge, matched by model and inputs, and then by the model alone."""
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
    """Return whether the line has a judge of the row's name on other suites only."""
    return suite not in line and any(other.judge == row.judge for other, _ in line.values())


def _agreement(a: SuiteColumn, b: SuiteColumn, lines: Sequence[Line], metric: str) -> OrderAgreement:
    names = a.suite.name, b.suite.name
    common = [(line[names[0]], line[names[1]]) for line in lines if set(names) <= line.keys()]
    by_model = sum(any(cell.is_model_match for _, cell in pair) for pair in common)
    if len(common) < FEWEST_COMMON:
        return OrderAgreement(names, len(common), by_model)
    values = [np.array([pair[side][1].value for pair in common]) for side in (0, 1)]
    rows = [[pair[side][0] for pair in common] for side in (0, 1)]
    tau = float(kendall_tau(*values))
    drawn = [_resampled(column, rows[side], metric, seed=side) for side, column in enumerate((a, b))]
    interval = None
    if drawn[0] is not None and drawn[1] is not None:
        interval = percentile_intervals(kendall_tau(drawn[0], drawn[1])[:, None])[0]
    from_counts = (
        column.suite.name
        for side, column in enumerate((a, b))
        if any(row.id not in column.counts for row in rows[side])
    )
    ceilings = _ceiling(a, rows[0], metric), _ceiling(b, rows[1], metric)
    return OrderAgreement(
        names, len(common), by_model, None if np.isnan(tau) else tau, interval, tuple(from_counts), ceilings
    )


def _metric(metric: str, counts: np.ndarray) -> np.ndarray:
    """Return a metric of counts (..., 4)."""
    return metric_values(metric, *np.moveaxis(counts.astype(np.float64), -1, 0))


def _resampled(column: SuiteColumn, rows: Sequence[BoardRow], metric: str, seed: int) -> np.ndarray | None:
    """Return the metric on resamples: (resamples, judges); None if the counts of a judge are not known."""
    size, generator = RESAMPLES_OF_LARGE_BOARDS, np.random.default_rng(seed)
    counts = _counts(
        column,
        rows,
        lambda by_task: resampled_counts(by_task, size, seed),
        lambda pooled: generator.multinomial(pooled.sum(), pooled / pooled.sum(), size),
    )
    return None if counts is None else _metric(metric, counts)


def _ceiling(column: SuiteColumn, rows: Sequence[BoardRow], metric: str) -> float | None:
    """Return the mean tau between random halves of the tasks, or of the runs of judges without verdicts."""
    generator = np.random.default_rng(0)

    def half_of_tasks(by_task: np.ndarray) -> np.ndarray:
        is_in_half = np.tile(np.arange(len(by_task)) % 2, (N_HALVES, 1))
        return generator.permuted(is_in_half, axis=1) @ by_task

    half = _counts(
        column,
        rows,
        half_of_tasks,
        lambda pooled: generator.multivariate_hypergeometric(pooled, pooled.sum() // 2, N_HALVES),
    )
    whole = _counts(column, rows, lambda by_task: by_task.sum(axis=0), lambda pooled: pooled)
    if half is None or whole is None:
        return None
    taus = kendall_tau(_metric(metric, half), _metric(metric, whole - half))
    return None if np.isnan(taus).all() else float(np.nanmean(taus))


def _counts(
    column: SuiteColumn,
    rows: Sequence[BoardRow],
    of_tasks: Callable[[np.ndarray], np.ndarray],
    of_pooled: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray | None:
    """Return counts (..., judges, 4) that the two functions draw by task (tasks, columns) or pooled (4,).

    All judges with verdicts are drawn together. The result is None if nothing is known of a judge's counts.
    """
    known = [place for place, row in enumerate(rows) if row.id in column.counts]
    found: dict[int, np.ndarray] = {}
    if known:
        stacked = np.concatenate([column.counts[rows[place].id] for place in known], axis=1)
        drawn = of_tasks(stacked)
        found = {place: drawn[..., 4 * i : 4 * i + 4] for i, place in enumerate(known)}
    for place, row in enumerate(rows):
        if place not in found:
            if row.id not in column.pooled:
                return None
            found[place] = of_pooled(column.pooled[row.id])
    return np.stack([found[place] for place in range(len(rows))], axis=-2)


def kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b along the last axis; NaN if all values of x or of y are equal."""
    found = []
    for start in range(0, int(np.prod(x.shape[:-1])), _AT_ONCE):  # all pairs of judges at once need memory
        a, b = (each.reshape(-1, x.shape[-1])[start : start + _AT_ONCE] for each in (x, y))
        is_above, is_above_in_y, is_below_in_y = (
            a[:, :, None] > a[:, None, :],
            b[:, :, None] > b[:, None, :],
            b[:, :, None] < b[:, None, :],
        )
        same, opposite, untied, untied_in_y = (
            np.count_nonzero(pairs, axis=(1, 2))
            for pairs in (is_above & is_above_in_y, is_above & is_below_in_y, is_above, is_above_in_y)
        )
        with np.errstate(invalid="ignore"):
            found.append((same - opposite) / np.sqrt(untied * untied_in_y))
    return np.concatenate(found).reshape(x.shape[:-1])
