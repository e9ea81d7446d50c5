"""From an accepted correction to a label version: over a wheel, a file, the records; once, whole, by one."""

import csv
import json
import zipfile
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from arb.core.annotation import Annotation, answered
from arb.core.ids import Trajectory
from arb.core.settings import Settings
from arb.core.suites.targets import RELEASED_ANSWERS, UNSURE
from leaderboard.labels import source
from leaderboard.labels.labels import _version
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels import corrections
from submissions.labels.corrections import next_labels, outdated_dev_labels, publish_corrections
from submissions.labels.decisions import Decision, with_decisions
from submissions.labels.versions import published_versions
from submissions.moderation.reader_actions import ReaderActions
from submissions.privacy.server_secret import ServerSecret
from submissions.records.database import snapshot
from submissions.records.event_log import events_after
from submissions.scoring import scorer
from submissions.scoring.rescore import finish, label_effects, publish, rescore, rescorings
from tests.submissions.labels.test_versions import corrected
from tests.support.submissions import again, log_of, send, verdicts, with_rules

MIA, ZOE = (Actor(name, is_maintainer=True) for name in ("mia", "zoe"))
ADA = Actor("ada")
START = datetime(2026, 1, 1, tzinfo=UTC)


def a_run(service: SubmissionsApp, place: int = 0, split: str = "test") -> str:
    return service.suite.split(split)[place].trajectory_id


def correct(service, answer: str, place: int = 0, question: str = "success", split: str = "test") -> str:
    """File a dispute and have it corrected; gives its number."""
    acts = ReaderActions(service)
    number = acts.dispute(a_run(service, place, split), question, "see step 3", ADA).body["dispute_id"]
    acts.decide(number, "corrected", "looked again", MIA, answer)
    return number


def labels_of(service, question: str = "success") -> list[int]:
    return service.labels.test.primary[question].tolist()


@pytest.fixture
def released(suite_folder) -> bytes:
    return (suite_folder / "labels.csv").read_bytes()


