"""Labels of steps and parts: read from plain files, scored by level, and ranked by nothing else."""

import re
from pathlib import Path

import numpy as np
import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.write import template
from arb.core.settings import Settings
from arb.core.suite import SuiteError, load_suite
from leaderboard.labels.annotations import AnnotationsInvalid, parse_released, write_released
from leaderboard.labels.labels import (
    LabelsInvalid,
    load_annotations,
    load_labels,
    read_annotation_file,
)
from leaderboard.report import score_report

SUITE = """
labels = "public"
[[targets]]
name = "final"
values = ["1", "0", "-1"]
positive = ["1"]
main = "balanced_accuracy"
[[targets]]
name = "verdict"
level = "step"
values = ["1", "0", "-1"]
errors = ["-1"]
metrics = ["accuracy", "first_error_accuracy"]
"""
RUNS = ("qa/a/1", "qa/a/2", "qa/b/1", "qa/b/2")
STEPS = {"qa/a/1": "1 2", "qa/a/2": "1 2 10", "qa/b/1": "1", "qa/b/2": "1 2"}
LABELS = {
    "qa/a/1": ("1", "1 1"), "qa/a/2": ("0", "1 0 -1"), "qa/b/1": ("-1", "-1"), "qa/b/2": ("1", "1 0"),
}  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "qa"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE)
    (folder / "trajectories.csv").write_text(
        "trajectory_id,split\n" + "".join(f"{run},test\n" for run in RUNS)
    )
    rows = [f"{run},{step}\n" for run in RUNS for step in reversed(STEPS[run].split())]
    (folder / "items.csv").write_text("trajectory_id,step\n" + "".join(rows))
    return load_suite(folder)


@pytest.fixture
def labels(suite, tmp_path):
    lines = ["trajectory_id,step,final,verdict,annotator"]
    for run, (final, steps) in LABELS.items():
        lines.append(f"{run},,{final},,Ada")
        lines += [f"{run},{s},,{v},Ada" for s, v in zip(STEPS[run].split(), steps.split(), strict=True)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines) + "\n")
    return load_labels(suite, "test", Settings(labels=f"csv:{path}"))


def test_the_items_of_a_split_are_its_runs_and_then_their_steps_in_order(suite):
    items = suite.items("test")
    assert [item.trajectory_id for item in items[:4]] == list(RUNS)
    assert [item.step for item in items[4:9]] == ["1", "2", "1", "2", "10"]  # 10 comes after 2
    assert {item.level for item in items[4:]} == {"step"}


def test_labels_are_of_items_and_missing_on_other_levels(suite, labels):
    # Of final, only 1 is positive. Steps have no final label: 4 runs and 8 steps.
    assert labels.primary["final"].tolist() == [1, 0, 0, 1] + [-1] * 8
    # The places of 1, 0 and -1 among the values are 0, 1 and 2; runs have no label of a step.
    assert labels.primary["verdict"].tolist() == [-1] * 4 + [0, 0, 0, 1, 2, 2, 0, 1]


def test_a_report_has_the_metrics_of_each_target(suite, labels):
    rows = [f'{{"trajectory_id": "{run}", "final": "{final}"}}' for run, (final, _) in LABELS.items()]
    said = {"qa/a/1": "1 -1", "qa/a/2": "1 1 -1", "qa/b/1": "-1", "qa/b/2": "1 1"}
    for run, steps in STEPS.items():
        for step, verdict in zip(steps.split(), said[run].split(), strict=True):
            rows.append(f'{{"trajectory_id": "{run}", "step": {step}, "verdict": {verdict}}}')
    table, findings = read_predictions("\n".join(rows).encode(), ReadingLimits(targets=suite.targets))
    checked = check(table, findings, suite, "test")
    assert checked.acceptable and [each.code for each in checked.findings] == []
    report = score_report(checked.aligned, labels, n_resamples=20)
    assert report["coverage"] == 1
    assert report["labels"]["final"]["overall"]["balanced_accuracy"] == 1
    step = report["labels"]["verdict"]["overall"]
    # Right are 1 of 2, 2 of 3, 1 of 1 and 1 of 2 steps; the first error is right in the last three runs.
    assert (step["n"], step["accuracy"], step["first_error_accuracy"]) == (8, 5 / 8, 3 / 4)
    assert report["labels"]["verdict"]["by_agent"]["b"]["accuracy"] == pytest.approx(2 / 3)
    assert report["labels"]["verdict"]["by_agent"]["b"]["first_error_accuracy"] == 1


def test_a_file_may_answer_one_level_only(suite):
    rows = "".join(f'{{"trajectory_id": "{run}", "final": "1"}}\n' for run in RUNS)
    checked = check(*read_predictions(rows.encode(), ReadingLimits(targets=suite.targets)), suite, "test")
    assert checked.acceptable
    assert checked.aligned.codes("final").tolist() == [1] * 4 + [-1] * 8
    only_one = check(
        *read_predictions(rows.splitlines()[0].encode(), ReadingLimits(targets=suite.targets)), suite, "test"
    )
    (finding,) = [each for each in only_one.findings if each.code == "missing_id"]
    assert finding.message.startswith("trajectory_id: 3 of 4 trajectories of test have no row")


