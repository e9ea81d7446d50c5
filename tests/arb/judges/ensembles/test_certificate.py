"""Certificates from finished runs: intervals as on the leaderboard, texts that strangers wrote made safe."""

import re
from dataclasses import replace

import numpy as np
import pytest

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.judges.ensembles.certificate import (
    MeasuredRun,
    RepeatedJudge,
    labels_of,
    make_certificate,
    score_answers,
)
from arb.judges.ensembles.certificate_text import to_html, to_markdown
from arb.judges.ensembles.voting import SampledJudge
from arb.judges.registry import find_judge
from leaderboard.judge_precision.intervals import resampled_counts
from leaderboard.labels.labels import load_labels
from leaderboard.report import task_names
from tests.support.judges import judged, view


@pytest.fixture(scope="module")
def labels():
    return load_labels(load_suite("sample"), "dev", Settings())


def record(trajectory_id, success, score=None, state="ok"):
    answer = {"success": success} | ({} if score is None else {"score": score}) if state == "ok" else {}
    call = {"key": trajectory_id, "role": "judge", "reply": {}}
    return {
        "trajectory_id": trajectory_id, "state": state, "answer": answer, "calls": [call],
        "cost_usd": 0.002, "input_tokens": 100, "output_tokens": 10, "latency_s": 1.5,
    }  # fmt: skip


def measured(records, name="A judge") -> MeasuredRun:
    configuration = {
        "suite": "sample", "split": "dev", "models": {"judge": {"model": "m", "temperature": 0.0}},
        "images": {"detail": "auto"}, "samples": 1, "vote": None,
    }  # fmt: skip
    session = {
        "started_at": "2026-01-01T00:00:00+00:00", "ended_at": "2026-01-01T00:01:00+00:00", "calls_paid": 2,
        "versions": {"python": "3.11"},
    }  # fmt: skip
    later = {"started_at": "2026-02-02T00:00:00+00:00", "ended_at": "2026-02-02T00:01:00+00:00"}
    later |= {"calls_paid": 0, "versions": {"python": "3.14"}}  # it found nothing to do
    run = {
        "configuration": configuration,
        "judge": {"name": name},
        "selection": {"trajectories": len(records), "without_a_run": 0},
        "sessions": [session, later],
        "spent_usd": 0.25,
    }
    return MeasuredRun(run, records, "f" * 64)


def half_right(labels):
    """Yes to every other trajectory, with a score."""
    return [
        record(t.trajectory_id, number % 2 == 0, 0.9 if number % 2 == 0 else 0.2)
        for number, t in enumerate(labels.trajectories)
    ]


FACTS = {"inputs": "goal", "calls": "1", "source": "a paper"}


def test_the_interval_of_the_false_positive_rate_is_that_of_the_boards_resamples(labels):
    records = half_right(labels)
    cell = score_answers(records, labels)["labels"]["success"]["overall"]
    assert cell["fpr"] == cell["fp"] / (cell["fp"] + cell["tn"])
    truth = labels.primary["success"]
    verdicts = np.array([record["answer"]["success"] for record in records], dtype=int)
    tasks = np.unique(task_names(labels), return_inverse=True)[1]
    counts = np.zeros((tasks.max() + 1, 2))
    np.add.at(counts[:, 0], tasks, (verdicts == 1) & (truth == 0))
    np.add.at(counts[:, 1], tasks, (verdicts == 0) & (truth == 0))
    fp, tn = resampled_counts(counts, 10_000, 0).T
    with np.errstate(invalid="ignore"):
        low, high = np.nanquantile(fp / (fp + tn), [0.025, 0.975])
    assert cell["fpr_ci"] == pytest.approx([low, high])


def test_only_judged_trajectories_count_and_the_label_version_stays(labels):
    some = half_right(labels)[:6]
    found = labels_of(labels, {each["trajectory_id"]: None for each in some})
    assert (len(found.trajectories), len(found.primary["success"]), len(found.annotated_twice)) == (6, 6, 6)
    assert found.version == labels.version
    assert score_answers(some, labels)["labels"]["success"]["overall"]["n"] == 6


