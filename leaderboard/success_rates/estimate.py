"""How often an agent succeeds, estimated from judges' verdicts on all of its runs and labels of some of them.

The rate according to a judge is wrong by up to twenty percentage points, and the error differs between
agents. So the label is regressed on the verdicts over the labelled runs, and the fitted values are averaged
over all runs, which cancels errors that the judge makes everywhere. With one judge, this is PPI++ with its
weight tuned on the data, and post-stratification by verdict. Without judges, it is the share of labelled runs
that succeeded.

There are two questions, and an interval for each. How many of *these runs* succeeded? If most of them are
labelled, little is uncertain. How often does the agent succeed on *tasks like these*? The runs are then a
sample of tasks, and even labels of all runs leave an error. The second interval is the one to compare agents
with.

Sources: Angelopoulos et al. 2023, Prediction-powered inference (Science 382); PPI++, arXiv 2311.01453;
Särndal, Swensson and Wretman 1992, chapter 6 (regression estimator); MacKinnon and White 1985 (HC2).
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Self

import numpy as np

from leaderboard.success_rates.runs import LEAST_IN_STRATUM, AgentRuns, Draw

CONFIDENCE: Final = 0.95
NORMAL_QUANTILE: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
LEAST_LABELS: Final = 10
LEAST_DEGREES: Final = 4
"""With fewer labels of an agent, or fewer degrees of freedom, the error is too uncertain for an estimate."""
NORMAL_FROM: Final = 50
"""With at least this many degrees of freedom, the Wilson interval uses the normal quantile, because a t
quantile would cover too much (``bench.estimate``). With fewer, it uses a t quantile, because few labels make
the coefficients uncertain.
"""
UNLIKE: Final = 0.01
"""A p-value below this gives a warning that verdicts on labelled runs differ from those on other runs."""
_EXACT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """An agent's rate as a fraction with two 95 % intervals; all are None if there are too few labels.

    ``ci`` is the interval of the rate over these runs. ``ci_on_tasks`` is the interval of the agent's rate on
    tasks like these.
    """

    rate: float | None = None
    ci: tuple[float, float] | None = None
    ci_on_tasks: tuple[float, float] | None = None

    @property
    def width(self) -> float | None:
        return None if self.ci is None else self.ci[1] - self.ci[0]


@dataclass(frozen=True)
class _Regression:
    """The regression of labels on verdicts over the labelled runs of an agent.

    Attributes:
        value: The estimated rate.
        tasks: An integer for each run that identifies its task, of shape (n,).
        known: Which runs have a label, bool of shape (n,).
        fitted: The predicted label of each run, of shape (n,).
        weights: The weight of each labelled run in the rate; they add up to 1.
        residuals: The labelled runs' residuals, divided by the square root of 1 - leverage (HC2).
        is_exact: Whether the judges were right on every labelled run.
        not_drawn: For each labelled run, the share of its stratum without a label.
        degrees: The degrees of freedom: labelled tasks minus coefficients.
        share: The share of runs that did not crash. All fields above are about these runs only.
        of_crashes: The effect of each task on ``share``, of shape (tasks,).
    """

    value: float
    tasks: np.ndarray
    known: np.ndarray
    fitted: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    is_exact: bool
    not_drawn: np.ndarray
    degrees: int
    share: float
    of_crashes: np.ndarray

    @property
    def rate(self) -> float:
        """The estimated rate over all runs, counting crashed runs as failures."""
        return self.value * self.share

    @property
    def labelled_tasks(self) -> int:
        return len(np.unique(self.tasks[self.known]))

    def unseen_error(self, share: float = 1.0) -> float:
        """Return the largest error rate consistent with no error on the labelled tasks, times ``share``."""
        return float((1 - ((1 - CONFIDENCE) / 2) ** (1 / self.labelled_tasks)) * share)

    def interval_of_runs(self, known_ends: tuple[float, float]) -> tuple[float, float]:
        """Return the interval of the rate over these runs, within the rates that known labels allow."""
        if self.is_exact:
            error = self.unseen_error(self.not_drawn.mean())
            low, high = self.value - error, self.value + error
        else:
            variance = float((self.effects(on_tasks=False) ** 2).sum())
            least = self.labelled_tasks / float(self.not_drawn.mean())
            low, high = _wilson(self.value, variance, least, self.degrees)
        return max(low * self.share, known_ends[0]), min(high * self.share, known_ends[1])

    def effects(self, *, on_tasks: bool = True) -> np.ndarray:
        """Return the effect of each task on the rate, of shape (tasks,). The squares add up to the variance.

        The tasks are a sample, so predictions, residuals and the share of crashed runs vary with them.
        Without ``on_tasks``, the runs are fixed, and only the draw of the labelled runs varies. In that case,
        the rate is that of the runs that did not crash.
        """
        n_tasks = len(self.of_crashes)
        parts = self.weights * self.residuals
        if not on_tasks:
            return np.bincount(self.tasks[self.known], parts * np.sqrt(self.not_drawn), minlength=n_tasks)
        of_residuals = np.bincount(self.tasks[self.known], parts, minlength=n_tasks)
        apart = (self.fitted - self.fitted.mean()) / len(self.fitted)
        of_value = of_residuals + np.bincount(self.tasks, apart, minlength=n_tasks)
        return of_value * self.share + self.of_crashes * self.value

    def interval_on_tasks(self) -> tuple[float, float]:
        """Return the interval for the agent's rate on other tasks of the same kind."""
        n_tasks = len(self.of_crashes)
        if n_tasks < 2:
            return 0.0, 1.0
        variance = float((self.effects() ** 2).sum()) * n_tasks / (n_tasks - 1)
        degrees = max(self.degrees, LEAST_DEGREES)
        low, high = _wilson(self.rate, variance, float(self.labelled_tasks), degrees)
        if self.is_exact and not self.known.all():
            low, high = low - self.unseen_error(self.share), high + self.unseen_error(self.share)
        return max(low, 0.0), min(high, 1.0)


