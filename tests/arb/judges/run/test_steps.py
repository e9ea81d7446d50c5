"""Judges that answer steps: what they return is recorded, written as rows, and read again from replies."""

import json
import re
from pathlib import Path

import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits
from arb.core.suite import load_suite
from arb.judges.contract import JudgeError, ask_reward_judge
from arb.judges.ensembles.voting import combine_votes
from arb.judges.parsing import parse_answer, parse_steps
from arb.judges.types import Answer, Reply, StepQuestion
from tests.support.judge_runs import invoke, run
from tests.support.llm_server.server import LLMServer
from tests.support.step_suite import CAREFUL, HASTY, SOURCE, STEP, write_step_suite

GUIDE = (Path(__file__).parents[4] / "docs" / "own_judge.md").read_text(encoding="utf-8")
OWN_JUDGE = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)[1]
"""The guide's judge that answers steps, with 1, 0 or -1 to the target ``move``."""


def answer(request) -> str:
    """Say that every step helps but the last of a run of five, which is HASTY's."""
    n = max(int(number) for number in re.findall(r"^Step (\d+)", request.text, re.MULTILINE))
    lines = [f"Step {number}: {-1 if n == number == 5 else 1}" for number in range(1, n + 1) if number != 4]
    return "\n".join([*lines, f"Status: {'failure' if n == 5 else 'success'}"])


@pytest.fixture(scope="module")
def server():
    with LLMServer(script=answer) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(OWN_JUDGE)
    return tmp_path


def judged(server, folder, suite, *more):
    """Judge the suite's dev runs; return the rows of the prediction file."""
    own = f"{folder / 'own.py'}:StepJudge"
    options = ("--suite", suite, "--source", SOURCE, *more)
    done = run(server.base_url, folder, *options, judge=own, split="dev")
    assert done.exit_code == 0, done.output
    return rows_of(folder / "run" / "predictions.jsonl")


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def said(rows):
    return {(row["trajectory_id"], row.get("step")): row.get("final", row.get("move")) for row in rows}


def test_a_run_writes_a_row_for_each_run_and_each_step_that_the_suite_asks_about(server, folder):
    suite = write_step_suite(folder / "steps")
    rows = judged(server, folder, suite)
    # The suite asks about steps 1, 2, 3 of CAREFUL and 1, 2, 4 of HASTY. The judge leaves out step 4.
    assert said(rows) == {
        (CAREFUL, None): "1", (CAREFUL, "1"): "1", (CAREFUL, "2"): "1", (CAREFUL, "3"): "1",
        (HASTY, None): "0", (HASTY, "1"): "1", (HASTY, "2"): "1", (HASTY, "4"): None,
    }  # fmt: skip
    assert [("latency_s" in row, "state" in row) for row in rows if row["trajectory_id"] == HASTY] == [
        (True, True), (False, False), (False, False), (False, False)
    ]  # fmt: skip
    record = rows_of(folder / "run" / "judgments.jsonl")[1]
    assert record["answer"]["steps"] == {
        "1": {"move": "1"},
        "2": {"move": "1"},
        "3": {"move": "1"},
        "5": {"move": "-1"},
    }
    limits = ReadingLimits(targets=load_suite(suite).targets)
    table, findings = read_predictions((folder / "run" / "predictions.jsonl").read_bytes(), limits)
    assert check(table, findings, load_suite(suite), "dev").acceptable


def test_without_a_target_about_runs_the_first_step_of_a_run_has_its_latency(server, folder):
    rows = judged(server, folder, write_step_suite(folder / "steps", STEP))
    assert [("latency_s" in row, row["step"]) for row in rows if row["trajectory_id"] == HASTY] == [
        (True, "1"), (False, "2"), (False, "4")
    ]  # fmt: skip


def test_a_suite_that_asks_about_no_step_gets_the_rows_of_other_judges(server, folder):
    done = run(server.base_url, folder, judge=f"{folder / 'own.py'}:StepJudge", split="dev")
    assert done.exit_code == 0, done.output
    assert not [
        row for row in rows_of(folder / "run" / "predictions.jsonl") if "step" in row or "move" in row
    ]


