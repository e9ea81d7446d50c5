"""The certificate of a judge: one report with its metrics, probes and costs, and how they were measured.

It is made from finished runs: one of the unchanged judge, one for each probe, and repeats of the first in
which every call is made again. Metrics and intervals are computed as on the leaderboard, and the same runs
and labels always give the same report. If the labels of the split are hidden, the report says which figures
are missing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from arb.core.formats import FORMATS
from arb.core.predictions.cells import target_code
from arb.core.predictions.table import Predictions
from arb.core.suites.targets import NO_ANSWER, Target, main_target, scored, verdict_target
from arb.core.vocabulary import STATES
from arb.judges.contract import open_session
from arb.judges.ensembles.probes import PROBES, Probe, report_probe, share_of
from arb.judges.ensembles.voting import probability
from arb.judges.run.records import JudgmentRecord, answer_of, totals
from arb.judges.types import Call, Judge, JudgeSession, View
from arb.judges.wrappers import WrappedJudge, in_parallel, map_calls
from leaderboard.calibration import FEWEST_SCORES, calibrate
from leaderboard.costs import running_costs
from leaderboard.judge_precision.intervals import N_RESAMPLES
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.report import fpr_interval, score_report, task_names, verdicts_of

if TYPE_CHECKING:
    from arb.core.ids import Trajectory
    from arb.judges.ensembles.threshold import Threshold
    from leaderboard.labels.labels import LabelSet

UNCHANGED: Final = "unchanged"
"""The name of the run of the unchanged judge."""

MOST_SAMPLES: Final = 1_000_000
"""The distance between the sample numbers of two repeats. No judge asks for this many samples of a call."""

HIDDEN: Final = (
    "the labels of {split} are hidden, so this cannot be computed here: certify on dev, or submit the "
    "prediction file to the leaderboard, which evaluates it"
)


@dataclass(frozen=True)
class RepeatedJudge(WrappedJudge):
    """A judge that makes all calls again, including those for captions, instead of using cached replies.

    ``number`` is 2 for the first repeat, since the run of the unchanged judge counts as the first time.
    """

    number: int

    def name_with(self, names: Mapping[str, str]) -> str:
        return f"{names['']} · {repeat_name(self.number)}"

    def ask(self, view: View) -> JudgeSession:
        first = (self.number - 1) * MOST_SAMPLES

        def again(call: Call) -> Call:
            together = tuple(first + number for number in call.together)
            return replace(call, sample=first + call.sample, together=together)

        return (yield from map_calls(open_session(self.judge, view), again))


def repeat_name(number: int) -> str:
    return f"repeat-{number}"


@dataclass(frozen=True)
class AllVariants(WrappedJudge):
    """A judge and its variants as one judge, so that their calls can be planned and made together.

    Equal calls are made once. The answer is that of the unchanged judge.
    """

    variants: tuple[Judge, ...]

    def ask(self, view: View) -> JudgeSession:
        answers = yield from in_parallel(open_session(each, view) for each in (self.judge, *self.variants))
        return answers[0]


@dataclass(frozen=True)
class MeasuredRun:
    """A finished run: its run.json, its judgments and the SHA-256 of its prediction file."""

    run: Mapping[str, Any]
    records: Sequence[JudgmentRecord]
    predictions_sha256: str


def make_certificate(
    runs: Mapping[str, MeasuredRun],
    labels: LabelSet | None,
    threshold: Threshold | str,
    judge_facts: Mapping[str, Any],
    ahead: Sequence[MeasuredRun] = (),
) -> dict[str, Any]:
    """Return the report as a JSON object, with None for undefined fractions, dollars and seconds.

    Args:
        runs: The runs by name: `UNCHANGED`, the names of probes, and `repeat_name`.
        labels: The labels of the split; None if they are hidden.
        threshold: The threshold chosen on these runs, or the reason why none was chosen. It is ignored if the
            runs already used a threshold.
        judge_facts: The judge's inputs, calls and source in words.
        ahead: Earlier runs that made calls for ``runs``. Their costs are included.
    """
    first = runs[UNCHANGED]
    configuration = first.run["configuration"]
    every = [*ahead, *runs.values()]
    paid_usd = [each.run.get("spent_usd") for each in every]
    sessions = [session for each in every for session in _sessions_of(each)]
    versions = {json.dumps(session["versions"]): session["versions"] for session in sessions}
    quality: dict[str, Any] | str
    calibration: dict[str, Any] | str
    if labels is None:
        quality = calibration = hidden = HIDDEN.format(split=configuration["split"])
    else:
        quality, hidden = score_answers(first.records, labels), ""
        calibration = _calibration(first.records, labels)
    repeats = [each for name, each in runs.items() if name.startswith("repeat-")]
    sums = totals(first.records)
    trajectory_ids = "\n".join(sorted(each["trajectory_id"] for each in first.records))
    return {
        "format": FORMATS["certificate"],
        "judge": {"name": first.run["judge"]["name"], **judge_facts},
        "suite": configuration["suite"],
        "split": configuration["split"],
        "trajectories": _coverage(first),
        "quality": quality,
        "targets": {} if labels is None else {each.name: each.title for each in scored(labels.targets)},
        "calibration": calibration,
        "threshold": configuration.get("threshold")
        or hidden
        or (threshold if isinstance(threshold, str) else asdict(threshold)),
        "probes": [
            _probe(PROBES[name], first, each, labels, repeats)
            for name, each in runs.items()
            if name in PROBES
        ],
        "stability": _stability([first, *repeats], labels) if repeats else None,
        "costs": {**_costs(first.records), "paid_usd": None if None in paid_usd else sum(paid_usd)},
        "states": {name: _states(each.records) for name, each in runs.items()},
        **_cited_steps(first.records),
        "measured": {
            **{name: configuration.get(name) for name in _DIGESTS},
            "label_version": None if labels is None else labels.version,
            **{name: sums[name] for name in _CALL_SUMS},
            "trajectories_sha256": hashlib.sha256(trajectory_ids.encode()).hexdigest(),
            "predictions_sha256": {name: each.predictions_sha256 for name, each in runs.items()},
            "models": configuration["models"],
            "images": configuration["images"],
            "samples": configuration["samples"],
            "vote": configuration["vote"],
            "has_threshold": configuration.get("threshold") is not None,
            "versions": list(versions.values()),
            "from": min(session["started_at"] for session in sessions),
            "to": max(session.get("ended_at", session["started_at"]) for session in sessions),
        },
    }


_CALL_SUMS: Final = ("dropped_params", "served_models", "prompts_sha256")
_DIGESTS: Final = ("data_hash", "view_hash", "prompts", "prompts_hash", "judge_file_sha256")


def _sessions_of(measured: MeasuredRun) -> Sequence[Mapping[str, Any]]:
    """Return those sessions of a run that paid for calls or were killed, or else the first session."""
    sessions = measured.run["sessions"]
    return [each for each in sessions if each.get("calls_paid", 1)] or sessions[:1]


def _coverage(first: MeasuredRun) -> dict[str, int]:
    selection = first.run["selection"]
    verdicts = sum(record["state"] == "ok" for record in first.records)
    successes = sum(record["answer"].get("success") is True for record in first.records)
    return {
        "chosen": selection["trajectories"],
        "without_a_run": selection["without_a_run"],
        "judged": len(first.records),
        "with_verdict": verdicts,
        "called_successful": successes,
    }


def score_answers(
    records: Sequence[JudgmentRecord], labels: LabelSet, policy: str = "strict", *, has_intervals: bool = True
) -> dict[str, Any]:
    """Return a score report on only the trajectories that were judged, such as those chosen by ``--limit``.

    With ``has_intervals``, each label's overall metrics include ``fpr_ci``, the interval of its false
    positive rate.
    """
    answers = {record["trajectory_id"]: record["answer"] for record in records}
    there = labels_of(labels, answers)
    ids = tuple(each.trajectory_id for each in there.trajectories)
    columns = {}
    for target in scored(labels.targets):
        codes = [_code(answers[item.trajectory_id], item, target, labels) for item in there.trajectories]
        columns[target.name] = np.array(codes, dtype=np.int8)
    verdicts = Predictions(ids, columns)
    report = score_report(verdicts, there, policy, N_RESAMPLES if has_intervals else 0)
    for label, found in report["labels"].items():
        column = verdicts_of(verdicts, label)
        if found is not None and column is not None and has_intervals and "fpr" in found["overall"]:
            found["overall"]["fpr_ci"] = fpr_interval(column, there, label, policy)
    return report


def _code(answer: Mapping[str, Any], item: Trajectory, target: Target, labels: LabelSet) -> int:
    """Return the code of an item's answer, or `NO_ANSWER`. A verdict answers the suite's main target."""
    if item.level == "run":
        is_verdict = target is main_target(labels.targets) and target.type == "binary"
        value = answer.get("success" if is_verdict else target.name)
    else:
        value = answer.get("steps", {}).get(item.step, {}).get(target.name)
    code = int(value) if isinstance(value, bool) else target_code(value, target)
    return code if isinstance(code, int) else NO_ANSWER


def labels_of(labels: LabelSet, ids: Mapping[str, Any]) -> LabelSet:
    """Return the labels of the trajectories in ``ids`` only, with the same label version."""
    return labels.only(np.array([each.trajectory_id in ids for each in labels.trajectories], dtype=bool))


def scores_of(records: Sequence[JudgmentRecord]) -> dict[str, tuple[float | None, float | None]]:
    """Return (score, `probability`) of each answer, keyed by id. Both are None if there is no verdict."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for record in records:
        answer = answer_of(record)
        has_verdict = answer.success is not None
        scores = (answer.score, probability(answer)) if has_verdict else (None, None)
        found[record["trajectory_id"]] = scores
    return found