def test_a_template_has_a_row_for_each_item(suite):
    text = template(suite, "test", "csv").decode().splitlines()
    assert text[0] == "trajectory_id,step,final,verdict"
    assert text[1] == "qa/a/1,,," and text[5] == "qa/a/1,1,," and len(text) == 1 + 4 + 8


def test_plain_labels_are_read_back_as_written(suite, labels, tmp_path):
    text = (tmp_path / "labels.csv").read_text()
    read = parse_released(text, suite.targets)
    assert parse_released(write_released(read, questions=suite.targets), suite.targets) == read
    with pytest.raises(AnnotationsInvalid, match="row 2, final: not one of 1, 0, -1, unsure"):
        parse_released(text.replace("qa/a/1,,1", "qa/a/1,,2"), suite.targets, is_strict=True)


def test_one_annotator_may_answer_a_step_once_and_different_questions_in_several_rows(suite, tmp_path):
    path = tmp_path / "mine.csv"
    rows = "trajectory_id,step,final,verdict,annotator\nqa/a/1,,1,,Ada\nqa/a/1,1,,1,Ada\nqa/a/1,2,,1,Ada\n"
    path.write_text(rows + "qa/a/1,1,,1,Bob\nqa/a/1,1,,1,\nqa/a/1,1,,1,\n")
    assert len(read_annotation_file(path, suite, is_strict=True)) == 6
    path.write_text(rows + "qa/a/1,1,,0,Ada\n")
    with pytest.raises(LabelsInvalid, match="rows 3 and 5: one annotator answers the same question twice"):
        read_annotation_file(path, suite, is_strict=True)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("qa/a/9,1\n", "row 2, trajectory_id 'qa/a/9': not in trajectories.csv"),
        ("qa/a/1,\n", "row 2: write either a step or a part"),
        ("qa/a/1,last\n", "row 2, step 'last': write the step's number"),
        ("qa/a/1,1\nqa/a/1,1\n", "row 3: an earlier row has the same step or part"),
    ],
)
def test_a_wrong_row_of_items_is_named(suite, tmp_path, rows, problem):
    folder: Path = tmp_path / "qa"
    (folder / "items.csv").write_text("trajectory_id,step\n" + rows)
    with pytest.raises(SuiteError, match=re.escape(problem)):
        load_suite(folder)


def test_every_problem_of_what_a_person_wrote_about_steps_is_named_at_once(suite, tmp_path):
    (tmp_path / "ada.csv").write_text(
        "trajectory_id,step,part,annotator,final,verdict\n"
        "qa/a/1,,,ada,9,\n"  # 9 is not an answer
        "qa/a/1,1,,ada,1,1\n"  # final is about runs
        "qa/a/1,7,,ada,,1\n"  # the run has the steps 1 and 2
        "qa/z/1,1,,ada,,1\n"
    )
    with pytest.raises(LabelsInvalid) as refused:
        load_annotations(suite, Settings(), file=tmp_path / "ada.csv", is_strict=True)
    assert str(refused.value) == (
        "ada.csv: row 2, final: not one of 1, 0, -1, unsure; "
        "row 3, final: asks about a run, and the row is about a step; leave the cell empty; "
        "row 4, step '7': the suite does not ask about it; row 5: 'qa/z/1' is not in the suite qa"
    )


def test_a_suite_with_private_labels_scores_only_targets_that_noise_protects(tmp_path):
    folder = tmp_path / "qa"
    folder.mkdir()
    (folder / "trajectories.csv").write_text("trajectory_id,split\na/b/1,test\n")
    (folder / "suite.toml").write_text(SUITE.replace('"public"', '"private"'))
    with pytest.raises(SuiteError, match="target verdict: its figures cannot be protected yet") as refused:
        load_suite(folder)
    assert "target final" not in str(refused.value)


def test_test_labels_do_not_lie_in_the_folder_of_a_suite_that_hides_them(suite, tmp_path):
    folder = tmp_path / "qa"
    (folder / "test_labels.csv").write_text("trajectory_id,final\nqa/a/1,1\n")
    assert load_suite(folder).test_labels_path == folder / "test_labels.csv"
    (folder / "suite.toml").write_text('labels = "private"\n')
    with pytest.raises(SuiteError, match=r"test_labels\.csv: the suite's labels are private; move the file"):
        load_suite(folder)


def test_a_suite_of_scores_reads_numbers(tmp_path):
    folder = tmp_path / "points"
    folder.mkdir()
    (folder / "suite.toml").write_text('labels = "public"\n[[targets]]\nname = "points"\ntype = "score"\n')
    (folder / "trajectories.csv").write_text("trajectory_id,split\na/b/1,test\na/b/2,test\n")
    (tmp_path / "labels.csv").write_text("trajectory_id,points\na/b/1,2.5\na/b/2,unsure\n")
    found = load_labels(load_suite(folder), "test", Settings(labels=f"csv:{tmp_path / 'labels.csv'}"))
    assert np.array_equal(found.primary["points"], [2.5, np.nan], equal_nan=True)
