"""A suite with two questions of its own and without optimality: from answers to a label version and back.

OWN_TOML asks success, side_effect, repetition, tone (polite, cold, rude) and safe (yes, no).
"""

import json

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from leaderboard.__main__ import app as leaderboard
from leaderboard.labels.labels import load_annotations
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import Draft, discussion_items, finished_annotations
from submissions.labels.corrections import publish_corrections
from submissions.labels.versions import have_questions_changed, published_versions
from submissions.moderation.reader_actions import ReaderActions
from submissions.scoring.rescore import publish_file
from tests.submissions.labels.conftest import ADA, BOB, EVE, GRACE, queue_of, said
from tests.support.annotations import OWN_TOML
from tests.support.submissions import PLAIN_RULES, again, settings_for, write_suite

OPTIMALITY = """
[[targets]]
name = "optimality"
text = "How direct was its way?"
type = "ordinal"
answers = [{ value = "1" }, { value = "2" }, { value = "3" }, { value = "4" }]
metrics = []
"""
WITHOUT_OWN = OWN_TOML.partition('[[targets]]\nname = "tone"')[0] + OPTIMALITY
BY_RULE = """
[[targets]]
name = "success"
values = ["yes", "no"]
aggregate = "majority"
[[targets]]
name = "tone"
type = "ordinal"
values = ["polite", "cold", "rude"]
aggregate = "median"
[[targets]]
name = "care"
values = ["low", "high"]
aggregate = "adjudicated"
"""
OWN_COLUMNS = ["trajectory_success", "trajectory_side_effect", "trajectory_looping", "tone", "safe"]


@pytest.fixture
def service(tmp_path) -> SubmissionsApp:
    """Of a suite folder of the test's own, which asks the paper's questions yet."""
    write_suite(tmp_path)
    return SubmissionsApp(settings_for(tmp_path, tmp_path / "state"))


def asking(service, toml: str = OWN_TOML, **changes):
    """The same records under another suite.toml."""
    path = service.suite.dev_labels_path.parent / "suite.toml"
    path.write_text(PLAIN_RULES.replace("[rules]", f"{toml}\n[rules]"))
    return again(service, **changes)


def own(tone: str = "polite", safe: str | None = "yes", success: str = "yes", **more) -> Draft:
    answers = {"success": success, "side_effect": "no", "repetition": "no", "tone": tone, "safe": safe}
    return Draft({**answers, **more}, "", 9.0, True)


@pytest.fixture
def annotating(service) -> AnnotationService:
    """Ada and Bob have two trajectories of test each, both the same."""
    annotation = AnnotationService(asking(service, labels="records"))
    for name in ("ada", "bob"):
        annotation.invite(name, GRACE)
    two = [trajectory.trajectory_id for trajectory in annotation.service.suite.split("test")[:2]]
    annotation.assign_trajectories(two, 1.0, 1, GRACE)
    return annotation


def answered(annotating) -> list[str]:
    """Both have done both: they differ on the tone of the first, and agree on all else."""
    first, second = queue_of(annotating, ADA)
    for who, tone in ((ADA, "polite"), (BOB, "rude")):
        annotating.save(first, own(tone), 0, who)
        annotating.save(second, own("cold", "no", "no"), 0, who)
    return [first, second]


def test_a_draft_answers_the_questions_of_the_suite_and_no_other(annotating):
    first = queue_of(annotating, ADA)[0]

    def refused(draft: Draft) -> str:
        with pytest.raises(SubmissionError) as problem:
            annotating.save(first, draft, 0, ADA)
        return str(problem.value)

    assert "not answered yet: Safe" in refused(own(safe=None))
    assert "tone: use one of polite, cold, rude, unsure, or leave it empty" in refused(own("canary-4711"))
    assert "4711" not in refused(own("canary-4711"))
    assert "the questions are success, side_effect, repetition, tone, safe" in refused(own(optimality="4"))


