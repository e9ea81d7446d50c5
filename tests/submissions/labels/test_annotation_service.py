"""The label set that annotations make, and publishing it."""

import pytest

from leaderboard.labels.agreement import agreement_report
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.labels.annotation_service import annotations_before, label_set
from submissions.labels.annotation_state import discussion_items
from submissions.labels.versions import published_versions
from submissions.moderation.reader_actions import ReaderActions
from tests.submissions.labels.conftest import ADA, BOB, GRACE, queue_of, said
from tests.support.submissions import SECRET_ANNOTATOR, log_of, settings_for


def test_a_published_decision_is_a_row_in_front_of_the_answers_which_stay_as_given(annotating):
    service = annotating.service
    one, two = queue_of(annotating, ADA)[:2]
    annotating.save(one, said("yes"), 0, ADA)
    annotating.save(one, said("no"), 0, BOB)
    annotating.save(two, said("no", is_done=False), 0, ADA)  # not finished: not in it
    annotating.resolve(one, "success", "unsure", "nobody can tell", GRACE)
    annotating.publish(GRACE, "decided")
    rows = [a for a in service.labels.annotations() if a.trajectory_id == one]
    places, answers = annotating.now().assigned[one], {"annotator-1": "yes", "annotator-2": "no"}
    assert [(row.annotator, row.answers.get("success")) for row in rows] == [
        ("decision", "unsure"),
        *((places[place], answers[places[place]]) for place in (1, 2)),
    ]
    labels = service.labels.test
    place = [t.trajectory_id for t in labels.trajectories].index(one)
    codes = {"yes": 1, "no": 0}
    assert labels.primary["success"][place] == -1 and labels.annotated_twice[place]
    assert labels.first["success"][place] == codes[answers[places[1]]]
    assert labels.second["success"][place] == codes[answers[places[2]]]
    success = agreement_report(rows).questions["success"].overall
    assert (success.pairs, success.percent, success.left_out) == (1, 0.0, 0)
    # The next version is made of the answers, not of the row of decisions before.
    annotating.resolve(one, "success", "yes", "looked again", GRACE)
    annotating.publish(GRACE, "decided again")
    rows = [a for a in service.labels.annotations() if a.trajectory_id == one]
    assert [row.annotator for row in rows].count("decision") <= 1
    assert service.labels.test.primary["success"][place] == 1


def test_trajectories_that_nobody_annotated_keep_their_labels_under_nobodys_name(annotating):
    name = queue_of(annotating, ADA)[0]
    before = annotations_before(annotating.service)
    assert len(before) == 38  # 30 of test and 8 of dev
    annotating.save(name, said("unsure"), 0, ADA)
    found = label_set(annotating.now(), before)
    assert len(found) == 38
    assert {a.trajectory_id: a.answers.get("success") for a in found} == {
        **{a.trajectory_id: a.answers.get("success") for a in before},
        name: "unsure",
    }
    assert {a.annotator for a in found} == {"annotator-1", "earlier-1"}
    assert SECRET_ANNOTATOR not in repr([a.annotator for a in found])


def test_publishing_makes_a_version_and_the_next_one_builds_upon_it(suite_folder, tmp_path):
    from submissions.labels.annotation_service import AnnotationService

    settings = settings_for(suite_folder, tmp_path / "state", labels="records")
    service = SubmissionsApp(settings)
    annotation = AnnotationService(service)
    assert annotations_before(service) == ()
    with pytest.raises(SubmissionError, match="nothing to publish"):
        annotation.publish(GRACE, "too early")
    for name in ("ada", "bob"):
        annotation.invite(name, GRACE)
    ids = [t.trajectory_id for t in service.suite.split("test")]
    annotation.assign_trajectories(ids[:4], 1.0, 1, GRACE)
    for name in queue_of(annotation, ADA):
        annotation.save(name, said("yes"), 0, ADA)
    first = annotation.publish(GRACE, "the first four")
    assert (first.labelled, first.by, service.label_version) == (4, "grace", first.version)
    name = queue_of(annotation, BOB)[0]
    annotation.save(name, said("no"), 0, BOB)
    annotation.resolve(name, "success", "no", "Bob is right", GRACE)
    second = annotation.publish(GRACE, "one was wrong")
    assert (second.labelled, second.changes["success"]) == (4, 1)
    assert [each.version for each in published_versions(service.engine, "small")] == [
        first.version,
        second.version,
    ]


