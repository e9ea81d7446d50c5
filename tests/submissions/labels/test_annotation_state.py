"""Folding records into where labelling stands."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from submissions.labels.annotation_state import (
    AnnotationState,
    SavedAnswers,
    fold_annotations,
    open_questions,
)
from submissions.labels.assignment import gold_agreement
from submissions.records.event_log import Event

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("webarena/a/1", "webarena/a/2")
ANNOTATORS = ("annotator-1", "annotator-2")


def record(kind: str, body: dict, sequence: int = 1, actor: str = "grace") -> Event:
    return Event(sequence, kind, START + timedelta(minutes=sequence), actor, body, "", "")


def annotated(name: str, who: str, sequence: int, is_done: bool = True, **answers) -> Event:
    body = {
        "trajectory_id": name, "annotator": who, "answers": answers, "comment": "", "seconds": 5.0,
        "is_done": is_done,
    }  # fmt: skip
    return record("annotated", body, sequence)


def everybody() -> AnnotationState:
    """Both are invited and have the first trajectory; the second one is annotator-1's alone."""
    invitations = [record("invited", {"account": f"ada-{who}", "annotator": who}) for who in ANNOTATORS]
    places = [[NAMES[0], ANNOTATORS[0], 1], [NAMES[0], ANNOTATORS[1], 2], [NAMES[1], ANNOTATORS[0], 1]]
    return fold_annotations(AnnotationState(), [*invitations, record("assigned", {"assignments": places})])


def test_records_of_other_suites_are_passed_by():
    state = fold_annotations(AnnotationState(), [
        record("assigned", {"assignments": [["shop/a/1", "annotator-1", 1], [NAMES[0], "annotator-1", 1]]}),
        annotated("shop/a/1", "annotator-1", 2),
        record("resolved", {
            "trajectory_id": "shop/a/1", "question": "success", "answer": "no", "reason": "x",
        }),
        record("hidden", {"submission_id": "x"}),
    ], knows=lambda name: name.startswith("webarena"))  # fmt: skip
    assert (list(state.assigned), dict(state.saved), dict(state.decisions)) == ([NAMES[0]], {}, {})


def test_nobody_may_see_answers_before_giving_their_own():
    def may(state, who, is_maintainer=False):
        return state.may_see_answers(NAMES[0], who, is_maintainer)

    state = fold_annotations(everybody(), [annotated(NAMES[0], "annotator-1", 5, success="yes")])
    assert [may(state, "annotator-1"), may(state, "annotator-2")] == [False, False]  # it can yet be undone
    state = fold_annotations(state, [annotated(NAMES[1], "annotator-1", 6, success="yes")])
    assert [may(state, "annotator-1"), may(state, "annotator-2")] == [True, False]
    assert not may(state, "annotator-2", is_maintainer=True)
    assert may(state, None, is_maintainer=True)
    assert not may(state, None)
    begun = fold_annotations(state, [annotated(NAMES[0], "annotator-2", 6, is_done=False, success="no")])
    assert not may(begun, "annotator-2")
    assert may(fold_annotations(begun, [annotated(NAMES[0], "annotator-2", 7, success="no")]), "annotator-2")


def test_an_annotation_is_closed_once_others_answers_can_be_seen():
    state = fold_annotations(everybody(), [annotated(NAMES[0], "annotator-1", 5, success="yes")])
    assert not state.is_closed(NAMES[0], "annotator-1")
    both = fold_annotations(state, [annotated(NAMES[0], "annotator-2", 6, success="no")])
    assert not both.is_closed(NAMES[0], "annotator-1")  # it can yet be undone, and stays blind
    assert both.blind_items("annotator-1") == {*NAMES}
    assert both.is_closed(NAMES[0], "annotator-2")  # who has nothing else to do
    both = fold_annotations(both, [annotated(NAMES[1], "annotator-1", 7, success="yes")])
    assert both.is_closed(NAMES[0], "annotator-1")
    assert both.blind_items("annotator-1") == set()
    state = fold_annotations(state, [annotated(NAMES[1], "annotator-1", 7, success="yes")])
    body = {"trajectory_id": NAMES[0], "question": "success", "answer": "no", "reason": "x"}
    assert fold_annotations(state, [record("resolved", body)]).is_closed(NAMES[0], "annotator-1")


def test_what_was_finished_before_the_last_one_stays_closed_where_the_last_one_is_taken_back():
    """Else an annotator who has seen others' answers could change their own."""
    names = [*NAMES, "webarena/a/3"]
    state = fold_annotations(everybody(), [
        record("assigned", {"assignments": [[names[2], "annotator-1", 1]]}),
        annotated(names[0], "annotator-2", 2, success="no"),
        annotated(names[0], "annotator-1", 3, success="yes"),
        annotated(names[1], "annotator-1", 4, success="yes"),
        annotated(names[1], "annotator-1", 5, is_done=False, success="no"),
    ])  # fmt: skip
    assert state.is_closed(names[0], "annotator-1")
    assert state.blind_items("annotator-1") == {*names[1:]}