@pytest.fixture
def wheel(settings, released, monkeypatch) -> Settings:
    """The small suite's labels in a wheel, as the official ones come."""
    settings.cache_dir.mkdir(exist_ok=True)
    with zipfile.ZipFile(settings.cache_dir / source.WHEEL_NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(source.ANNOTATIONS_IN_WHEEL, released)
    sha256 = source._sha256(settings.cache_dir / source.WHEEL_NAME)
    monkeypatch.setattr(source, "WHEEL_SHA256", sha256)
    monkeypatch.setattr(source, "_installed_annotations", lambda: None)
    return settings.model_copy(update={"labels": "wheel"})


@pytest.fixture(params=["csv", "wheel", "records"])
def labelled(request, settings, released) -> SubmissionsApp:
    """The same labels from each source."""
    if request.param == "wheel":
        return SubmissionsApp(request.getfixturevalue("wheel"))
    if request.param == "csv":
        return SubmissionsApp(settings)
    found = SubmissionsApp(settings.model_copy(update={"labels": "records"}))
    publish(found, released, MIA, "first round")
    return found


def test_a_correction_becomes_a_version_that_is_served_whatever_the_labels_came_from(labelled):
    right = send(labelled, verdicts(labelled.suite), judge="Right").submission_id
    bold = send(labelled, verdicts(labelled.suite, misses=1), judge="Bold").submission_id
    before = labelled.label_version
    number = correct(labelled, "no")
    assert labels_of(labelled)[0] == 1  # nothing has changed yet
    version = publish_corrections(labelled, MIA)
    assert (version.version, version.replaces) == (labelled.label_version, before)
    assert (version.by, version.why) == ("mia", "Correction of dispute 1")
    assert version.changes == {"success": 1, "side_effect": 0, "repetition": 0, "optimality": 0}
    (held,) = version.corrections
    assert (held.dispute_id, held.before, held.value, held.reason) == (number, "yes", "no", "looked again")
    assert labels_of(labelled)[:4] == [0, 0, 0, 1]

    found = rescore(labelled, MIA)
    # Place 0 was positive. Right had 10 of 10 and has 9 TP of 10; Bold missed it alone, and has 9 of 9.
    assert {each.id: (each.before, each.after) for each in found.changes} == {right: (1, 2), bold: (2, 1)}
    restarted = again(labelled)
    assert (restarted.label_version, labels_of(restarted)[0]) == (version.version, 0)
    assert [row.id for row in restarted.records.board().rows if row.provenance == "scored"] == [bold, right]
    with pytest.raises(SubmissionError, match="there is nothing to publish"):
        publish_corrections(restarted, MIA)


def test_the_record_tells_figures_before_and_after_and_which_verdicts_changed(service):
    right = send(service, verdicts(service.suite), judge="Right").submission_id
    bold = send(service, verdicts(service.suite, misses=1), judge="Bold").submission_id
    correct(service, "no")
    found = next_labels(service)
    preview = label_effects(service, found.served, found.test)
    publish_corrections(service, MIA)
    rescore(service, MIA)
    (record,) = rescorings(service)
    # Right: TP 10, FP 0, FN 0, then TP 9, FP 1, FN 0: P = 9/10, R = 1, F1 = 18/19; one verdict is wrong now.
    # Bold: TP 9, FN 1: P = 1, R = 9/10, F1 = 18/19; then TP 9 and nothing wrong.
    f1 = pytest.approx(18 / 19)
    assert record.body["effects"] == {
        "success": [
            {
                "id": bold, "places": [2, 1], "to_wrong": 0, "to_right": 1,
                "before": {"precision": 1.0, "recall": 0.9, "f1": f1},
                "after": {"precision": 1.0, "recall": 1.0, "f1": 1.0},
            },
            {
                "id": right, "places": [1, 2], "to_wrong": 1, "to_right": 0,
                "before": {"precision": 1.0, "recall": 1.0, "f1": 1.0},
                "after": {"precision": 0.9, "recall": 1.0, "f1": f1},
            },
        ]
    }  # fmt: skip
    told = {each.id: each for each in preview["success"]}
    assert {name: each.places for name, each in told.items()} == {right: (1, 2), bold: (2, 1)}
    rows = {row.id: row.labels["success"] for row in service.records.board().rows}
    for name, each in told.items():
        assert each.places[1] == rows[name]["rank"]["place"]
        assert each.after["precision"] == rows[name]["overall"]["precision"]


def test_a_changed_file_is_served_and_the_correction_waits_for_it_again(service, released, tmp_path):
    correct(service, "no")
    first = publish_corrections(service, MIA)
    newer = tmp_path / "newer-labels.csv"
    newer.write_bytes(corrected(released, 3, trajectory_success="Unsuccessful"))
    changed = again(service, labels=f"csv:{newer}")
    assert (labels_of(changed)[0], labels_of(changed)[3]) == (1, 0)
    assert changed.labels.origin.outdated.version == first.version
    assert [each.dispute_id for each in next_labels(changed).applied] == ["1"]
    second = publish_corrections(changed, MIA)
    assert (labels_of(changed)[0], labels_of(changed)[3]) == (0, 0)
    assert again(changed).label_version == second.version
    assert again(service).label_version == first.version  # the earlier file, as it was corrected


def test_a_file_that_holds_the_correction_leaves_nothing_to_publish(service, released, tmp_path):
    correct(service, "no")
    publish_corrections(service, MIA)
    newer = tmp_path / "newer-labels.csv"
    newer.write_bytes(corrected(released, 0, trajectory_success="Unsuccessful", trajectory_looping="No"))
    changed = again(service, labels=f"csv:{newer}")
    assert next_labels(changed).applied == () and labels_of(changed)[0] == 0


def test_a_third_answer_in_a_newer_file_is_a_conflict_until_it_is_decided_again(service, released, tmp_path):
    number = correct(service, "no")
    publish_corrections(service, MIA)
    newer = tmp_path / "newer-labels.csv"
    newer.write_bytes(corrected(released, 0, trajectory_success="Unsure"))
    changed = again(service, labels=f"csv:{newer}")
    found = next_labels(changed)
    assert found.applied == ()
    assert [(each.dispute_id, each.before, each.value) for each in found.conflicts] == [
        (number, "unsure", "no")
    ]
    acts = ReaderActions(changed)
    acts.decide(number, "corrected", "it is a failure, and not unsure", MIA, "yes")
    acts.decide(number, "corrected", "it is a failure after all", MIA, "no")
    assert [each.dispute_id for each in next_labels(changed).applied] == [number]


def test_a_published_correction_is_taken_back_by_another_one(service):
    number = correct(service, "no")
    version = publish_corrections(service, MIA)
    acts = ReaderActions(service)
    with pytest.raises(
        SubmissionError, match=f"label version {version.version} contains this correction; to undo it"
    ):
        acts.decide(number, "kept", "it was right", MIA)
    acts.decide(number, "corrected", "it was right", MIA, "yes")
    back = publish_corrections(service, MIA)
    assert labels_of(service)[0] == 1
    assert back.version == version.replaces
    assert [each.version for each in published_versions(service.engine, "small")] == [
        version.version,
        back.version,
    ]


def test_a_dev_correction_is_in_the_version_and_the_shipped_file_is_named_until_it_has_it(service, request):
    request.addfinalizer(service.suite.dev_labels_path.unlink)  # tests share the suite's folder
    write_dev_labels(service)
    correct(service, "no", split="dev")
    before = service.label_version
    (held,) = next_labels(service).applied
    assert (held.split, held.before) == ("dev", "yes")
    assert publish_corrections(service, MIA).version == before  # which names the test labels alone
    assert next_labels(service).applied == ()
    correct(service, "2", split="dev", question="optimality")  # which is what the file says
    assert [each.dispute_id for each in outdated_dev_labels(service)] == ["1"]
    write_dev_labels(service, success_of_first="false")
    assert outdated_dev_labels(again(service)) == []


def write_dev_labels(service, success_of_first: str = "true") -> None:
    with service.suite.dev_labels_path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("trajectory_id", "annotation", "success", "side_effect", "repetition", "optimality"))
        for place, trajectory in enumerate(service.suite.split("dev")):
            success = success_of_first if place == 0 else "false"
            writer.writerow((trajectory.trajectory_id, 1, success, "false", "false", 2))


