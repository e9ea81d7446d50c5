"""Experiments on a suite that asks questions of its own instead of whether the run succeeded."""

import csv
import json
import shutil

import pytest
from typer.testing import CliRunner

from arb.__main__ import app as arb
from arb.core.suite import SHIPPED
from arb.judges.ensembles.combination import read_combination
from arb.judges.ensembles.threshold import read_threshold
from tests.arb.judges.cli.test_combine import MODELS, OTHER, run_of
from tests.support.judge_runs import invoke
from tests.support.judges import scored_run
from tests.support.llm_server.server import LLMServer
from tests.support.step_suite import SOURCE

SOLVED = """labels = "public"
[[targets]]
name = "solved"
title = "Task solved"
values = ["solved", "failed"]
positive = ["solved"]
[[targets]]
name = "polite"
answers = [{ value = "yes" }, { value = "no" }]
"""
GRADED = """labels = "public"
[[targets]]
name = "quality"
type = "ordinal"
values = ["solved", "failed"]
"""


def suite_of(folder, toml=SOLVED):
    """Write a suite of the sample's runs, with the experts' answers about success under another name."""
    folder.mkdir()
    (folder / "suite.toml").write_text(toml)
    shutil.copy(SHIPPED / "sample" / "trajectories.csv", folder)
    target = "solved" if toml is SOLVED else "quality"
    lines = [f"trajectory_id,annotation,annotator,{target}"]
    with (SHIPPED / "sample" / "dev_labels.csv").open() as file:
        for row in csv.DictReader(file):
            answer = "solved" if row["success"] == "true" else "failed"
            lines.append(f"{row['trajectory_id']},{row['annotation']},{row['annotator']},{answer}")
    (folder / "dev_labels.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def suite(tmp_path):
    return suite_of(tmp_path / "ours")


def test_a_combination_is_chosen_on_the_main_target_of_the_suite(tmp_path, suite):
    failures = [place for place, answer in enumerate(run_of(tmp_path / "labels")) if answer == "no"]
    run_of(tmp_path / "a", wrong=failures[:2], models=MODELS, suite="ours")
    run_of(tmp_path / "b", wrong=failures[2:4], models=OTHER, suite="ours")
    out = tmp_path / "both.json"
    done = invoke("combine", tmp_path / "a", tmp_path / "b", "--out", out, "--suite", suite)
    assert done.exit_code == 0, done.output
    # Each judge has two false positives that the other has not, so "all" makes no error.
    found = read_combination(out)
    assert (found.suite, found.rule, found.f1) == ("ours", "all", 1.0)
    assert f"arb judges run {out} --suite {suite} --split test" in done.output


def test_a_threshold_is_chosen_on_the_main_target_of_the_suite(tmp_path, suite):
    scored_run(tmp_path / "run", suite="ours")
    out = tmp_path / "threshold.json"
    done = invoke("threshold", tmp_path / "run", "--out", out, "--suite", suite)
    assert done.exit_code == 0, done.output
    # Successes have the score 0.8 and failures 0.4, so a threshold between them makes no error.
    found = read_threshold(out)
    assert (found.suite, found.value, found.chosen_on["f1"]) == ("ours", pytest.approx(0.6), 1.0)
    assert f"--suite {suite} --split test" in done.output


def test_a_certificate_names_targets_by_their_titles(tmp_path, suite):
    options = ("--split", "dev", "--suite", suite, "--source", SOURCE, "--out", tmp_path / "out")
    done = invoke("certify", "always-successful", *options)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "## Task solved by benchmark and agent, %" in lines
    # All 20 runs of dev are called solved, and 12 are.
    assert any(line.startswith("| Task solved | 60.0 ") for line in lines)
    assert any(line.startswith("| Polite | – |") for line in lines)


@pytest.mark.parametrize("command", ["combine", "threshold"])
def test_the_folder_of_the_suite_has_to_be_named(tmp_path, command):
    for name, models in (("a", MODELS), ("b", OTHER)):
        run_of(tmp_path / name, models=models, suite="ours")
        scored_run(tmp_path / f"scored-{name}", suite="ours")
    runs = [tmp_path / "a", tmp_path / "b"] if command == "combine" else [tmp_path / "scored-a"]
    done = invoke(command, *runs, "--out", tmp_path / "out.json")
    assert done.exit_code == 2
    assert "if ours is a suite of your own, name its folder with --suite" in done.output
    done = invoke(command, *runs, "--out", tmp_path / "out.json", "--suite", "sample")
    assert "--suite sample: the run is on the suite ours; name that suite" in done.output


@pytest.mark.parametrize("command", ["ablate", "combine", "threshold"])
def test_a_suite_whose_main_target_is_not_a_verdict_is_refused_with_the_reason(tmp_path, command):
    suite = suite_of(tmp_path / "ours", GRADED)
    scored_run(tmp_path / "a", suite="ours", models=MODELS, judge="always-successful")
    scored_run(tmp_path / "b", suite="ours", models=OTHER, judge="always-successful")
    runs = {"ablate": ["--split", "dev", "--base-url", "http://127.0.0.1:9/v1"], "combine": ["a", "b"]}
    named = [tmp_path / each if len(each) == 1 else each for each in runs.get(command, ["a"])]
    done = invoke(command, *named, "--out", tmp_path / "out.json", "--suite", suite)
    assert done.exit_code == 2, done.output
    assert "main target is binary and of level run, but quality is ordinal, of level run" in done.output


def test_an_ablation_has_the_targets_of_the_suite_and_suggests_its_best_variant(tmp_path, suite):
    def answer(request):
        return "<success>Successful</success>" if request.images else "nothing"

    with LLMServer(script=answer) as server:
        options = ("--split", "dev", "--model", "m", "--base-url", server.base_url, "--source", SOURCE)
        more = ("--suite", suite, "--cache", tmp_path / "cache", "--out", tmp_path / "out")
        done = invoke("ablate", *options, *more)
    # Only the variants with a screenshot give verdicts: yes to all 20 runs, 12 of which are solved.
    assert done.exit_code == 1, done.output
    rows = [line for line in done.output.splitlines() if "Task solved" in line]
    assert len(rows) == 2 and all("60.0" in row and "100.0" in row and "75.0" in row for row in rows)
    assert "Success " not in done.output
    assert "arb judges run simplified-both --split test" in done.output


def test_the_prediction_file_of_a_run_answers_the_main_target_and_can_be_scored(tmp_path, suite):
    options = ("--split", "dev", "--suite", suite, "--source", SOURCE)
    done = invoke("run", "never-successful", *options, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    assert {(row["solved"], "success" in row) for row in rows} == {("failed", False)}
    done = CliRunner().invoke(
        arb, ["score", str(tmp_path / "run" / "predictions.jsonl"), "--suite", str(suite), "--json"]
    )
    assert done.exit_code == 0, done.output
    # 12 of the 20 runs are solved, and the judge says no to all of them.
    cell = json.loads(done.stdout)["labels"]["solved"]["overall"]
    assert (cell["fn"], cell["tn"]) == (12, 8)