def test_a_certificate_scores_the_steps(server, folder):
    suite = write_step_suite(folder / "steps")
    own = ("certify", f"{folder / 'own.py'}:StepJudge", "--suite", suite, "--source", SOURCE, "--model", "m")
    more = ("--base-url", server.base_url, "--cache", folder / "cache", "--out", folder / "out")
    done = invoke(*own, *more, "--repeats", "1")
    assert done.exit_code == 0, done.output
    labels = json.loads((folder / "out" / "certificate.json").read_text())["quality"]["labels"]
    # CAREFUL is right on 3 steps of 3; of HASTY 1, 0, -1 the judge says 1, 1 and nothing: 4 of 6.
    assert labels["move"]["overall"]["accuracy"] == pytest.approx(4 / 6)
    # The labels of the runs are 1 and -1, and the judge says success and failure.
    assert (labels["final"]["overall"]["tp"], labels["final"]["overall"]["tn"]) == (1, 1)
    text = (folder / "out" / "certificate.md").read_text()
    assert "Move: accuracy 0.667, first error accuracy 0.500, 6 labelled, 1 without an answer." in text


def test_reparsing_an_own_judge_keeps_its_steps(server, folder):
    suite = write_step_suite(folder / "steps")
    rows = judged(server, folder, suite)
    done = invoke(
        "reparse", folder / "run", "--form", "status", "--suite", suite, "--out", folder / "again.jsonl"
    )
    assert done.exit_code == 0, done.output
    assert "2 judgments: 2 ok" in done.output
    assert "0 of them have a different verdict" in done.output
    assert rows_of(folder / "again.jsonl") == rows


def test_the_step_judge_of_the_catalogue_answers_the_suites_target_and_can_be_parsed_again(tmp_path):
    suite = write_step_suite(tmp_path / "steps")
    with LLMServer() as server:  # the script gives the last of the target's values, for every step
        options = ("--suite", suite, "--source", SOURCE)
        done = run(server.base_url, tmp_path, *options, judge="steps", split="dev")
        assert done.exit_code == 0, done.output
        system = server.chat.bodies[0]["messages"][0]["content"]
    target = next(each for each in load_suite(suite).targets if each.level == "step")
    assert target.text in system and f"Step N: one of {', '.join(target.values)}" in system
    rows = rows_of(tmp_path / "run" / "predictions.jsonl")
    assert {row["move"] for row in rows if "step" in row} == {target.values[-1]}
    again = invoke("reparse", tmp_path / "run", "--suite", suite, "--out", tmp_path / "again.jsonl")
    assert again.exit_code == 0, again.output
    assert said(rows_of(tmp_path / "again.jsonl")) == said(rows)


def test_answers_about_steps_are_read_from_lines_and_the_last_one_counts():
    text = "Step 1: 1\n**Step 2:** -1\n- step 3 = 0\nStep 4: The agent waits.\nIn step 5: 1\nStep 1: 0"
    assert parse_steps(text, StepQuestion("move", ("1", "0", "-1"))) == {
        1: {"move": "0"}, 2: {"move": "-1"}, 3: {"move": "0"}
    }  # fmt: skip


def test_a_reply_with_steps_needs_no_verdict_but_has_to_be_complete():
    question = StepQuestion("move", ("bad", "good"))
    found = parse_answer(Reply("Step 1: good", finish_reason="stop"), "status", question)
    assert (found.state, found.success, found.steps) == ("ok", None, {1: {"move": "good"}})
    cut_off = parse_answer(Reply("Step 1: good\nStep 2: go", finish_reason="length"), "status", question)
    assert (cut_off.state, cut_off.steps) == ("truncated", None)
    assert parse_answer(Reply("Step 1: good\nStatus: success"), "status").steps is None


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([1], "steps are a list: use a dict by step number"),
        ({"1": {}}, "step '1': use a whole number from 0"),
        ({1: "bad"}, "step 1 is 'bad': use a dict by target"),
        ({1: {"move": None}}, "step 1 has None: use an answer's value"),
    ],
)
def test_steps_that_cannot_be_used_are_refused(steps, problem):
    class Own:
        name = "own"

        def judge_reward(self, cum_reward):
            return Answer("ok", True, steps=steps)

    with pytest.raises(JudgeError, match=re.escape(problem)):
        ask_reward_judge(Own(), 1.0)


def test_of_samples_the_most_frequent_answer_about_a_step_counts():
    answers = [Answer("ok", steps={1: {"move": value}, 2: {"move": "0"}}) for value in ("1", "-1", "-1")]
    assert combine_votes([*answers, Answer("error")], "majority") == Answer(
        "ok", steps={1: {"move": "-1"}, 2: {"move": "0"}}
    )
