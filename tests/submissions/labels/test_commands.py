"""`arb submissions annotate …`: what the page /discuss does, from a terminal."""

import json
from functools import partial
from pathlib import Path

import pytest

from arb.core.settings import Settings
from arb.core.suite import load_suite
from dataset_script import sample
from submissions.app import SubmissionsApp
from submissions.labels import commands
from submissions.labels.annotation_service import AnnotationService
from tests.submissions.conftest import invoke
from tests.submissions.labels.conftest import ADA, BOB, EVE, GRACE, queue_of, said


@pytest.fixture
def run(settings, service, monkeypatch, tmp_path):
    """Call a command over the synthetic suite, every trajectory of which the dataset has."""
    monkeypatch.chdir(tmp_path)
    ids = {trajectory.trajectory_id for trajectory in service.suite.trajectories}
    monkeypatch.setattr(commands, "_ids_in_dataset", lambda service: ids)
    return partial(invoke, settings.model_copy(update={"labels": "records"}), "annotate")


@pytest.fixture
def annotating(run, service) -> AnnotationService:
    """Ada and Bob, invited, each with all of four trajectories."""
    run("invite", "ada", "bob")
    done = run("assign", "--most", "4", "--percent-twice", "100")
    assert done.stdout == "8 assignments added\n"
    return AnnotationService(service)


def test_each_account_is_invited_and_every_problem_is_said(run):
    assert run("invite", "ada").stdout == "ada: annotator-1\n"
    done = run("invite", "ada", "bob", "")
    assert done.exit_code == 1
    assert done.stdout == "bob: annotator-2\n"
    assert done.stderr.splitlines() == [
        "error: ada: ada is already invited",
        ": write the account's name on one line, in up to 80 characters",
    ]
    found = json.loads(run("uninvite", "bob", "eve", "--json").stdout)
    assert found == {
        "accounts": [{"account": "bob", "annotator": None}], "problems": ["eve: this account is not invited"],
    }  # fmt: skip


def test_assigning_wants_somebody_who_is_invited(run):
    done = run("assign")
    assert done.exit_code == 1
    assert done.stderr == "error: no annotators have been invited yet; invite some first\n"


def test_assigning_wants_a_dataset_that_annotators_can_look_at(run, monkeypatch):
    monkeypatch.undo()
    # the shipped sample is there, and holds nothing of this suite
    done = run("assign")
    assert done.exit_code == 1
    assert "has no trajectory of" in done.stderr and "build it with" in done.stderr


def test_the_status_has_progress_and_every_open_question(run, annotating):
    one, two = queue_of(annotating, ADA)[:2]
    annotating.save(one, said("yes"), 0, ADA)
    annotating.save(one, said("no"), 0, BOB)
    annotating.save(two, said("yes", is_done=False), 0, ADA)
    found = json.loads(run("status", "--json").stdout)
    assert (found["assigned"], found["finished"]) == (4, 1)
    done = [(each["account"], each["n_done"], each["n_assigned"]) for each in found["annotators"]]
    assert done == [("ada", 1, 4), ("bob", 1, 4)]
    (item,) = found["open"]
    assert (item["trajectory_id"], item["question"]) == (one, "success")
    assert item["answers"] == {"annotator-1": "yes", "annotator-2": "no"}
    table = run("status").stdout
    assert "4 trajectories assigned, 1 finished by at least one annotator, 1 with an open question" in table
    assert one in table


def test_gold_items_come_on_top_of_what_is_assigned(run, annotating):
    one = queue_of(annotating, ADA)[0]
    annotating.save(one, said("yes"), 0, ADA)
    annotating.mark_gold(one, GRACE)
    run("invite", "eve")
    # Of 12 more each of three gets 4 first ones; a quarter of gold items on top is one, which Ada has met,
    # and Bob, in whose queue it is
    done = run("assign", "--most", "12", "--percent-twice", "0", "--percent-gold", "25")
    assert done.stdout == "13 assignments added\n"
    assert one in queue_of(annotating, EVE)


def test_a_question_is_decided_and_then_published_with_the_ranks(run, annotating):
    for name in queue_of(annotating, ADA):
        annotating.save(name, said("yes"), 0, ADA)
    name = queue_of(annotating, BOB)[0]
    annotating.save(name, said("no"), 0, BOB)
    done = run("resolve", name, "success", "no", "--reason", "never sent", "--maintainer", "grace")
    assert done.stdout == "1 question decided\n"
    decision = annotating.now().decided(name)["success"]
    assert (decision.value, decision.by, decision.reason) == ("no", "grace", "never sent")
    found = json.loads(run("publish", "--why", "first", "--json").stdout)
    assert (found["labelled"], found["changes"]["success"]) == (4, 4)
    assert found["rescored"]["after"] == found["version"]
    again = run("publish", "--why", "again").stdout
    assert found["version"] in again and "first" in again  # the newest already: nothing is published twice


