import json

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from leaderboard.__main__ import app
from tests.support.submissions import verdicts, write_suite


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs the command over the synthetic suite; its dev split has 8 trajectories."""
    suite = write_suite(tmp_path)
    monkeypatch.setenv("ARB_SUITE", str(suite))
    monkeypatch.setenv("ARB_LABELS", f"csv:{tmp_path / 'labels.csv'}")
    monkeypatch.chdir(tmp_path)

    def call(content: bytes, *arguments: str):
        (tmp_path / "scores.jsonl").write_bytes(content)
        return CliRunner().invoke(app, ["calibrate", "scores.jsonl", *arguments])

    call.suite = load_suite(suite)
    return call


def test_the_scores_of_a_file_are_evaluated_against_the_labels(run):
    rows = [json.loads(line) for line in verdicts(run.suite, "test").splitlines()]
    # The 10 successes have a score of 0.9, the 20 failures 0.1.
    scored = [{**row, "score": 0.9 if row["success"] else 0.1} for row in rows]
    content = "\n".join(json.dumps(row) for row in scored).encode()
    done = run(content, "--split", "test", "--json")
    found = json.loads(done.stdout)
    assert (found["n"], found["brier"], found["auc"]) == (30, pytest.approx(0.01), 1.0)
    half = next(t for t in found["thresholds"] if t["at"] == 0.5)
    assert (half["precision"], half["recall"]) == (1.0, 1.0)
    shown = run(content, "--split", "test").stdout
    assert "Brier 0.010" in shown and "highest F1" in shown


def test_too_few_scores_are_an_error_with_what_to_do(run):
    for content in (verdicts(run.suite, "dev"), verdicts(run.suite, "dev", score=0.5)):  # dev has 8 rows
        done = run(content, "--split", "dev")
        assert done.exit_code == 1
        assert "fewer than 20 rows of dev have a score; add the column `score`" in done.stderr


def test_an_unknown_policy_is_one_line_with_the_allowed_values(run):
    run(b"")
    done = CliRunner().invoke(app, ["score", "scores.jsonl", "--split", "dev", "--policy", "lax"])
    assert done.exit_code == 2
    assert "'lax' is not one of 'strict', 'published'" in done.stderr and "Traceback" not in done.output


def test_a_bad_file_ends_with_its_findings(run):
    done = run(b'{"trajectory_id": "a/b/c", "success": true, "score": 3}\n', "--split", "test")
    assert done.exit_code == 1
    assert "score" in done.stderr and "Traceback" not in done.stderr


def test_without_labels_the_reason_is_printed(run, monkeypatch):
    content = verdicts(run.suite, "test", score=0.5)
    monkeypatch.setenv("ARB_LABELS", "none")
    done = run(content, "--split", "test")
    assert done.exit_code == 1
    assert "the labels of test cannot be read" in done.stderr
