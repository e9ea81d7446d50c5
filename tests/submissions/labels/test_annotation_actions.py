"""Inviting, assigning, saving, deciding: who may, what is refused, and what the records then hold."""

import math
import threading

import pytest

from submissions.errors import PermissionDenied, SubmissionError
from submissions.labels.annotation_actions import Draft, SavedElsewhere
from submissions.labels.annotation_service import AnnotationService
from submissions.records.database import snapshot
from submissions.records.event_log import check_event_log, events_after
from submissions.service import SubmissionService
from tests.submissions.labels.conftest import ADA, BOB, EVE, GRACE, queue_of, said


def kinds_of(desk) -> list[str]:
    with snapshot(desk.service.engine) as session:
        records = events_after(session)
    assert check_event_log(records) == []
    return [record.kind for record in records]


def test_only_maintainers_invite_and_assign(desk):
    for act in (
        lambda: desk.actions.invite("eve", EVE),
        lambda: desk.actions.uninvite("eve", EVE),
        lambda: desk.actions.assign([], 0, 1, EVE),
        lambda: desk.publish(EVE, "why"),
    ):
        with pytest.raises(PermissionDenied):
            act()
    assert kinds_of(desk) == []


def test_ids_are_opaque_numbered_and_kept_over_an_end(desk):
    assert [desk.actions.invite(name, GRACE) for name in ("ada", "bob")] == ["annotator-1", "annotator-2"]
    desk.actions.uninvite("ada", GRACE)
    assert desk.actions.invite("cleo", GRACE) == "annotator-3"
    assert desk.actions.invite("ada", GRACE) == "annotator-1"
    with pytest.raises(SubmissionError, match="already invited"):
        desk.actions.invite("ADA", GRACE)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a" * 81])
def test_an_account_needs_a_name(desk, name):
    with pytest.raises(SubmissionError, match="name the account"):
        desk.actions.invite(name, GRACE)


def test_only_trajectories_of_the_suite_are_assigned(desk):
    desk.actions.invite("ada", GRACE)
    with pytest.raises(SubmissionError, match="are not in the suite"):
        desk.actions.assign(["webarena/agent-a/webarena.0", "webarena/agent-a/webarena.9999"], 0, 1, GRACE)
    assert kinds_of(desk) == ["invited"]


def test_nothing_is_assigned_to_nobody(desk):
    with pytest.raises(SubmissionError, match="nobody is invited"):
        desk.actions.assign(["webarena/agent-a/webarena.0"], 0, 1, GRACE)