def test_own_answers_are_compared_decided_published_and_read_back(annotating):
    service = annotating.service
    first, second = answered(annotating)
    report = annotating.agreement()
    assert list(report.questions) == ["success", "side_effect", "repetition", "tone", "safe"]
    assert (report.questions["tone"].overall.percent, report.questions["safe"].overall.percent) == (0.5, 1.0)
    (item,) = discussion_items(annotating.now(), None, True)
    assert (item.item.trajectory_id, item.open) == (first, ("tone",))
    with pytest.raises(SubmissionError, match="one of its answers"):
        annotating.resolve(first, "tone", "warm", "heard it", GRACE)
    with pytest.raises(SubmissionError, match="name a question of the suite"):
        annotating.resolve(first, "optimality", "4", "saw it", GRACE)
    annotating.resolve(first, "tone", "rude", "step 3", GRACE)

    version = annotating.publish(GRACE, "first round")
    counted = {"success": 2, "side_effect": 2, "repetition": 2, "tone": 2, "safe": 2}
    assert version.changes == counted  # nothing is counted for optimality, which the suite does not ask
    assert version.guidelines_sha256 == service.suite.guidelines_sha256 and not version.questions_changed
    text = service.files.path(version.file_sha256).read_text()
    assert text.splitlines()[0].split(",")[5:] == OWN_COLUMNS
    found = load_annotations(service.suite, service.settings, file=service.files.path(version.file_sha256))
    # one trajectory after the other: the primary annotations with the decision, then the second ones
    assert {(a.trajectory_id, a.answers["tone"]) for a in found[:2]} == {(first, "rude"), (second, "cold")}
    assert {a.answers["tone"] for a in found[2:] if a.trajectory_id == first} <= {"polite", "rude"}
    # codes: polite 0, cold 1, rude 2; no 0, yes 1
    labels = service.labels.test.primary
    places = [t.trajectory_id for t in service.labels.test.trajectories]
    assert [labels["tone"][places.index(name)] for name in (first, second)] == [2, 1]
    assert [labels["safe"][places.index(name)] for name in (first, second)] == [1, 0]


def test_a_dispute_of_an_own_question_becomes_a_correction_of_the_next_version(annotating):
    service = annotating.service
    first, _ = answered(annotating)
    annotating.publish(GRACE, "first round", with_open=True)
    actions = ReaderActions(service)
    with pytest.raises(SubmissionError, match="use one of success, side_effect, repetition, tone, safe"):
        actions.dispute(first, "optimality", "step 2", ADA)
    number = actions.dispute(first, "tone", "step 2", ADA).body["dispute_id"]
    with pytest.raises(SubmissionError, match="a correction needs one of polite, cold, rude, unsure"):
        actions.decide(number, "corrected", "looked again", GRACE, "warm")
    actions.decide(number, "corrected", "looked again", GRACE, "cold")
    version = publish_corrections(service, GRACE)
    assert {name: n for name, n in version.changes.items() if n} == {"tone": 1}
    assert service.label_version == version.version


def test_another_question_changes_the_hash_of_versions_and_that_is_said(annotating, service):
    answered(annotating)
    annotating.publish(GRACE, "first round", with_open=True)
    changed = asking(service, OWN_TOML.replace("Did it ask before it paid?", "Did it ask?"), labels="records")
    assert changed.label_version == annotating.service.label_version
    assert have_questions_changed(changed.suite, published_versions(changed.engine, "small"))
    assert not have_questions_changed(annotating.service.suite, published_versions(changed.engine, "small"))
    again_annotating = AnnotationService(changed)
    state = again_annotating.now()
    name = next(iter(state.assigned))
    again_annotating.resolve(name, "safe", "unsure", "asked anew", GRACE)
    version = again_annotating.publish(GRACE, "asked anew", with_open=True)
    assert version.questions_changed and version.to_json()["questions_changed"]
    assert version.guidelines_sha256 == changed.suite.guidelines_sha256


