"""Pure functions that decide what each audience sees of a score, and which rows are on the board.

If the labels are public, everybody sees the exact report. If they are private, a board has only the rows
that owners made public, in rounds and with noise. The exact report stays in the records for maintainers.
Everybody else sees a report of the same shape. Its counts of true positives have noise, and its other figures
are computed from them:

- The owner of a file sees its overall figures for each label, with ``private_noise``.
- The public sees the overall figures with ``public_noise``, and each benchmark with the larger of the two.
- Nobody sees figures by agent, counts by task or an interval from the exact counts.

`tests/attacks` measures what attackers gain from that, and docs/operate.md has the results.

Two numbers have no noise, since the file and the label version determine them: how many trajectories of a
cell are labelled, and how many the file calls positive. The number of positive labels has separate
noise (``public_noise``), drawn once per cell of a label version and the same for all files. Without it, two
versions would reveal a corrected label, which is disputed on a public page and adds one positive to the next
version. Noise does not hide the labels of a benchmark if all of them are equal. In that case no benchmark is
shown, because the overall figures and the other benchmarks would reveal the missing one. A question whose
labels are all equal is not shown at all.

Nobody can average the noise away, because the noise of a figure is a function of the server's key, the label
version, and a digest of the trajectories that the file calls positive. The same verdicts therefore always get
the same figure: the order of rows, the spelling of ids, further columns, or a "no" written as null do not
matter. A new label version draws new noise. With the old noise, the difference of two figures would be the
exact effect of a correction. The 95 % intervals are computed only from the noisy counts.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import hypot, sqrt
from statistics import NormalDist
from typing import Any, Final, Literal, TypedDict

import numpy as np

from arb.core.ids import Trajectory
from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from arb.core.suite import Suite, SuiteRules
from arb.core.suites.targets import Target, default_targets, scored
from leaderboard.board.board import ScoredRecord
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.report import verdicts_of
from submissions.records.database import ScoreRow
from submissions.records.event_log import DECLARED
from submissions.records.queries import POLICY
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses

OVERALL: Final = "overall"


class CellDigest(TypedDict):
    """A summary of a file's verdicts on one label in one cell: the whole split or a benchmark.

    ``digest`` is the hexadecimal SHA-256 of the ids that the file calls positive, and ``positives`` is their
    number. ``rows`` counts all trajectories, including those with an unsure label, and ``no_verdict`` those
    without a verdict.
    """

    digest: str
    rows: int
    positives: int
    no_verdict: int


Digests = Mapping[str, Mapping[str, CellDigest]]
"""The digests, keyed by label and cell name (see `benchmark_cell`), for labels with verdicts in the file."""


def benchmark_cell(benchmark: str) -> str:
    """Return the name of a benchmark's cell; the cell of the whole split is named OVERALL."""
    return f"benchmark/{benchmark}"


def digests_of(
    verdicts: Predictions, items: Sequence[Trajectory], targets: Sequence[Target] = ()
) -> dict[str, dict[str, CellDigest]]:
    """Return the digests of a file's verdicts, keyed by label and cell name, as plain dicts for JSON.

    The labels are the outcomes that judges are scored on among ``targets``, by default AgentRewardBench's;
    only these may be private. ``items`` are those of the split, in the order of the verdicts. Raises
    ValueError if there is not one verdict per item.
    """
    ids = np.array([item.trajectory_id for item in items], dtype=object)
    is_run = np.array([item.level == "run" for item in items], dtype=bool)
    of_row = np.array([item.benchmark for item in items], dtype=object)
    cells = {OVERALL: np.flatnonzero(is_run)}
    for benchmark in sorted(set(of_row)):
        cells[benchmark_cell(benchmark)] = np.flatnonzero(is_run & (of_row == benchmark))
    found = {}
    for target in scored(targets or default_targets()):
        column = verdicts_of(verdicts, target.name)
        if column is None or not target.is_outcome:
            continue
        if len(column) != len(items):
            raise ValueError(f"{target.name}: {len(column)} verdicts for {len(items)} items")
        found[target.name] = {name: _cell(column[rows], ids[rows]) for name, rows in cells.items()}
    return found


def _cell(column: np.ndarray, ids: np.ndarray) -> CellDigest:
    positives = sorted(ids[column == 1])
    return {
        "digest": hashlib.sha256("\n".join(positives).encode()).hexdigest(),
        "rows": len(column),
        "positives": len(positives),
        "no_verdict": int((column < 0).sum()),
    }


