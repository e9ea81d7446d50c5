"""`estimate` and `annotation-template --for-estimate`, as people call them."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.files import atomic_write
from leaderboard.__main__ import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command beside two judges' verdicts on 40 runs of each of two agents.

    Every fourth run of ``a`` and every second run of ``b`` succeeded; one judge is always right, the other
    calls everything successful.
    """
    monkeypatch.chdir(tmp_path)
    for judge in ("right", "lenient"):
        rows = [
            {"trajectory_id": run_id, "success": judge == "lenient" or succeeded(run_id)}
            for run_id in (f"own/{agent}/task-{number}" for agent in "ab" for number in range(40))
        ]
        atomic_write(Path(f"{judge}.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def succeeded(run_id: str) -> bool:
    """Whether the run succeeded, as the fixture has it."""
    _, agent, task = run_id.split("/")
    return int(task.removeprefix("task-")) % (4 if agent == "a" else 2) == 0


def fill_in(path: Path) -> None:
    """What an annotator does with the template."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["trajectory_id,success"]
    lines += [f"{row['trajectory_id']},{'yes' if succeeded(row['trajectory_id']) else 'no'}" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_drawn_labelled_and_estimated(run, tmp_path):
    options = ("--verdicts", "right.jsonl", "--verdicts", "lenient.jsonl")
    drawn = run("annotation-template", "--for-estimate", "20", *options, "--stratified", "--out", "open.csv")
    assert "open.csv: 40 runs of 2 agents" in drawn.stdout
    record = json.loads((tmp_path / "open.draw.json").read_text())
    # of 40 runs of a 10 succeeded: 5 of 20 drawn runs are from these
    assert [(s["agent"], s["n"], len(s["drawn"])) for s in record["strata"]] == [
        ("a", 30, 15), ("a", 10, 5), ("b", 20, 10), ("b", 20, 10),
    ]  # fmt: skip
    fill_in(tmp_path / "open.csv")
    done = run("estimate", *options, "--labels", "open.csv", "--draw", "open.draw.json", "--json")
    found = json.loads(done.stdout)
    assert found["warnings"] == []
    a, b = found["agents"]
    assert (a["agent"], a["n"], a["labelled"]) == ("a", 40, 20)
    assert a["judge_alone"] == [{"judge": "right", "rate": 0.25}, {"judge": "lenient", "rate": 1.0}]
    assert a["assisted"]["rate"] == pytest.approx(0.25)
    assert b["assisted"]["rate"] == pytest.approx(0.5)
    low, high = a["assisted"]["ci"]
    assert low < 0.25 < high
    assert 0 < a["saved"] < 1
    known = ("--labels", "open.csv", "--draw", "open.draw.json")
    shown = run("estimate", *options, *known, "--agent", "b")
    assert "lenient" in shown.stdout and "50.0" in shown.stdout and "│ a " not in shown.stdout
    assert shown.stderr.startswith("Next, ") and "--agent b --plan" in shown.stderr
    done = run("estimate", *options, *known, "--compare", "b", "a", "--json")
    difference = json.loads(done.stdout)["difference"]
    assert (difference["first"], difference["tasks"], difference["difference"]) == (
        "b",
        40,
        pytest.approx(0.25),
    )
    assert (
        "b - a: 25.0 points on 40 common tasks"
        in run("estimate", *options, *known, "--compare", "b", "a").stdout
    )
    assert (
        "there is no run of c; use one of a, b"
        in run("estimate", *options, *known, "--compare", "a", "c").stderr
    )
    done = run("estimate", "--verdicts", "right.jsonl", *known)
    assert done.exit_code == 1 and "the draw used the verdicts of lenient, which are not given" in done.stderr


def test_a_plan_needs_no_labels_and_is_better_with_some(run, tmp_path):
    done = run("estimate", "--verdicts", "right.jsonl", "--plan", "--half-width", "10", "--json")
    found = json.loads(done.stdout)
    # 1.96^2 * 0.25 = 0.9604: 0.9604 / (0.1^2 + 0.9604 / 40) = 28.2
    assert [(row["labels_only"], row["assisted"]) for row in found["agents"]] == [(29, None)] * 2
    run("annotation-template", "--for-estimate", "12", "--verdicts", "right.jsonl", "--out", "open.csv")
    fill_in(tmp_path / "open.csv")
    shown = run("estimate", "--verdicts", "right.jsonl", "--labels", "open.csv", "--plan").stdout
    assert "Labels needed for an interval of ± 5 points" in shown


def test_annotations_in_the_released_format_are_labels(run, tmp_path):
    header = (
        "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
        "trajectory_optimality,trajectory_looping"
    )
    rows = [
        f"ann,own,task-{number},a,{'Successful' if number % 4 == 0 else 'Unsuccessful'},No,2. Suboptimal,No"
        for number in range(20)
    ]
    (tmp_path / "released.csv").write_text("\n".join([header, *rows]) + "\n")
    done = run("estimate", "--verdicts", "lenient.jsonl", "--labels", "released.csv", "--json")
    found = json.loads(done.stdout)
    assert found["agents"][0]["labelled"] == 20
    assert found["agents"][0]["labels_only"]["rate"] == pytest.approx(5 / 20)
    assert found["agents"][1]["assisted"] == {"rate": None, "ci": None, "ci_on_tasks": None}
    assert any("not recorded" in warning for warning in found["warnings"])
    assert any("b: 0 of 40 runs have a label" in warning for warning in found["warnings"])


def test_everything_that_is_wrong_with_the_files_is_said_at_once(run, tmp_path):
    (tmp_path / "bad.csv").write_text("trajectory_id,success\nown/a/1,maybe\n")
    (tmp_path / "ids.csv").write_text("trajectory_id,success\nown/a/1,yes\ntwo/parts,no\n")
    (tmp_path / "twice.csv").write_text("trajectory_id,success\nown/a/1,yes\nown/a/1,no\n")
    done = run("estimate", "--verdicts", "bad.csv", "--verdicts", "twice.csv", "--labels", "bad.csv")
    assert done.exit_code == 1
    repeated = (
        "twice.csv: trajectory_id: 1 row has a trajectory that is also in an earlier row (row 3: 'own/a/1')"
    )
    assert "bad.csv: " in done.stderr and repeated in done.stderr
    done = run("estimate", "--verdicts", "ids.csv", "--labels", "ids.csv")
    assert (
        "1 row has an id that is not of the form <benchmark>/<agent>/<task_id> (row 3: 'two/parts')"
        in done.stderr
    )
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "twice.csv")
    assert done.exit_code == 1 and repeated in done.stderr
    (tmp_path / "others.csv").write_text("trajectory_id,success\nown/c/1,yes\nown/c/2,yes\n")
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "others.csv")
    assert done.exit_code == 1 and "no labelled run has a verdict: 'own/c/1' is labelled, " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--verdicts", "right.jsonl"), "needs labels of some runs"),
        (("--verdicts", "right.jsonl", "--plan", "--agent", "c"), "there is no run of c; use one of a, b"),
        (
            ("--verdicts", "right.jsonl", "--labels", "right.jsonl", "--draw", "right.jsonl"),
            "record of a draw",
        ),
    ],
)
def test_a_call_that_cannot_be_answered_says_what_to_give(run, arguments, message):
    done = run("estimate", *arguments)
    assert done.exit_code != 0
    assert message in done.stderr


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"format": "draw-1"}', '{"format": "draw-1", "strata": [1]}', "\x00"]
)
def test_a_record_that_is_none_is_refused_in_a_line(run, tmp_path, content):
    (tmp_path / "draw.json").write_text(content)
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "right.jsonl", "--draw", "draw.json")
    assert done.exit_code == 1
    assert "draw.json: " in done.stderr and "Traceback" not in done.stderr


def test_a_template_is_not_written_over_and_its_options_belong_together(run, tmp_path):
    call = ("annotation-template", "--for-estimate", "5", "--verdicts", "right.jsonl", "--out", "open.csv")
    assert run(*call).exit_code == 0
    assert "already exists" in run(*call).stderr
    done = run("annotation-template", "--for-estimate", "5", "--out", "new.csv")
    assert "needs judges' verdicts" in done.stderr
    done = run("annotation-template", "--annotator", "Ada", "--stratified", "--out", "new.csv")
    assert "only work with --for-estimate" in done.stderr
    assert not (tmp_path / "new.csv").exists()


def test_labels_and_verdicts_may_have_any_ids_and_columns(run, tmp_path):
    # run-0 to run-39; every fourth succeeded, and the judge is right on all; ten runs are labelled
    rows = [(f"run-{n}", n % 4 == 0) for n in range(40)]
    (tmp_path / "labels.csv").write_text(
        "run,label,comment\n" + "".join(f"{name},{'pass' if ok else 'fail'},\n" for name, ok in rows[:10])
    )
    (tmp_path / "judge.csv").write_text("run,verdict\n" + "".join(f"{name},{int(ok)}\n" for name, ok in rows))
    done = run("estimate", "--verdicts", "judge.csv", "--labels", "labels.csv", "--json")
    assert done.exit_code == 0, done.output
    (agent,) = json.loads(done.stdout)["agents"]
    assert (agent["agent"], agent["n"], agent["labelled"]) == ("all runs", 40, 10)
    assert agent["judge_alone"] == [{"judge": "judge", "rate": 0.25}]
    assert agent["labels_only"]["rate"] == pytest.approx(0.3)  # runs 0, 4 and 8 of ten
    draw = ("annotation-template", "--for-estimate", "5", "--verdicts", "judge.csv", "--out", "draw.csv")
    assert run(*draw).exit_code == 0


def test_a_table_without_clear_columns_is_refused_with_the_columns_that_are_needed(run, tmp_path):
    (tmp_path / "labels.csv").write_text("run,first,second\nown/a/task-1,yes,no\n")
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "labels.csv")
    assert done.exit_code == 1
    assert (
        "labels.csv: trajectory_id: this column is missing (the file has 'run', 'first', 'second')"
        in done.stderr
    )