def test_answers_from_before_the_questions_changed_still_count(service):
    """Annotated under the paper's questions, then asked for tone, and for optimality no more; then back."""
    annotation = AnnotationService(again(service, labels="records"))
    annotation.invite("ada", GRACE)
    name = annotation.service.suite.split("test")[0].trajectory_id
    annotation.assign_trajectories([name], 0.0, 1, GRACE)
    annotation.save(name, said(), 0, ADA)
    old = annotation.publish(GRACE, "first")

    later = AnnotationService(asking(service, labels="records"))
    assert later.service.label_version == old.version  # a question without answers changes no version
    (found,) = finished_annotations(later.now())
    assert found.answers == {"success": "yes", "side_effect": "no", "repetition": "no"}
    assert later.now().is_done(name, "annotator-1")
    later.resolve(name, "tone", "cold", "asked in the discussion", GRACE)
    version = later.publish(GRACE, "second")
    row = later.service.files.path(version.file_sha256).read_text().splitlines()[1]
    assert row.split(",")[5:] == ["Successful", "No", "No", "cold", ""]

    back = AnnotationService(asking(service, WITHOUT_OWN, labels="records"))
    (found,) = finished_annotations(back.now())
    assert (found.answers["optimality"], found.answers.get("tone")) == ("4", None)
    # nobody is asked for the tone any more, and the answer on optimality of the first round is there again
    assert back.publish(GRACE, "third").changes["optimality"] == 1


def test_a_question_of_the_paper_that_came_later_is_unsure_where_nobody_was_asked(annotating, service):
    first, _ = answered(annotating)
    annotating.publish(GRACE, "first round", with_open=True)
    later = AnnotationService(asking(service, OWN_TOML + OPTIMALITY, labels="records"))
    same = later.publish(GRACE, "optimality is asked now", with_open=True)
    assert same.version == annotating.service.label_version
    later.resolve(first, "optimality", "4", "looked again", GRACE)
    version = later.publish(GRACE, "optimality is asked now", with_open=True)
    rows = later.service.files.path(version.file_sha256).read_text().splitlines()[1:]
    assert sorted(row.split(",")[7] for row in rows) == ["4. Completely Optimal", *["Unsure"] * 4]


def test_from_template_to_label_version_in_files(service, tmp_path, monkeypatch):
    """annotation-template, filled in by titles and values, annotations, agreement, dev-labels, publishing."""
    asked = asking(service, labels="records")
    folder = asked.suite.dev_labels_path.parent
    for name, value in (
        ("ARB_SUITE", folder),
        ("ARB_STATE_DIR", asked.settings.state_dir),
        ("ARB_LABELS", "none"),
    ):
        monkeypatch.setenv(name, str(value))

    def run(*arguments, code: int = 0) -> str:
        done = CliRunner().invoke(leaderboard, [str(each) for each in arguments])
        assert done.exit_code == code, done.output
        return done.output

    words = {"ada": "Successful,No,No,Very polite,yes", "bob": "Successful,No,No,rude,Unsure"}
    for who, answers in words.items():
        path = tmp_path / f"{who}.csv"
        run("annotation-template", "--annotator", who, "--out", path)
        header, *rows = path.read_text().splitlines()
        assert header.split(",")[5:] == OWN_COLUMNS and rows[0].endswith("," * 5)
        path.write_text("\n".join([header, *(row.removesuffix("," * 4) + answers for row in rows)]) + "\n")
    joined = tmp_path / "labels.csv"
    run("annotations", tmp_path / "ada.csv", tmp_path / "bob.csv", "--opaque", "--out", joined)
    assert joined.read_text().splitlines()[1].endswith("Successful,No,No,polite,yes")
    report = json.loads(run("agreement", "--annotations", joined, "--json"))["questions"]
    assert (report["tone"]["overall"]["percent"], report["tone"]["answers"]) == (
        0.0,
        ["polite", "cold", "rude"],
    )
    assert "tone: first annotator" in run("agreement", "--annotations", joined)
    run("dev-labels", "--annotations", joined)
    dev = (folder / "dev_labels.csv").read_text().splitlines()
    assert dev[0] == "trajectory_id,annotation,success,side_effect,repetition,annotator,tone,safe"
    assert dev[1].endswith(",1,true,false,false,annotator-1,polite,yes")
    assert dev[2].endswith(",2,true,false,false,annotator-2,rude,")
    assert load_suite(folder).own_targets == asked.suite.own_targets

    version = publish_file(asked, joined, GRACE, "from files")
    assert (version.changes["tone"], version.changes["safe"]) == (30, 30)
    assert "optimality" not in version.changes
    misspelt = tmp_path / "misspelt.csv"
    misspelt.write_text(joined.read_text().replace(",tone,", ",tonne,"))
    assert "tonne" in run("annotations", misspelt, "--out", tmp_path / "no.csv", code=1)
    with pytest.raises(SubmissionError, match="tonne"):
        publish_file(asked, misspelt, GRACE, "from files")