def test_a_set_of_annotations_takes_corrections_up_unless_the_discussion_decided_later(annotating):
    service = annotating.service
    one, two = queue_of(annotating, ADA)[:2]
    for name in (one, two):
        annotating.save(name, said("yes"), 0, ADA)
    acts = ReaderActions(service)
    for number, name in enumerate((one, two), start=1):
        acts.dispute(name, "success", "see step 3", ADA)
        acts.decide(str(number), "corrected", "it failed", GRACE, "no")
    annotating.resolve(two, "success", "yes", "the step before it did it", GRACE)
    version = annotating.publish(GRACE, "two annotated")
    assert [(each.dispute_id, each.before, each.value) for each in version.corrections] == [
        ("1", "yes", "no")
    ]
    # Made from the labels of a file, it is served in its place.
    assert service.label_version == version.version
    success = {a.trajectory_id: a.answers.get("success") for a in reversed(service.labels.annotations())}
    assert (success[one], success[two]) == ("no", "yes")


def test_a_label_set_that_cannot_be_read_is_not_replaced_by_less(annotating, monkeypatch, tmp_path):
    annotating.save(queue_of(annotating, ADA)[0], said(), 0, ADA)
    gone = annotating.service.settings.model_copy(update={"labels": f"csv:{tmp_path / 'gone.csv'}"})
    monkeypatch.setattr(annotating.service, "settings", gone)
    with pytest.raises(SubmissionError, match="would lose its labels"):
        annotating.publish(GRACE, "why")


def test_the_discussion_shows_each_person_only_what_they_have_done(annotating):
    one, two = queue_of(annotating, ADA)[:2]
    annotating.save(one, said("unsure", comment="which shop?"), 0, ADA)
    annotating.save(two, said("unsure"), 0, ADA)
    annotating.save(two, said("yes"), 0, BOB)
    for actor in (ADA, BOB):  # until then what they finished last can be undone, and stays blind
        annotating.save(queue_of(annotating, ADA)[3], said("yes"), 0, actor)
    state = annotating.now()

    def seen(who, is_maintainer=False):
        return {talk.item.trajectory_id for talk in discussion_items(state, who, is_maintainer)}

    assert seen("annotator-1") == {one, two}
    assert seen("annotator-2") == {two}
    assert seen("annotator-2", is_maintainer=True) == {two}
    assert seen(None, is_maintainer=True) == {one, two}
    assert seen(None) == set()
    (talk,) = [talk for talk in discussion_items(state, None, True) if talk.item.trajectory_id == one]
    assert (talk.comments, talk.open) == (("which shop?",), ("success",))
    annotating.resolve(one, "success", "yes", "any shop", GRACE)
    (talk,) = [
        talk for talk in discussion_items(annotating.now(), None, True) if talk.item.trajectory_id == one
    ]
    assert talk.open == ()
    assert "unsure" not in repr(talk)


def test_the_log_of_records_tells_no_answer(annotating):
    name = queue_of(annotating, ADA)[0]
    annotating.save(name, said("unsure", comment="SECRET"), 0, ADA)
    annotating.resolve(name, "success", "no", "SECRET", GRACE)
    told = {record["kind"]: record["body"] for record in log_of(annotating.service)}
    assert told["annotated"] == {"trajectory_id": name, "annotator": "annotator-1", "is_done": True}
    assert told["resolved"] == {"trajectory_id": name, "question": "success"}


def test_agreement_is_that_of_the_answers_before_any_decision(annotating):
    names = queue_of(annotating, ADA)
    for place, name in enumerate(names):
        annotating.save(name, said("yes"), 0, ADA)
        annotating.save(name, said("no" if place == 0 else "yes"), 0, BOB)
    annotating.resolve(names[0], "success", "yes", "Ada is right", GRACE)
    report = annotating.agreement()
    assert (report.doubled, report.questions["success"].overall.percent) == (4, 0.75)  # 3 of 4 equal
