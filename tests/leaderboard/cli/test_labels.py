"""`annotation-template`, `annotations` of several files and `dev-labels`, as people call them."""

import csv

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_dev_labels, load_suite
from leaderboard.__main__ import app
from tests.support.annotations import success_of
from tests.support.submissions import SECRET_ANNOTATOR, write_suite

ANSWERS = {
    "trajectory_success": "Successful", "trajectory_side_effect": "No",
    "trajectory_optimality": "4. Completely Optimal", "trajectory_looping": "Unsure",
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command over the synthetic suite: 30 trajectories of test, 8 of dev."""
    monkeypatch.setenv("ARB_SUITE", str(write_suite(tmp_path)))
    monkeypatch.setenv("ARB_LABELS", "none")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill_in(path, **changes):
    """What an annotator does with the template: one answer to everything."""
    rows = [{**row, **ANSWERS, **changes} for row in rows_of(path)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_template_has_every_trajectory_by_task_and_no_answer(run, tmp_path):
    done = run("annotation-template", "--annotator", "Ada Å", "--out", "ada.csv")
    assert done.stdout == "ada.csv: 38 trajectories for Ada Å\n"
    rows = rows_of(tmp_path / "ada.csv")
    assert {row["annotator_name"] for row in rows} == {"Ada Å"}
    assert [row["model_name"] for row in rows[:4]] == ["agent-a", "agent-b"] * 2
    assert {row[column] for row in rows for column in ANSWERS} == {""}


def test_a_share_of_a_split_is_drawn_by_its_seed(run, tmp_path):
    options = ("--annotator", "Bob", "--split", "test", "--share", "0.2")
    drawn = {}
    for name, seed in (("one.csv", "1"), ("again.csv", "1"), ("two.csv", "2")):
        assert "6 trajectories" in run("annotation-template", *options, "--seed", seed, "--out", name).stdout
        drawn[name] = (tmp_path / name).read_bytes()
    assert drawn["one.csv"] == drawn["again.csv"] != drawn["two.csv"]
    tasks = {row["task_id"] for row in rows_of(tmp_path / "one.csv")}
    assert not any(task.startswith("webarena.10") for task in tasks)  # those are dev


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--annotator", "Ada", "--share", "0"), "the share must be above 0 and at most 1"),
        (("--annotator", "Ada", "--share", "1.5"), "the share must be above 0 and at most 1"),
        (("--annotator", " "), "--annotator: give the annotator's name, on one line"),
        (("--annotator", "Ada\nBob"), "--annotator: give the annotator's name, on one line"),
    ],
)
def test_what_cannot_be_drawn_ends_with_one_line(run, tmp_path, options, said):
    done = run("annotation-template", *options, "--out", "new.csv")
    assert done.exit_code == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "new.csv").exists()


def test_a_template_that_may_be_filled_in_is_not_written_over(run, tmp_path):
    (tmp_path / "ada.csv").write_text("hours of work")
    done = run("annotation-template", "--annotator", "Ada", "--out", "ada.csv")
    assert done.exit_code == 2 and "already exists and may contain answers" in done.stderr
    assert (tmp_path / "ada.csv").read_text() == "hours of work"


def test_a_template_that_is_not_filled_in_is_refused_cell_by_cell(run, tmp_path):
    run("annotation-template", "--annotator", "Ada", "--split", "dev", "--out", "ada.csv")
    fill_in(tmp_path / "ada.csv", trajectory_looping="")
    done = run("annotations", "ada.csv", "--out", "all.csv")
    assert done.exit_code == 1 and not (tmp_path / "all.csv").exists()
    for number in range(2, 10):  # a header and eight trajectories
        assert f"row {number}, trajectory_looping: not one of Yes, No, Unsure" in done.stderr


def test_files_are_joined_and_the_first_one_gives_the_primary_annotation(run, tmp_path):
    for name, share in (("ada", "1"), ("bob", "0.5")):
        run("annotation-template", "--annotator", name, "--share", share, "--out", f"{name}.csv")
    fill_in(tmp_path / "ada.csv")
    fill_in(tmp_path / "bob.csv", trajectory_success="Unsuccessful")
    done = run("annotations", "bob.csv", "ada.csv", "--opaque", "--out", "all.csv")
    assert done.stdout == "all.csv: 57 annotations\n"  # 38 and half of them
    assert "ada" not in (tmp_path / "all.csv").read_text()
    assert run("dev-labels", "--annotations", "all.csv").exit_code == 0
    suite = load_suite(tmp_path / "small")
    by_bob = {said.trajectory_id for said in load_dev_labels(suite) if said.annotation == 2}
    primary = {said.trajectory_id: success_of(said) for said in load_dev_labels(suite) if said.is_primary}
    assert primary == {
        t.trajectory_id: "no" if t.trajectory_id in by_bob else "yes" for t in suite.split("dev")
    }


def test_one_persons_row_in_two_files_is_refused(run, tmp_path):
    (tmp_path / "again_labels.csv").write_bytes((tmp_path / "labels.csv").read_bytes())
    done = run("annotations", "labels.csv", "again_labels.csv", "--out", "all.csv")
    assert done.exit_code == 1 and not (tmp_path / "all.csv").exists()
    assert f"{SECRET_ANNOTATOR} has rows in both labels.csv and again_labels.csv" in done.stderr


def test_one_persons_two_rows_in_one_file_are_refused_with_their_numbers(run, tmp_path):
    run("annotation-template", "--annotator", "Ada", "--split", "dev", "--out", "ada.csv")
    fill_in(tmp_path / "ada.csv")
    lines = (tmp_path / "ada.csv").read_text().splitlines()  # a header and eight rows
    (tmp_path / "ada.csv").write_text("\n".join([*lines, lines[2].replace("Ada", " Ada "), ""]))
    done = run("annotations", "ada.csv", "--out", "all.csv")
    assert done.exit_code == 1 and not (tmp_path / "all.csv").exists()
    assert "rows 3 and 10: one annotator answers the same question twice; remove one" in done.stderr
    (tmp_path / "ada.csv").write_text("\n".join([*lines, lines[2].replace("Ada", "Bob"), ""]))
    assert run("annotations", "ada.csv", "--out", "all.csv").stdout == "all.csv: 9 annotations\n"


def test_dev_labels_are_written_without_test_and_not_over_others(run, tmp_path):
    done = run("dev-labels", "--annotations", "labels.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("8 annotations of 8 of 8 dev trajectories, none of test\n")
    path = tmp_path / "small" / "dev_labels.csv"
    written = path.read_bytes()
    assert written.count(b"\n") == 9 and SECRET_ANNOTATOR.encode() not in written
    again = run("dev-labels", "--annotations", "labels.csv")
    assert again.exit_code == 2 and "already exists; use --replace to overwrite it" in again.stderr
    rows = (tmp_path / "labels.csv").read_text().replace("Unsuccessful", "Unsure")
    (tmp_path / "corrected_labels.csv").write_text(rows)
    assert run("dev-labels", "--annotations", "corrected_labels.csv", "--replace").exit_code == 0
    assert path.read_bytes() != written


def test_annotations_of_test_alone_give_no_dev_labels(run, tmp_path):
    run("annotation-template", "--annotator", "Ada", "--split", "test", "--out", "ada.csv")
    fill_in(tmp_path / "ada.csv")
    done = run("dev-labels", "--annotations", "ada.csv")
    assert (done.exit_code, done.stderr) == (
        1, "error: ada.csv has no annotation of a dev trajectory of small\n"
    )  # fmt: skip
    assert not (tmp_path / "small" / "dev_labels.csv").exists()
