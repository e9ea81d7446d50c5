"""``/labels``: versions with what changed and why, ranks before and after; what private labels keep back."""

import re

import pytest

from space.pages.judge.summary import describe_label_noise
from space.web.cells import Axis
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.corrections import publish_corrections
from submissions.labels.versions import published_versions
from submissions.moderation.reader_actions import ReaderActions
from submissions.scoring.rescore import publish, rescore
from tests.space.conftest import shown_text, tags_and_attributes
from tests.submissions.labels.test_versions import corrected
from tests.submissions.scoring.test_board import with_doubles
from tests.support.space_app import MAINTAINER, local_client, signed_in
from tests.support.submissions import again, send, verdicts, with_rules

MIA = Actor("Mia", is_maintainer=True)
WHY = "place 0 was mislabelled: nothing was bought"


@pytest.fixture
def released(suite_folder) -> bytes:
    return (suite_folder / "labels.csv").read_bytes()


@pytest.fixture
def corrected_service(service, released) -> SubmissionsApp:
    """Two label sets; Bold, which misses place 0, is the best under the second."""
    found = again(service, labels="records", maintainers=MAINTAINER)
    publish(found, released, MIA, "as released")
    send(found, verdicts(found.suite), judge="Right")
    send(found, verdicts(found.suite, misses=1), judge="Bold")
    publish(found, corrected(released, 0, trajectory_success="Unsuccessful"), MIA, WHY)
    rescore(found, MIA)
    return found


def test_versions_tell_what_changed_and_why_and_what_it_did_to_the_ranks(corrected_service):
    page = local_client(corrected_service).get("/labels").text
    text = shown_text(page)
    first, second = (each.version for each in published_versions(corrected_service.engine, "small"))
    assert second == corrected_service.label_version
    assert f"{second} served" in text and "Success 1" in text and WHY in text and "as released" in text
    # Right is 10 of 10 and becomes 9 of 10, behind Bold, which is 9 of 9.
    assert "2 of 2 rows have a different rank" in text
    assert (
        '<th scope="row">Bold (tree), by Ada</th><td class="number">2</td><td class="number">1</td>' in page
    )
    assert f'href="/api/boards/{first}"' in page


def correct(service, answer: str = "no", place: int = 0, split: str = "test", question="success") -> str:
    """A dispute that Mia decided as corrected; gives its trajectory."""
    acts = ReaderActions(service)
    name = service.suite.split(split)[place].trajectory_id
    number = acts.dispute(name, question, "see step 3", Actor("ada")).body["dispute_id"]
    acts.decide(number, "corrected", "the shop was closed", MIA, answer)
    return name


def rows_of(page: str) -> list[str]:
    """The rows of all tables, their cells one blank apart."""
    spaced = re.sub(r"</t[hd]>", " ", page)
    return [" ".join(shown_text(row).split()) for row in re.findall(r"<tr.*?</tr>", spaced, re.DOTALL)]


def rescored(client, service) -> dict:
    """The answer of REST once the re-scoring is over."""
    headers = signed_in(service, MAINTAINER)
    while (found := client.get("/api/maintain/labels", headers=headers).json())["state"] == "running":
        pass
    return found


@pytest.fixture
def contested(service) -> SubmissionsApp:
    """Right and Bold under labels from a file; the success of place 0 waits to be corrected."""
    found = again(service, maintainers=MAINTAINER)
    send(found, verdicts(found.suite), judge="Right")
    send(found, verdicts(found.suite, misses=1), judge="Bold")
    correct(found)
    return found


def test_the_next_version_is_shown_with_its_effects_before_it_is_published(contested):
    client, name = local_client(contested), a_run(contested)
    page = client.get("/labels", headers=signed_in(contested, MAINTAINER)).text
    text, rows = shown_text(page), rows_of(page)
    assert f"1 {name} test Success Yes No the shop was closed Mia" in rows
    # Right was 10 of 10 and would be 9 of 10; Bold, 9 of 9 with a miss, would be 9 of 9 without one.
    assert "Bold (tree), by Ada 2 1 100.0 100.0 90.0 100.0 94.7 100.0 0 1" in rows
    assert "Right (tree), by Ada 1 2 100.0 90.0 100.0 100.0 100.0 94.7 1 0" in rows
    assert 'value="Correction of dispute 1"' in page and "Publish version" in text
    for who in ({}, signed_in(contested, "ada")):
        seen = shown_text(client.get("/labels", headers=who).text)
        assert "Publish version" not in seen and "Next version" not in seen
    assert published_versions(contested.engine, "small") == []


