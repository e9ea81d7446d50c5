"""Annotations of steps: saved per step, complete only with all of them, published, imported and compared."""

import io
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest

from arb.core.annotation import Annotation
from arb.core.settings import Settings
from leaderboard.labels.annotations import (
    parse_parquet,
    parse_released,
    template,
    write_parquet,
    write_released,
)  # fmt: skip
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import Draft, discussion_items
from tests.submissions.conftest import invoke
from tests.submissions.labels.conftest import ADA, BOB, EVE, GRACE
from tests.support.step_suite import FINAL, OTHER, STEP, STUBBORN, write_part_suite, write_step_suite


@pytest.fixture
def annotation(tmp_path) -> AnnotationService:
    """Ada and Bob both have STUBBORN, which has steps 1, 2 and 3."""
    suite = write_step_suite(tmp_path / "steps")
    settings = Settings(
        suite=str(suite), state_dir=tmp_path / "state", data_dir=tmp_path / "none", labels="records"
    )
    found = AnnotationService(SubmissionsApp(settings))
    for name in ("ada", "bob"):
        found.invite(name, GRACE)
    found.assign_trajectories([STUBBORN], 1.0, 1, GRACE)
    return found


def said(moves: str, final: str | None = "1", is_done: bool = True) -> Draft:
    """Answers about the steps 1, 2 and 3; a dash is no answer."""
    steps = {str(n): {"move": None if move == "-" else move} for n, move in enumerate(moves.split(), 1)}
    return Draft({"final": final}, is_done=is_done, steps=steps)


def test_answers_about_steps_are_saved_one_by_one(annotation):
    first = annotation.save(STUBBORN, said("1 - -", None, is_done=False), 0, ADA)
    annotation.save(STUBBORN, said("1 0 -", None, is_done=False), first, ADA)
    (saved,) = annotation.now().saved.values()
    assert saved.answered_steps == {"1": {"move": "1"}, "2": {"move": "0"}}
    assert (
        annotation.save(STUBBORN, said("1 0 -", None, is_done=False), saved.sequence, ADA) == saved.sequence
    )


def test_an_annotation_is_finished_only_with_all_steps_that_the_suite_asks_about(annotation):
    with pytest.raises(SubmissionError, match=r"not answered yet: 2 of 3 steps \(2, 3\)"):
        annotation.save(STUBBORN, said("1 - -"), 0, ADA)
    annotation.save(STUBBORN, said("1 unsure -1"), 0, ADA)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ({"4": {"move": "1"}}, "steps: a step is unknown"),
        ({"2": {"move": "secret"}}, "step 2, move: use one of 1, 0, -1, unsure"),
        ({"2": {"final": "1"}}, "step 2: a question is unknown; the questions are move"),
    ],
)
def test_wrong_answers_about_steps_are_refused(annotation, steps, problem):
    with pytest.raises(SubmissionError, match=problem) as refused:
        annotation.save(STUBBORN, Draft({"final": "1"}, steps=steps), 0, ADA)
    assert "secret" not in str(refused.value)


def test_a_label_version_has_the_steps_and_agreement_compares_them(annotation):
    annotation.save(STUBBORN, said("1 0 -1"), 0, ADA)
    annotation.save(STUBBORN, said("1 1 -1"), 0, BOB)
    found = annotation.agreement().questions["move"].overall
    assert (found.pairs, found.percent) == (3, pytest.approx(2 / 3))  # they differ on step 2
    assert discussion_items(annotation.now(), None, True) == ()  # steps are not discussed
    annotation.publish(GRACE, "first round")
    labels = annotation.service.labels.test
    moves = {item.step: code for item, code in zip(labels.trajectories, labels.primary["move"], strict=True)
             if item.trajectory_id == STUBBORN}  # fmt: skip
    # Codes of 1, 0, -1 are 0, 1, 2. The label is the answer of the first annotator, who may be either.
    assert (moves["1"], moves["3"]) == (0, 2)
    first = annotation.now().finished(STUBBORN)[0][1].answered_steps["2"]["move"]
    assert moves["2"] == {"1": 0, "0": 1}[first]


def test_the_majority_of_the_annotators_is_the_label_of_a_step(tmp_path):
    ruled = (f'{each}aggregate = "{rule}"\n' for each, rule in ((FINAL, "adjudicated"), (STEP, "majority")))
    suite = write_step_suite(tmp_path / "steps", "".join(ruled))
    settings = Settings(
        suite=str(suite), state_dir=tmp_path / "state", data_dir=tmp_path / "none", labels="records"
    )
    annotation = AnnotationService(SubmissionsApp(settings))
    for actor in (ADA, BOB, EVE):
        annotation.invite(actor.name, GRACE)
    annotation.assign_trajectories([STUBBORN], 0.0, 1, GRACE, times=3)
    # Step 1: 1, 0, 0. Step 2: three answers. Step 3: all say -1.
    for actor, moves, final in ((ADA, "1 1 -1", "1"), (BOB, "0 0 -1", "0"), (EVE, "0 -1 -1", "0")):
        annotation.save(STUBBORN, said(moves, final), 0, actor)
    version = annotation.publish(GRACE, "first round")
    assert {*version.left_out} == {f"{STUBBORN}: final", f"{STUBBORN}, step 2: move"}
    annotation.resolve(STUBBORN, "final", "-1", "step 3", GRACE)
    assert annotation.publish(GRACE, "decided").left_out == (f"{STUBBORN}, step 2: move",)
    labels = annotation.service.labels.test
    of_run = np.array([item.trajectory_id == STUBBORN for item in labels.trajectories])
    # -1 is not positive. The codes of 1, 0, -1 are 0, 1, 2; the run itself has no move, and step 2 none yet.
    assert labels.only(of_run).primary["final"].tolist() == [0, -1, -1, -1]
    assert labels.only(of_run).primary["move"].tolist() == [-1, 1, -1, 2]


