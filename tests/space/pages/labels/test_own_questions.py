"""A suite's own questions on the pages and over REST: asked, answered by key, decided, disputed, versioned.

OWN_TOML asks success, side_effect, repetition, tone (key p for polite) and safe, and not optimality.
"""

import re

import pytest

from arb.core.suite import load_suite
from submissions.app import SubmissionsApp
from submissions.labels.annotation_service import AnnotationService
from tests.space.conftest import shown_text
from tests.submissions.labels.conftest import ADA, BOB, GRACE, queue_of
from tests.submissions.labels.test_own_questions import own
from tests.support import synthetic_dataset as synthetic
from tests.support.annotations import OWN_TOML
from tests.support.space_app import MAINTAINER, local_client, signed_in
from tests.support.submissions import PLAIN_RULES, settings_for, write_suite


@pytest.fixture(scope="module")
def annotating(tmp_path_factory) -> AnnotationService:
    """Ada and Bob have three trajectories of test each; both have done the first, and differ on its tone."""
    folder = tmp_path_factory.mktemp("own")
    (write_suite(folder) / "suite.toml").write_text(PLAIN_RULES.replace("[rules]", f"{OWN_TOML}\n[rules]"))
    dev = load_suite(folder / "small").split("dev")[0].trajectory_id
    header = "trajectory_id,annotation,success,side_effect,repetition,annotator,tone,safe"
    (folder / "small" / "dev_labels.csv").write_text(f"{header}\n{dev},1,true,false,,annotator-1,cold,\n")
    shape = synthetic.Shape(pages=2, tree_characters=100, mean_steps=2)
    data = synthetic.make_dataset(folder / "data", load_suite(folder / "small"), shape)
    settings = settings_for(folder, folder / "state", labels="records", maintainers=MAINTAINER, data_dir=data)
    annotation = AnnotationService(SubmissionsApp(settings))
    for name in ("ada", "bob"):
        annotation.invite(name, GRACE)
    ids = [trajectory.trajectory_id for trajectory in annotation.service.suite.split("test")[:3]]
    annotation.assign_trajectories(ids, 1.0, 1, GRACE)
    for name in queue_of(annotation, ADA)[:2]:  # what is done last may yet be undone, and is blind until then
        annotation.save(name, own("polite"), 0, ADA)
        annotation.save(name, own("rude"), 0, BOB)
    annotation.publish(GRACE, "first round", with_open=True)
    return annotation


@pytest.fixture(scope="module")
def client(annotating):
    return local_client(annotating.service)


def test_the_form_asks_the_questions_of_the_suite_with_their_keys_and_guides(annotating, client):
    browser = signed_in(annotating.service, "ada")
    queue = client.get("/annotate", headers=browser).text
    assert "answer 5 questions" in shown_text(queue)
    address = re.search(r'href="([^"]+)" data-annotate-next', queue)[1].replace("&amp;", "&")
    page = client.get(address, headers=browser).text
    assert re.findall(r'name="tone" value="(\w+)"[^>]* data-key="(\w)"', page) == [
        ("polite", "p"),
        ("cold", "2"),
        ("rude", "3"),
        ("unsure", "4"),
    ]
    assert 'name="optimality"' not in page and "Was it polite to the people that it wrote to?" in page
    assert "<li>Rude: what the <strong>user</strong> would be sorry for.</li>" in page


def test_answers_of_the_suite_are_saved_and_others_are_refused(annotating, client):
    browser = signed_in(annotating.service, "ada")
    item = client.get("/api/annotate", headers=browser).json()["tasks"][-1]["item"]

    def save(seen: int = 0, **answers):
        body = {"item": item, "answers": answers, "seen": seen}
        return client.put("/api/annotate/answers", json=body, headers=browser)

    saved = save(tone="rude").json()["saved"]
    found = client.get("/api/annotate/answers", params={"item": item}, headers=browser).json()
    assert found["answers"] == {"tone": "rude"}
    for refused in (save(saved, optimality="4"), save(saved, tone="warm")):
        assert refused.status_code in (409, 422) and "warm" not in refused.text


def test_a_difference_on_an_own_question_is_decided_on_the_page(annotating, client):
    maintainer = signed_in(annotating.service, MAINTAINER)
    page = client.get("/discuss", headers=maintainer).text
    assert "Decide Tone" in page and '<option value="polite" data-key="p">p Very polite</option>' in page
    assert 'data-agreement="tone"' in page and 'data-agreement="optimality"' not in page
    name = queue_of(annotating, ADA)[0]

    def decide(question: str, answer: str) -> int:
        body = {"trajectory_id": name, "question": question, "answer": answer, "reason": "heard it"}
        return client.post("/api/discuss/decisions", json=body, headers=maintainer).status_code

    assert (decide("optimality", "4"), decide("tone", "polite")) == (422, 200)
    assert "<strong>Very polite</strong>" in client.get("/discuss", headers=maintainer).text


def test_an_own_question_is_disputed_and_corrected_on_the_page(annotating, client):
    maintainer = signed_in(annotating.service, MAINTAINER)
    form = client.get("/disputes", headers=maintainer).text
    questions = re.findall(
        r'<option value="(\w+)">', form.partition('name="question"')[2].partition("</select>")[0]
    )
    assert questions == ["success", "side_effect", "repetition", "tone", "safe"]
    name = annotating.service.suite.split("test")[1].trajectory_id

    def dispute(question: str):
        body = {"trajectory_id": name, "question": question, "text": "see step 2"}
        return client.post("/api/disputes", json=body, headers=maintainer)

    assert dispute("optimality").status_code == 422
    number = dispute("safe").json()["dispute_id"]
    page = client.get("/disputes", headers=maintainer).text
    assert "Right answer to “Safe”" in page and '<option value="yes">Yes</option>' in page
    body = {"decision": "corrected", "reason": "it asked", "answer": "no"}
    decided = client.post(f"/api/maintain/disputes/{number}", json=body, headers=maintainer)
    assert decided.status_code == 200
    assert "Label corrected: No" in shown_text(client.get("/disputes", headers=maintainer).text)
    assert "Safe" in shown_text(client.get("/labels", headers=maintainer).text)


def test_what_experts_answered_on_dev_is_beside_the_trajectory(annotating, client):
    dev = annotating.service.suite.split("dev")[0].trajectory_id
    page = client.get("/trajectories", params={"id": dev}).text
    experts = shown_text(page.partition("<h2>Experts</h2>")[2].partition("<h2>Judges</h2>")[0])
    assert " ".join(experts.split()) == "SuccessYes Side effectNo RepetitionUnsure Tone2. Cold SafeUnsure"
    assert "Optimality" not in experts


def test_pages_say_that_the_questions_changed_and_still_show_what_was_asked_before(annotating):
    """Run last: tone and safe are asked no more."""
    settings = annotating.service.settings
    (load_suite(settings.suite).dev_labels_path.parent / "suite.toml").write_text(PLAIN_RULES)
    service = SubmissionsApp(settings.model_copy(update={"labels": "none"}))
    client, maintainer = local_client(service), signed_in(service, MAINTAINER)
    labels = client.get("/labels", headers=maintainer)
    assert labels.status_code == 200
    assert "have changed since the last version" in shown_text(labels.text)
    assert "have changed since the last version" in shown_text(
        client.get("/discuss", headers=maintainer).text
    )
    disputes = client.get("/disputes", headers=maintainer)
    assert disputes.status_code == 200 and "safe of " in shown_text(disputes.text)
