"""Thresholds: chosen on dev for a stated aim, frozen in a file, applied to scores."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.ensembles.threshold import (
    Threshold,
    read_threshold,
    score_settings,
    with_threshold,
    write_threshold,
)
from arb.judges.ensembles.threshold_selection import (
    NoThresholdError,
    Objective,
    candidates,
    choose_threshold,
    read_aim,
)
from arb.judges.run.config import check_score_settings
from arb.judges.types import Answer, OptionsError, View
from tests.support.judges import scored_run

# Successes have 0.9, 0.6, 0.3, failures 0.7, 0.2; one success has no verdict.
SCORES = np.array([0.9, 0.7, 0.6, 0.3, 0.2, np.nan])
LABELS = np.array([1, 0, 1, 1, 0, 1], dtype=np.int8)
TASKS = list("abcdef")
FROZEN = Threshold("sample", "dev", "abc", "judge", "f1", 0.5, {"n": 6}, None, {"judge": "judge"}, {})


F1 = Objective("f1")


def chosen(aim=F1, scores=SCORES, labels=LABELS):
    return choose_threshold(scores, labels, TASKS[: len(scores)], aim)


def test_a_threshold_lies_between_two_scores_or_takes_them_all():
    assert candidates(np.array([0.2, np.nan, 0.6, 0.2, 1.0])) == [0.0, pytest.approx(0.4), pytest.approx(0.8)]


def test_the_threshold_with_the_best_f1_is_chosen_and_no_verdict_is_a_no():
    # yes from 0.25: TP 3 FP 1 FN 1, F1 = 6/8; from 0: TP 3 FP 2, 6/9; from 0.45: TP 2 FP 1 FN 2, 4/7
    found = chosen()
    assert found.value == pytest.approx(0.25)
    cell = found.chosen_on
    assert (cell["tp"], cell["fp"], cell["fn"], cell["tn"], cell["no_verdict"]) == (3, 1, 1, 1, 1)
    assert cell["f1"] == pytest.approx(0.75)


def test_precision_is_maximised_as_far_as_the_recall_allows():
    assert chosen(Objective("precision", "recall", 0.25)).value == pytest.approx(0.8)  # 1 of 1, recall 1/4
    # a recall of a half needs two of the four: from 0.65 on 2 of 3, from 0.25 on 3 of 4, which is better
    assert chosen(Objective("precision", "recall", 0.5)).value == pytest.approx(0.25)


def test_of_equal_thresholds_the_higher_precision_counts_then_the_higher_threshold():
    scores, labels = np.array([0.8, 0.6, 0.4, 0.2]), np.array([1, 0, -1, 0], dtype=np.int8)
    # from 0.7, the row at 0.4 is of an unsure label and changes nothing
    assert chosen(scores=scores, labels=labels).value == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("scores", "labels", "aim", "said"),
    [
        (np.full(4, np.nan), [1, 0, 1, 0], Objective("f1"), "same score, or no score"),
        (np.full(4, 0.5), [1, 0, 1, 0], Objective("f1"), "same score, or no score"),
        (SCORES[:4], [1, 1, 1, 1], Objective("f1"), "all labels of these runs are equal"),
        (
            SCORES,
            LABELS,
            Objective("precision", "recall", 0.9),
            "highest recall is 0.750",
        ),  # 3 of 4
    ],
)
def test_where_none_can_be_chosen_the_message_says_why(scores, labels, aim, said):
    with pytest.raises(NoThresholdError, match=said):
        chosen(aim, scores, np.array(labels, dtype=np.int8))


@given(st.lists(st.tuples(st.none() | st.sampled_from([0.1, 0.4, 0.7, 1.0]), st.booleans()), min_size=1))
def test_no_other_threshold_has_a_better_f1(rows):
    scores = np.array([np.nan if score is None else score for score, _ in rows])
    labels = np.array([label for _, label in rows], dtype=np.int8)
    try:
        best = choose_threshold(scores, labels, ["a task"] * len(rows), Objective("f1"))
    except NoThresholdError:
        return
    assert best.held_out is None  # one task has no five parts
    for value in (0.0, 0.1, 0.4, 0.7, 1.0):
        tp = sum(label and score is not None and score >= value for score, label in rows)
        wrong = sum((score is not None and score >= value) != label for score, label in rows)
        assert not tp or 2 * tp / (2 * tp + wrong) <= best.chosen_on["f1"] + 1e-12


def test_held_out_figures_are_of_tasks_that_the_choice_did_not_see():
    # 20 tasks. On 16 the score is right (0.9 and 0.1); on every fifth it says the contrary of the label.
    codes = np.arange(20)
    labels = (codes % 2).astype(np.int8)
    scores = np.where((codes % 5 == 0) ^ (labels == 1), 0.9, 0.1)
    found = choose_threshold(scores, labels, [f"{code:02}" for code in codes], Objective("f1"))
    assert found.value == pytest.approx(0.5)
    # In each part the threshold is 0.5 as well, and 2 of its 10 positives (tasks 5, 15) are missed.
    assert (found.held_out["tp"], found.held_out["fn"], found.held_out["fp"]) == (8, 2, 2)
    # With scores that mean nothing, the choice flatters itself and the held-out figures do not.
    noise = np.random.default_rng(5).random(20)
    flattered = choose_threshold(noise, labels, [f"{code:02}" for code in codes], Objective("f1"))
    assert flattered.held_out["f1"] < flattered.chosen_on["f1"]


@pytest.mark.parametrize(
    ("typed", "aim"),
    [
        ("f1", "f1"),
        ("precision@recall>=0.7", "precision where recall >= 0.7"),
        (" recall @ precision >= .8 ", "recall where precision >= 0.8"),
    ],
)
def test_an_aim_says_what_it_is(typed, aim):
    assert str(read_aim(typed)) == aim


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "t.json: has format 2, but this program reads formats up to 1; upgrade it"),
        ({"format": ...}, "is not a threshold file"),
        ({"value": "high"}, "value: Input should be a valid number"),
        ({"value": 1.5}, "value: is not from 0 to 1"),
        ({"configuration": []}, "configuration: Input should be"),
        ({"judge": ...}, "judge: Field required"),
    ],
)
def test_a_file_that_is_no_threshold_is_refused_with_the_reason(tmp_path, changes, said):
    path = tmp_path / "t.json"
    write_threshold(path, FROZEN)
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))
    with pytest.raises(OptionsError, match=said):
        read_threshold(path)


class Sure:
    """A judge with an answer of its own, that asks nobody."""

    name, inputs, calls, source, models, prompts_hash, wants = "judge", "", "0", "", {}, "", None

    def __init__(self, answer):
        self.answer = answer

    def ask(self, view):
        yield from ()
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("ok", False, score=0.5), Answer("ok", True, score=0.5)),  # from 0.5 on
        (Answer("ok", True, score=0.49), Answer("ok", False, score=0.49)),
        (Answer("ok", True), Answer("ok", True, score=1.0)),  # a bare yes is sure of itself
        (Answer("ok", False), Answer("ok", False, score=0.0)),
        (Answer("refused"), Answer("refused")),
    ],
)
def test_the_score_decides_and_no_verdict_stays_none(answer, expected):
    with pytest.raises(StopIteration) as ended:
        next(with_threshold(Sure(answer), FROZEN).ask(View("", (), ())))
    assert ended.value.value == expected


def test_a_threshold_is_for_the_judge_and_the_models_that_made_the_scores(tmp_path):
    other = Sure(Answer("refused"))
    other.name = "another"
    with pytest.raises(OptionsError, match="chosen for the scores of judge, not of another"):
        with_threshold(other, FROZEN)
    run = {"judge": "judge", "split": "dev", "models": {"judge": {"model": "m", "logprobs": True}}}
    path = tmp_path / "t.json"
    write_threshold(path, replace(FROZEN, configuration=score_settings(run)))
    check_score_settings(path, {**run, "split": "test", "data_hash": "of other runs"})
    for changed in ({"samples": 3}, {"models": {"judge": {"model": "n", "logprobs": True}}}):
        with pytest.raises(OptionsError, match="with other options"):
            check_score_settings(path, {**run, **changed})


def run_folder(folder, **configuration):
    """A run over the sample's dev in which every success has the score 0.8, every failure 0.4."""
    answers = scored_run(folder, **configuration)
    return [answer == "yes" for answer in answers if answer != "unsure"]