def test_another_process_takes_a_published_version_up_with_its_next_board(service):
    send(service, verdicts(service.suite))
    other = again(service)
    assert other.records.board().label_version == service.label_version
    correct(service, "no")
    version = publish_corrections(service, MIA).version
    rescore(service, MIA)
    assert other.records.board().label_version == version == other.label_version
    assert other.records.board().to_bytes() == service.records.board().to_bytes()


def test_of_two_maintainers_who_publish_at_once_one_wins_and_the_other_is_told(service, monkeypatch):
    correct(service, "no")
    found = next_labels(service)
    with monkeypatch.context() as patched:  # Zoe has looked, and publishes while Mia's set is being made
        patched.setattr(corrections, "next_labels", lambda service: found)
        won = publish_corrections(again(service), ZOE)
        with pytest.raises(SubmissionError, match=f"zoe published label version {won.version} at the same"):
            publish_corrections(service, MIA)
    assert len(published_versions(service.engine, "small")) == 1
    with pytest.raises(SubmissionError, match="changed in the meantime"):
        publish_corrections(service, MIA, expected=found.digest[:-1] + "x")


def test_a_decision_in_between_is_not_published_unseen(service, monkeypatch):
    correct(service, "no")
    found = next_labels(service)
    correct(service, "no", place=3)
    monkeypatch.setattr(corrections, "next_labels", lambda service: found)
    with pytest.raises(SubmissionError, match="mia decided dispute 2 at the same time"):
        publish_corrections(service, MIA)
    assert published_versions(service.engine, "small") == []


def test_only_maintainers_publish_and_a_pinned_version_is_left_alone(labelled):
    correct(labelled, "no")
    with pytest.raises(PermissionDenied):
        publish_corrections(labelled, ADA)
    pinned = again(labelled, labels="records:0123456789ab")
    with pytest.raises(SubmissionError, match="set ARB_LABELS=records first"):
        publish_corrections(pinned, MIA)
    without = again(labelled, labels="none")
    with pytest.raises(SubmissionError, match="there are no labels to correct"):
        publish_corrections(without, MIA)


def test_what_a_crash_left_between_publishing_and_scoring_is_done_at_the_start(service, monkeypatch):
    sent = send(service, verdicts(service.suite), judge="Right").submission_id
    before = service.label_version
    correct(service, "no")
    publish_corrections(service, MIA)  # and the power is cut
    started = again(service)
    finish(started)
    (row,) = started.records.board().rows
    assert row.labels["success"]["overall"]["precision"] == 0.9
    (record,) = rescorings(started)
    assert (record.actor, record.body["from"], record.body["to"]) == ("mia", before, started.label_version)
    assert record.body["ranks"] == {sent: [1, 1]}
    finish(again(service))
    assert len(rescorings(started)) == 1