def _calibration(records: Sequence[JudgmentRecord], labels: LabelSet) -> dict[str, Any] | str:
    """Return the calibration of the scores, or the reason why it cannot be computed."""
    scores = {name: own for name, (own, _) in scores_of(records).items()}
    if all(score is None for score in scores.values()):
        return "no answer has a score: use --logprobs or --samples, or return a score from the judge"
    try:
        target = verdict_target(labels.targets).name
    except ValueError as problem:
        return str(problem)
    there = labels_of(labels, scores)
    column = np.array([scores[t.trajectory_id] for t in there.trajectories], dtype=np.float64)
    tasks, _ = cluster_codes(task_names(there), len(column))
    found = calibrate(column, there.primary[target], tasks)
    if found is None:
        return f"fewer than {FEWEST_SCORES} labelled trajectories have a score"
    return asdict(found)


def _probe(
    probe: Probe,
    first: MeasuredRun,
    changed: MeasuredRun,
    labels: LabelSet | None,
    repeats: Sequence[MeasuredRun],
) -> dict[str, Any]:
    """Return a probe's report. ``fpr`` is None if the labels are hidden or do not hold after the change."""
    success = None
    if labels is not None and probe.expected != "fails":
        success = _success_figures(changed.records, labels)
    report = report_probe(probe, first.records, changed.records, [each.records for each in repeats])
    return {**report, "fpr": None if success is None else success["fpr"]}