def test_of_a_file_of_decisions_all_are_taken_or_none_with_every_problem(run, annotating, tmp_path):
    one, two = queue_of(annotating, ADA)[:2]
    annotating.save(one, said("yes"), 0, ADA)
    head = "trajectory_id,question,answer,reason\n"
    path = tmp_path / "decisions.csv"
    rows = [
        f"{one},success,no,seen",
        f"{two},success,no,seen",
        f"{one},success,maybe,x",
        "a/b/c,success,no,x",
        f"{one},side_effect,no,",
    ]
    path.write_text(head + "\n".join(rows))
    done = run("resolve", "--decisions", str(path))
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"error: decision 2, {two}: nobody has annotated this trajectory yet",
        f"decision 3, {one}: name a question of the suite, and one of its answers (or unsure)",
        "decision 4, a/b/c: this trajectory is not in the suite; use ids of the suite",
        f"decision 5, {one}: give a reason of up to 1,000 characters",
    ]
    assert annotating.now().decisions == {}
    path.write_text(head + rows[0] + f"\n{one},optimality,1,looked again\n")
    assert json.loads(run("resolve", "--decisions", str(path), "--json").stdout) == {"decided": 2}
    path.write_text("trajectory_id,question\n")
    assert "the columns answer, reason are missing" in run("resolve", "--decisions", str(path)).stderr


def three_annotated(run, service):
    """Ada, Bob and Eve all annotate four trajectories; return the service and the four ids."""
    run("invite", "ada", "bob", "eve")
    assert run("assign", "--most", "4", "--times", "3").stdout == "12 assignments added\n"
    annotations = AnnotationService(service)
    return annotations, sorted(queue_of(annotations, ADA))


def test_three_people_annotate_everything_and_the_majority_decides_what_it_can(run, service):
    annotations, (one, two, three, four) = three_annotated(run, service)
    given = {
        one: (
            ("yes", "4"),
            ("no", "1"),
            ("no", "2"),
        ),  # no 2 : 1; no majority of 4, 1, 2, and their median is 2
        two: (("yes", "4"), ("no", "4"), ("unsure", "4")),  # no majority
        three: (("yes", "4"), ("yes", "4"), ("yes", "4")),
        four: (("unsure", "3"), ("unsure", "3"), ("no", "3")),  # unsure 2 : 1
    }
    for name, answers in given.items():
        for actor, (success, optimality) in zip((ADA, BOB, EVE), answers, strict=True):
            annotations.save(name, said(success, optimality=optimality), 0, actor)
    done = run("resolve", "--rule", "majority", "--reason", "agreed in March")
    assert done.stdout == "2 questions decided; 2 stay open, because the rule gives no answer\n"
    decided = {name: annotations.now().decided(name) for name in given}
    assert (decided[one]["success"].value, decided[four]["success"].value) == ("no", "unsure")
    assert decided[one]["success"].reason == "majority of 3 answers: agreed in March"
    assert json.loads(run("resolve", "--rule", "median", "--json").stdout) == {"decided": 1, "open": 1}
    assert annotations.now().decided(one)["optimality"].value == "2"
    refused = run("publish", "--why", "first")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"1 question is open ({two}: success)" in refused.stderr and "--with-open" in refused.stderr
    assert json.loads(run("publish", "--why", "first", "--with-open", "--json").stdout)["labelled"] == 3


def test_people_per_trajectory_are_at_most_those_who_are_invited(run):
    run("invite", "ada", "bob")
    done = run("assign", "--times", "3")
    assert done.exit_code == 1
    assert "3 annotators per trajectory: 2 are invited; invite more annotators" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("a/b/c", "success"), ("a/b/c", "success", "yes", "--decisions")])