def test_a_file_of_steps_is_imported_as_one_annotation_of_the_run(annotation):
    rows = [Annotation(OTHER, "ada", {"final": "1"})]
    rows += [
        Annotation(OTHER, "ada", {"move": move}, of_step=step) for step, move in (("1", "1"), ("2", "0"))
    ]
    assert annotation.import_answers(rows, GRACE) == 1
    ((_, saved),) = annotation.now().finished(OTHER)
    assert (saved.answers, saved.answered_steps) == ({"final": "1"}, {"1": {"move": "1"}, "2": {"move": "0"}})
    half = [Annotation(OTHER, "bob", {"final": "1"}), Annotation(OTHER, "bob", {"move": "1"}, of_step="1")]
    with pytest.raises(SubmissionError, match=r"1 of 2 steps \(2\)"):
        annotation.import_answers(half, GRACE)
    with pytest.raises(SubmissionError, match="parts: a part is unknown"):
        annotation.import_answers([Annotation(OTHER, "bob", {"move": "1"}, of_part="a")], GRACE)


def test_files_keep_what_answers_are_about(annotation):
    targets = annotation.suite.targets
    rows = (Annotation(OTHER, "ada", {"final": "1"}), Annotation(OTHER, "ada", {"move": "0"}, of_step="2"))
    parquet = write_parquet(rows, targets)
    assert pq.read_schema(io.BytesIO(parquet)).metadata[b"format"] == b"1"
    for found in (
        parse_released(write_released(rows, questions=targets), targets),
        parse_parquet(parquet, targets),
    ):
        assert [(each.item, dict(each.answers)) for each in found] == [
            ((OTHER, None, None), {"final": "1"}), ((OTHER, "2", None), {"move": "0"})
        ]  # fmt: skip
    lines = template(annotation.suite.items("test"), "Ada", targets).splitlines()
    assert [line.rpartition("/")[2] for line in lines[1:4]] == [
        "sample-forum.1,,,Ada,,", "sample-forum.1,1,,Ada,,", "sample-forum.1,2,,Ada,,"
    ]  # fmt: skip


def test_commands_import_files_of_steps_and_export_no_form_that_cannot_ask_about_them(annotation, tmp_path):
    run = partial(invoke, annotation.service.settings, "annotate")
    done = run("export", "--format", "label-studio", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2 and "the suite asks about steps or parts" in done.stderr
    rows = [Annotation(OTHER, "ada", {"final": "1"})]
    rows += [Annotation(OTHER, "ada", {"move": "1"}, of_step=step) for step in "12"]
    (tmp_path / "ada.csv").write_text(write_released(rows, questions=annotation.suite.targets))
    done = run("import", str(tmp_path / "ada.csv"), "--format", "csv")
    assert done.exit_code == 0, done.output
    assert "1 annotation recorded; 0 were already recorded" in done.output
    again = run("import", str(tmp_path / "ada.csv"), "--format", "csv")
    assert "0 annotations recorded; 1 were already recorded" in again.output


@pytest.fixture
def parts(tmp_path) -> AnnotationService:
    """Ada has STUBBORN, which has the parts R1 and R2."""
    suite = write_part_suite(tmp_path / "parts")
    settings = Settings(
        suite=str(suite), state_dir=tmp_path / "state", data_dir=tmp_path / "none", labels="records"
    )
    found = AnnotationService(SubmissionsApp(settings))
    found.invite("ada", GRACE)
    found.assign_trajectories([STUBBORN], 0.0, 1, GRACE)
    return found


def test_named_parts_are_annotated_like_steps_and_their_answers_become_labels(parts):
    done = partial(Draft, {"final": "1"}, is_done=True)
    with pytest.raises(SubmissionError, match=r"not answered yet: 1 of 2 parts \(R2\)"):
        parts.save(STUBBORN, done(parts={"R1": {"met": "yes"}}), 0, ADA)
    for wrong, problem in (
        ({"R3": {"met": "yes"}}, "parts: a part is unknown"),
        ({"R1": {"met": "secret"}}, "part R1, met: use one of no, yes, unsure"),
        ({"R1": {"final": "1"}}, "part R1: a question is unknown; the questions are met"),
    ):
        with pytest.raises(SubmissionError, match=problem) as refused:
            parts.save(STUBBORN, Draft(parts=wrong), 0, ADA)
        assert "secret" not in str(refused.value)
    answers = done(parts={"R1": {"met": "yes"}, "R2": {"met": "no"}})
    saved = parts.save(STUBBORN, answers, 0, ADA)
    assert parts.save(STUBBORN, answers, saved, ADA) == saved  # the same answers add no event
    parts.publish(GRACE, "first round")
    labels = parts.service.labels.test
    items = zip(labels.trajectories, labels.primary["met"].tolist(), strict=True)
    met = {item.part: code for item, code in items if item.trajectory_id == STUBBORN and item.part}
    assert met == {"R1": 1, "R2": 0}


def test_a_file_of_parts_is_imported_as_one_annotation_of_the_run(parts):
    rows = [Annotation(OTHER, "ada", {"final": "1"}), Annotation(OTHER, "ada", {"met": "no"}, of_part="R1")]
    assert parts.import_answers(rows, GRACE) == 1
    (saved,) = parts.now().saved.values()
    assert (saved.is_done, dict(saved.answers), saved.answered_parts) == (
        True, {"final": "1"}, {"R1": {"met": "no"}},
    )  # fmt: skip
