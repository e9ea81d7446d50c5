"""`arb data rewards`, and builds that take rewards from the file that it writes."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from arb.core.predictions import read_predictions
from dataset_script.__main__ import app
from dataset_script.build.rewards import read_rewards
from dataset_script.sources import open_source
from tests.support.sources import write_json

SAMPLE = Path(__file__).parents[2] / "dataset_script" / "sample" / "data"


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def talk(reward=None):
    messages = [{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "Done."}]
    return {"messages": messages} | ({} if reward is None else {"reward": reward})


def write_chats(folder, **rewards):
    for name, reward in rewards.items():
        write_json(folder, talk(reward), f"solver/{name}.json")


def write_inspect_log(folder, *scores):
    samples = [
        {"id": n, "epoch": 1, "input": "Do it.", "scores": each, **talk()} for n, each in enumerate(scores)
    ]
    spec = {"task": "chores", "task_id": "t", "created": "2026-01-01T00:00:00+00:00", "model": "m"}
    write_json(folder, {"version": 2, "status": "success", "eval": spec, "samples": samples}, "log.json")


def test_a_row_per_run_that_is_also_a_file_of_verdicts(tmp_path):
    write_chats(tmp_path / "logs", a=1, b=0.25, c=None)
    done = invoke("rewards", tmp_path / "logs", "--out", tmp_path / "rewards.csv")
    assert done.exit_code == 0, done.output
    rows = (tmp_path / "rewards.csv").read_text().splitlines()
    assert rows == [
        "trajectory_id,success,reward",
        "chat/solver/a,true,1",
        "chat/solver/b,false,0.25",
        "chat/solver/c,,",
    ]
    assert "the reward of 2 of 3 runs" in done.output
    table, findings = read_predictions((tmp_path / "rewards.csv").read_bytes())
    assert table.codes("success").tolist() == [1, 0, -1]
    assert not [finding for finding in findings if finding.level == "error"]


def test_scores_of_inspect_are_numbers_by_scorer_and_one_is_chosen(tmp_path):
    grades = [{"match": {"value": grade}} for grade in ("C", "I", "P", True, 0.75, "NaN")]
    write_inspect_log(
        tmp_path, *grades, {"match": {"value": "C"}, "judge": {"value": {"fit": 1, "tone": "x"}}}
    )
    source = open_source(tmp_path)
    found = [source.scores(file) for file in source.list_runs().files]
    assert [scores.get("match") for scores in found] == [1.0, 0.0, 0.5, 1.0, 0.75, None, 1.0]
    assert found[-1] == {"match": 1.0, "judge.fit": 1.0}
    done = invoke("rewards", tmp_path, "--out", tmp_path / "rewards.csv")
    assert done.exit_code != 0
    assert "choose one with --score: judge.fit, match" in done.output
    assert "use judge.fit or match" in invoke("rewards", tmp_path, "--score", "x").output
    assert invoke("rewards", tmp_path, "--score", "match", "--out", tmp_path / "rewards.csv").exit_code == 0
    assert "chores/m/6,true,1" in (tmp_path / "rewards.csv").read_text()
    read = [source.read(file)[0] for file in source.list_runs().files]
    assert {recording.cum_reward for recording in read} == {None}


def test_rewards_of_harbors_verifier_are_read_by_name(tmp_path):
    trial = {"trial_name": "t", "task_name": "towns", "source": "bench", "agent_info": {"name": "solver"}}
    document = {
        "schema_version": "ATIF-v1.6",
        "agent": {"name": "solver"},
        "steps": [{"source": "user", "message": "Do it."}, {"source": "agent", "message": "Done."}],
    }
    for name, rewards in {"one": {"reward": 1.0}, "two": {"reward": 0}, "three": None}.items():
        verified = {"verifier_result": {"rewards": rewards}} if rewards else {}
        write_json(tmp_path, {**trial, "task_name": name, **verified}, f"job/{name}/result.json")
        write_json(tmp_path, document, f"job/{name}/agent/trajectory.json")
    assert invoke("rewards", tmp_path, "--out", tmp_path / "rewards.csv").exit_code == 0
    assert {*(tmp_path / "rewards.csv").read_text().splitlines()[1:]} == {
        "bench/solver/one,true,1",
        "bench/solver/two,false,0",
        "bench/solver/three,,",
    }


def test_a_source_without_rewards_writes_nothing_and_says_so(tmp_path):
    write_chats(tmp_path / "logs", a=None)
    done = invoke("rewards", tmp_path / "logs", "--out", tmp_path / "rewards.csv")
    assert done.exit_code == 2
    assert "no run has a reward or a score" in done.output
    assert not (tmp_path / "rewards.csv").exists()


@pytest.mark.slow
def test_a_build_makes_the_rule_based_row_of_the_file(tmp_path):
    source = open_source(SAMPLE)
    own = {file.trajectory_id: source.reward(file) for file in source.list_runs().files}
    changed, kept = list(own)[:2]
    rewards = tmp_path / "rewards.csv"
    rewards.write_text(f"trajectory_id,reward\n{changed},{1 - own[changed]:g}\n{kept},\n")
    done = invoke(
        *("build", "--source", SAMPLE, "--suite", "sample", "--out", tmp_path / "built"),
        *("--rewards", rewards, "--workers", "1"),
    )
    assert done.exit_code == 0, done.output
    rows = [
        row
        for file in (tmp_path / "built" / "data" / "rewards").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]
    built = {row["trajectory_id"]: (row["cum_reward"], row["rule_based"]) for row in rows}
    assert built[changed] == (1 - own[changed], int(1 - own[changed] > 0.5))
    assert {run: reward for run, (reward, _) in built.items() if run != changed} == {
        run: reward for run, reward in own.items() if run != changed
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,reward\na,1\n", "rewards.csv needs the columns trajectory_id and reward"),
        ("trajectory_id,reward\na/b/c,1\na/b/c,0\n", "line 3: the run is also in line 2; remove one"),
        ("trajectory_id,reward\na/b/c,high\n", "line 2: reward 'high' is not a number; correct it"),
        (
            "trajectory_id,reward\na/b/c,nan\na/b/c,high\n",
            "rewards.csv, line 2: reward 'nan' is not a number; correct it; line 3: the run is also in "
            "line 2; remove one; line 3: reward 'high' is not a number",
        ),
    ],
)
def test_a_file_of_rewards_that_cannot_be_used_is_refused_with_its_line(tmp_path, text, says):
    path = tmp_path / "rewards.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        read_rewards(path)
    done = invoke(
        "build", "--source", SAMPLE, "--suite", "sample", "--out", tmp_path / "x", "--rewards", path
    )
    assert (done.exit_code, says in done.output) == (2, True)


def test_verdicts_in_words_count_as_rewards(tmp_path):
    (tmp_path / "r.csv").write_text("trajectory_id,success\na/b/c,true\na/b/d,No\na/b/e,\n")
    assert sorted(read_rewards(tmp_path / "r.csv").values()) == [0.0, 1.0]


def test_judges_of_a_source_do_not_see_the_rewards(tmp_path):
    write_chats(tmp_path / "logs", a=1)
    done = invoke("inspect-source", tmp_path / "logs", "--json")
    assert "reward" not in json.dumps([json.loads(line) for line in done.stdout.splitlines()])