def estimate_rate(
    verdicts: np.ndarray,
    labels: np.ndarray,
    tasks: np.ndarray,
    strata: np.ndarray | None = None,
    crashed: np.ndarray | None = None,
) -> RateEstimate:
    """Estimate the rate over all runs of an agent, by regression of labels on judges' verdicts.

    The result has the Wilson interval for the number of labels that would give the same variance, with a t
    quantile if there are few labels.

    Args:
        verdicts: From 0 to 1, of shape (n, judges); there may be no judges.
        labels: 1, 0, or -1 for a run without a label, of shape (n,).
        tasks: An integer for each run that identifies its task. All runs of a task count as one draw.
        strata: An integer for each run that identifies its stratum, if strata have different rates of labels.
        crashed: Which runs crashed, bool of shape (n,). They are failures; their labels and verdicts are not
            used, and they do not count as labelled.
    """
    if crashed is not None:
        labels = np.where(crashed, 0, labels)
        if len(labels) and crashed.all():
            highest = 1 - ((1 - CONFIDENCE) / 2) ** (1 / len(np.unique(tasks)))
            return RateEstimate(0.0, (0.0, 0.0), (0.0, highest))
    found = _regress(verdicts, labels, tasks, strata, crashed)
    if found is None:
        return RateEstimate()
    if (labels >= 0).all():
        rate = float(np.mean(labels))
        return RateEstimate(rate, (rate, rate), found.interval_on_tasks())
    return RateEstimate(found.rate, found.interval_of_runs(_known_ends(labels)), found.interval_on_tasks())


def _known_ends(labels: np.ndarray) -> tuple[float, float]:
    """Return the lowest and the highest rate over all runs that the known labels allow."""
    n, successes = len(labels), int((labels == 1).sum())
    return successes / n, 1 - int((labels == 0).sum()) / n


def _regress(
    verdicts: np.ndarray,
    labels: np.ndarray,
    tasks: np.ndarray,
    strata: np.ndarray | None,
    crashed: np.ndarray | None = None,
) -> _Regression | None:
    """Regress labels on verdicts over the runs that did not crash. Return None with too few labels."""
    tasks = np.unique(tasks, return_inverse=True)[1]
    ran = np.ones(len(labels), dtype=bool) if crashed is None else ~crashed
    share = float(ran.mean()) if len(ran) else 1.0
    of_crashes = np.bincount(tasks, (ran - share) / max(1, len(ran)))
    verdicts, labels, tasks = verdicts[ran], labels[ran], tasks[ran]
    strata = None if strata is None else strata[ran]
    n, known = len(labels), labels >= 0
    strata = _pooled(np.zeros(n, dtype=np.int64) if strata is None else strata, known)
    in_strata = strata[:, None] == np.arange(strata.max(initial=0) + 1)
    design = np.column_stack([in_strata, verdicts]).astype(float)
    x, y = design[known], labels[known].astype(float)
    n_labels = len(y)
    rank = int(np.linalg.matrix_rank(x)) if n_labels else 0
    degrees = len(np.unique(tasks[known])) - rank
    if n_labels < LEAST_LABELS or degrees < LEAST_DEGREES:
        return None
    runs_in, labels_in = np.bincount(strata), np.bincount(strata[known], minlength=strata.max() + 1)
    weights = (runs_in / labels_in)[strata[known]] / n  # they add up to 1
    # Weighted least squares: a labelled run stands for an equal share of the runs in its stratum.
    inverse = np.linalg.pinv(x.T @ (weights[:, None] * x))
    coefficients = inverse @ (x.T @ (weights * y))
    residuals = y - x @ coefficients
    leverage = weights * np.einsum("ij,jk,ik->i", x, inverse, x)
    decides = leverage > 1 - _EXACT  # one run alone determines a coefficient, so its error is unknown
    return _Regression(
        value=float(np.clip(design.mean(axis=0) @ coefficients, *_known_ends(labels))),
        tasks=tasks,
        known=known,
        fitted=design @ coefficients,
        weights=weights,
        residuals=np.where(decides, 0, residuals / np.sqrt(np.where(decides, 1, 1 - leverage))),
        is_exact=bool(np.abs(residuals).max() < _EXACT),
        not_drawn=(1 - labels_in / runs_in)[strata[known]],
        degrees=degrees,
        share=share,
        of_crashes=of_crashes,
    )