def test_costs_states_and_calibration_are_those_of_the_unchanged_run(labels):
    records = half_right(labels)
    records[3] = record(records[3]["trajectory_id"], None, state="refused")
    worse = [replace_success(each) for each in records]
    runs = {"unchanged": measured(records), "claim": measured(worse)}
    found = make_certificate(runs, labels, "no threshold", FACTS)
    assert found["states"] == {"unchanged": {"ok": 19, "refused": 1}, "claim": {"ok": 19, "refused": 1}}
    assert found["costs"]["usd_per_1000"] == 2.0
    assert (found["costs"]["median_seconds"], found["costs"]["seconds_95"]) == (1.5, 1.5)
    assert found["costs"]["paid_usd"] == 0.5  # 0.25 for each of the two runs
    assert (found["calibration"], found["threshold"]) == (
        "fewer than 20 labelled trajectories have a score", "no threshold",
    )  # fmt: skip
    whole = make_certificate({"unchanged": measured(half_right(labels))}, labels, "", FACTS)
    assert whole["calibration"]["n"] == 20
    assert found["trajectories"]["with_verdict"] == 19


def replace_success(each):
    answer = {**each["answer"], "success": True} if each["state"] == "ok" else each["answer"]
    return {**each, "answer": answer, "calls": [{**each["calls"][0], "key": "other"}]}


def test_when_and_with_which_versions_is_that_of_the_sessions_that_paid_calls(labels):
    found = make_certificate({"unchanged": measured(half_right(labels))}, labels, "", FACTS)["measured"]
    assert (found["from"], found["to"]) == ("2026-01-01T00:00:00+00:00", "2026-01-01T00:01:00+00:00")
    assert found["versions"] == [{"python": "3.11"}]


def test_an_unknown_price_stays_unknown(labels):
    run = measured([each | {"cost_usd": None} for each in half_right(labels)])
    run = replace(run, run={**run.run, "spent_usd": None})
    found = make_certificate({"unchanged": run}, labels, "", FACTS)
    assert (found["costs"]["usd_per_1000"], found["costs"]["paid_usd"]) == (None, None)
    assert "unknown" in to_markdown(found)


HOSTILE = "<script>alert(1)</script> | *bold* \x1b[31m"


def test_what_strangers_wrote_is_text_in_the_page_and_the_markdown(labels):
    runs = {"unchanged": measured(half_right(labels), HOSTILE)}
    found = make_certificate(runs, labels, "none", FACTS | {"source": HOSTILE})
    page, markdown = to_html(found), to_markdown(found)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "<script" not in markdown and r"\| \*bold\*" in markdown
    assert "\x1b" not in markdown + page


def test_the_page_needs_no_other_file(labels):
    page = to_html(make_certificate({"unchanged": measured(half_right(labels))}, labels, "none", FACTS))
    assert not re.search(r"""(src|href)=|url\(|@import|<script|http-equiv="refresh""", page)
    assert "default-src 'none'" in page
    assert "temperature 0.0" in page


@pytest.mark.parametrize("name", ["simplified-axtree", "aer-c", "webjudge"])
def test_a_repeated_judge_asks_the_same_words_and_shares_no_answer(name):
    judge = SampledJudge(find_judge(name), 2)
    calls = [judged(each, view()).calls for each in (judge, RepeatedJudge(judge, 2), RepeatedJudge(judge, 3))]
    words = [{(call.role, call.messages) for call in each} for each in calls]
    assert words[0] == words[1] == words[2]
    assert all(call.sample in call.together for each in calls for call in each if call.together)
    asked = [set(each) for each in calls]
    assert not asked[0] & asked[1] and not asked[1] & asked[2] and not asked[0] & asked[2]


def test_cited_steps_are_counted_and_those_that_a_run_does_not_have_are_told_apart():
    ids = [each.trajectory_id for each in load_suite("sample").split("dev")]
    records = [record(name, True) for name in ids]
    assert "cited_steps" not in make_certificate({"unchanged": measured(records)}, None, "", {})
    # 2 runs of 3 steps each cite steps 1 and 3, which exist, and 0 and 4, which do not; one names no step
    for each, steps in zip(records, ((1, 4), (3, 0)), strict=False):
        each["n_steps"] = 3
        each["answer"]["evidence"] = [{"step": step, "met": True} for step in steps] + [
            {"text": "all in all"}
        ]
    made = make_certificate(
        {"unchanged": measured(records)}, None, "", {"calls": "1", "inputs": "", "source": ""}
    )
    assert (made["cited_steps"]["count"], made["cited_steps"]["n"]) == (2, 4)
    line = "The evidence names a step 4 times; 50.0 (15.0 to 85.0) % of these steps exist."
    assert line in to_markdown(made)