def test_what_is_skipped_comes_at_the_end_of_the_queue_in_the_order_of_skipping():
    names = [f"webarena/a/{number}" for number in range(4)]
    state = fold_annotations(AnnotationState(), [
        record("invited", {"account": "ada", "annotator": "annotator-1"}),
        record("assigned", {"assignments": [[name, "annotator-1", 1] for name in names]}),
        annotated(names[2], "annotator-1", 3, is_done=False),
    ])  # fmt: skip

    def skipped(state, name, sequence):
        body = {**annotated(name, "annotator-1", sequence, is_done=False).body, "is_skipped": True}
        return fold_annotations(state, [record("annotated", body, sequence)])

    def order(state):
        return [names.index(task.trajectory_id) for task in state.queue("annotator-1")]

    state = skipped(skipped(state, names[1], 4), names[0], 5)
    assert order(state) == [2, 3, 1, 0]
    assert order(skipped(state, names[1], 6)) == [2, 3, 0, 1]
    assert order(fold_annotations(state, [annotated(names[1], "annotator-1", 6)])) == [1, 2, 3, 0]


def test_a_gold_item_is_in_its_queue_and_no_second_annotation():
    known = {"success": "yes", "side_effect": "no", "repetition": "no", "optimality": "4"}
    state = fold_annotations(everybody(), [
        annotated(NAMES[1], "annotator-1", 4, **known),
        record("gold_marked", {"trajectory_id": NAMES[1], "answers": known}, 5),
        record("assigned", {"assignments": [[NAMES[1], "annotator-2", 0]]}, 6),
    ])  # fmt: skip
    assert [task.trajectory_id for task in state.queue("annotator-2")] == [*NAMES]
    assert (state.is_gold(NAMES[1], "annotator-2"), state.is_gold(NAMES[1], "annotator-1")) == (True, False)
    state = fold_annotations(state, [annotated(NAMES[1], "annotator-2", 7, **{**known, "success": "no"})])
    assert [who for who, _ in state.finished(NAMES[1])] == ["annotator-1"]
    assert open_questions(state, NAMES[1]) == ()
    (found,) = gold_agreement(state)
    assert (found.annotator, found.done) == ("annotator-2", 1)
    assert dict(found.equal) == {"success": 0, "side_effect": 1, "repetition": 1, "optimality": 1}
    state = fold_annotations(state, [annotated(NAMES[0], "annotator-2", 8)])
    assert not state.may_see_answers(NAMES[1], "annotator-2", is_maintainer=False)
    assert state.may_see_answers(NAMES[1], None, is_maintainer=True)
    ended = fold_annotations(state, [record("gold_marked", {"trajectory_id": NAMES[1], "answers": None})])
    assert (ended.gold, gold_agreement(ended)) == ({}, [])


def test_whoever_misses_gold_items_credibly_more_often_than_the_others_needs_training():
    names = [f"webarena/agent-a/webarena.{number}" for number in range(20)]
    known = {"success": "yes", "side_effect": "no", "repetition": "no", "optimality": "4"}
    people = [f"annotator-{number}" for number in (1, 2, 3)]

    def answers(who, number):
        # The first one errs on success in half of the items, everybody on side effects in a fifth
        wrong = {"success": "no"} if who == people[0] and number % 2 else {}
        return {**known, **wrong, **({"side_effect": "yes"} if number % 5 == 0 else {})}

    saved = {
        (name, who): SavedAnswers(answers=answers(who, number), is_done=True, at=START, sequence=1)
        for number, name in enumerate(names)
        for who in people
    }
    state = AnnotationState(
        accounts={who: who for who in people}, saved=saved, gold=dict.fromkeys(names, known),
        gold_tasks=frozenset(saved),
    )  # fmt: skip
    found = gold_agreement(state)
    assert [(each.annotator, each.done, each.equal["success"]) for each in found] == [
        (people[0], 20, 10), (people[1], 20, 20), (people[2], 20, 20),
    ]  # fmt: skip
    assert [each.needs_training for each in found] == [("success",), (), ()]
    few = replace(state, gold=dict.fromkeys(names[:9], known))  # of nine items nobody is compared
    assert [each.needs_training for each in gold_agreement(few)] == [(), (), ()]


def test_no_part_of_the_state_shows_an_answer_in_its_repr():
    state = fold_annotations(everybody(), [
        annotated(NAMES[0], "annotator-1", 5, success="unsure"),
        record("resolved", {
            "trajectory_id": NAMES[0], "question": "success", "answer": "unsure", "reason": "unsure",
        }),
    ])  # fmt: skip
    shown = repr((state, state.saved, state.decisions, state.queue("annotator-1")))
    shown += repr(annotated(NAMES[0], "annotator-1", 5, success="unsure"))
    assert "unsure" not in shown


acts = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from(ANNOTATORS), st.booleans(), st.sampled_from(("yes", "no"))
    )
    | st.tuples(st.sampled_from(NAMES), st.sampled_from(("yes", "no"))),
    max_size=12,
)


@given(said=acts, cuts=st.sets(st.integers(0, 12)))
def test_folding_in_pieces_is_folding_at_once_and_leaves_what_was_folded_alone(said, cuts):
    records = []
    for sequence, act in enumerate(said, start=10):
        if len(act) == 4:
            name, who, is_done, answer = act
            records.append(annotated(name, who, sequence, is_done, success=answer))
        else:
            body = {"trajectory_id": act[0], "question": "success", "answer": act[1], "reason": "x"}
            records.append(record("resolved", body, sequence))
    start = everybody()
    before = (dict(start.saved), dict(start.decisions), dict(start.assigned))
    state, done = start, 0
    for cut in [*sorted(cuts), len(records)]:
        state, done = fold_annotations(state, records[done:cut]), max(done, cut)
    whole = fold_annotations(start, records)
    assert (state.saved, state.decisions, state.active) == (whole.saved, whole.decisions, whole.active)
    assert (dict(start.saved), dict(start.decisions), dict(start.assigned)) == before