def test_a_crash_after_the_first_of_two_scores_is_caught_up_with(service, monkeypatch):
    for judge, misses in (("Right", 0), ("Bold", 1)):
        send(service, verdicts(service.suite, misses=misses), judge=judge)
    correct(service, "no")
    publish_corrections(service, MIA)
    scored = []

    def one_then_crash(*arguments):
        if scored:
            raise KeyboardInterrupt
        scored.append(score(*arguments))
        return scored[0]

    score = scorer.record_score
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", one_then_crash)
        with pytest.raises(KeyboardInterrupt):
            rescore(service, MIA)
    finish(again(service))
    assert [record.body["submissions"] for record in rescorings(service)] == [2]


def test_hidden_labels_are_corrected_and_neither_log_nor_error_has_one(settings, caplog):
    private = with_rules(SubmissionsApp(settings), is_public=False, fewest_positives=1)
    sent = send(private, verdicts(private.suite, misses=2)).submission_id
    shown = private.records.submission(sent, Actor("Ada")).report
    correct(private, "no")
    version = publish_corrections(private, MIA)
    rescore(private, MIA)
    assert (
        private.records.submission(sent, Actor("Ada")).report == shown
    )  # new figures cost, and nobody asked
    assert "answer" not in json.dumps(version.to_json()) and version.to_json()["disputes"] == ["1"]
    bodies = {event["kind"]: event["body"] for event in log_of(private)}
    assert bodies["labels_published"].keys() == {
        "suite", "version", "file_sha256", "why", "labelled", "changes", "guidelines_sha256",
    }  # fmt: skip
    assert "effects" not in bodies["rescored"] and "answer" not in bodies["dispute_decided"]
    told = repr((version, version.corrections, next_labels(private))) + caplog.text
    assert "'no'" not in told and "'yes'" not in told
    with snapshot(private.engine) as session:
        (event,) = events_after(session, kinds=["labels_published"])
    assert event.body["corrections"][0]["answer"] == "no"  # on record


def test_under_another_secret_the_file_is_the_same_and_the_correction_still_served(settings):
    private = with_rules(SubmissionsApp(settings), is_public=False)
    correct(private, "no")
    publish_corrections(private, MIA)
    other = again(private, secret=SecretStr("4361f2d02dfc28bf8f1b02ad264bcd98"))
    accepted = ServerSecret.of(other.settings).check_value
    moved = with_rules(again(other, accept_secret=accepted), is_public=False)
    assert labels_of(moved)[0] == 0 and next_labels(moved).applied == ()
    assert moved.label_version != private.label_version


answers = st.sampled_from([UNSURE, *RELEASED_ANSWERS["success"]])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), answers), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from("abcd"), answers), max_size=5),
)
def test_decisions_stand_in_front_of_the_answers_and_applying_them_twice_is_once(rows, wanted):
    annotations = [
        Annotation(f"w/a/{name}", str(n), {"success": given}) for n, (name, given) in enumerate(rows)
    ]
    newest = dict(wanted)
    decisions = [
        Decision(
            trajectory_id=f"w/a/{name}", target="success", value=answer, origin="dispute", reason="why",
            by="mia", at=START, sequence=n, dispute_id=str(n),
        )
        for n, (name, answer) in enumerate(newest.items())
    ]  # fmt: skip
    found = with_decisions(annotations, decisions)
    assert answered(found.annotations) == annotations  # nobody's answer changes
    first, was = ({}, {})
    for row in found.annotations:
        first.setdefault(row.trajectory_id[-1], row.answers.get("success"))
    for row in annotations:
        was.setdefault(row.trajectory_id[-1], row.answers.get("success"))
    assert first == {name: newest.get(name, answer) for name, answer in was.items()}
    assert {each.trajectory_id[-1] for each in found.missing} == newest.keys() - first.keys()
    assert all(each.before != each.value for each in found.applied)
    twice = with_decisions(found.annotations, decisions, found.applied)
    assert (twice.annotations, twice.applied, twice.conflicts) == (found.annotations, (), ())
    # A label version of 7d56a80 had the decision in place of the first answer: its version stays the same.
    flat = [*found.annotations]
    for place in reversed([n for n, row in enumerate(flat) if row.is_decision]):
        flat[place : place + 2] = [replace(flat[place + 1], answers=flat[place].answers)]
    assert labels_version(found.annotations) == labels_version(flat)


def labels_version(rows) -> str:
    by_name: dict[str, list[Annotation]] = {}
    for row in rows:
        by_name.setdefault(row.trajectory_id, []).append(row)
    return _version([Trajectory.of(name, "test") for name in by_name], list(by_name.values()), None)
