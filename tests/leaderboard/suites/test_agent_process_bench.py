"""Importing AgentProcessBench from a checkout; rows are made up in the repository's format."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.settings import Settings
from arb.core.suite import load_suite
from leaderboard.labels.labels import load_labels
from leaderboard.report import score_report
from leaderboard.suites.__main__ import app
from leaderboard.suites.agent_process_bench import read
from leaderboard.suites.imported import ImportProblem, write_suite
from leaderboard.verdict_files import read_verdict_file

LABELS = [
    ("qa:0:0", {"2": 1, "4": -1}, -1),
    ("qa:0:1", {"2": 1}, 1),
    ("qa:1:0", {"2": 0, "4": 1, "10": -1}, 0),
]
ANSWERS = [
    ("qa:0:0", {"2": 1, "4": -1}, -1, ""),
    ("qa:0:1", {"2": 1}, 1, ""),
    ("qa:1:0", {"2": -1, "4": 1, "10": -1}, 1, ""),
    ("qa:0:1", {"2": None}, 0, "llm_annotate_failed: Timeout"),  # asked again; the later line counts
]


def write_lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture
def checkout(tmp_path) -> Path:
    folder = tmp_path / "AgentProcessBench"
    labels = [{"record_id": r, "step_labels": s, "final_label": f} for r, s, f in LABELS]
    write_lines(folder / "data/AnswerOnly/made_up_final.jsonl", labels)
    answers = [
        {
            "record_id": record, "step_labels": steps, "final_label": final, "comment": comment,
            "explanations": {"steps": {"2": "It searches."}, "final": "It ends well."},
        }
        for record, steps, final, comment in ANSWERS
    ]  # fmt: skip
    other = {"record_id": "qa:7:0", "step_labels": {}, "final_label": 1, "comment": ""}
    write_lines(folder / "eval/results/Judge (medium) /made_up__blind_judge.jsonl", [*answers, other])
    return folder


def test_runs_steps_labels_and_answers_are_read(checkout, tmp_path):
    found = read(checkout)
    assert len({item.trajectory_id for item in found.items}) == 3
    assert {item.task for item in found.items} == {"qa.0", "qa.1"}  # a task's samples are runs of one task
    assert found.notes == ("Judge (medium): 1 answer about runs or steps without a label left out",)
    write_suite(found, tmp_path / "apb")
    suite = load_suite(tmp_path / "apb")
    labels = load_labels(suite, "test", Settings())
    assert labels.source == "published"
    file = tmp_path / "apb/verdicts/Judge (medium).jsonl"
    report = score_report(read_verdict_file(file, suite, "test", 10**6), labels, n_resamples=10)
    final, step = (report["labels"][name]["overall"] for name in ("final", "step_label"))
    # Of labels no, yes, no, the answers are no, none (a failed call) and yes.
    assert (final["tp"], final["fp"], final["fn"], final["tn"], final["no_verdict"]) == (0, 1, 1, 1, 1)
    # Right are 2 of 2, 0 of 1 (failed) and 2 of 3 steps. The first error is right in the first two runs.
    assert (step["accuracy"], step["first_error_accuracy"]) == (4 / 6, 2 / 3)


def test_the_command_writes_a_folder_once_and_names_the_next_step(checkout, tmp_path):
    def imported(name: str):
        return CliRunner().invoke(app, ["import", name, str(checkout), "--out", str(tmp_path / "apb")])

    done = imported("agent-process-bench")
    assert done.exit_code == 0, done.output
    assert "3 runs, 6 steps, and the verdicts of 1 judge." in done.stdout and "Note: Judge" in done.stdout
    assert "Next, score a judge: arb score" in done.stderr
    again = imported("agent-process-bench")
    assert (again.exit_code, "exists already" in again.stderr) == (1, True)
    other = imported("trail")
    assert other.exit_code == 2 and "use one of agent-process-bench" in other.stderr


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"final_label": 2}, "made_up_final.jsonl, line 2: final_label is 2, not one of 1, 0, -1"),
        ({"record_id": "qa:0:0"}, "line 2, record_id 'qa:0:0': an earlier line has it"),
        ({"record_id": "qa"}, "line 2: record_id 'qa' is not SOURCE:QUERY:SAMPLE"),
        ({"step_labels": [1]}, "line 2: step_labels is not an object"),
    ],
)
def test_a_wrong_line_is_named(checkout, change, problem):
    rows = [{"record_id": r, "step_labels": s, "final_label": f} for r, s, f in LABELS]
    rows[1] |= change
    write_lines(checkout / "data/AnswerOnly/made_up_final.jsonl", rows)
    with pytest.raises(ImportProblem) as refused:
        read(checkout)
    assert problem in str(refused.value)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(ImportProblem, match="name a checkout of RUCBM/AgentProcessBench"):
        read(tmp_path)


@pytest.mark.shared
def test_devai_and_online_mind2web_are_the_files_in_shared(shared):
    rows = list(csv.DictReader((shared / "data/suites/devai/requirements.csv").open()))
    suite = load_suite("devai")
    labels = load_labels(suite, "test", Settings())
    found = {
        (t.trajectory_id, t.part): int(code)
        for t, code in zip(labels.trajectories, labels.primary["satisfied"], strict=True)
    }
    assert found == {
        (f"devai/{row['agent']}/{row['task']}", row["requirement_id"]): int(row["human_satisfied"] == "True")
        for row in rows
    }
    file = suite.test_labels_path.parent / "verdicts/agent-as-a-judge.jsonl.gz"
    cell = score_report(read_verdict_file(file, suite, "test", 10**6), labels)["labels"]["satisfied"][
        "overall"
    ]
    # The paper gives precision 84.6 and recall 87.5.
    assert (round(100 * cell["precision"], 1), round(100 * cell["recall"], 1)) == (84.6, 87.5)

    tasks = json.loads((shared / "data/suites/online-mind2web/human_label.json").read_text())
    wanted = {
        f"online-mind2web/{agent.removesuffix('_human_label')}/{task['task_id']}": int(label)
        for task in tasks
        for agent, label in task.items()
        if agent.endswith("_human_label") and label != "2"
    }
    labels = load_labels(load_suite("online-mind2web"), "test", Settings())
    ids = [t.trajectory_id for t in labels.trajectories]
    assert dict(zip(ids, labels.primary["success"].tolist(), strict=True)) == wanted
    assert len(wanted) == 1_800 - 20