def test_partial_answers_are_kept_and_the_rest_follows(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    seen = shared_desk.actions.save(name, Draft({"success": "yes"}, seconds=3), 0, ADA)
    assert shared_desk.now().given[name, "annotator-1"].answers == {"success": "yes"}
    later = shared_desk.actions.save(name, said(), seen, ADA)
    assert later > seen
    assert shared_desk.now().is_done(name, "annotator-1")


def test_finishing_needs_an_answer_to_every_question(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    with pytest.raises(SubmissionError, match="not answered yet: Side effect, Optimality"):
        shared_desk.actions.save(name, said(side_effect=None, optimality=None), 0, ADA)


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
def test_what_cannot_be_kept_is_refused_without_repeating_an_answer(shared_desk, draft):
    name = queue_of(shared_desk, ADA)[0]
    before = kinds_of(shared_desk)
    with pytest.raises(SubmissionError) as refusal:
        shared_desk.actions.save(name, draft, 0, ADA)
    assert "SECRET" not in str(refusal.value) + repr(draft)
    assert kinds_of(shared_desk) == before


def test_a_trajectory_of_others_and_one_that_is_none_are_refused_alike(desk):
    for name in ("ada", "bob"):
        desk.actions.invite(name, GRACE)
    desk.actions.assign([t.trajectory_id for t in desk.service.suite.split("test")[:4]], 0, 1, GRACE)
    refusals = []
    for name in (queue_of(desk, BOB)[0], "webarena/x/nothing"):
        with pytest.raises(PermissionDenied) as refusal:
            desk.actions.save(name, said(), 0, ADA)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    with pytest.raises(PermissionDenied):
        desk.actions.save(queue_of(desk, BOB)[0], said(), 0, GRACE)


def test_whose_invitation_ended_saves_nothing(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    shared_desk.actions.uninvite("ada", GRACE)
    with pytest.raises(PermissionDenied):
        shared_desk.actions.save(name, said(), 0, ADA)


def test_two_devices_do_not_overwrite_each_other_and_a_repeated_call_is_no_second_record(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    first = shared_desk.actions.save(name, Draft({"success": "yes"}), 0, ADA)
    shared_desk.actions.save(name, Draft({"success": "no"}), first, ADA)
    with pytest.raises(SavedElsewhere):
        shared_desk.actions.save(name, Draft({"success": "yes"}), first, ADA)
    before = kinds_of(shared_desk)
    shared_desk.actions.save(name, Draft({"success": "no"}, seconds=99), first, ADA)
    assert kinds_of(shared_desk) == before


def test_an_answer_changes_until_anothers_can_be_seen(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    seen = shared_desk.actions.save(name, said("yes"), 0, ADA)
    seen = shared_desk.actions.save(name, said("no"), seen, ADA)
    shared_desk.actions.save(name, said("yes"), 0, BOB)
    with pytest.raises(SubmissionError, match="closed"):
        shared_desk.actions.save(name, said("yes"), seen, ADA)


def test_a_decision_has_a_reason_and_an_answer_of_its_question(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    shared_desk.actions.save(name, said("unsure"), 0, ADA)
    for question, answer, reason in (
        ("success", "yes", " "),
        ("success", "yes", "x" * 1_001),
        ("success", "4", "why"),
        ("outcome", "yes", "why"),
    ):
        with pytest.raises(SubmissionError):
            shared_desk.actions.resolve(name, question, answer, reason, GRACE)
    record = shared_desk.actions.resolve(name, "success", "yes", " it is \n done ", GRACE)
    assert (record.actor, record.body["reason"]) == ("grace", "it is done")


def test_annotators_decide_what_is_open_and_only_after_their_own_answer(shared_desk):
    name = queue_of(shared_desk, ADA)[0]
    shared_desk.actions.save(name, said("yes"), 0, ADA)
    with pytest.raises(PermissionDenied):  # Bob has it, and has not answered
        shared_desk.actions.resolve(name, "success", "no", "why", BOB)
    with pytest.raises(PermissionDenied):
        shared_desk.actions.resolve(name, "success", "no", "why", EVE)
    shared_desk.actions.save(name, said("no"), 0, BOB)
    with pytest.raises(SubmissionError, match="not open"):
        shared_desk.actions.resolve(name, "repetition", "yes", "why", BOB)
    shared_desk.actions.resolve(name, "success", "no", "why", BOB)
    with pytest.raises(SubmissionError, match="not open"):
        shared_desk.actions.resolve(name, "success", "yes", "no, it is", ADA)
    shared_desk.actions.resolve(name, "success", "yes", "looked again", GRACE)
    decisions = shared_desk.now().decisions[name, "success"]
    assert [(found.answer, found.by) for found in decisions] == [("no", "bob"), ("yes", "grace")]


def test_nothing_is_decided_of_what_nobody_annotated(shared_desk):
    with pytest.raises(SubmissionError, match="nobody has annotated"):
        shared_desk.actions.resolve(queue_of(shared_desk, ADA)[0], "success", "no", "why", GRACE)


def test_five_people_in_five_processes_at_once_lose_nothing(desk, settings):
    names = [f"person-{n}" for n in range(5)]
    for name in names:
        desk.actions.invite(name, GRACE)
    desk.actions.assign([t.trajectory_id for t in desk.service.suite.split("test")[:10]], 1.0, 1, GRACE)

    def work(name: str) -> None:
        from submissions.intake.accounts import Actor

        own = AnnotationService(SubmissionService(settings))  # as another process would have it
        actor = Actor(name)
        for trajectory_id in queue_of(own, actor):
            seen = own.actions.save(trajectory_id, Draft({"success": "yes"}), 0, actor)
            own.actions.save(trajectory_id, said(), seen, actor)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds_of(desk).count("annotated") == 2 * 20  # 10 first and 10 second ones, each in two saves
    state = desk.now()
    assert all(task.is_done for annotator in state.active for task in state.queue(annotator))


def test_labelling_survives_a_restart_and_works_on_postgresql(postgres_url, suite_folder, tmp_path):
    from tests.support.submissions import settings_for

    settings = settings_for(suite_folder, tmp_path / "state", database_url=postgres_url)
    desk = AnnotationService(SubmissionService(settings))
    desk.actions.invite("ada", GRACE)
    desk.actions.assign(["webarena/agent-a/webarena.0"], 0, 1, GRACE)
    desk.actions.save("webarena/agent-a/webarena.0", said(comment="a\x00b"), 0, ADA)
    again = AnnotationService(SubmissionService(settings)).now()
    assert again.given["webarena/agent-a/webarena.0", "annotator-1"].comment == "a\x00b"


def test_saving_makes_no_board_anew(shared_desk, monkeypatch):
    service = shared_desk.service
    service.board()
    monkeypatch.setattr(type(service), "_make_board", lambda *_: pytest.fail("the board was made anew"))
    shared_desk.actions.save(queue_of(shared_desk, ADA)[0], said(), 0, ADA)
    service.board()