_NORMAL_QUANTILE: Final = 1.959963984540054


def noisy_intervals(
    tp: int, fp: int, fn: int, tp_sd: float, positives_sd: float = 0.0
) -> dict[str, list[float] | None]:
    """Return ``precision_ci``, ``recall_ci`` and ``f1_ci`` of noisy counts as [low, high], None if undefined.

    Two independent errors are added in quadrature on either side: the error of the sample of tasks (the
    Wilson interval with the design effects of published rows), and the noise, whose standard deviation is
    ``tp_sd`` true positives and ``positives_sd`` positives. TP + FP has no noise, so the noise of precision
    is tp_sd / (TP + FP). For recall R = TP / (TP + FN) it is hypot(tp_sd, R positives_sd) / (TP + FN). For
    F1 = 2 TP / (2 TP + FP + FN) it is hypot(2 tp_sd, F1 positives_sd) / (2 TP + FP + FN).
    """
    predicted, positives, either = tp + fp, tp + fn, tp + fp + fn
    shares = {"precision": (tp, predicted), "recall": (tp, positives), "f1": (tp, either)}
    found: dict[str, list[float] | None] = {}
    for figure, (hits, total) in shares.items():
        interval = approximate_interval(hits, total, DESIGN_EFFECTS[figure])
        if interval is None:
            found[f"{figure}_ci"] = None
            continue
        value = hits / total
        noise = (hypot(tp_sd, value * positives_sd) if figure == "recall" else tp_sd) / total
        if figure == "f1":  # F1 = 2 J / (1 + J) of the share J = TP / (TP + FP + FN)
            value, *interval = (2 * end / (1 + end) for end in (value, *interval))
            noise = hypot(2 * tp_sd, value * positives_sd) / (predicted + positives)
        below, above = (hypot(value - end, _NORMAL_QUANTILE * noise) for end in interval)
        found[f"{figure}_ci"] = [max(0.0, value - below), min(1.0, value + above)]
    return found


_STANDARD: Final = NormalDist()
_BITS: Final = 53
LARGEST_DRAW: Final = -_STANDARD.inv_cdf(0.5**_BITS / 2)
"""No draw is further from 0 than this many standard deviations (8.3)."""


def keyed_normal(key: bytes, *what: str) -> float:
    """Return a standard normal draw that depends only on ``key`` and the words of ``what``.

    The draw is the inverse normal distribution function at the first 53 bits of the HMAC-SHA256 (RFC 2104) of
    the words. The words are hashed as a JSON list, so that no two lists of words have the same bytes.
    """
    digest = hmac.new(key, json.dumps(what).encode(), hashlib.sha256).digest()
    whole = int.from_bytes(digest[:8], "big") >> (64 - _BITS)
    return _STANDARD.inv_cdf((whole + 0.5) / 2**_BITS)


def layered_noise(key: bytes, figure: tuple[str, ...], finest: float, wanted: float, audience: str) -> float:
    """Return noise of standard deviation ``wanted`` on a figure for an audience.

    A person in two audiences could average two independent draws: noise of 5 and 3 counts would become 2.6.
    Therefore all audiences share one draw of standard deviation ``finest``, and an audience with more noise
    gets a second draw of sqrt(wanted^2 - finest^2) on top. Both figures together then reveal no more than the
    more exact one. ``figure`` is (label version, label, cell, digest). Raises ValueError if ``wanted`` is
    below ``finest``.
    """
    if wanted < finest:
        raise ValueError(f"noise of {wanted} is below the finest noise, {finest}")
    shared = finest * keyed_normal(key, "everyone", *figure)
    if wanted == finest:
        return shared
    return shared + sqrt(wanted**2 - finest**2) * keyed_normal(key, audience, *figure)


def noisy_count(count: int, noise: float, least: int, most: int) -> int:
    """Return a count with noise, rounded and limited to ``least`` … ``most``.

    If the limits do not depend on labels of single trajectories, this reveals no more than the noisy count.
    """
    return min(max(round(count + noise), least), most)


Audience = Literal["owner", "public", "maintainer"]
_KEPT: Final = ("format", "suite", "split", "label_version", "policy", "coverage", "cost")
"""Fields of a report that are shown to everybody, since they depend only on the file or the suite."""


