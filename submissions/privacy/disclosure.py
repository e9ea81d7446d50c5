"""What each audience sees of a score, and which rows stand on the board now. Pure.

Where the labels are public everybody sees the exact report. Where they are private a board holds only the
rows that owners made public, in rounds and with noise.

The exact report stays in the records; maintainers see it. Everybody else sees a report of the same shape
whose true positives carry noise, from which all other figures follow:

- The owner of a file sees its overall figures for each label, with ``private_noise``.
- The public sees the overall figures with ``public_noise``, and each benchmark with the larger of the two.
- Nobody sees figures by agent, counts by task or an interval from the exact counts.

So the attacks decided (`tests/attacks`; the strongest one, by five accounts in a year, on 60 generated label
sets). With noise of 6 and 3 true positives it gains 2.3 points of precision from overall figures alone, 2.6
with benchmarks at 6, 2.7 with benchmarks at 3; with 5 and 3 it is 2.9 and 3.2, so the default is 6.
Benchmarks of every private file would be five more figures of as many fewer unknowns each.

What is not noisy follows from the file and from a constant of the label version: how many trajectories of a
cell are labelled. How many of them are positive is no secret of itself, but exact numbers of two versions
would be: a label is disputed on a public page, the next version has one positive more in its benchmark, and
the label is certain. So that number carries noise of its own, of ``public_noise``: one draw for each cell
of a label version, the same for all files. A label that is all positive or all negative in some benchmark
would follow from it all the same: then its benchmarks are all withheld (the others and the sum would give
the missing one away), and a label that is so overall is not shown.

Nobody can average the noise away: a draw is a pure function of the server's key, the label version and the
figure, so that the same verdicts show the same figure for as long as the labels stay. A figure rests on which
trajectories of its cell are called positive and on nothing else, so the digest that it is drawn from does
too: order of rows, spelling of ids, further columns, the other labels' columns, and whether a "no" is
written false or null change neither digest nor noise. The label version is
part of it: with the same noise before and after a correction the difference of two figures would be the
exact effect of the correction. 95 % intervals follow from the noisy counts alone: the ends of the bootstrap
over tasks move with the exact counts.
"""

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import hypot, sqrt
from statistics import NormalDist
from typing import Any, Final, Literal, TypedDict

import numpy as np

from arb.core.predictions.table import Predictions
from arb.core.suite import Suite, SuiteRules, Trajectory
from arb.core.vocabulary import LABELS
from leaderboard.board.board import ScoredRecord
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.report import verdicts_of
from submissions.records.database import ScoreRow
from submissions.records.queries import POLICY, scored_record
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses

OVERALL: Final = "overall"


class CellDigest(TypedDict):
    """One cell of one label. Everything in it is known to whoever has the file.

    ``digest`` is the SHA-256 (hex) of the ids of the positives; ``rows``, ``positives`` (called positive by
    the file) and ``no_verdict`` count the cell's trajectories, those with an unsure label too.
    """

    digest: str
    rows: int
    positives: int
    no_verdict: int


Digests = Mapping[str, Mapping[str, CellDigest]]
"""Label, then cell name (see `benchmark_cell`); a label that the file does not answer is not there."""


def benchmark_cell(benchmark: str) -> str:
    """The name of a benchmark's cell; OVERALL is that of the whole split."""
    return f"benchmark/{benchmark}"


def digests_of(verdicts: Predictions, trajectories: Sequence[Trajectory]) -> dict[str, dict[str, CellDigest]]:
    """The cells of every label that the file answers: plain dicts, ready for the records.

    ``trajectories`` are those of the split, in the order of the verdicts' columns. Raises ValueError where
    their number differs.
    """
    of_row = [trajectory.benchmark for trajectory in trajectories]
    rows, found = Counter(of_row), {}
    for label in LABELS:
        column = verdicts_of(verdicts, label)
        if column is None:
            continue
        if len(column) != len(trajectories):
            raise ValueError(f"{label}: {len(column)} verdicts for {len(trajectories)} trajectories")
        positives: dict[str, list[str]] = {benchmark: [] for benchmark in sorted(rows)}
        for place in np.flatnonzero(column == 1).tolist():
            positives[of_row[place]].append(trajectories[place].trajectory_id)
        no_verdict = Counter(of_row[place] for place in np.flatnonzero(column < 0).tolist())
        everything = [trajectory_id for inside in positives.values() for trajectory_id in inside]
        found[label] = {OVERALL: _cell(everything, rows.total(), no_verdict.total())}
        found[label] |= {
            benchmark_cell(benchmark): _cell(inside, rows[benchmark], no_verdict[benchmark])
            for benchmark, inside in positives.items()
        }
    return found