def _stability(runs: Sequence[MeasuredRun], labels: LabelSet | None) -> dict[str, Any]:
    """Return how well the verdicts of the unchanged judge agree between several runs.

    ``unanimous`` is the share of trajectories with equal verdicts, among those with a verdict in every run.
    """
    verdicts: defaultdict[str, list[bool]] = defaultdict(list)
    for each in runs:
        for record in each.records:
            if (success := record["answer"].get("success")) is not None:
                verdicts[record["trajectory_id"]].append(success)
    everywhere = [found for found in verdicts.values() if len(found) == len(runs)]
    unanimous = sum(len(set(found)) == 1 for found in everywhere)
    again = Probe("repeat", "asked again", "stands", lambda view, goals: view)
    return {
        "runs": len(runs),
        "unanimous": share_of(unanimous, len(everywhere)),
        "repeats": [report_probe(again, runs[0].records, each.records) for each in runs[1:]],
        "figures": None if labels is None else [_success_figures(each.records, labels) for each in runs],
    }


def _success_figures(records: Sequence[JudgmentRecord], labels: LabelSet) -> dict[str, Any] | None:
    """Return precision, recall and FPR on the main target, or None if there are no verdicts."""
    scores = score_answers(records, labels, has_intervals=False)["labels"]
    found = scores[main_target(labels.targets).name]
    if found is None:
        return None
    return {name: found["overall"].get(name) for name in ("precision", "recall", "fpr")}


def _costs(records: Sequence[JudgmentRecord]) -> dict[str, Any]:
    """Return the costs per judgment. Replies from the cache count with their original cost and latency."""

    def column(name: str) -> np.ndarray:
        return np.array([each.get(name) for each in records], dtype=np.float64)

    seconds = column("latency_s")
    expenses = Predictions(
        tuple(record["trajectory_id"] for record in records),
        cost_usd=column("cost_usd"),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        latency_s=seconds,
    )
    known = seconds[~np.isnan(seconds)]
    calls = [len(record["calls"]) for record in records]
    return {
        **asdict(running_costs(expenses, len(records))),
        "seconds_95": float(np.quantile(known, 0.95)) if len(known) else None,
        "calls": sum(calls) / len(calls) if calls else None,
    }


def _cited_steps(records: Sequence[JudgmentRecord]) -> dict[str, Any]:
    """Return how many of the steps that are cited as evidence exist, or {} if no evidence cites a step."""
    exist = [
        1 <= evidence["step"] <= (record["n_steps"] or 0)
        for record in records
        for evidence in record["answer"].get("evidence", ())
        if "step" in evidence
    ]
    return {"cited_steps": share_of(sum(exist), len(exist))} if exist else {}


def _states(records: Sequence[JudgmentRecord]) -> dict[str, int]:
    counted = Counter(record["state"] for record in records)
    return {state: counted[state] for state in STATES if counted[state]}