def _wilson(value: float, variance: float, least: float, degrees: int) -> tuple[float, float]:
    """Return the Wilson interval for the number of labels (at least ``least``) that gives ``variance``."""
    n = max(value * (1 - value) / variance, least) if variance else least
    square = (t_quantile(degrees) if degrees < NORMAL_FROM else NORMAL_QUANTILE) ** 2
    middle = (value + square / (2 * n)) / (1 + square / n)
    half = math.sqrt(square * (value * (1 - value) / n + square / (4 * n * n))) / (1 + square / n)
    return middle - half, middle + half


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, within 0.001 from 4 degrees of freedom on.

    It uses the Cornish-Fisher expansion in 1 / degrees: Abramowitz and Stegun 1964, 26.7.5.
    """
    z = NORMAL_QUANTILE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))


def _pooled(strata: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the strata numbered from 0, with those that have fewer than two labels merged into one.

    If the result still has fewer than two labels, it is merged with the stratum that has the fewest.
    """
    _, codes = np.unique(strata, return_inverse=True)
    labels_in = np.bincount(codes[known], minlength=codes.max(initial=0) + 1)
    few = labels_in < LEAST_IN_STRATUM
    if not few.any() or len(few) == 1:
        return codes
    pooled = np.where(few, -1, np.arange(len(few)))
    if labels_in[few].sum() < LEAST_IN_STRATUM and not few.all():
        pooled[few] = int(np.flatnonzero(~few)[np.argmin(labels_in[~few])])
    return np.unique(pooled[codes], return_inverse=True)[1]


@dataclass(frozen=True, slots=True)
class JudgeRate:
    """An agent's rate according to one judge, over the runs with a verdict; None if no run has one.

    ``no_verdict`` is the number of runs without a verdict.
    """

    judge: str
    rate: float | None
    no_verdict: int

    @classmethod
    def of(cls, judge: str, verdicts: np.ndarray) -> Self:
        known = verdicts[verdicts >= 0]
        return cls(judge, float(known.mean()) if len(known) else None, len(verdicts) - len(known))


@dataclass(frozen=True)
class AgentEstimate:
    """One agent's rates: according to each judge alone, from labels only, and assisted by the judges.

    ``labelled`` of its ``n`` runs have labels that count. ``failures`` of them crashed before they could be
    judged, and count as failures. ``saved`` is the share of labels saved at the same width:
    1 - (assisted width / labels-only width)^2.
    """

    agent: str
    n: int
    labelled: int
    judge_alone: tuple[JudgeRate, ...]
    labels_only: RateEstimate
    assisted: RateEstimate
    saved: float | None
    failures: int


