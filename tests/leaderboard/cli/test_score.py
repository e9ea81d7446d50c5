import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import arb
from arb.__main__ import app as arb_app
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
    done = CliRunner().invoke(arb_app, ["score", "scores.jsonl", "--split", "dev", "--policy", "lax"])
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


def in_arb(*arguments: str):
    return CliRunner().invoke(arb_app, list(arguments))


def test_score_and_compare_are_commands_of_their_own_with_dev_as_default(run):
    content = verdicts(run.suite, "dev")
    run(content)
    Path("other.jsonl").write_bytes(verdicts(run.suite, "dev", success=True))
    short = json.loads(in_arb("score", "scores.jsonl", "--json").stdout)
    assert short["format"] == 1
    chosen = in_arb("score", "scores.jsonl", "--split", "dev", "--json")
    assert short == json.loads(chosen.stdout)
    found = json.loads(in_arb("compare", "scores.jsonl", "other.jsonl", "--json").stdout)
    assert found["format"] == 1
    assert (found["split"], found["label"], found["judges"]) == ("dev", "success", ["scores", "other"])
    (pair,) = found["pairs"]
    same = arb.compare("scores.jsonl", "other.jsonl", metric="accuracy").iloc[0]
    assert pair["accuracy"]["difference"] == same["difference"] > 0
    assert pair["p_accuracy"] == same["p_accuracy"]
    assert "scores - other" in in_arb("compare", "scores.jsonl", "other.jsonl").stdout


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Labels of 12 runs, of which every third failed; ``a`` errs on run 0, ``b`` always says yes."""
    monkeypatch.chdir(tmp_path)
    rows = [(f"run-{n:02}", n % 3 > 0, n // 2) for n in range(12)]
    Path("labels.csv").write_text(
        "run,human,task,note\n"
        + "".join(f"{run},{'pass' if ok else 'fail'},{task},x\n" for run, ok, task in rows)
    )
    for name in "ab":
        lines = [
            {"trajectory_id": run, "success": name == "b" or ok or run == "run-00"} for run, ok, _ in rows
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_file_is_scored_against_any_table_with_the_same_report(tables):
    done = in_arb("score", "a.jsonl", "--labels", "labels.csv", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    cell = found["labels"]["success"]["overall"]
    # 8 of 12 runs succeeded, and of the 4 failures one is called a success
    assert [cell[name] for name in ("tp", "fp", "fn", "tn", "n")] == [8, 1, 0, 3, 12]
    assert (found["suite"], found["split"], found["coverage"]) == ("labels.csv", "", 1)
    same = arb.score("a.jsonl", labels="labels.csv").loc["success", "overall", "overall"]
    assert same["precision"] == cell["precision"] == pytest.approx(8 / 9)
    shown = in_arb("score", "a.jsonl", "--labels", "labels.csv")
    assert "88.9" in shown.stdout and "Side effect" not in shown.stdout and "│ all " not in shown.stdout
    assert "arb validate --labels labels.csv --verdicts a.jsonl --disagreements" in shown.stderr


def test_ids_of_three_parts_name_the_task_the_benchmark_and_the_agent(tables):
    for name in ("labels.csv", "a.jsonl"):
        path = Path(name)
        path.write_text(path.read_text().replace("run-0", "web/one/t").replace("run-1", "shop/two/t"))
    cells = json.loads(in_arb("score", "a.jsonl", "--labels", "labels.csv", "--json").stdout)["labels"][
        "success"
    ]
    assert {name: cell["n"] for name, cell in cells["by_benchmark"].items()} == {"shop": 2, "web": 10}
    assert set(cells["by_agent"]) == {"one", "two"}


def test_judges_are_compared_on_any_table(tables):
    call = ("compare", "a.jsonl", "b.jsonl", "--labels", "labels.csv")
    (pair,) = json.loads(in_arb(*call, "--group", "task", "--json").stdout)["pairs"]
    # a: 8 / 9; b: 8 / 12. a alone is right on runs 3, 6 and 9: p = 2 / 2^3
    assert pair["precision"]["difference"] == pytest.approx(8 / 9 - 8 / 12)
    assert pair["p_accuracy"] == 0.25
    by_row = json.loads(in_arb(*call, "--json").stdout)["pairs"][0]["accuracy"]["ci"]
    assert by_row != pair["accuracy"]["ci"]  # six tasks are resampled instead of twelve rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("score", "a.jsonl", "--labels", "labels.csv", "--suite", "sample"), "used without a suite"),
        (("score", "a.jsonl", "--group", "task"), "columns can be chosen only with --labels"),
        (("compare", "a.jsonl"), "give at least two prediction files"),
        (("compare", "a.jsonl", "b.jsonl", "--label", "mood"), "use one of success, side_effect, repetition"),
        (("compare", "a.jsonl", "b.jsonl", "--labels", "labels.csv", "--label", "note"), "row 2 has 'x'"),
        (("score", "a.jsonl", "--labels", "a.jsonl", "--id", "task"), "has no column task; correct --id"),
    ],
)  # fmt: skip
def test_a_call_that_makes_no_sense_says_what_to_change(tables, call, message):
    done = in_arb(*call)
    assert done.exit_code in (1, 2) and message in done.stderr and "Traceback" not in done.output