def test_publishing_serves_the_version_and_tells_ranks_and_figures_before_and_after_at_once(contested):
    client, before = local_client(contested), contested.label_version
    headers = signed_in(contested, MAINTAINER)
    found = client.get("/api/maintain/labels", headers=headers).json()
    assert [each["dispute_id"] for each in found["next"]["applied"]] == ["1"]
    assert found["next"]["effects"]["success"][0]["places"] == [2, 1]
    body = {"why": "the shop was closed", "digest": found["next"]["digest"]}
    answer = client.post("/api/maintain/labels", json=body, headers=headers)
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    found = rescored(client, contested)
    assert (found["state"], found["found"]["before"]) == ("done", before)
    assert found["label_version"] == answer.json()["version"] == contested.label_version
    assert found["next"]["applied"] == []
    page = client.get("/labels").text
    text = shown_text(page)
    assert "made from the labels that came with it" in text and "2 of 2 rows have a different rank" in text
    assert "Bold (tree), by Ada 2 1 100.0 100.0 90.0 100.0 94.7 100.0 0 1" in rows_of(page)
    of_it = f"1 {a_run(contested)} test Success Yes No the shop was closed Mia"
    assert f"Corrections of {contested.label_version}" in text and of_it in rows_of(page)
    assert f"In label version {contested.label_version}" in shown_text(client.get("/disputes").text)
    again_ = client.post("/api/maintain/labels", json=body, headers=headers)
    assert again_.status_code == 409 and "there is nothing to publish" in again_.json()["detail"]


def test_authors_see_a_correction_on_their_page_and_what_it_changed(contested):
    client, before, ada = local_client(contested), contested.label_version, signed_in(contested, "Ada")
    assert "The labels were corrected" not in client.get("/mine", headers=ada).text
    publish_corrections(contested, MIA)
    rescore(contested, MIA)
    text = shown_text(client.get("/mine", headers=ada).text)
    told = f"Label version {contested.label_version} replaced {before}. What changed and why"
    assert text.count(told) == 2
    # Bold missed one of 10 successes, which is a failure now: recall 9/10, then 9/9.
    assert (
        "Success: 1 verdict is now right, 0 now wrong. Precision: 100.0 % before, 100.0 % now. "
        "Recall: 90.0 % before, 100.0 % now." in text
    )
    # Right found all 10; one of them is a false positive now: precision 9/10.
    assert "0 verdicts are now right, 1 now wrong. Precision: 100.0 % before, 90.0 % now." in text


def test_authors_see_no_effect_of_a_correction_of_hidden_labels(contested):
    private = with_rules(again(contested), is_public=False)
    publish_corrections(private, MIA)
    rescore(private, MIA)
    text = shown_text(local_client(private).get("/mine", headers=signed_in(private, "Ada")).text)
    assert "now wrong" not in text and "now right" not in text


def test_only_maintainers_publish_the_next_version(contested):
    client = local_client(contested)
    for headers, status in (({}, 401), (signed_in(contested, "ada"), 403)):
        assert client.get("/api/maintain/labels", headers=headers).status_code == status
        assert client.post("/api/maintain/labels", json={}, headers=headers).status_code == status
    assert published_versions(contested.engine, "small") == []


@pytest.mark.slow
def test_of_corrected_hidden_labels_maintainers_see_numbers_of_disputes_and_others_nothing(contested):
    private = with_rules(again(contested), is_public=False)
    name = a_run(private)
    dev = correct(private, split="dev")
    client, headers = local_client(private), signed_in(private, MAINTAINER)
    next_page = client.get("/labels", headers=headers).text
    found = client.get("/api/maintain/labels", headers=headers).json()["next"]
    assert found["applied"][0] == {"dispute_id": "1"} and found["applied"][1]["trajectory_id"] == dev
    client.post("/api/maintain/labels", json={"why": WHY}, headers=headers)
    rescored(client, private)
    of_dev = f"2 {dev} dev Success Yes No the shop was closed Mia"
    for seen in (next_page, client.get("/labels", headers=headers).text):
        assert "Corrections of hidden labels: 1 (dispute 1)." in shown_text(seen) and of_dev in rows_of(seen)
        assert name not in seen
    for who in ({}, signed_in(private, "ada")):
        told = client.get("/labels", headers=who).text + client.get("/disputes", headers=who).text
        assert of_dev in rows_of(told)
        for word in (WHY, "hidden labels: dispute", "Bold", "rows have a different rank"):
            assert word not in told
        assert f"In label version {private.label_version}" not in shown_text(told)