def _cell(positives: Sequence[str], rows: int, no_verdict: int) -> CellDigest:
    digest = hashlib.sha256("\n".join(sorted(positives)).encode()).hexdigest()
    return {"digest": digest, "rows": rows, "positives": len(positives), "no_verdict": no_verdict}


_NORMAL_QUANTILE = 1.959963984540054


def noisy_intervals(
    tp: int, fp: int, fn: int, tp_sd: float, positives_sd: float = 0.0
) -> dict[str, list[float] | None]:
    """``precision_ci``, ``recall_ci`` and ``f1_ci`` of noisy counts, as [low, high], None where undefined.

    Two errors that know nothing of each other are added in squares on either side: that of the sample of
    tasks (Wilson's interval with the design effects of published rows) and that of the noise, whose
    standard deviation is ``tp_sd`` true positives and ``positives_sd`` positives. TP + FP is not noisy, so
    on precision the noise is tp_sd / (TP + FP). On recall R = TP / (TP + FN) it is that of TP and R times
    that of the positives, by TP + FN; on F1 = 2 TP / (2 TP + FP + FN) that of 2 TP and F1 times that of the
    positives, by 2 TP + FP + FN.
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
        found[f"{figure}_ci"] = _widened(value, interval, noise)
    return found


def _widened(value: float, interval: list[float], noise: float) -> list[float]:
    low, high = interval
    margin = _NORMAL_QUANTILE * noise
    return [max(0.0, value - hypot(value - low, margin)), min(1.0, value + hypot(high - value, margin))]


_STANDARD: Final = NormalDist()
_BITS: Final = 53
LARGEST_DRAW: Final = -_STANDARD.inv_cdf(0.5**_BITS / 2)
"""No draw is further from 0 than this many standard deviations: 8.3, which one draw in 10**16 would pass."""


def keyed_normal(key: bytes, *what: str) -> float:
    """A standard normal draw that only ``key`` and the words of ``what`` decide.

    The first 53 bits of HMAC-SHA256 (RFC 2104) of the words as a JSON list, as a share of (0, 1), through the
    inverse of the normal distribution. A JSON list, so that no two lists of words have the same bytes.
    """
    digest = hmac.new(key, json.dumps(what).encode(), hashlib.sha256).digest()
    whole = int.from_bytes(digest[:8], "big") >> (64 - _BITS)
    return _STANDARD.inv_cdf((whole + 0.5) / 2**_BITS)


def layered_noise(key: bytes, figure: tuple[str, ...], finest: float, wanted: float, audience: str) -> float:
    """Noise of standard deviation ``wanted`` on a figure for an audience; nobody sees less than ``finest``.

    ``figure`` names label version, label, cell and digest. Independent noise for each audience could be
    averaged by one who is both: of 5 and 3 counts 2.6 would be left. So all share one draw of standard
    deviation ``finest``, and a coarser audience gets a second one on top, of sqrt(wanted^2 - finest^2): to
    have both figures says no more than the finer one alone. Raises ValueError where ``wanted`` is below
    ``finest``.
    """
    if wanted < finest:
        raise ValueError(f"noise of {wanted} was asked for, where the finest is {finest}")
    shared = finest * keyed_normal(key, "everyone", *figure)
    if wanted == finest:
        return shared
    return shared + sqrt(wanted**2 - finest**2) * keyed_normal(key, audience, *figure)


def noisy_count(count: int, noise: float, least: int, most: int) -> int:
    """A count with noise, as a whole number from ``least`` to ``most``.

    Rounding and clamping look at the noisy count and at bounds that do not depend on the labels of single
    trajectories: they reveal nothing that the noisy count did not.
    """
    return min(max(round(count + noise), least), most)


Audience = Literal["owner", "public", "maintainer"]
_KEPT: Final = ("suite", "split", "label_version", "policy", "coverage", "cost")
"""What is taken over as it is: the file or the suite says it. Named, so that nothing new slips out."""


def cell_noise(rules: SuiteRules) -> float:
    """The standard deviation for one benchmark of a public row."""
    return max(rules.private_noise, rules.public_noise)


def disclose(
    report: Mapping[str, Any], digests: Digests, rules: SuiteRules, key: bytes, audience: Audience
) -> dict[str, Any]:
    """The score report of product.md as ``audience`` may see it; for "maintainer" the exact one.

    A noisy CELL has ``"noise": {"tp_sd": …}`` beside its figures. ``digests`` are those of the report's file,
    ``key`` is the server's for the purpose "noise". Raises ValueError for an unknown audience, and for
    another policy than "strict": elsewhere rows without a verdict change how many positives are counted, so
    that a count without noise would reveal labels.
    """
    if audience == "maintainer":
        return dict(report)
    if audience not in ("owner", "public"):
        raise ValueError(f"there is no audience {audience!r}: use owner, public or maintainer")
    if report["policy"] != POLICY:
        raise ValueError(f"policy {report['policy']!r} cannot be disclosed: only {POLICY!r} can")
    blurred = _Blur(rules, key, report["label_version"], audience)
    return {
        **{name: report[name] for name in _KEPT if name in report},
        "labels": {
            label: found and blurred.label(label, found, digests[label])
            for label, found in report["labels"].items()
        },
    }


class _Blur:
    """The noise of one label version for one audience."""

    def __init__(self, rules: SuiteRules, key: bytes, label_version: str, audience: Audience) -> None:
        self._rules, self._key, self._label_version, self._audience = rules, key, label_version, audience

    def label(
        self, label: str, exact: Mapping[str, Any], digests: Mapping[str, CellDigest]
    ) -> dict[str, Any] | None:
        """One label of the report; None where all its labels are alike."""
        if _follows_from_constants(exact["overall"]):
            return None
        is_public = self._audience == "public"
        wanted = self._rules.public_noise if is_public else self._rules.private_noise
        finest = min(self._rules.public_noise, self._rules.private_noise)
        by_benchmark = {}
        if is_public and not any(map(_follows_from_constants, exact["by_benchmark"].values())):
            sd = cell_noise(self._rules)
            for name, cell in exact["by_benchmark"].items():
                key = benchmark_cell(name)
                by_benchmark[name] = self._cell(label, key, cell, digests[key], sd, sd)
        return {
            "overall": self._cell(label, OVERALL, exact["overall"], digests[OVERALL], finest, wanted),
            "by_benchmark": by_benchmark,
            "by_agent": {},
        }

    def _cell(
        self,
        label: str,
        name: str,
        exact: Mapping[str, Any],
        digest: CellDigest,
        finest: float,
        wanted: float,
    ) -> dict[str, Any]:
        n, version = exact["n"], self._label_version
        sd = self._rules.public_noise
        total = sd * keyed_normal(self._key, "positives", version, label, name)
        positives = noisy_count(exact["positives"], total, 1, n - 1)
        predicted, no_verdict = (
            _share_of(n, digest[count], digest["rows"]) for count in ("positives", "no_verdict")
        )
        figure = (version, label, name, digest["digest"])
        noise = layered_noise(self._key, figure, finest, wanted, self._audience)
        tp = noisy_count(exact["tp"], noise, max(0, predicted + positives - n), min(predicted, positives))
        fp, fn = predicted - tp, positives - tp
        return {
            **figures(tp, fp, fn, n - positives - fp, no_verdict, policy=POLICY),
            **noisy_intervals(tp, fp, fn, wanted, sd),
            "noise": {"tp_sd": wanted, "positives_sd": sd},
        }


def _follows_from_constants(cell: Mapping[str, Any]) -> bool:
    """Whether the counts that carry no noise already say the label of every trajectory of the cell."""
    return cell["positives"] in (0, cell["n"])


def _share_of(n: int, count: int, rows: int) -> int:
    """``count`` of ``rows`` scaled to the ``n`` labelled ones, rounded to a whole number.

    The exact count over labelled rows would say of a single trajectory whether its label is "unsure".
    """
    return (2 * count * n + rows) // (2 * rows)


EPOCH_YEAR = 2025


@dataclass(frozen=True)
class DisclosurePolicy:
    """What is shown of the scores of one suite; ``key`` draws the noise, None where the labels are public."""

    suite: Suite
    key: bytes | None

    def report(self, score: ScoreRow, audience: Audience) -> Mapping[str, Any]:
        """The score report that an audience may see."""
        if self.key is None or audience == "maintainer":
            return score.report
        half = score.halves.get("shown") or {"report": score.report, "digests": score.digests}
        return disclose(half["report"], half["digests"], self.suite.rules, self.key, audience)

    def ranking_report(self, half: Mapping[str, Any]) -> dict[str, Any]:
        """The hidden half, which ranks: with noise too, or the order of two rows that differ in one run would
        give its label away."""
        return disclose(half["report"], half["digests"], self.suite.rules, self.key, "public")

    def is_on_the_board(self, status: SubmissionStatus, now: datetime) -> bool:
        """Whether a scored submission has a row: by its status and, in a private suite, its round."""
        if not status.is_on_the_board:
            return False
        if self.key is None:
            return True
        at = status.published_at
        return at is not None and self.round(at) < self.round(now)

    def round(self, moment: datetime) -> int:
        """The number of the round that a moment lies in; rows made public in it appear after its end."""
        return (moment - _start(moment)) // timedelta(days=max(1, self.suite.rules.round_days))

    def appears_at(self, published_at: datetime | None) -> datetime | None:
        """When a row appears that was made public at a moment; None where there are no rounds."""
        if self.key is None or published_at is None:
            return None
        days = max(1, self.suite.rules.round_days)
        return _start(published_at) + (self.round(published_at) + 1) * timedelta(days=days)

    def board_record(self, score: ScoreRow, found: SubmissionStatuses) -> ScoredRecord:
        """A submission as it stands on the board: from its score, status and name alone."""
        record = scored_record(score, found)
        if self.key is None:
            return record
        # Without counts by task: ties come from the intervals, which hold the noise.
        ranking = None
        if half := score.halves.get("ranked"):
            labels = self.ranking_report(half)["labels"]
            ranking = {label: found["overall"] for label, found in labels.items() if found}
        return replace(
            record,
            report=self.report(score, "public"),
            counts_by_task={},
            keeps_version=True,
            ranking=ranking,
        )


def _start(moment: datetime) -> datetime:
    return datetime(EPOCH_YEAR, 1, 1, tzinfo=moment.tzinfo)


# -- the half that ranks -------------------------------------------------------------------------------------
# The default where labels are private: whatever figures say of the half that is shown, the ranking gains
# nothing from it. What is left is the order of public rows (`tests/attacks/versions.py`, on 1,106
# trajectories, in points of precision on the half that ranks): of five accounts in a year 0.0 (standard error
# 0.2), of twenty 1.8 (0.3), where the figures shown would gain them 2.8 and 6.5 on the other half. Its price
# is the interval, wider by sqrt(2).


def hidden_half(trajectories: Sequence[Trajectory], key: bytes) -> np.ndarray:
    """Which rows of a split rank and are not shown, bool of shape (n,): half the tasks of each benchmark.

    All runs of a task are in one half.

    Tasks are ordered by HMAC-SHA256 under ``key`` (the server's for "ranking-half") of benchmark and task,
    and every second one is hidden; of an odd number the larger part is, so that a benchmark of one task is
    ranked. The label version has no part in it: halves drawn anew after a correction would rank by tasks
    whose figures had been shown.
    """

    def drawn_place(task: tuple[str, str]) -> tuple[str, bytes]:
        return task[0], hmac.new(key, json.dumps(task).encode(), hashlib.sha256).digest()

    tasks = sorted({(trajectory.benchmark, trajectory.task) for trajectory in trajectories})
    drawn = sorted(tasks, key=drawn_place)
    hidden = set()
    for benchmark in {benchmark for benchmark, _ in tasks}:
        hidden.update([task for task in drawn if task[0] == benchmark][::2])
    return np.array([(t.benchmark, t.task) in hidden for t in trajectories], dtype=bool)


def labels_of(labels: LabelSet, rows: np.ndarray) -> LabelSet:
    """The label set of some rows (bool of shape (n,)), under the same version: for `score_report`."""
    return replace(
        labels,
        trajectories=trajectories_of(labels.trajectories, rows),
        primary={name: column[rows] for name, column in labels.primary.items()},
        first={name: column[rows] for name, column in labels.first.items()},
        second={name: column[rows] for name, column in labels.second.items()},
        annotated_twice=labels.annotated_twice[rows],
    )


def trajectories_of(trajectories: Sequence[Trajectory], rows: np.ndarray) -> tuple[Trajectory, ...]:
    return tuple(trajectory for trajectory, inside in zip(trajectories, rows, strict=True) if inside)


def predictions_of(aligned: Predictions, rows: np.ndarray) -> Predictions:
    """The aligned predictions of some rows, with every column that the file has."""
    return aligned.take(np.flatnonzero(rows))
