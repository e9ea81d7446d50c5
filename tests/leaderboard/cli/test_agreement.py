import csv
import json

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from leaderboard.__main__ import app
from leaderboard.paper.published import load_published_rows
from tests.support.submissions import RELEASED_HEADER, SECRET_ANNOTATOR, verdicts, write_suite

TEST_ID, DEV_ID = "webarena/agent-a/webarena.0", "webarena/agent-a/webarena.100"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command over the synthetic suite, with second annotations of ten trajectories.

    The second annotator differs on success on one trajectory of test and one of dev.
    """
    suite = write_suite(tmp_path)
    (suite / "suite.toml").write_text('labels = "private"\n')
    path = tmp_path / "labels.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    is_doubled = [row for row in rows if row["task_id"] in ("webarena.0", "webarena.1", "webarena.2")]
    is_doubled += [row for row in rows if row["task_id"] in ("webarena.100", "webarena.101")]
    for row in is_doubled:
        name = f"{row['benchmark']}/{row['model_name']}/{row['task_id']}"
        turned = {"Successful": "Unsuccessful", "Unsuccessful": "Successful"}[row["trajectory_success"]]
        changed = {"trajectory_success": turned} if name in (TEST_ID, DEV_ID) else {}
        rows.append({**row, "annotator_name": "Second", **changed})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, RELEASED_HEADER)
        writer.writeheader()
        writer.writerows(rows)
    monkeypatch.setenv("ARB_SUITE", str(suite))
    monkeypatch.setenv("ARB_LABELS", f"csv:{path}")
    monkeypatch.chdir(tmp_path)
    call = lambda *arguments: CliRunner().invoke(app, list(arguments))  # noqa: E731
    call.suite = suite
    return call


def test_agreement_is_given_by_question_with_its_doubles(run):
    found = json.loads(run("agreement", "--split", "test", "--json").stdout)
    # six doubles of test, one differs
    assert (found["doubles"], found["questions"]["success"]["overall"]["percent"]) == (6, 5 / 6)
    assert found["questions"]["success"]["by_pair"][0]["first"] == SECRET_ANNOTATOR
    assert found["questions"]["optimality"]["confusion"][1] == [0, 6, 0, 0]
    both = json.loads(run("agreement", "--json").stdout)
    assert (both["split"], both["doubles"]) == (None, 10)


def test_the_tables_have_the_same_numbers(run):
    shown = run("agreement", "--split", "dev").stdout
    assert "small · dev: 12 annotations of 8 trajectories by 2 annotators" in shown
    assert f"{SECRET_ANNOTATOR} and Second" in shown and "doubles 1-4" in shown
    assert DEV_ID in shown


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_which_test_trajectories_differ_is_printed_only_where_the_labels_are_public(run, as_json):
    for split in (("--split", "test"), ()):
        hidden = run("agreement", *split, *as_json)
        assert hidden.exit_code == 0 and TEST_ID not in hidden.stdout
        assert (DEV_ID in hidden.stdout) == (split == ())
        assert as_json or "The test labels of this suite are hidden" in hidden.stdout
    (run.suite / "suite.toml").write_text('labels = "public"\n')
    assert TEST_ID in run("agreement", "--split", "test", *as_json).stdout


def test_annotations_of_ones_own_are_compared_without_a_label_source(run, monkeypatch):
    assert run("annotations", "labels.csv", "--out", "own-labels.parquet", "--opaque").exit_code == 0
    monkeypatch.setenv("ARB_LABELS", "none")
    found = json.loads(run("agreement", "--annotations", "own-labels.parquet", "--json").stdout)
    pair = found["questions"]["success"]["by_pair"][0]
    assert (pair["first"], pair["second"], pair["agreement"]["percent"]) == (
        "annotator-1",
        "annotator-2",
        0.8,
    )


def test_annotations_are_converted_there_and_back(run, tmp_path):
    done = run("annotations", "labels.csv", "--out", "own-labels.parquet")
    assert done.stdout == "own-labels.parquet: 48 annotations\n"  # 30 + 8 primary ones and 10 doubles
    assert run("annotations", "own-labels.parquet", "--out", "labels-back.csv").exit_code == 0
    assert (tmp_path / "labels-back.csv").read_bytes() == (tmp_path / "labels.csv").read_bytes()


def test_a_bad_file_and_a_bad_name_end_with_one_line(run, tmp_path):
    done = run("annotations", "labels.csv", "--out", "own.xlsx")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: --out own.xlsx: the name must end in .csv or .parquet\n",
    )
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    for command in (("agreement", "--annotations", "bad.csv"), ("annotations", "bad.csv", "--out", "o.csv")):
        done = run(*command)
        assert done.exit_code == 1
        assert done.stderr.startswith(
            "error: the annotations cannot be read: bad.csv: the columns benchmark,"
        )


def test_the_ceiling_scores_second_annotators_and_shows_what_noise_does_to_a_file(run, tmp_path):
    suite = load_suite(run.suite)
    (tmp_path / "mine.jsonl").write_bytes(verdicts(suite, "test", misses=2, false_alarms=2))
    found = json.loads(run("ceiling", "mine.jsonl", "--json").stdout)
    overall = found["labels"]["success"]["overall"]
    assert overall["n"] == 10 and overall["fp"] + overall["fn"] == 2
    assert found["disagreement"]["success"]["overall"] == {"differing": 2, "doubles": 10}
    by_answer = found["disagreement"]["success"]["by_answer"]
    assert sum(each["doubles"] for each in by_answer.values()) == 10
    # 8 TP, 2 FP; the mean of a rate is (differing + 1/2) / (doubles + 1)
    yes, no = ((by_answer[a]["differing"] + 0.5) / (by_answer[a]["doubles"] + 1) for a in ("yes", "no"))
    assert found["bands"]["mine.jsonl"]["precision"] == 0.8
    assert found["bands"]["mine.jsonl"]["mean"] == pytest.approx((8 * (1 - yes) + 2 * no) / 10, abs=0.01)
    shown = run("ceiling", "mine.jsonl").stdout
    assert "mine.jsonl" in shown and "WebArena" in shown
    counts = [f"{by_answer[a]['differing']} of {by_answer[a]['doubles']} {a} answers" for a in ("yes", "no")]
    assert f"The second annotator disagreed with the first on {' and '.join(counts)}." in shown


def test_a_ceiling_needs_doubles_and_labels(run, tmp_path, monkeypatch):
    write_suite(tmp_path / "undoubled")
    monkeypatch.setenv("ARB_LABELS", f"csv:{tmp_path / 'undoubled' / 'labels.csv'}")
    assert "no trajectory of small has two annotators" in run("ceiling").stderr
    monkeypatch.setenv("ARB_LABELS", "none")
    done = run("ceiling")
    assert done.exit_code == 1 and "error: no labels of dev: no labels are configured" in done.stderr


def test_a_bad_prediction_file_ends_the_ceiling_with_its_findings(run, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"trajectory_id": "a/b/c", "success": true}\n')
    done = run("ceiling", "bad.jsonl")
    assert done.exit_code == 1
    assert "bad.jsonl cannot be scored on test" in done.stderr


@pytest.mark.labels
def test_the_official_ceiling_shows_a_band_for_every_published_judge(official_settings):
    found = json.loads(CliRunner().invoke(app, ["ceiling", "--json"]).stdout)
    judges = [row for row in load_published_rows() if row.provenance != "reference"]
    assert set(found["bands"]) == {row.row_id for row in judges}
    known = {row.row_id for row in judges if row.labels["success"].overall.counts}
    assert {row_id for row_id, band in found["bands"].items() if band is not None} == known
    rule_based = found["bands"]["paper/rule-based"]
    # 165 TP and 32 FP; the rule-based row of Table 7. Nearly all at 12 of 105 or 12 of 102.
    assert rule_based["precision"] == pytest.approx(165 / 197)
    assert rule_based["low"] < (165 * 93 / 105 + 32 * 12 / 105) / 197 < rule_based["high"]