def estimate_agents(
    runs: AgentRuns, labels: Mapping[str, bool], draw: Draw | None = None
) -> tuple[tuple[AgentEstimate, ...], tuple[str, ...]]:
    """Return every agent's rates, ordered by name, and warnings. ``labels`` is keyed by trajectory id.

    If ``draw`` is given, only drawn runs count, each with the weight of its stratum. Raises ValueError if the
    draw was stratified by the verdicts of a judge that is not in ``runs``.
    """
    absent = draw.stratified_by - runs.verdicts.keys() if draw is not None else set()
    if absent:
        raise ValueError(f"the draw used the verdicts of {', '.join(sorted(absent))}, which are not given")
    drawn = None if draw is None else set(draw.drawn)
    counted = labels.keys() if drawn is None else labels.keys() & drawn
    values = np.array([int(labels[run]) if run in counted else -1 for run in runs.ids])
    warnings = _warnings_on_labels(runs, labels, drawn)
    matrix, tasks, found = runs.matrix, runs.tasks, []
    for agent, rows in runs.rows_of.items():
        verdicts, own_values, own_tasks = matrix[rows], values[rows], tasks[rows]
        crashed = runs.crashed[rows]
        ran = ~crashed
        strata = _strata_of(runs, rows, agent, draw) if draw is not None else None
        alone = tuple(JudgeRate.of(judge, column[rows]) for judge, column in runs.verdicts.items())
        labels_only = _without_judges(own_values, own_tasks, strata, crashed)
        assisted = estimate_rate(verdicts, own_values, own_tasks, strata, crashed)
        width, without = assisted.width, labels_only.width
        saved = 1 - (width / without) ** 2 if width is not None and without else None
        labelled = int((own_values[ran] >= 0).sum())
        rates = alone, labels_only, assisted, saved
        found.append(AgentEstimate(agent, len(rows), labelled, *rates, int(crashed.sum())))
        if ran.any():
            own = verdicts[ran], own_values[ran], own_tasks[ran]
            warnings += _warnings_on_agent(agent, *own, is_drawn=draw is not None)
        sizes = [each.n for each in draw.strata if each.agent == agent] if draw is not None else []
        if strata is not None and np.bincount(strata[ran], minlength=len(sizes)).tolist() != sizes:
            warnings.append(
                f"{agent}: runs or verdicts changed since the draw, so its weights no longer apply"
            )
    return tuple(found), tuple(warnings)


@dataclass(frozen=True, slots=True)
class AgentDifference:
    """The difference between two agents' rates on the tasks that both tried: ``first`` - ``second``.

    Rates are fractions. ``ci`` is the 95 % interval of the difference over these runs, and ``ci_on_tasks``
    that on tasks like these. All are None if there are too few labels.
    """

    first: str
    second: str
    tasks: int
    rates: tuple[float | None, float | None]
    difference: float | None = None
    ci: tuple[float, float] | None = None
    ci_on_tasks: tuple[float, float] | None = None


def compare_agents(
    runs: AgentRuns,
    labels: Mapping[str, bool],
    first: str,
    second: str,
    draw: Draw | None = None,
) -> AgentDifference:
    """Compare two agents on their common tasks, from labels of some runs and verdicts on all of them.

    The effects of each task on both rates are subtracted, so a task that is hard for both agents adds no
    error. This works even if only one of its runs has a label: the verdicts show that it is hard. Raises
    KeyError if an agent has no runs.
    """
    counted = labels.keys() if draw is None else labels.keys() & {*draw.drawn}
    values = np.array([int(labels[run]) if run in counted else -1 for run in runs.ids])
    matrix, tasks = runs.matrix, runs.tasks
    own = {agent: runs.rows_of[agent] for agent in (first, second)}
    common = np.intersect1d(tasks[own[first]], tasks[own[second]])
    found = []
    for agent, all_rows in own.items():
        rows = all_rows[np.isin(tasks[all_rows], common)]
        strata = _strata_of(runs, rows, agent, draw) if draw is not None else None
        own_runs = matrix[rows], values[rows], tasks[rows], strata, runs.crashed[rows]
        found.append(_regress(*own_runs) if len(common) > 1 else None)
    one, other = found
    if one is None or other is None:
        rates = tuple(None if each is None else each.rate for each in found)
        return AgentDifference(first, second, len(common), (rates[0], rates[1]))
    value, degrees = one.rate - other.rate, min(one.degrees, other.degrees)
    quantile = t_quantile(degrees) if degrees < NORMAL_FROM else NORMAL_QUANTILE
    ends = []
    for on_tasks in (False, True):
        # The effects are in the order of the task numbers, which both agents share.
        shares = (1.0, 1.0) if on_tasks else (one.share, other.share)
        apart = one.effects(on_tasks=on_tasks) * shares[0] - other.effects(on_tasks=on_tasks) * shares[1]
        half = quantile * math.sqrt(float((apart**2).sum()) * len(common) / (len(common) - 1))
        for each in (one, other):
            if each.is_exact and not each.known.all():
                half += each.unseen_error(each.share * (1.0 if on_tasks else float(each.not_drawn.mean())))
        ends.append((max(-1.0, value - half), min(1.0, value + half)))
    return AgentDifference(first, second, len(common), (one.rate, other.rate), value, *ends)


