"""Thresholds: chosen on dev by a stated figure, frozen in a file, applied to scores."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from judges.__main__ import app
from judges.base import Answer, View
from judges.command_options import OptionsError
from judges.thresholds import Scored, choose_threshold, decided, read_threshold, thresholded, to_json

# label true at 0.9, 0.6, 0.3; false at 0.7, 0.2; one success without a score
RUNS = [
    Scored(0.9, True), Scored(0.7, False), Scored(0.6, True), Scored(0.3, True), Scored(0.2, False),
    Scored(None, True),
]  # fmt: skip


def chosen(runs=RUNS, figure="f1", min_recall=0.0):
    return choose_threshold(runs, figure, min_recall, "judge", "suite", "version")


def test_the_threshold_with_the_best_f1_is_chosen():
    # yes from 0.3: TP 3 FP 1 FN 1, F1 = 6/8 = 0.75; from 0.6: 4/7; from 0.2: 6/9; from 0.9: 2/5
    found = chosen()
    assert (found.value, found.tp, found.fp, found.fn, found.tn) == (0.3, 3, 1, 1, 1)
    assert found.f1 == pytest.approx(0.75)


def test_precision_is_maximised_as_far_as_the_recall_allows():
    assert chosen(figure="precision").value == 0.9  # 1 of 1, recall 1/4
    # recall of a half needs TP 2: from 0.6 on 2 of 3, from 0.3 on 3 of 4, which is better
    assert chosen(figure="precision", min_recall=0.5).value == 0.3


@pytest.mark.parametrize(
    ("runs", "min_recall", "said"),
    [
        ([Scored(None, True)], 0.0, "no run has a score"),
        ([Scored(0.5, False)], 0.0, "no run is a success"),
        (RUNS, 0.9, "reaches a recall of 0.9"),  # 3 of 4 at most
    ],
)
def test_where_none_can_be_chosen_the_reason_is_said(runs, min_recall, said):
    with pytest.raises(OptionsError, match=said):
        chosen(runs, min_recall=min_recall)


@given(st.lists(st.builds(Scored, st.none() | st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_no_other_threshold_has_a_better_f1(runs):
    try:
        found = chosen(runs)
    except OptionsError:
        return
    for value in {run.score for run in runs if run.score is not None}:
        said = [run.score is not None and run.score >= value for run in runs]
        tp = sum(s and run.label for s, run in zip(said, runs, strict=True))
        wrong = sum(s != run.label for s, run in zip(said, runs, strict=True))
        assert 2 * tp / (2 * tp + wrong) <= found.f1 + 1e-12


def test_a_file_is_read_back_and_strange_ones_are_refused(tmp_path):
    path = tmp_path / "threshold.json"
    path.write_bytes(to_json(chosen()))
    assert read_threshold(path) == chosen()
    for text in ("", "[]", "{}", json.dumps({**json.loads(to_json(chosen())), "value": "x"})):
        path.write_text(text)
        with pytest.raises(OptionsError, match="--threshold"):
            read_threshold(path)


@pytest.mark.parametrize(
    ("answer", "success"),
    [
        (Answer("ok", False, score=0.8), True),
        (Answer("ok", True, score=0.79), False),
        (Answer("ok", True, score=None), False),
    ],
)
def test_the_score_decides_and_no_score_is_a_no(answer, success):
    assert decided(answer, 0.8).success is success


def test_what_is_no_verdict_stays_none():
    assert decided(Answer("refused", score=0.9), 0.5) == Answer("refused", score=0.9)


class Sure:
    """A judge with a score, that asks nobody."""

    name, inputs, calls, source, models, prompts_hash = "judge", "nothing", "0", "test", {}, ""

    def ask(self, view):
        return Answer("ok", False, score=0.5)
        yield


def test_a_judge_with_its_threshold_answers_by_it_and_another_judge_is_refused():
    judge = thresholded(Sure(), chosen())  # from 0.3 on
    with pytest.raises(StopIteration) as ended:
        next(judge.ask(View("", (), ())))
    assert ended.value.value.success is True
    other = type("Other", (Sure,), {"name": "other"})()
    with pytest.raises(OptionsError, match="chosen for 'judge', not for 'other'"):
        thresholded(other, chosen())


def run_folder(folder, split="dev", **configuration):
    folder.mkdir()
    told = {"suite": "sample", "split": split, "judge": "judge", **configuration}
    (folder / "run.json").write_text(json.dumps({"format": 1, "configuration": told}))
    from dataset_script.suite import load_dev_labels, load_suite

    suite = load_suite("sample")
    labels = [each for each in load_dev_labels(suite) if each.is_primary and each.success is not None]
    lines = [
        {"trajectory_id": each.trajectory_id, "state": "ok", "calls": [],
         "answer": {"success": True, "score": 0.8 if each.success else 0.4}}
        for each in labels
    ]  # fmt: skip
    (folder / "judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return sum(each.success for each in labels), len(labels)


def test_the_command_chooses_on_the_labels_of_dev(tmp_path):
    positives, runs = run_folder(tmp_path / "run")
    out = tmp_path / "threshold.json"
    done = CliRunner().invoke(app, ["threshold", str(tmp_path / "run"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    found = read_threshold(out)
    assert (found.value, found.tp, found.fp, found.fn, found.tn) == (0.8, positives, 0, 0, runs - positives)


@pytest.mark.parametrize("wrong", [{"split": "test"}, {"threshold": {"value": 0.5}}])
def test_a_run_on_test_or_with_a_threshold_is_refused(tmp_path, wrong):
    run_folder(tmp_path / "run", **wrong)
    done = CliRunner().invoke(app, ["threshold", str(tmp_path / "run"), "--out", str(tmp_path / "t.json")])
    assert done.exit_code == 2
    assert "dev" in done.output
