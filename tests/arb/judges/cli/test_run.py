"""Running judges from the command line: what comes out, going on, and what is refused."""

import json
import re

import pytest

from arb.core.suite import load_suite
from arb.judges.cli.text import print_template
from arb.judges.run.folder import RunFolder
from arb.judges.run.progress import RunEnd
from arb.judges.run.runner import Outcome
from arb.judges.types import Answer
from tests.support import judge_runs
from tests.support.judge_runs import invoke, predictions
from tests.support.llm_server.server import LLMServer

YES = "always-successful"


def run(judge, out, *arguments):
    return invoke("run", judge, "--split", "dev", "--out", out, *arguments)


def test_what_an_endpoint_sent_gets_to_no_terminal_as_it_is(tmp_path, capsys):
    sums = {"states": {"error": 1}, "calls": 1, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
    ended = RunEnd("limited", "stopped: only rate limits (429: \x1b[2Jwait)")
    outcome = Outcome(ended, 1, 1, 0, sums, "400: \x1b]0;title\x07")
    print_template("run.txt.j2", outcome=outcome, out=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "stopped: only rate limits (429: �[2Jwait)"
    assert "(the first error: 400: �]0;title�)" in lines[4]
    assert all(line.isprintable() for line in lines)


def test_an_answer_that_is_not_ok_carries_no_verdict():
    with pytest.raises(ValueError, match="does not match success"):
        Answer("refused", success=True)
    with pytest.raises(ValueError, match="does not match success"):
        Answer("ok")


def test_run_json_says_what_the_run_is_made_of_and_what_came_out(tmp_path):
    run("never-successful", tmp_path, "--suite", "sample", "--limit", 3)
    said = json.loads((tmp_path / "run.json").read_text())
    assert said["configuration"]["judge"] == "never-successful"
    assert (said["configuration"]["suite"], said["configuration"]["split"]) == ("sample", "dev")
    assert len(said["configuration"]["data_hash"]) == 64
    assert {"project", "commit", "python", "aiohttp"} <= set(said["versions"])
    assert said["sessions"][0]["versions"] == said["versions"]
    assert said["totals"]["states"] == {"ok": 3}
    assert (said["totals"]["calls"], said["totals"]["cost_usd"]) == (0, 0)
    assert [session["ended"] for session in said["sessions"]] == ["finished"]
    assert str(tmp_path) not in (tmp_path / "run.json").read_text()


def test_one_call_for_one_trajectory_is_told_in_the_singular(tmp_path):
    with LLMServer() as server:
        done = judge_runs.run(server.base_url, tmp_path, "--limit", 1, "--price", "m=1,1")
    assert "1 of 1 trajectory judged: 1 ok" in done.output and re.search(r"for 1 call$", done.output, re.M)


def test_the_same_command_goes_on_and_a_larger_selection_adds_to_the_folder(tmp_path):
    run(YES, tmp_path, "--limit", 5)
    first = predictions(tmp_path, "")
    run(YES, tmp_path, "--limit", 5)
    assert predictions(tmp_path, "") == first
    run(YES, tmp_path, "--shard", "1/2")
    run(YES, tmp_path, "--shard", "2/2")
    order = [each.trajectory_id for each in load_suite().split("dev")]
    assert [row["trajectory_id"] for row in predictions(tmp_path, "")] == order
    said = json.loads((tmp_path / "run.json").read_text())
    assert len(said["sessions"]) == 4
    assert said["totals"]["trajectories"] == 196


def test_another_configuration_in_the_folder_is_refused_with_every_difference(tmp_path):
    run(YES, tmp_path, "--limit", 3)
    before = (tmp_path / "judgments.jsonl").read_bytes()
    result = run("never-successful", tmp_path, "--suite", "sample")
    assert result.exit_code == 2
    assert "judge: always-successful there, never-successful now" in result.output
    assert "suite: agent-reward-bench there, sample now" in result.output
    assert (tmp_path / "judgments.jsonl").read_bytes() == before


def test_trajectories_are_chosen_by_benchmark_agent_and_ids(tmp_path):
    chosen = [each for each in load_suite().split("dev") if each.benchmark == "workarena++"]
    run(YES, tmp_path / "a", "--benchmark", "workarena++")
    assert [row["trajectory_id"] for row in predictions(tmp_path, "a")] == [t.trajectory_id for t in chosen]
    run(YES, tmp_path / "b", "--agent", chosen[0].agent)
    assert {row["trajectory_id"].split("/")[1] for row in predictions(tmp_path, "b")} == {chosen[0].agent}
    (tmp_path / "ids.txt").write_text(f"{chosen[0].trajectory_id}\n\n{chosen[1].trajectory_id}\n")
    run(YES, tmp_path / "c", "--ids", tmp_path / "ids.txt")
    assert len(predictions(tmp_path, "c")) == 2


@pytest.mark.parametrize(
    ("judge", "arguments", "said"),
    [
        (
            YES,
            ("--benchmark", "webarina", "--shard", "0/2"),
            ["--benchmark webarina", "webarena", "--shard 0/2"],
        ),
        (YES, ("--shard", "5", "--provider", "acme"), ["write I/N", "--provider acme", "openrouter"]),
        (YES, ("--retry", "ok"), ["--retry ok", "too_long"]),
        (YES, ("--ids", "nowhere.txt"), ["Invalid value for '--ids'"]),
        (YES, ("--model-of", "captioner"), ["ROLE=MODEL"]),
        (YES, ("--model-of", "captioner=x"), ["not a role of"]),
        (YES, ("--extra", "effort=low"), ["not JSON"]),
        ("alway-successful", (), ["Did you mean 'always-successful'"]),
        ("rule-based", (), ["--source", "--suite sample"]),  # where recorded runs could come from
    ],
)
def test_what_cannot_be_is_refused_in_words_and_leaves_no_folder(tmp_path, judge, arguments, said):
    result = run(judge, tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert all(each in result.output for each in said), result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()


def test_an_id_of_another_split_is_named_with_its_line(tmp_path):
    other = load_suite().split("test")[0].trajectory_id
    (tmp_path / "ids.txt").write_text(f"nonsense\n{other}\n")
    result = run(YES, tmp_path / "run", "--ids", tmp_path / "ids.txt")
    assert "line 1" in result.output and "not in the suite" in result.output
    assert "line 2" in result.output and "in another split" in result.output


def test_the_rule_based_judge_runs_over_the_shipped_sample(tmp_path):
    result = run("rule-based", tmp_path, "--suite", "sample")
    assert result.exit_code == 0, result.output
    assert {row["state"] for row in predictions(tmp_path, "")} == {"ok"}
    assert {row["success"] for row in predictions(tmp_path, "")} == {True, False}
    judgments = [json.loads(line) for line in (tmp_path / "judgments.jsonl").read_text().splitlines()]
    assert all((each["reward"] > 0.5) == each["answer"]["success"] for each in judgments)


def test_a_folder_that_another_process_runs_in_is_refused(tmp_path):
    with RunFolder(tmp_path, {"suite": "sample", "split": "dev", "judge": "always-successful", "models": {}}):
        result = run(YES, tmp_path)
    assert result.exit_code == 2
    assert "is in use by another process" in result.output