def _without_judges(
    labels: np.ndarray, tasks: np.ndarray, strata: np.ndarray | None, crashed: np.ndarray | None = None
) -> RateEstimate:
    """Return the estimate from labels only.

    If the draw was stratified by verdicts, the interval is computed as for a uniform draw, which needs no
    judge.
    """
    found = estimate_rate(np.zeros((len(labels), 0)), labels, tasks, strata, crashed)
    ran = np.ones(len(labels), dtype=bool) if crashed is None else ~crashed
    n, labelled = int(ran.sum()), int((labels[ran] >= 0).sum())
    if found.rate is None or strata is None or len({*strata[ran].tolist()}) == 1 or labelled == n:
        return found
    share = n / len(labels)
    value, not_drawn = found.rate / share, 1 - labelled / n
    variance = value * (1 - value) / (labelled - 1)
    low, high = _wilson(value, variance * not_drawn, labelled / not_drawn, labelled - 1)
    of_crashes = value**2 * share * (1 - share) / len(labels)
    of_tasks = _wilson(found.rate, variance * share**2 + of_crashes, labelled, labelled - 1)
    return RateEstimate(found.rate, (low * share, high * share), of_tasks)


def _strata_of(runs: AgentRuns, rows: np.ndarray, agent: str, draw: Draw) -> np.ndarray:
    """Return each run's stratum as a number. Runs in no stratum of the draw get a number of their own."""
    own = [stratum for stratum in draw.strata if stratum.agent == agent]
    numbers = []
    for row in rows:
        verdicts = {judge: bool(column[row] == 1) for judge, column in runs.verdicts.items()}
        numbers.append(next((i for i, each in enumerate(own) if each.holds(agent, verdicts)), len(own)))
    return np.array(numbers)


def _warnings_on_labels(runs: AgentRuns, labels: Mapping[str, bool], drawn: Set[str] | None) -> list[str]:
    known, found = set(runs.ids), []
    if unknown := [run for run in labels if run not in known]:
        found.append(
            f"labelled runs without a verdict are left out: {len(unknown)}, such as {unknown[0][:100]}"
        )
    if drawn is None:
        found.append(
            "how the labelled runs were chosen is not recorded, but intervals need a random draw; draw "
            "runs with `leaderboard annotation-template --for-estimate` and name its record with --draw"
        )
        return found
    if extra := [run for run in labels if run in known and run not in drawn]:
        found.append(f"labelled runs outside the draw are left out: {len(extra)}, such as {extra[0][:100]}")
    if open_runs := sorted(drawn - labels.keys()):
        found.append(
            f"{len(open_runs)} of {len(drawn)} drawn runs are not labelled or answered Unsure, such as "
            f"{open_runs[0][:100]}; if they are harder than the others, the rates are wrong"
        )
    return found


def _warnings_on_agent(
    agent: str, verdicts: np.ndarray, labels: np.ndarray, tasks: np.ndarray, is_drawn: bool
) -> list[str]:
    known, found = labels >= 0, []
    n, n_labels = len(labels), int(known.sum())
    if n_labels < LEAST_LABELS:
        found.append(
            f"{agent}: {n_labels} of {n} runs have a label; label {LEAST_LABELS} or more for an estimate"
        )
        return found
    positives = verdicts.sum(axis=1)
    if not is_drawn and n_labels < n and positives.var():
        # The standard error of the mean of a draw without replacement.
        spread = math.sqrt(positives.var() * n / (n - 1) / n_labels * (1 - n_labels / n))
        distance = abs(positives[known].mean() - positives.mean()) / spread
        if 2 * (1 - NormalDist().cdf(distance)) < UNLIKE:
            found.append(
                f"{agent}: the judges call labelled runs successful more or less often than the other runs; "
                "the labelled runs may not be a random draw"
            )
    repeats = n - len(set(tasks.tolist()))
    if repeats:
        found.append(f"{agent}: {repeats} of {n} runs repeat a task; all runs of a task count as one draw")
    return found


def labels_needed(n: int, half_width: float, labelled: int = 0, pilot: RateEstimate | None = None) -> int:
    """Return how many of ``n`` runs to label for an interval of ± ``half_width`` (a fraction).

    ``pilot`` is an estimate from ``labelled`` runs. The width of its interval is taken to shrink with the
    square root of the number of labels. Without a pilot, the result holds for an estimate from labels only at
    a rate of 50 %. It is at most ``n`` and takes into account that the number of runs is finite.
    """
    variance = NORMAL_QUANTILE**2 / 4
    if pilot is not None and pilot.width is not None and labelled < n:
        variance = (pilot.width / 2) ** 2 * labelled / (1 - labelled / n)  # of one label
    return min(n, max(LEAST_LABELS, math.ceil(variance / (half_width**2 + variance / max(n, 1)))))
