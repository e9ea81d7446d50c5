"""Inviting, assigning, saving, deciding: who may, what is refused, and what the records then hold."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import Draft
from submissions.labels.assignment import gold_agreement
from submissions.records.database import snapshot
from submissions.records.event_log import check_event_log, events_after
from submissions.scoring.board import BoardMaker
from tests.submissions.labels.conftest import ADA, BOB, EVE, GRACE, queue_of, said


def kinds_of(annotation) -> list[str]:
    with snapshot(annotation.service.engine) as session:
        records = events_after(session)
    assert check_event_log(records) == []
    return [record.kind for record in records]


def test_only_maintainers_invite_and_assign(annotation):
    for act in (
        lambda: annotation.invite("eve", EVE),
        lambda: annotation.uninvite("eve", EVE),
        lambda: annotation.assign_trajectories([], 0, 1, EVE),
        lambda: annotation.publish(EVE, "why"),
    ):
        with pytest.raises(PermissionDenied):
            act()
    assert kinds_of(annotation) == []


def test_ids_are_opaque_numbered_and_kept_over_an_end(annotation):
    assert [annotation.invite(name, GRACE) for name in ("ada", "bob")] == [
        "annotator-1",
        "annotator-2",
    ]
    annotation.uninvite("ada", GRACE)
    assert annotation.invite("cleo", GRACE) == "annotator-3"
    assert annotation.invite("ada", GRACE) == "annotator-1"
    with pytest.raises(SubmissionError, match="already invited"):
        annotation.invite("ADA", GRACE)


def test_only_trajectories_of_the_suite_are_assigned(annotation):
    annotation.invite("ada", GRACE)
    with pytest.raises(SubmissionError, match="are not in the suite"):
        annotation.assign_trajectories(
            ["webarena/agent-a/webarena.0", "webarena/agent-a/webarena.9999"], 0, 1, GRACE
        )
    assert kinds_of(annotation) == ["invited"]


@pytest.mark.parametrize(
    "draft",
    [
        Draft({"success": "SECRET"}),
        Draft({"SECRET": "yes"}),
        Draft({"optimality": "5"}),
        Draft(comment="x" * 10_001),
        Draft(comment="\ud800"),
        Draft(seconds=math.nan),
        Draft(seconds=-1),
    ],
)
def test_what_cannot_be_kept_is_refused_without_repeating_an_answer(annotating, draft):
    name = queue_of(annotating, ADA)[0]
    before = kinds_of(annotating)
    with pytest.raises(SubmissionError) as refusal:
        annotating.save(name, draft, 0, ADA)
    assert "SECRET" not in str(refusal.value) + repr(draft)
    assert kinds_of(annotating) == before


def test_a_trajectory_of_others_and_one_that_is_none_are_refused_alike(annotation):
    for name in ("ada", "bob"):
        annotation.invite(name, GRACE)
    annotation.assign_trajectories(
        [t.trajectory_id for t in annotation.service.suite.split("test")[:4]], 0, 1, GRACE
    )
    refusals = []
    for name in (queue_of(annotation, BOB)[0], "webarena/x/nothing"):
        with pytest.raises(PermissionDenied) as refusal:
            annotation.save(name, said(), 0, ADA)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    with pytest.raises(PermissionDenied):
        annotation.save(queue_of(annotation, BOB)[0], said(), 0, GRACE)


def test_whose_invitation_ended_saves_nothing(annotating):
    name = queue_of(annotating, ADA)[0]
    annotating.uninvite("ada", GRACE)
    with pytest.raises(PermissionDenied):
        annotating.save(name, said(), 0, ADA)


def test_two_devices_do_not_overwrite_each_other_and_a_repeated_call_is_no_second_record(annotating):
    name = queue_of(annotating, ADA)[0]
    first = annotating.save(name, Draft({"success": "yes"}), 0, ADA)
    annotating.save(name, Draft({"success": "no"}), first, ADA)
    with pytest.raises(SubmissionError, match="another window"):
        annotating.save(name, Draft({"success": "yes"}), first, ADA)
    before = kinds_of(annotating)
    annotating.save(name, Draft({"success": "no"}, seconds=99), first, ADA)
    assert kinds_of(annotating) == before


def test_a_page_whose_call_got_no_answer_saves_again_and_another_page_does_not(annotating):
    name = queue_of(annotating, ADA)[0]
    annotating.save(name, replace(said(is_done=False), client="one"), 0, ADA)
    later = replace(said(comment="more", is_done=False), client="one")
    seen = annotating.save(name, later, 0, ADA)  # as if no answer had come
    with pytest.raises(SubmissionError, match="another window"):
        annotating.save(name, replace(said("no"), client="two"), 0, ADA)
    assert annotating.save(name, replace(said("no"), client="two"), seen, ADA) > seen


def test_a_step_a_flag_and_skipping_are_kept_and_checked(annotating):
    name = queue_of(annotating, ADA)[0]
    draft = replace(said(is_done=False), step=3, flag=" no pictures ", is_skipped=True)
    seen = annotating.save(name, draft, 0, ADA)
    found = annotating.now().saved[name, "annotator-1"]
    assert (found.step, found.flag, found.is_skipped) == (3, "no pictures", True)
    assert queue_of(annotating, ADA)[-1] == name
    assert annotating.save(name, draft, 0, ADA) == seen  # the same call, sent again
    assert annotating.save(name, draft, seen, ADA) > seen  # skipped once more
    for wrong in ({"step": -1}, {"step": 10**6}, {"flag": "x" * 1_001}, {"client": "é"}, {"is_done": True}):
        with pytest.raises(SubmissionError):
            annotating.save(name, replace(draft, **wrong), seen, ADA)


def test_gold_items_come_from_what_is_finished_and_decided_and_are_mixed_into_queues(annotating):
    first, second, third = queue_of(annotating, ADA)[:3]
    actions = annotating
    with pytest.raises(PermissionDenied):
        actions.mark_gold(first, BOB)
    with pytest.raises(SubmissionError, match="nobody has finished"):
        actions.mark_gold(first, GRACE)
    for name in (first, second, third):
        actions.save(name, said("yes"), 0, ADA)
        actions.save(name, said("no" if name == first else "yes"), 0, BOB)
    with pytest.raises(SubmissionError, match="decide it first"):
        actions.mark_gold(first, GRACE)
    actions.resolve(first, "success", "no", "Bob is right", GRACE)
    for name in (first, second, third):
        actions.mark_gold(name, GRACE)
    with pytest.raises(SubmissionError, match="already"):
        actions.mark_gold(first, GRACE)
    assert annotating.now().gold[first]["success"] == "no"
    actions.invite("eve", GRACE)
    more = [trajectory.trajectory_id for trajectory in annotating.service.suite.split("test")[4:16]]
    before = annotating.agreement()
    # Of twelve trajectories Eve, who has nothing yet, gets five; 0.4 times five on top are two gold items,
    # and Ada and Bob have met them all.
    assert actions.assign_trajectories(more, 0, 1, GRACE, gold_share=0.4) == 14
    gold = [name for name in queue_of(annotating, EVE) if name in (first, second, third)]
    assert (len(gold), len(queue_of(annotating, EVE))) == (2, 7)
    for name in gold:
        actions.save(name, said("no"), 0, EVE)
    after = annotating.agreement()
    assert (after.doubles, after.annotators, after.annotations) == (
        before.doubles,
        before.annotators,
        before.annotations,
    )
    (found,) = gold_agreement(annotating.now())
    assert (found.account, found.done, found.equal["success"]) == ("eve", 2, gold.count(first))
    actions.mark_gold(first, GRACE, is_gold=False)
    with pytest.raises(SubmissionError, match="not a gold item"):
        actions.mark_gold(first, GRACE, is_gold=False)


def test_annotators_decide_what_is_open_and_only_after_their_own_answer(annotating):
    name = queue_of(annotating, ADA)[0]
    annotating.save(name, said("yes"), 0, ADA)
    with pytest.raises(PermissionDenied):  # Bob has it, and has not answered
        annotating.resolve(name, "success", "no", "why", BOB)
    with pytest.raises(PermissionDenied):
        annotating.resolve(name, "success", "no", "why", EVE)
    annotating.save(name, said("no"), 0, BOB)
    for actor in (ADA, BOB):
        other = next(each for each in queue_of(annotating, actor) if each != name)
        annotating.save(other, said("no"), 0, actor)
    with pytest.raises(SubmissionError, match="not open"):
        annotating.resolve(name, "repetition", "yes", "why", BOB)
    annotating.resolve(name, "success", "no", "why", BOB)
    with pytest.raises(SubmissionError, match="not open"):
        annotating.resolve(name, "success", "yes", "no, it is", ADA)
    annotating.resolve(name, "success", "yes", "looked again", GRACE)
    decisions = annotating.now().decisions[name, "success"]
    assert [(found.value, found.by) for found in decisions] == [("no", "bob"), ("yes", "grace")]


def test_five_people_in_five_processes_at_once_lose_nothing(annotation, settings):
    names = [f"person-{n}" for n in range(5)]
    for name in names:
        annotation.invite(name, GRACE)
    annotation.assign_trajectories(
        [t.trajectory_id for t in annotation.service.suite.split("test")[:10]], 1.0, 1, GRACE
    )

    def work(name: str) -> None:
        own = AnnotationService(SubmissionsApp(settings))  # as another process would have it
        actor = Actor(name)
        for trajectory_id in queue_of(own, actor):
            seen = own.save(trajectory_id, Draft({"success": "yes"}), 0, actor)
            own.save(trajectory_id, said(), seen, actor)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, names))
    assert kinds_of(annotation).count("annotated") == 2 * 20  # 10 first and 10 second ones, each in two saves
    state = annotation.now()
    assert all(task.is_done for annotator in state.active for task in state.queue(annotator))


def test_labelling_survives_a_restart_and_works_on_postgresql(postgres_url, suite_folder, tmp_path):
    from tests.support.submissions import settings_for

    settings = settings_for(suite_folder, tmp_path / "state", database_url=postgres_url)
    annotation = AnnotationService(SubmissionsApp(settings))
    annotation.invite("ada", GRACE)
    annotation.assign_trajectories(["webarena/agent-a/webarena.0"], 0, 1, GRACE)
    annotation.save("webarena/agent-a/webarena.0", said(comment="a\x00b"), 0, ADA)
    again = AnnotationService(SubmissionsApp(settings)).now()
    assert again.saved["webarena/agent-a/webarena.0", "annotator-1"].comment == "a\x00b"


def test_saving_makes_no_board_anew(annotating, monkeypatch):
    service = annotating.service
    service.records.board()
    monkeypatch.setattr(BoardMaker, "make", lambda *_: pytest.fail("the board was made anew"))
    annotating.save(queue_of(annotating, ADA)[0], said(), 0, ADA)
    service.records.board()
