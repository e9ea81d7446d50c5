"""Certificates that do not mislead: thresholds, flips, and judges without a verdict."""

import re

import numpy as np
import pytest

from arb.judges.ensembles.threshold import read_threshold
from arb.judges.ensembles.threshold_selection import (
    NoThresholdError,
    Objective,
    read_aim,
    recommend_threshold,
)
from tests.support.judge_runs import certificate, certify, invoke
from tests.support.judges import scored_run
from tests.support.llm_server.server import LLMServer

# Score, successes, failures. Yes from 0.9 on: 7 of 9 are right; from 0.4 on: 9 of 16. There are 20 successes.
ROWS = ((0.9, 7, 2), (0.4, 2, 5), (0.1, 11, 100))
FOLDS = 5


def five_times(yes_from):
    """Scores, the judge's own verdicts, labels and tasks: the rows once in each part of the tasks."""
    scores, labels, tasks = [], [], []
    for score, successes, failures in ROWS:
        for label in [1] * successes + [0] * failures:
            for fold in range(FOLDS):
                tasks.append(f"{len(tasks) // FOLDS * FOLDS + fold:06}")
                scores.append(score)
                labels.append(label)
    counted = np.array(scores)
    plain = (counted >= yes_from).astype(np.int8)
    return counted, plain, np.array(labels, dtype=np.int8), tasks


def test_a_threshold_that_buys_f1_with_precision_is_not_recommended():
    # F1 from 0.9 on: 14 / (9 + 20) = 0.483; from 0.4 on: 18 / (16 + 20) = 0.5, at a precision of 9 / 16
    with pytest.raises(NoThresholdError) as refused:
        recommend_threshold(*five_times(yes_from=0.9), Objective("f1"))
    said = str(refused.value)
    assert "precision 56.2 %, recall 45.0 % and F1 50.0 % with the best threshold" in said
    assert "precision 77.8 %, recall 35.0 % and F1 48.3 % with no threshold" in said


def test_a_threshold_that_is_the_plain_verdict_again_is_not_recommended():
    with pytest.raises(NoThresholdError, match=r"recommended for precision where recall >= 0\.3"):
        recommend_threshold(*five_times(yes_from=0.9), Objective("precision", "recall", 0.3))


def test_precision_at_a_recall_is_recommended_where_it_beats_the_plain_verdict_on_held_out_tasks():
    found = recommend_threshold(*five_times(yes_from=0.4), read_aim("precision@recall>=0.3"))
    assert found.value == pytest.approx(0.65)
    assert found.held_out["precision"] == pytest.approx(7 / 9) and found.held_out["recall"] == 7 / 20
    assert found.plain["precision"] == 9 / 16


def test_a_threshold_that_reaches_a_recall_which_the_plain_verdict_misses_is_recommended():
    found = recommend_threshold(*five_times(yes_from=0.9), Objective("precision", "recall", 0.4))
    assert (found.held_out["recall"], found.plain["recall"]) == (9 / 20, 7 / 20)


def test_without_enough_tasks_to_hold_some_out_nothing_is_recommended():
    scores, plain, labels, _ = five_times(yes_from=0.4)
    with pytest.raises(NoThresholdError, match="The test needs 5 tasks or more"):
        recommend_threshold(scores, plain, labels, ["one"] * len(scores), Objective("f1"))


@pytest.mark.parametrize(
    "aim",
    ["precision", "recall", "beauty", "f1@recall", "f1@", "f1@recall>0.5", "f1@f1>=0.5", "f1@recall>=70"],
)
def test_an_aim_that_cannot_be_meant_is_refused(aim):
    with pytest.raises(ValueError, match="--aim"):
        read_aim(aim)


def test_the_command_writes_no_threshold_that_is_not_better_and_says_so(tmp_path):
    scored_run(tmp_path / "run", lambda answer: answer == "yes")
    out = tmp_path / "threshold.json"
    done = invoke("threshold", tmp_path / "run", "--out", out)
    assert done.exit_code == 1 and not out.exists()
    assert "no threshold is recommended for f1" in done.output and "Next," not in done.output


def test_the_command_takes_an_aim_and_writes_the_plain_figures_next_to_those_held_out(tmp_path):
    scored_run(tmp_path / "run")
    out = tmp_path / "threshold.json"
    done = invoke("threshold", tmp_path / "run", "--out", out, "--aim", "precision@recall>=0.5")
    assert done.exit_code == 0, done.output
    found = read_threshold(out)
    assert found.figure == "precision where recall >= 0.5"
    assert found.held_out["precision"] == 1.0 > found.plain["precision"]
    assert "the judge's own verdicts: precision" in done.output


def first_is_moody():
    """Yes to everything, but no to the first prompt when it comes again."""
    prompts = []

    def script(request):
        prompts.append(request.key)
        is_no = request.attempt > 0 and request.key == prompts[0]
        return f"<success>{'Unsuccessful' if is_no else 'Successful'}</success>"

    return script


def test_flips_are_shown_next_to_how_often_the_same_prompt_asked_again_flips(tmp_path):
    with LLMServer(first_is_moody()) as server:
        options = ("--probe", "claim", "--repeats", 3, "--max-in-flight", 1)
        assert certify(server, tmp_path, "--limit", 6, *options).exit_code == 0
    (probe,) = certificate(tmp_path)["probes"]
    assert (probe["flipped"]["count"], probe["flipped"]["n"]) == (0, 6)
    # 6 trajectories, asked again twice; of one of them the verdict was another both times
    assert (probe["flipped_again"]["count"], probe["flipped_again"]["n"]) == (2, 12)
    page = (tmp_path / "out" / "certificate.md").read_text()
    (head,) = re.findall(r"^\| change .*$", page, flags=re.MULTILINE)
    names = [each.strip() for each in head.split("|")]
    assert names.index("asked again, %") == names.index("flipped, %") + 1
    assert "; 16.7 % flip when the same question is asked again." in page


def test_without_a_repeat_nothing_stands_next_to_the_flips(tmp_path):
    with LLMServer() as server:
        assert certify(server, tmp_path, "--limit", 6, "--probe", "claim", "--repeats", 1).exit_code == 0
    (probe,) = certificate(tmp_path)["probes"]
    assert probe["flipped_again"] is None


@pytest.mark.parametrize("batch", [(), ("--batch",)])
def test_a_judge_without_a_verdict_gets_no_certificate_and_its_probes_are_not_paid(
    tmp_path, batch, monkeypatch
):
    monkeypatch.setattr("arb.judges.run.batch.POLL_S", 0.01)
    with LLMServer(lambda request: "I would rather not say.") as server:
        done = certify(server, tmp_path, "--limit", 6, "--probe", "claim", *batch)
        assert batch or server.counts.answers.total() == 6  # the probe and the repeats were not asked
    assert done.exit_code == 1, done.output
    assert "no trajectory has a verdict (6 unparsed)" in done.output
    assert not list((tmp_path / "out").glob("certificate.*"))