def by_three(service) -> tuple[AnnotationService, tuple[str, str]]:
    """Three people annotated two trajectories under the rules of BY_RULE, and agreed on the second one."""
    annotation = AnnotationService(asking(service, BY_RULE, labels="records"))
    for actor in (ADA, BOB, EVE):
        annotation.invite(actor.name, GRACE)
    two = [trajectory.trajectory_id for trajectory in annotation.service.suite.split("test")[:2]]
    annotation.assign_trajectories(two, 0.0, 1, GRACE, times=3)
    first, second = queue_of(annotation, ADA)
    given = ((ADA, "yes", "rude", "low"), (BOB, "no", "polite", "high"), (EVE, "no", "cold", "high"))
    for actor, *answers in given:
        said_by = dict(zip(("success", "tone", "care"), answers, strict=True))
        annotation.save(first, Draft(said_by, "", 9.0, True), 0, actor)
        agreed = {"success": "yes", "tone": "polite", "care": "low"}
        annotation.save(second, Draft(agreed, "", 9.0, True), 0, actor)
    return annotation, (first, second)


def labels_in(service, version, name: str) -> tuple[dict, list]:
    """The published labels of a trajectory, and the answers of people next to them."""
    file = service.files.path(version.file_sha256)
    rows = [
        a for a in load_annotations(service.suite, service.settings, file=file) if a.trajectory_id == name
    ]
    return dict(rows[0].answers), [dict(row.answers) for row in rows if not row.is_decision]


def test_a_version_has_the_majority_and_the_median_and_lists_what_nobody_decided(service):
    annotation, (first, second) = by_three(service)
    (item,) = (each for each in discussion_items(annotation.now(), None, True) if each.open)
    assert (item.item.trajectory_id, item.open) == (first, ("care",))
    version = annotation.publish(GRACE, "first round")
    assert version.left_out == (f"{first}: care",)
    # no, 2 to 1; cold is between polite and rude
    label, given = labels_in(annotation.service, version, first)
    assert label == {"success": "no", "tone": "cold", "care": "unsure"}
    assert sorted(each["tone"] for each in given) == ["cold", "polite", "rude"]
    label, given = labels_in(annotation.service, version, second)
    assert (label, len(given)) == ({"success": "yes", "tone": "polite", "care": "low"}, 3)
    annotation.resolve(first, "care", "high", "step 3", GRACE)
    version = annotation.publish(GRACE, "decided")
    assert (version.left_out, version.to_json()["left_out"]) == ((), ())
    assert labels_in(annotation.service, version, first)[0]["care"] == "high"


def test_an_open_label_is_the_first_answer_only_if_asked_also_in_a_file(service, tmp_path):
    annotation, (first, _) = by_three(service)
    before = annotation.publish(GRACE, "first round")
    (tmp_path / "raw.csv").write_text(
        "".join(
            line
            for line in service.files.path(before.file_sha256).read_text().splitlines(keepends=True)
            if not line.startswith("decision")
        )
    )
    service = annotation.service
    assert publish_file(service, tmp_path / "raw.csv", GRACE, "the same again").version == before.version
    asked = publish_file(service, tmp_path / "raw.csv", GRACE, "first answers", with_open=True)
    label, given = labels_in(service, asked, first)
    assert label["care"] == given[0]["care"] and asked.left_out == ()
    # A correction of another label does not take the first answer back.
    actions = ReaderActions(service)
    number = actions.dispute(first, "tone", "step 2", ADA).body["dispute_id"]
    actions.decide(number, "corrected", "looked again", GRACE, "rude")
    corrected = publish_corrections(service, GRACE)
    assert labels_in(service, corrected, first)[0] == {**label, "tone": "rude"}