def test_a_correction_is_not_shown_to_whoever_has_yet_to_annotate_its_trajectory(contested):
    annotations = AnnotationService(contested)
    annotations.invite("bob", MIA)
    annotations.assign_trajectories([a_run(contested)], 0.0, 1, MIA)
    publish_corrections(contested, MIA)
    client = local_client(contested)
    assert a_run(contested) in client.get("/labels").text
    assert a_run(contested) not in client.get("/labels", headers=signed_in(contested, "bob")).text


def test_a_changed_file_a_conflict_and_a_dev_label_are_told_in_words(contested, released, tmp_path):
    publish_corrections(contested, MIA)
    version = contested.label_version
    newer = tmp_path / "newer-labels.csv"
    newer.write_bytes(corrected(released, 0, trajectory_success="Unsure"))
    changed = again(contested, labels=f"csv:{newer}")
    page = local_client(changed).get("/labels", headers=signed_in(changed, MAINTAINER)).text
    text = shown_text(page)
    assert f"has changed since version {version} was made from it" in text
    assert "1 correction was published before, but the labels have changed to a third answer" in text
    of_it = f"1 {a_run(contested)} test Success Unsure No the shop was closed Mia"
    assert of_it in rows_of(page) and "Publish version" not in text


def a_run(service, place: int = 0) -> str:
    return service.suite.split("test")[place].trajectory_id


def test_before_anything_was_published_the_page_says_so(service):
    text = shown_text(local_client(service).get("/labels").text)
    assert "No label set has been published yet" in text and "the labels that came with it" in text
    assert "No submission has been scored under other labels" in text


def test_private_labels_keep_changes_reasons_and_ranks_for_maintainers(corrected_service):
    private = with_rules(again(corrected_service), is_public=False)
    client = local_client(private)
    text = shown_text(client.get("/labels", headers=signed_in(private, "ada")).text)
    assert private.label_version is not None and private.label_version in text
    for word in (WHY, "as released", "Success 1", "Before", "Bold"):
        assert word not in text
    seen = shown_text(client.get("/labels", headers=signed_in(private, MAINTAINER)).text)
    assert WHY in seen and "Success 1" in seen


def test_hostile_reasons_stay_text(service, released, hostile):
    serving = again(service, labels="records")
    client = local_client(serving)
    publish(serving, released, MIA, "calm")
    calm = tags_and_attributes(client.get("/labels").text)
    publish(serving, corrected(released, 0, trajectory_success="Unsuccessful"), MIA, hostile)
    page = client.get("/labels").text
    assert tags_and_attributes(page) == calm
    assert " ".join(hostile.split()) in shown_text(page)


@pytest.fixture
def doubled(service, released) -> SubmissionsApp:
    found = again(service, labels="records")
    publish(found, with_doubles(released, trajectory_success="Unsuccessful"), MIA, "with doubles")
    return found


def page_of(service, **misses) -> str:
    judge = send(service, verdicts(service.suite, **misses)).submission_id
    return local_client(service).get(f"/judge?id={judge}").text


def test_a_judge_page_tells_how_far_label_noise_moves_its_precision(doubled):
    page = page_of(doubled, misses=2, false_alarms=4)
    text = shown_text(page)
    assert "Two annotators disagree on 1 of the 6 trajectories that both labelled" in text
    assert "on 1 of the 2 that the first annotator answered with yes, and on 0 of the other 4" in text
    # 8 of 12 are right: 66.7 %. A yes flips with Beta(1.5, 1.5), in the mean 1/2, a no with Beta(0.5, 4.5),
    # in the mean 1/10: (8 * 1/2 + 4 * 1/10) / 12 = 36.7 %
    assert "precision would be about 36." in text and "% instead of 66.7 %" in text
    assert "the real loss is smaller" in text
    assert page.count('<i class="noise"') == 1


@pytest.mark.slow
def test_without_doubles_that_differ_or_a_yes_there_is_no_band(service, doubled, released, tmp_path):
    alike = again(service, labels="records", state_dir=tmp_path / "alike")
    publish(alike, with_doubles(released), MIA, "second annotators say the same")
    for page in (page_of(service, misses=2), page_of(doubled, misses=10), page_of(alike, misses=2)):
        assert "Label noise" not in page and 'class="noise"' not in page


def test_private_labels_give_no_band(doubled):
    send(doubled, verdicts(doubled.suite))
    row = next(row for row in doubled.records.board().rows if row.provenance == "scored")
    private = with_rules(again(doubled), is_public=False)
    assert private.labels.test is not None
    assert describe_label_noise(doubled, row, "success", Axis.around([0.5])) is not None
    assert describe_label_noise(private, row, "success", Axis.around([0.5])) is None


def test_the_second_annotator_has_no_band_of_its_own(doubled):
    (row,) = doubled.records.board().rows
    assert describe_label_noise(doubled, row, "success", Axis.around([0.5])) is None
