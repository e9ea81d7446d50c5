"""Subsets of a suite by the values of a column: read, scored, printed, and chosen on the board's page."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from arb.__main__ import app
from arb.core.settings import Settings
from arb.core.suite import SuiteError, load_suite
from leaderboard.labels.labels import load_labels
from leaderboard.report import score_verdicts
from leaderboard.score import report_of_version

RUNS = [f"shop/{agent}/shop.{task}" for agent in ("a", "b") for task in (1, 2, 3)]
TOML = 'labels = "public"\nsubsets = ["benchmark", "difficulty", "mobile"]\n[[targets]]\nname = "solved"\n'
YES_NO = 'values = ["yes", "no"]\n'
GRADE = 'type = "ordinal"\nvalues = ["poor", "good"]\n'


def folder_of(tmp_path, toml=TOML + YES_NO, words=("yes", "no")):
    """The agent a solves everything, b nothing. Task 1 is easy, 2 and 3 are hard; one run is on a phone."""
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "suite.toml").write_text(toml)
    rows = [f"{run},dev,{'yes' if run == RUNS[0] else ''}\n" for run in RUNS]
    (folder / "trajectories.csv").write_text("trajectory_id,split,mobile\n" + "".join(rows))
    tasks = "task,benchmark,difficulty\nshop.1,shop,easy\nshop.2,shop,hard\nshop.3,shop, hard\n"
    (folder / "tasks.csv").write_text(tasks)
    labels = [f"{run},{words[0] if '/a/' in run else words[1]}\n" for run in RUNS]
    (folder / "dev_labels.csv").write_text(
        "trajectory_id,annotation,solved\n" + "".join(line.replace(",", ",1,") for line in labels)
    )
    return folder


def test_runs_have_the_values_of_their_own_and_of_their_tasks_columns(tmp_path):
    suite = load_suite(folder_of(tmp_path))
    assert suite.subsets == ("difficulty", "mobile")  # by benchmark there are figures anyway
    tags = {run.trajectory_id: run.tags for run in suite.trajectories}
    assert tags[RUNS[0]] == (("difficulty", "easy"), ("mobile", "yes"))
    assert tags[RUNS[2]] == (("difficulty", "hard"),)
    assert all(run.tags == () for run in load_suite().trajectories)


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ('subsets = "hard"', "subsets: write a list of columns"),
        ('subsets = ["sight"]', "subsets, sight: has 0 values"),
    ],
)
def test_a_subset_needs_a_column_with_values(tmp_path, toml, problem):
    with pytest.raises(SuiteError, match=problem):
        load_suite(folder_of(tmp_path, toml))


@pytest.mark.parametrize(("toml", "metric"), [(YES_NO, "precision"), (GRADE, "accuracy")])
def test_a_score_has_the_figures_of_each_subset(tmp_path, toml, metric):
    words = ("yes", "no") if toml == YES_NO else ("good", "poor")
    suite = load_suite(folder_of(tmp_path, TOML + toml, words))
    labels = load_labels(suite, "dev", Settings())
    score = score_verdicts(np.ones(6, dtype=np.int8), labels, "solved")  # always yes, or good
    assert list(score["by_subset"]) == ["difficulty=easy", "difficulty=hard", "mobile=yes"]
    # Of the easy task one of two runs is solved, of the hard ones two of four; the run on a phone is solved.
    figures = [(cell["n"], cell[metric]) for cell in score["by_subset"].values()]
    assert figures == [(2, 0.5), (4, 0.5), (1, 1.0)]
    again = report_of_version({"labels": {"solved": score}}, 1)["labels"]["solved"]
    assert again["by_subset"].keys() == score["by_subset"].keys()


def test_the_command_prints_each_subset(tmp_path):
    folder = folder_of(tmp_path)
    file = tmp_path / "verdicts.jsonl"
    file.write_text("".join(json.dumps({"trajectory_id": run, "solved": True}) + "\n" for run in RUNS))
    done = CliRunner().invoke(app, ["score", str(file), "--suite", str(folder)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.stdout.splitlines() if "difficulty=hard" in line)
    assert line.split("│")[2].strip() == "4"