def cell_noise(rules: SuiteRules) -> float:
    """Return the standard deviation of the noise on one benchmark of a public row."""
    return max(rules.private_noise, rules.public_noise)


def disclose(
    report: Mapping[str, Any], digests: Digests, rules: SuiteRules, key: bytes, audience: Audience
) -> dict[str, Any]:
    """Return a score report as an audience may see it; maintainers see the exact one.

    A noisy cell has ``"noise": {"tp_sd": …, "positives_sd": …}`` next to its figures. ``digests`` are those
    of the report's file, and ``key`` is the server's key for "noise". Raises ValueError for an unknown
    audience or a policy other than "strict": with such a policy, the number of positives depends on which
    rows have no verdict, so counts without noise would reveal labels.
    """
    if audience == "maintainer":
        return dict(report)
    if audience not in ("owner", "public"):
        raise ValueError(f"there is no audience {audience!r}: use owner, public or maintainer")
    if report["policy"] != POLICY:
        raise ValueError(f"policy {report['policy']!r} cannot be disclosed; only {POLICY!r} can")
    blurred = _Blur(rules, key, report["label_version"], audience)
    return {
        **{name: report[name] for name in _KEPT if name in report},
        "labels": {
            label: found and blurred.label(label, found, digests[label])
            for label, found in report["labels"].items()
        },
    }


@dataclass(frozen=True)
class _Blur:
    """The noise that one audience gets under one label version."""

    rules: SuiteRules
    key: bytes
    label_version: str
    audience: str

    def label(
        self, label: str, exact: Mapping[str, Any], digests: Mapping[str, CellDigest]
    ) -> dict[str, Any] | None:
        """Return the cells of one label with noise, or None if all labels of the split are equal."""
        if _follows_from_constants(exact["overall"]):
            return None
        is_public = self.audience == "public"
        wanted = self.rules.public_noise if is_public else self.rules.private_noise
        finest = min(self.rules.public_noise, self.rules.private_noise)
        overall = self._cell((label, OVERALL), exact["overall"], digests[OVERALL], finest, wanted)
        by_benchmark = {}
        if is_public and not any(map(_follows_from_constants, exact["by_benchmark"].values())):
            sd = cell_noise(self.rules)
            for benchmark, found in exact["by_benchmark"].items():
                name = benchmark_cell(benchmark)
                by_benchmark[benchmark] = self._cell((label, name), found, digests[name], sd, sd)
        return {"overall": overall, "by_benchmark": by_benchmark, "by_agent": {}}

    def _cell(
        self, cell: tuple[str, str], exact: dict[str, Any], digest: CellDigest, finest: float, wanted: float
    ) -> dict[str, Any]:
        """Return a cell, given by its label and name, with noise."""
        n, figure = exact["n"], (self.label_version, *cell)
        sd = self.rules.public_noise
        total = sd * keyed_normal(self.key, "positives", *figure)
        positives = noisy_count(exact["positives"], total, 1, n - 1)
        predicted = _share_of(n, digest["positives"], digest["rows"])
        no_verdict = _share_of(n, digest["no_verdict"], digest["rows"])
        noise = layered_noise(self.key, (*figure, digest["digest"]), finest, wanted, self.audience)
        tp = noisy_count(exact["tp"], noise, max(0, predicted + positives - n), min(predicted, positives))
        fp, fn = predicted - tp, positives - tp
        return {
            **figures(tp, fp, fn, n - positives - fp, no_verdict, policy=POLICY),
            **noisy_intervals(tp, fp, fn, wanted, sd),
            "noise": {"tp_sd": wanted, "positives_sd": sd},
        }


def _follows_from_constants(cell: Mapping[str, Any]) -> bool:
    """Return whether all labels of a cell are equal, so that counts without noise would determine them."""
    return cell["positives"] in (0, cell["n"])


def _share_of(n: int, count: int, rows: int) -> int:
    """Scale ``count`` out of ``rows`` trajectories to the ``n`` labelled ones, rounded to an integer.

    The exact count over labelled rows would reveal whether the label of a single trajectory is "unsure".
    """
    return (2 * count * n + rows) // (2 * rows)


EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""The beginning of the first round."""


@dataclass(frozen=True)
class DisclosurePolicy:
    """The rules for showing a suite's scores. ``key`` determines the noise; None if the labels are public."""

    suite: Suite
    key: bytes | None

    def report(self, score: ScoreRow, audience: Audience) -> Mapping[str, Any]:
        if self.key is None or audience == "maintainer":
            return score.report
        half = score.halves.get("shown") or {"report": score.report, "digests": score.digests}
        return self.report_of_half(half, audience)

    def report_of_half(self, half: Mapping[str, Any], audience: Audience) -> Mapping[str, Any]:
        """Return the report of a half with noise: the half that is shown, or the half that ranks judges.

        Without noise, the order of two rows that differ in one verdict would reveal a label.
        """
        if self.key is None:
            return half["report"]
        return disclose(half["report"], half["digests"], self.suite.rules, self.key, audience)

    def is_on_the_board(self, status: SubmissionStatus, now: datetime) -> bool:
        """Return whether a scored submission has a row now; with private labels, its round must be over."""
        if not status.is_on_the_board:
            return False
        if self.key is None:
            return True
        at = status.published_at
        return at is not None and self.round(at) < self.round(now)

    @property
    def _round_length(self) -> timedelta:
        return timedelta(days=max(1, self.suite.rules.round_days))

    def round(self, moment: datetime) -> int:
        """Return the number of the round at a moment. Rows made public in a round appear at its end."""
        return (moment - EPOCH) // self._round_length

    def appears_at(self, published_at: datetime | None) -> datetime | None:
        """Return when a row made public at ``published_at`` appears, or None if there are no rounds."""
        if self.key is None or published_at is None:
            return None
        return EPOCH + (self.round(published_at) + 1) * self._round_length

    def board_record(self, score: ScoreRow, found: SubmissionStatuses) -> ScoredRecord:
        """Return the record of a submission for the board, with its current status and names."""
        submission, status = score.submission, found.of(score.submission.id)
        account, judge = submission.judge.account.name, submission.judge.name
        declared = {name: getattr(submission, name) for name in DECLARED}
        counts_by_task: dict[str, Any] = {}  # if labels are private, ties come from the intervals
        ranking = None
        if self.key is None:  # as lists of lists they would take fifty times the memory
            for label, counts in score.counts_by_task.items():
                counts_by_task[label] = counts and np.array(counts, dtype=np.int32)
        elif half := score.halves.get("ranked"):
            labels = self.report_of_half(half, "public")["labels"]
            ranking = {label: found["overall"] for label, found in labels.items() if found}
        return ScoredRecord(
            id=submission.id,
            info=JudgeInfo(
                judge=found.name_of(account, judge), account=found.current_name(account), **declared
            ),
            file_sha256=submission.file_sha256,
            # To the microsecond: the earlier of two equal submissions ranks first.
            submitted_at=submission.submitted_at.isoformat(timespec="microseconds"),
            report=self.report(score, "public"),
            counts_by_task=counts_by_task,
            is_verified=status.is_verified,
            is_label_exposed=status.is_label_exposed,
            keeps_version=self.key is not None,
            ranking=ranking,
        )


# If labels are private, rows are by default ranked by a hidden half of the tasks, so the figures that are
# shown reveal nothing about the ranking. Only the order of public rows does, and `tests/attacks/versions.py`
# measures how much. In return, the intervals are wider by a factor of sqrt(2).


def hidden_half(trajectories: Sequence[Trajectory], key: bytes) -> np.ndarray:
    """Return a mask of the trajectories that decide the ranks and are not shown (bool, one per trajectory).

    The mask selects half the tasks of each benchmark, with all their runs. Tasks are ordered by HMAC-SHA256
    of benchmark and task under ``key`` (the server's key for "ranking-half"). Every second task is hidden,
    starting with the first, so a benchmark with a single task still counts for the ranking. The half does not
    depend on the label version: after a correction, a new half would rank by tasks whose figures were shown.
    """
    drawn: dict[str, list[tuple[bytes, tuple[str, str]]]] = {}
    for task in {(trajectory.benchmark, trajectory.task) for trajectory in trajectories}:
        place = hmac.new(key, json.dumps(task).encode(), hashlib.sha256).digest()
        drawn.setdefault(task[0], []).append((place, task))
    hidden = {task for tasks in drawn.values() for _, task in sorted(tasks)[::2]}
    return np.array([(t.benchmark, t.task) in hidden for t in trajectories], dtype=bool)
