"""`judges combine`: from runs on dev to a frozen combination that runs."""

import json

import pytest

from arb.judges.ensembles.combination import read_combination
from tests.support.judge_runs import invoke, options, predictions
from tests.support.judges import scored_run
from tests.support.llm_server.server import LLMServer

MODELS = {"judge": {"model": "m", "provider": "any"}}
OTHER = {"judge": {"model": "n", "provider": "any"}}


def run_of(folder, judge="always-successful", wrong=(), **configuration):
    """Write a run over dev of the sample, and return the labels; verdicts at ``wrong`` contradict them."""
    answers = scored_run(folder, judge=judge, **{"prompts_hash": "", **configuration})
    path = folder / "judgments.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for place, (line, answer) in enumerate(zip(lines, answers, strict=True)):
        line["answer"] = {"success": (answer == "yes") != (place in wrong)}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return answers


def combine(*arguments):
    return invoke("combine", *arguments)


@pytest.fixture
def server():
    with LLMServer() as running:
        yield running


@pytest.fixture
def failures(tmp_path):
    """The places of the trajectories that the experts call failures."""
    return [place for place, answer in enumerate(run_of(tmp_path / "labels")) if answer == "no"]


def test_the_best_pair_is_frozen_and_the_optimism_of_the_search_is_shown(tmp_path, failures):
    run_of(tmp_path / "a", wrong=failures[:2], models=MODELS)
    run_of(tmp_path / "b", wrong=failures[2:4], models=OTHER)
    out = tmp_path / "both.json"
    done = combine(tmp_path / "a", tmp_path / "b", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    # Each judge has two false positives that the other has not: with "all" no error is left. "all" is the
    # best on every four fifths of the tasks too, so nothing is due to the search.
    found = read_combination(out)
    assert (found.rule, found.f1, found.held_out_f1, found.candidates) == ("all", 1.0, 1.0, 2)
    assert [part.models for part in found.judges] == [{"judge": "any:m"}, {"judge": "any:n"}]
    assert json.loads(done.stdout)["optimism"] == 0.0
    text = combine(tmp_path / "a", tmp_path / "b", "--out", out).output
    assert "0.0 points of F1 come from having chosen the best of 2 combinations" in text


def test_the_best_combination_with_the_reward_is_named_but_not_written(tmp_path, failures):
    run_of(tmp_path / "a", wrong=failures[:2], models=MODELS)
    run_of(tmp_path / "b", wrong=[failures[0], failures[2]], models=OTHER)
    run_of(tmp_path / "rule", "rule-based", wrong=failures[3:5])
    out = tmp_path / "both.json"
    done = combine(tmp_path / "a", tmp_path / "b", tmp_path / "rule", "--out", out)
    assert done.exit_code == 0, done.output
    # "all" of the models shares the error at failures[0]; each model shares none with the reward
    assert "all of always-successful (m), rule-based: 100.0 on these runs" in done.output
    assert "needs the environment's reward" in done.output
    assert [part.judge for part in read_combination(out).judges] == ["always-successful"] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "test"}, "b: is a run on test; name a run on dev"),
        ({"samples": 3}, "name a plain run"),
        ({"threshold": {"value": 0.5}}, "name a plain run"),
        ({"suite": "other"}, "the runs are on the suites other, sample"),
        ({"judge": "mine"}, "mine is not in `judges list`"),
        ({"models": MODELS}, "named twice with the same models"),
    ],
)
def test_a_run_that_cannot_be_combined_is_refused_with_the_reason(tmp_path, changes, message):
    run_of(tmp_path / "a", models=MODELS)
    run_of(tmp_path / "b", **{"models": OTHER, **changes})
    done = combine(tmp_path / "a", tmp_path / "b", "--out", tmp_path / "both.json")
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "both.json").exists()


def test_no_combination_is_chosen_on_test(tmp_path):
    run_of(tmp_path / "a", models=MODELS)
    done = combine(tmp_path / "a", tmp_path / "a", "--split", "test", "--out", tmp_path / "both.json")
    assert done.exit_code == 2
    assert "--split test: a combination that is chosen on test cannot be ranked" in done.output


def test_a_combination_of_real_runs_runs_on_test_with_its_own_models(tmp_path, server):
    for judge in ("simplified-axtree", "simplified-screenshot"):
        done = invoke("run", *options(server, tmp_path, "--out", tmp_path / judge, judge=judge))
        assert done.exit_code == 0, done.output
    out = tmp_path / "both.json"
    runs = (tmp_path / "simplified-axtree", tmp_path / "simplified-screenshot")
    assert (done := combine(*runs, "--out", out)).exit_code == 0, done.output
    given = ("--base-url", server.base_url, "--suite", "sample", "--split", "test", "--limit", 3)
    files = ("--cache", tmp_path / "cache", "--out", tmp_path / "run")
    done = invoke("run", out, *given, *files)
    assert done.exit_code == 0, done.output
    known = json.loads((tmp_path / "run" / "run.json").read_text())["configuration"]
    assert known["combination"]["chosen_on"] == "dev"
    assert {role: model["model"] for role, model in known["models"].items()} == {
        "1.judge": "m",
        "2.judge": "m",
    }
    assert len(predictions(tmp_path)) == 3
    refused = invoke("run", out, *given, *files, "--model", "other")
    assert "--model" in refused.output and "is a frozen combination" in refused.output
