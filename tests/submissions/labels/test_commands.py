"""`python -m submissions annotate …`: what the page /discuss does, from a terminal."""

import json

import pytest
from typer.testing import CliRunner

from submissions.__main__ import app
from submissions.labels import commands
from submissions.labels.annotation_service import AnnotationService
from tests.submissions.labels.conftest import ADA, BOB, queue_of, said


@pytest.fixture
def run(settings, service, monkeypatch, tmp_path):
    """Call a command over the synthetic suite, every trajectory of which the dataset has."""
    monkeypatch.chdir(tmp_path)
    ids = {trajectory.trajectory_id for trajectory in service.suite.trajectories}
    monkeypatch.setattr(commands, "_ids_in_dataset", lambda service: ids)
    variables = {
        "ARB_SUITE": settings.suite, "ARB_LABELS": "records", "ARB_STATE_DIR": str(settings.state_dir),
        "ARB_CACHE_DIR": str(settings.cache_dir),
    }  # fmt: skip

    def call(*arguments: str):
        done = CliRunner().invoke(app, ["annotate", *arguments], env=variables)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return call


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
        ": name the account, in up to 80 characters on one line",
    ]
    found = json.loads(run("uninvite", "bob", "eve", "--json").stdout)
    assert found == {
        "accounts": [{"account": "bob", "annotator": None}], "problems": ["eve: this account is not invited"],
    }  # fmt: skip


def test_assigning_wants_somebody_who_is_invited(run):
    done = run("assign")
    assert (done.exit_code, done.stderr) == (1, "error: nobody is invited yet: invite annotators first\n")


def test_assigning_wants_a_dataset_that_annotators_can_look_at(run, monkeypatch):
    monkeypatch.undo()
    # the shipped sample is there, and holds nothing of this suite
    done = run("assign")
    assert done.exit_code == 1
    assert "has no trajectory of" in done.stderr and "make it by `build`" in done.stderr


def test_the_status_has_progress_and_every_open_question(run, annotating):
    one, two = queue_of(annotating, ADA)[:2]
    annotating.actions.save(one, said("yes"), 0, ADA)
    annotating.actions.save(one, said("no"), 0, BOB)
    annotating.actions.save(two, said("yes", is_done=False), 0, ADA)
    found = json.loads(run("status", "--json").stdout)
    assert (found["assigned"], found["finished"]) == (4, 1)
    done = [(each["account"], each["n_done"], each["n_assigned"]) for each in found["annotators"]]
    assert done == [("ada", 1, 4), ("bob", 1, 4)]
    (item,) = found["open"]
    assert (item["trajectory_id"], item["question"]) == (one, "success")
    assert item["answers"] == {"annotator-1": "yes", "annotator-2": "no"}
    table = run("status").stdout
    assert "4 trajectories assigned, 1 finished by somebody, 1 with an open question" in table
    assert one in table


def test_a_question_is_decided_and_then_published_with_the_ranks(run, annotating):
    for name in queue_of(annotating, ADA):
        annotating.actions.save(name, said("yes"), 0, ADA)
    name = queue_of(annotating, BOB)[0]
    annotating.actions.save(name, said("no"), 0, BOB)
    done = run("resolve", name, "success", "no", "--reason", "never sent", "--maintainer", "grace")
    assert done.stdout == "1 question decided\n"
    decision = annotating.now().decided(name)["success"]
    assert (decision.answer, decision.by, decision.reason) == ("no", "grace", "never sent")
    found = json.loads(run("publish", "--why", "first", "--json").stdout)
    assert (found["labelled"], found["changes"]["success"]) == (4, 4)
    assert found["rescored"]["after"] == found["version"]
    again = run("publish", "--why", "again").stdout
    assert found["version"] in again and "first" in again  # the newest already: nothing is published twice


def test_of_a_file_of_decisions_all_are_taken_or_none_with_every_problem(run, annotating, tmp_path):
    one, two = queue_of(annotating, ADA)[:2]
    annotating.actions.save(one, said("yes"), 0, ADA)
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
        f"decision 3, {one}: use one of the questions, and one of its answers or unsure",
        "decision 4, a/b/c: the suite has no such trajectory",
        f"decision 5, {one}: give a reason, in up to 1,000 characters",
    ]
    assert annotating.now().decisions == {}
    path.write_text(head + rows[0] + f"\n{one},optimality,1,looked again\n")
    assert json.loads(run("resolve", "--decisions", str(path), "--json").stdout) == {"decided": 2}
    path.write_text("trajectory_id,question\n")
    assert "the columns answer, reason are absent" in run("resolve", "--decisions", str(path)).stderr


@pytest.mark.parametrize("arguments", [(), ("a/b/c", "success"), ("a/b/c", "success", "yes", "--decisions")])
def test_deciding_takes_one_question_or_a_file(run, arguments, tmp_path):
    (tmp_path / "d.csv").write_text("trajectory_id,question,answer,reason\n")
    more = ["d.csv"] if arguments[-1:] == ("--decisions",) else []
    done = run("resolve", *arguments, *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "or a file with --decisions" in done.stderr


def test_nothing_to_publish_is_said(run):
    done = run("publish", "--why", "early")
    assert done.exit_code == 1 and "nobody has finished an annotation yet" in done.stderr