def test_the_command_chooses_on_the_labels_of_dev_and_says_what_it_froze(tmp_path):
    truths = run_folder(tmp_path / "run")
    out = tmp_path / "frozen" / "threshold.json"
    command = ["threshold", str(tmp_path / "run"), "--out", str(out), "--aim", "f1@recall>=0.5"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = read_threshold(out)
    assert (found.suite, found.split, found.judge) == ("sample", "dev", "judge")
    assert (found.figure, found.value) == ("f1 where recall >= 0.5", pytest.approx(0.6))
    assert len(found.label_version) == 12
    assert (found.chosen_on["tp"], found.chosen_on["n"]) == (sum(truths), len(truths))
    assert "a score of 0.6 or more is a success" in done.output


@pytest.mark.parametrize("wrong", [{"split": "test"}, {"threshold": {"value": 0.5}}, {"suite": "another"}])
def test_a_run_on_test_with_a_threshold_or_of_another_suite_is_refused(tmp_path, wrong):
    run_folder(tmp_path / "run", **wrong)
    done = CliRunner().invoke(
        app, ["threshold", str(tmp_path / "run"), "--out", str(tmp_path / "t.json"), "--suite", "sample"]
    )
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    "command", [["threshold"], ["reparse", "--form", "tags"], ["export", "--released-layout"]]
)
@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        ("run.json", r'"configuration": .*', '"configuration": {}}', "run.json: "),
        ("judgments.jsonl", '"success"', '"extra": 1, "success"', "judgments.jsonl, line 1: "),
    ],
)
def test_a_damaged_run_is_refused_with_the_name_of_the_file(tmp_path, command, name, old, new, place):
    run_folder(tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    facts = {"judge": {"name": "judge", "asks_models": True}, **facts}
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    path = tmp_path / "run" / name
    path.write_text(re.sub(old, new, path.read_text(), count=1))
    done = CliRunner().invoke(app, [*command, str(tmp_path / "run"), "--out", str(tmp_path / "out")])
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    assert f"{tmp_path / 'run'}/{place}is damaged" in done.output


def test_a_run_without_scores_is_refused(tmp_path):
    run_folder(tmp_path / "run")
    path = tmp_path / "run" / "judgments.jsonl"
    path.write_text(path.read_text().replace(', "score": 0.8', "").replace(', "score": 0.4', ""))
    done = CliRunner().invoke(app, ["threshold", str(tmp_path / "run"), "--out", str(tmp_path / "t.json")])
    assert done.exit_code == 2
    assert "--samples or --logprobs" in done.output
