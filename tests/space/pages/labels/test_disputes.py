"""Disputes over HTTP: the form, the list, decisions, and that no hidden label can be read from any of it."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from fastapi.testclient import TestClient

from arb.core.ids import Trajectory
from arb.core.settings import Settings
from arb.core.suite import load_suite
from space.pages.labels.disputes import dispute_form
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.labels import Expert
from space.pages.trajectories.page import trajectories_fragment
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.space_app import MAINTAINER, local_client, signed_in
from tests.support.submissions import send, settings_for, verdicts, with_rules, write_suite


@pytest.fixture
def service(settings) -> SubmissionsApp:
    return SubmissionsApp(settings.model_copy(update={"maintainers": MAINTAINER}))


@pytest.fixture
def client(service):
    return local_client(service)


@pytest.fixture
def private(tmp_path) -> SubmissionsApp:
    write_suite(tmp_path)
    settings = settings_for(tmp_path, tmp_path / "state", maintainers=MAINTAINER)
    return with_rules(SubmissionsApp(settings), is_public=False)


def a_run(service, split="test", place=0) -> str:
    return service.suite.split(split)[place].trajectory_id


def file_one(client: TestClient, service, name="ada", **changes):
    said = {"trajectory_id": a_run(service), "question": "success", "text": "Step 3 shows another page."}
    content = json.dumps({**said, **changes})  # which spells half characters, as a sender may
    return client.post("/api/disputes", content=content, headers=signed_in(service, name))


def decide(client, service, decision, reason="looked again", name=MAINTAINER):
    said = {"decision": decision, "reason": reason, "seen": 0}
    said |= {"answer": "no"} if decision == "corrected" else {}
    return client.post("/api/maintain/disputes/1", json=said, headers=signed_in(service, name))


def test_a_dispute_is_filed_listed_and_decided(client, service):
    answer = file_one(client, service)
    assert (answer.status_code, answer.json()) == (201, {"dispute_id": "1", "lasts": True})
    (found,) = client.get("/api/disputes").json()["disputes"]
    assert (found["by"], found["outcome"], found["text"]) == ("ada", "open", "Step 3 shows another page.")
    assert decide(client, service, "corrected", "the page is another one").status_code == 200
    page = shown_text(client.get("/disputes").text)
    for told in (a_run(service), "Label corrected: No", "by mia", "the page is another one", "Step 3 shows"):
        assert told in page
    assert client.get("/api/disputes", params={"state": "open"}).json() == {"disputes": [], "of": 0}


def test_the_list_is_of_one_trajectory_where_that_is_asked(client, service):
    file_one(client, service)
    file_one(client, service, trajectory_id=a_run(service, place=1))
    found = client.get("/api/disputes", params={"trajectory_id": a_run(service, place=1)}).json()
    assert [each["dispute_id"] for each in found["disputes"]] == ["2"]
    assert "no trajectory with this id" in client.get("/disputes?trajectory_id=x/y/z").text


def test_whoever_may_not_gets_a_status_and_a_reason(client, service):
    said = {"trajectory_id": a_run(service), "question": "success", "text": "x"}
    assert client.post("/api/disputes", json=said).status_code == 401
    assert file_one(client, service, trajectory_id="a/b/c").status_code == 404
    assert file_one(client, service, question="reward").status_code == 422
    assert file_one(client, service, text="x" * 2001).status_code == 422
    assert file_one(client, service, text="\ud800").status_code == 422
    assert file_one(client, service).status_code == 201
    again = file_one(client, service)
    assert again.status_code == 409 and "about this answer is still open" in again.json()["detail"]
    assert decide(client, service, "kept", name="ada").status_code == 403
    assert decide(client, service, "moved").status_code == 422
    assert client.post(
        "/api/maintain/disputes/9",
        json={"decision": "kept", "reason": "x"},
        headers=signed_in(service, MAINTAINER),
    ).status_code == 404  # fmt: skip


def test_a_day_has_its_bound(client, service):
    for place in range(20):
        assert file_one(client, service, trajectory_id=a_run(service, place=place)).status_code == 201
    answer = file_one(client, service, trajectory_id=a_run(service, place=21))
    assert answer.status_code == 429 and "an account may send 20 disputes" in answer.json()["detail"]


def test_a_page_of_another_site_files_nothing(client, service):
    headers = {**signed_in(service, "ada"), "sec-fetch-site": "cross-site"}
    said = {"trajectory_id": a_run(service), "question": "success", "text": "x"}
    assert client.post("/api/disputes", json=said, headers=headers).status_code == 401


def test_only_maintainers_get_forms_to_decide(client, service):
    file_one(client, service)
    assert "/api/maintain/disputes/1" not in client.get("/disputes").text
    assert "/api/maintain/disputes/1" in client.get("/disputes", headers=signed_in(service, MAINTAINER)).text


@pytest.mark.parametrize("decision", ["corrected", "kept"])
def test_of_a_hidden_label_no_answer_tells_what_was_decided(private, decision):
    client = local_client(private)
    file_one(client, private, text="it did succeed")
    decide(client, private, decision, "it is a success indeed")
    page = client.get("/disputes").text
    told = [page, client.get("/api/disputes").text, client.get("/api/disputes?state=decided").text]
    told.append(client.get("/disputes", headers=signed_in(private, "ada")).text)  # who filed it knows no more
    for answer in told:
        assert a_run(private) in answer
        for word in ("did succeed", "success indeed", '"kept"', '"corrected"', "label kept", "label correct"):
            assert word not in answer
    assert "decided" in page
    seen = client.get("/disputes", headers=signed_in(private, MAINTAINER)).text
    assert f"label {decision}" in seen and "success indeed" in seen and "did succeed" in seen
    assert f"Label {decision} by" in shown_text(seen)  # and not which answer is right: that is a label
    as_maintainer = client.get("/api/disputes", headers=signed_in(private, MAINTAINER)).json()["disputes"]
    assert [each["answer"] for each in as_maintainer] == [None]


def test_both_decisions_on_a_hidden_label_look_alike(tmp_path):
    pages = []
    for decision in ("corrected", "kept"):
        folder = tmp_path / decision
        write_suite(folder)
        service = SubmissionsApp(settings_for(folder, folder / "state", maintainers=MAINTAINER))
        private = with_rules(service, is_public=False)
        client = local_client(private)
        file_one(client, private)
        decide(client, private, decision)
        found = client.get("/api/disputes").json()["disputes"][0]
        pages.append({name: value for name, value in found.items() if not name.endswith("at")})
    assert pages[0] == pages[1]


def test_hostile_texts_stay_text(client, service, hostile):
    calm = tags_and_attributes(client.get("/disputes").text)
    file_one(client, service, text=hostile)
    decide(client, service, "kept", hostile)
    page = client.get("/disputes").text
    assert shown_text(page).count(re.sub(r"\s+", " ", hostile)) == 2
    new = {tag for tag, _ in tags_and_attributes(page) - calm}
    assert new <= {"article", "h3", "small", "p", "span", "a", "strong"}


FAILED = Expert("First", {"success": "no", "side_effect": None, "repetition": "yes", "optimality": "2"})


@pytest.mark.parametrize(
    ("split", "is_public"), [("dev", False), ("dev", True), ("test", False), ("test", True)]
)
def test_the_form_shows_the_labels_that_the_rule_of_the_suite_shows(split, is_public):
    suite = replace(load_suite("sample"), labels_are_public=is_public)
    form = dispute_form(suite, Trajectory.of("w/a/w.1", split), [FAILED])
    shown = {name: label for name, _, label, _ in form["questions"]}
    if split == "test" and not is_public:
        assert set(shown.values()) == {""} and not form["is_public"]
        return
    assert form["is_public"]
    assert shown == {
        "success": "No",
        "side_effect": "Unsure",
        "repetition": "Yes",
        "optimality": "2. Suboptimal",
    }


def test_a_dispute_names_the_right_answer_and_only_one_that_the_question_has(client, service):
    assert file_one(client, service, answer="no").status_code == 201
    (found,) = client.get("/api/disputes").json()["disputes"]
    assert (found["proposed"], found["judge"]) == ("no", None)
    assert "Right answer according to this dispute: No" in shown_text(client.get("/disputes").text)
    refused = file_one(client, service, question="optimality", answer="no")
    assert (refused.status_code, refused.json()["detail"]) == (409, "answer: use one of 1, 2, 3, 4, unsure")


def test_the_proposed_answer_about_a_hidden_label_is_for_maintainers(private):
    client = local_client(private)
    assert file_one(client, private, answer="no").status_code == 201
    (seen,) = client.get("/api/disputes").json()["disputes"]
    assert (seen["proposed"], seen["text"]) == (None, None)
    assert "according to this dispute" not in client.get("/disputes").text
    page = client.get("/disputes", headers=signed_in(private, MAINTAINER)).text
    assert "Right answer according to this dispute: No" in shown_text(page)


def test_a_dispute_from_an_error_shows_label_and_verdict_and_needs_no_typed_id(client, service):
    sent = send(service, verdicts(service.suite, misses=1), judge="Bold").submission_id
    run = a_run(service)  # labelled a success; Bold says failure
    errors = client.get("/errors", params={"judge": sent}).text
    (address,) = {unescape(found) for found in re.findall(r'href="(/disputes[^"]*judge=[^"]*)"', errors)}
    text = client.get(address).text
    assert f"{run} Labels Success: Yes" in shown_text(text)
    assert "Judge Bold (tree) says no (Success)." in shown_text(text)
    assert f'<input type="hidden" name="trajectory_id" value="{run}">' in text
    assert f'<input type="hidden" name="judge" value="{sent}">' in text
    assert 'type="text" required maxlength="300"' not in text
    assert '<option value="success" selected>Success (labelled: Yes)' in text
    file_one(client, service, answer="no", judge=sent)
    (found,) = client.get("/api/disputes").json()["disputes"]
    assert found["judge"] == sent


def test_the_form_about_a_hidden_label_shows_neither_label_nor_verdict(private):
    client, sent = local_client(private), send(private, verdicts(private.suite, misses=1)).submission_id
    text = shown_text(client.get("/disputes", params={"trajectory_id": a_run(private), "judge": sent}).text)
    assert "Labels private: no page shows them" in text
    assert "labelled:" not in text and "says no" not in text
    file_one(client, private, judge=sent)
    (found,) = client.get("/api/disputes", headers=signed_in(private, MAINTAINER)).json()["disputes"]
    assert found["judge"] is None


@pytest.fixture(scope="module")
def sample_explorer(tmp_path_factory) -> Explorer:
    settings = Settings(suite="sample", labels="none", state_dir=tmp_path_factory.mktemp("state"))
    return Explorer(settings, SubmissionsApp(settings))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_form_stands_on_the_page_of_a_trajectory(sample_explorer, split):
    run = next(entry for entry in sample_explorer.of_suite().index.entries if entry.split == split)
    html = trajectories_fragment(sample_explorer, f"id={run.trajectory_id}").html
    assert 'action="/api/disputes"' in html
    assert f'data-then="/disputes?trajectory_id={run.trajectory_id}"' in html
    assert ("(labelled:" in html) == (split == "dev")


def test_there_is_no_form_where_another_suite_is_served(service):
    explorer = Explorer(service.settings, service)  # it shows the sample beside the suite of the tests
    run = explorer.of_suite("sample").index.entries[0]
    assert "/api/disputes" not in trajectories_fragment(explorer, f"id={run.trajectory_id}&suite=sample").html