def test_deciding_takes_one_question_or_a_file(run, arguments, tmp_path):
    (tmp_path / "d.csv").write_text("trajectory_id,question,answer,reason\n")
    more = ["d.csv"] if arguments[-1:] == ("--decisions",) else []
    done = run("resolve", *arguments, *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "or a file with --decisions" in done.stderr


# -- Elsewhere and back


@pytest.fixture
def on_sample(tmp_path, monkeypatch):
    """Call a command over the shipped sample, whose dataset is there; Ada is invited."""
    monkeypatch.chdir(tmp_path)
    settings = Settings(suite="sample", labels="records", state_dir=tmp_path / "state")
    call = partial(invoke, settings, "annotate")
    assert call("invite", "ada").exit_code == 0
    return call


PAPERS = {"success": "yes", "side_effect": "no", "repetition": "no", "optimality": "4"}


def exported(folder, name, **answers):
    """Writes what Label Studio would give back: the first items of an export, answered by user 5."""
    tasks = json.loads((folder / "tasks.json").read_text())[:2]
    words = {**PAPERS, **answers}
    for task in tasks:
        result = [{"from_name": question, "value": {"choices": [word]}} for question, word in words.items()]
        task["annotations"] = [
            {"completed_by": 5, "result": result, "updated_at": "2026-02-03T04:05:06Z", "lead_time": 9.0}
        ]
    (folder.parent / name).write_text(json.dumps(tasks))


def test_items_go_out_and_their_answers_are_recorded_once_as_the_annotators_own(on_sample, tmp_path):
    done = on_sample("export", "--format", "label-studio", "--split", "test", "--out", "out")
    n_test = len(load_suite("sample").split("test"))
    assert done.stdout == f"{n_test} items written to out\n"
    exported(tmp_path / "out", "back.json")
    way = ("import", "back.json", "--format", "label-studio")
    refused = on_sample(*way)
    assert (refused.exit_code, refused.stderr.count("5: no invited account has this name")) == (1, 1)
    assert on_sample(*way, "--person", "5=ada").stdout == (
        "2 annotations recorded; 0 were already recorded\n"
    )
    service = SubmissionsApp(Settings(suite="sample", labels="records", state_dir=tmp_path / "state"))
    times = {saved.at.isoformat() for saved in AnnotationService(service).now().saved.values()}
    assert times == {"2026-02-03T04:05:06+00:00"}  # at which they were given
    assert on_sample(*way, "--person", "5=annotator-1").stdout == (
        "0 annotations recorded; 2 were already recorded\n"
    )
    (ada,) = json.loads(on_sample("status", "--json").stdout)["annotators"]
    assert (ada["n_done"], ada["n_assigned"], ada["seconds"]) == (2, 2, 9.0)
    exported(tmp_path / "out", "back.json", success="no")
    other = on_sample(*way, "--person", "5=ada")
    assert (
        other.exit_code == 1
        and other.stderr.count("other answers are already recorded; remove this annotation") == 2
    )


def test_answers_for_a_file_have_opaque_annotators_and_publish(on_sample, tmp_path):
    on_sample("export", "--format", "label-studio", "--split", "dev", "--out", "out")
    exported(tmp_path / "out", "back.json")
    done = on_sample("import", "back.json", "--format", "label-studio", "--out", "labels.csv", "--json")
    assert json.loads(done.stdout) == {"annotations": 2, "new": 2, "left_out": []}
    text = (tmp_path / "labels.csv").read_text()
    assert text.count("annotator-1,") == 2 and text.count(",Successful,No,") == 2
    again = on_sample("import", "back.json", "--format", "label-studio", "--out", "labels.csv")
    assert (again.exit_code, "already exists" in again.stderr) == (2, True)


def test_annotations_in_files_join_the_records_and_can_be_decided(on_sample, tmp_path):
    rows = (Path(sample.__file__).parent / "annotations.csv").read_text()
    (tmp_path / "both.csv").write_text(rows)
    on_sample("invite", "bob")
    done = on_sample("import", "both.csv", "--format", "csv")  # its annotators are annotator-1 and -2
    assert done.exit_code == 0 and done.stdout.endswith("recorded; 0 were already recorded\n")
    (item,) = json.loads(on_sample("status", "--json").stdout)["open"]
    assert item["question"] == "optimality"
    assert on_sample("resolve", item["trajectory_id"], "optimality", "1", "--reason", "seen").exit_code == 0
    assert json.loads(on_sample("publish", "--why", "first", "--json").stdout)["labelled"] > 0


def test_argilla_wants_the_address_of_the_pictures(on_sample):
    done = on_sample("export", "--format", "argilla", "--out", "out")
    assert done.exit_code == 2 and "--images" in done.stderr


def test_answers_are_not_read_with_the_secret_of_another_state_folder(on_sample, tmp_path):
    on_sample("export", "--format", "label-studio", "--split", "dev", "--out", "out")
    exported(tmp_path / "out", "back.json")
    (tmp_path / "state" / "secret").write_text("f904623db60da5dfeceb69ebfa05c872")
    done = on_sample("import", "back.json", "--format", "label-studio", "--out", "labels.csv")
    assert done.exit_code == 1 and "not the one that these records were made with" in done.stderr
    assert not (tmp_path / "labels.csv").exists()
