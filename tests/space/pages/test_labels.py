"""``/labels``: versions with what changed and why, ranks before and after; what private labels keep back."""

import pytest

from space.pages.judge.summary import describe_label_noise
from space.web.axis import Axis
from submissions.intake.accounts import Actor
from submissions.labels.versions import published_versions
from submissions.scoring.rescore import publish, rescore
from submissions.service import SubmissionService
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
def corrected_service(service, released) -> SubmissionService:
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


def test_before_anything_was_published_the_page_says_so(service):
    text = shown_text(local_client(service).get("/labels").text)
    assert "No label set was published yet" in text and "the labels that came with it" in text
    assert "No submission was scored under other labels" in text


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
def doubled(service, released) -> SubmissionService:
    found = again(service, labels="records")
    publish(found, with_doubles(released, trajectory_success="Unsuccessful"), MIA, "with doubles")
    return found


def page_of(service, **misses) -> str:
    judge = send(service, verdicts(service.suite, **misses)).submission_id
    return local_client(service).get(f"/judge?id={judge}").text


def test_a_judge_page_tells_how_far_label_noise_moves_its_precision(doubled):
    page = page_of(doubled, misses=2, false_alarms=4)
    text = shown_text(page)
    assert "Two annotators differ on 1 of the 6 trajectories that both labelled" in text
    assert "on 1 of 2 that the first called true, and 0 of 4 others" in text
    # 8 of 12 are right: 66.7 %. A yes flips with Beta(1.5, 1.5), in the mean 1/2, a no with Beta(0.5, 4.5),
    # in the mean 1/10: (8 * 1/2 + 4 * 1/10) / 12 = 36.7 %
    assert "its precision of 66.7 % would be about 36." in text
    assert "the loss is overstated" in text
    assert page.count('<i class="noise"') == 1


def test_without_doubles_that_differ_or_a_yes_there_is_no_band(service, doubled, released, tmp_path):
    alike = again(service, labels="records", state_dir=tmp_path / "alike")
    publish(alike, with_doubles(released), MIA, "second annotators say the same")
    for page in (page_of(service, misses=2), page_of(doubled, misses=10), page_of(alike, misses=2)):
        assert "Label noise" not in page and 'class="noise"' not in page


def test_private_labels_give_no_band(doubled):
    send(doubled, verdicts(doubled.suite))
    row = next(row for row in doubled.board().rows if row.provenance == "scored")
    private = with_rules(again(doubled), is_public=False)
    assert private.labels.test is not None
    assert describe_label_noise(doubled, row, "success", Axis.around([0.5])) is not None
    assert describe_label_noise(private, row, "success", Axis.around([0.5])) is None


def test_the_second_annotator_has_no_band_of_its_own(doubled):
    (row,) = doubled.board().rows
    assert describe_label_noise(doubled, row, "success", Axis.around([0.5])) is None
