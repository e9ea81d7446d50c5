"""Labels of runs and steps that several people annotated, by the rule of each target."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from arb.core.annotation import Annotation
from arb.core.settings import Settings
from arb.core.suite import load_dev_labels, load_suite
from arb.core.suites.targets import TargetsInvalid, default_targets, parse_targets
from leaderboard.__main__ import app
from leaderboard.labels.aggregation import aggregate, answer_by_rule
from leaderboard.labels.labels import load_labels, make_label_set, read_annotation_file

TOML = """
labels = "public"
[[targets]]
name = "grade"
type = "ordinal"
values = ["poor", "fair", "good", "great"]
aggregate = "median"
[[targets]]
name = "points"
type = "score"
aggregate = "median"
[[targets]]
name = "kind"
values = ["a", "b", "c"]
aggregate = "adjudicated"
[[targets]]
name = "first_said"
values = ["a", "b"]
[[targets]]
name = "helps"
level = "step"
values = ["yes", "no"]
aggregate = "majority"
"""
RUNS = ("shop/agent/shop.1", "shop/agent/shop.2")
HEADER = "trajectory_id,step,annotator,grade,points,kind,first_said,helps\n"
ADA = HEADER + f"{RUNS[0]},,ada,good,1,a,a,\n{RUNS[0]},1,ada,,,,,yes\n{RUNS[0]},2,ada,,,,,yes\n"
BOB = HEADER + f"{RUNS[0]},,bob,poor,4,b,b,\n{RUNS[0]},1,bob,,,,,no\n{RUNS[0]},2,bob,,,,,no\n"
EVE = HEADER + f"{RUNS[0]},1,eve,,,,,no\n{RUNS[1]},,eve,great,2,unsure,b,\n"


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "suite.toml").write_text(TOML)
    (folder / "trajectories.csv").write_text(
        "trajectory_id,split\n" + "".join(f"{run},dev\n" for run in RUNS)
    )
    (folder / "items.csv").write_text(f"trajectory_id,step\n{RUNS[0]},1\n{RUNS[0]},2\n")
    return load_suite(folder)


@pytest.fixture
def answers(suite, tmp_path):
    found = []
    for name, text in (("ada.csv", ADA), ("bob.csv", BOB), ("eve.csv", EVE)):
        (tmp_path / name).write_text(text)
        found += read_annotation_file(tmp_path / name, suite, name, is_strict=True)
    return found


LEFT_OUT = (
    f"{RUNS[0]}: kind",  # a and b, and nobody decided
    f"{RUNS[0]}, step 2: helps",  # one yes, one no
    f"{RUNS[1]}: kind",  # one person, who is unsure
)


def values_in(suite, annotations):
    """The label of each target as numbers: of the two runs, then of the two steps."""
    return {name: list(column) for name, column in make_label_set(suite, "dev", annotations).primary.items()}


def test_each_rule_makes_the_label_of_its_target_and_every_answer_stays(suite, answers):
    found = aggregate(answers, suite.targets)
    labels = values_in(suite, found.annotations)
    # The lower one of poor (0) and good (2); the only answer, great (3).
    assert labels["grade"][:2] == [0, 3]
    assert labels["points"][:2] == [2.5, 2.0]  # (1 + 4) / 2; the only answer
    assert labels["kind"][:2] == [-1, -1]
    assert labels["first_said"][:2] == [0, 1]  # of Ada, who was first; of Eve
    assert labels["helps"][2:] == [0, -1]  # no, no, yes; a tie
    assert found.names_left_out() == LEFT_OUT
    assert [row for row in found.annotations if not row.is_decision] == answers


def test_open_labels_are_the_first_answers_if_asked_and_stay_so(suite, answers):
    found = aggregate(answers, suite.targets, with_open=True)
    labels = values_in(suite, found.annotations)
    assert (labels["kind"][:2], labels["helps"][2:]) == ([0, -1], [0, 1])  # Eve is unsure
    assert found.names_left_out() == (f"{RUNS[1]}: kind",)
    assert aggregate(found.annotations, suite.targets).annotations == found.annotations


def test_a_row_of_decisions_has_precedence_over_the_rules(suite, answers):
    decided = Annotation(RUNS[0], "decision", {"kind": "c", "grade": "good"})
    found = aggregate([decided, *answers], suite.targets)
    assert found.annotations[0].answers == {"kind": "c", "grade": "good", "points": "2.5"}
    assert found.names_left_out() == LEFT_OUT[1:]
    again = aggregate(found.annotations, suite.targets)  # rows by a rule stay, too
    assert (again.annotations, again.names_left_out()) == (found.annotations, LEFT_OUT[1:])


def test_nothing_changes_if_the_first_answer_is_the_label_of_every_target(suite, answers):
    as_today = [replace(target, aggregate="first") for target in suite.targets]
    assert aggregate(answers, as_today).annotations == tuple(answers)
    assert all(target.aggregate == "first" for target in load_suite().targets)


def test_files_of_three_people_become_one_label_file_and_dev_labels(suite, answers, tmp_path):
    def run(*arguments):
        folder = str(tmp_path / "ours")
        return CliRunner().invoke(app, [*arguments, "--suite", folder], env={"COLUMNS": "200"})

    files = [str(tmp_path / f"{name}.csv") for name in ("ada", "bob", "eve")]
    done = run("annotations", *files, "--out", str(tmp_path / "raw.csv"), "--opaque")
    assert (done.exit_code, "left out" in done.stderr) == (0, False)
    done = run("annotations", *files, "--out", str(tmp_path / "labels.csv"), "--aggregate")
    listed = [line.rpartition("label: ")[2] for line in done.stderr.splitlines() if "left out" in line]
    assert (done.exit_code, tuple(listed)) == (0, LEFT_OUT)
    expected = values_in(suite, aggregate(answers, suite.targets).annotations)
    settings = Settings(labels=f"csv:{tmp_path / 'labels.csv'}")
    for name, column in load_labels(suite, "dev", settings).primary.items():
        np.testing.assert_array_equal(column, expected[name])
    done = run("dev-labels", "--annotations", str(tmp_path / "raw.csv"))
    assert (done.exit_code, done.stderr.count("left out")) == (0, 3)
    rows = [row for row in load_dev_labels(suite) if row.is_decision and row.of_step is None]
    assert [row.answers["grade"] for row in rows] == ["poor", "great"]


@pytest.mark.parametrize(
    ("rule", "question", "answers", "wanted"),
    [
        ("majority", "success", ("yes", "no", "no"), "no"),
        ("majority", "success", ("yes", "no"), None),
        ("majority", "success", ("yes", "yes", "unsure", "no"), None),  # 2 of 4 is not more than half
        ("majority", "success", ("unsure",), None),  # one person is no majority
        ("majority", "success", ("yes",), "yes"),  # nobody differs
        ("majority", "optimality", ("1", "2", "4"), None),
        ("median", "optimality", ("1", "2", "4"), "2"),
        ("median", "optimality", ("4", "1", "1", "4"), "1"),  # the lower one of 1 and 4
        ("median", "optimality", ("4", "unsure", "2", "4"), "4"),  # 2, 4, 4
        ("median", "optimality", ("unsure", "unsure", "2"), "unsure"),
        ("median", "optimality", ("unsure", "2"), None),  # 1 of 2 is not more than half
        ("median", "success", ("yes", "no", "no"), "no"),
        ("median", "success", ("yes", "no"), None),
        ("median", "points", ("10", "9", "2.5"), "9"),  # as numbers, not as texts
        ("median", "points", ("0.1", "0.2"), "0.15"),
        ("median", "points", ("1", "unsure", "2"), "1.5"),
        ("adjudicated", "success", ("yes", "yes", "no"), None),
        ("adjudicated", "success", ("yes", "yes"), "yes"),
        ("adjudicated", "success", ("unsure", "unsure"), None),
    ],
)
def test_a_rule_decides_from_the_answers_or_leaves_the_label_open(rule, question, answers, wanted):
    targets = (*default_targets(), *parse_targets([{"name": "points", "type": "score"}]))
    asked = next(each for each in targets if each.name == question)
    assert answer_by_rule(rule, asked, answers) == wanted
    assert answer_by_rule(rule, asked, answers[::-1]) == wanted


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ({"values": ["yes", "no"], "aggregate": "median"}, "majority for type binary"),
        ({"values": ["a", "b"], "aggregate": "median"}, "majority for type classes"),
        ({"type": "score", "aggregate": "majority"}, "median for type score"),
    ],
)
def test_a_rule_that_does_not_fit_the_answers_is_refused(target, advice):
    with pytest.raises(TargetsInvalid, match=rf"target 1 \(tone\), aggregate: write {advice}"):
        parse_targets([{"name": "tone", **target}])
