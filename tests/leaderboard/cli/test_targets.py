"""The commands on suites whose targets have other names, levels and types than AgentRewardBench's."""

import json

import pytest
from typer.testing import CliRunner

import arb
from arb.__main__ import app as arb_app
from leaderboard.__main__ import app
from tests.support.target_suites import (
    PRIVATE,
    PUBLIC,
    RUNS,
    STEPS,
    folder_of,
    private_file,
    private_labels,
    public_file,
    public_labels,
)

ITEMS = "trajectory_id,step\n" + "".join(f"{run},{step}\n" for run in RUNS for step in STEPS)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that calls a command on the private or the public suite, and files of both."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, toml, items, labels in (
        ("private", PRIVATE, "", private_labels()),
        ("public", PUBLIC, ITEMS, public_labels()),
    ):
        folder_of(tmp_path / name, toml, items)
        (tmp_path / name / "labels.csv").write_text(labels)
    (tmp_path / "private" / "good.jsonl").write_bytes(private_file(false_alarms=2))
    (tmp_path / "private" / "poor.jsonl").write_bytes(private_file(false_alarms=20))
    (tmp_path / "public" / "good.jsonl").write_bytes(public_file(wrong=1, blind=2))
    (tmp_path / "public" / "poor.jsonl").write_bytes(public_file(wrong=30, blind=30))

    def call(kind, *words):
        environment = {"ARB_SUITE": f"{kind}/small", "ARB_LABELS": f"csv:{kind}/labels.csv"}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return CliRunner().invoke(arb_app if words[0] in ("score", "compare") else app, list(words))

    return call


def test_scores_and_comparisons_have_the_metrics_of_each_target(run):
    said = run("private", "score", "private/good.jsonl", "--split", "test").output
    assert "Solved" in said and "30/2/0/28" in said and "Polite" in said
    said = run("public", "score", "public/good.jsonl", "--split", "test").output
    assert "weighted kappa" in said.lower() and "First error" in said and "98.3" in said  # 59 of 60 runs

    both = ("compare", "{}/good.jsonl", "{}/poor.jsonl", "--split", "test", "--json")
    found = json.loads(run("private", *(word.format("private") for word in both)).stdout)
    # 30 of 32 against 30 of 50
    assert found["label"] == "solved"
    assert found["pairs"][0]["precision"]["difference"] == pytest.approx(30 / 32 - 30 / 50)
    done = run("public", *(word.format("public") for word in both[:-1]))
    assert "Quality on small test" in done.output and "MAE" in done.output
    done = run("public", *(word.format("public") for word in both), "--label", "act")
    assert json.loads(done.stdout)["pairs"][0]["first_error_accuracy"]["difference"] == pytest.approx(14 / 60)
    done = run("public", *(word.format("public") for word in both), "--label", "solved")
    assert done.exit_code == 2 and "use one of quality, act" in done.output


def test_labels_agreement_and_the_ceiling_follow_the_targets(run):
    said = run("public", "labels").output
    assert "Quality" in said and "90 of 120" in said  # of 120 steps, 90 are right
    report = json.loads(run("public", "agreement", "--split", "test", "--json").stdout)
    assert {name: found["overall"]["pairs"] for name, found in report["questions"].items()} == {
        "quality": 60, "act": 120,
    }  # fmt: skip
    assert (report["trajectories"], report["questions"]["act"]["overall"]["left_out"]) == (180, 0)
    found = json.loads(run("public", "ceiling", "--json").stdout)
    assert found["labels"]["quality"]["overall"]["weighted_kappa"] == 1
    assert list(found["disagreement"]["quality"]["by_answer"]) == ["1", "2", "3"]
    assert "0 of 90 yes answers and 0 of 30 no answers" in run("public", "ceiling").output


def test_an_estimate_is_of_the_outcome_of_the_suite(run, tmp_path):
    files = ("--verdicts", "private/good.jsonl", "--labels", "private/labels.csv", "--json")
    agents = json.loads(run("private", "estimate", *files).stdout)["agents"]
    assert {each["agent"]: each["labels_only"]["rate"] for each in agents} == {
        "agent-a": 0.5,
        "agent-b": 0.5,
    }
    drawn = ("annotation-template", "--for-estimate", "10", "--verdicts", "private/good.jsonl")
    assert "Write solved, failed or unsure" in run("private", *drawn, "--out", "sheet.csv").output
    assert (tmp_path / "sheet.csv").read_text().startswith("trajectory_id,solved\n")


def test_what_needs_a_binary_target_says_so(run):
    done = run("public", "estimate", "--verdicts", "public/good.jsonl", "--labels", "public/labels.csv")
    assert done.exit_code == 2 and "rated by a binary target of level run" in done.stderr
    assert "quality (ordinal, run), act (binary, step)" in done.stderr
    done = run("public", "calibrate", "public/good.jsonl", "--split", "test")
    assert "the main target quality is ordinal" in done.stderr
    done = run("public", "ceiling", "public/good.jsonl")
    assert "the main target quality is not binary" in done.stderr


def test_notebooks_follow_the_targets_too(run):
    run("public", "labels")
    files = ("public/good.jsonl", "public/poor.jsonl")
    table = arb.compare(*files, split="test")
    assert (
        table.attrs["label"] == "quality"
        and table["weighted_kappa_first"][0] > table["weighted_kappa_second"][0]
    )
    scores = arb.score(files[0], split="test")
    assert scores.loc[("quality", "overall", "overall"), "mae"] == 1 / 60
    assert scores.loc[("act", "overall", "overall"), "tp"] == 90
