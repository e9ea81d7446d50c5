"""Rows of the record on the pages: each has its page, and none is taken for more than is known of it."""

import pytest

from space.web.query import link_to
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.support.space_app import local_client

pytestmark = pytest.mark.labels


@pytest.fixture(scope="module")
def client(official_settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("official")
    return local_client(SubmissionsApp(official_settings.model_copy(update={"state_dir": folder})))


def text_of(client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return shown_text(answer.text)


@pytest.mark.slow
def test_every_row_has_its_page_and_its_comparison(client):
    rows = client.get("/api/board.json").json()["rows"]
    assert len(rows) >= 27
    for row in rows:
        page = text_of(client, link_to("/judge", id=row["id"]))
        assert row["judge"].split(" (")[0] in page
        assert "nan" not in page.lower().split()
        text_of(client, link_to("/compare", judges=[row["id"], "paper/aer-c"]))


def test_a_row_of_unknown_split_shows_what_was_reported_and_nothing_that_would_follow(client):
    page = text_of(client, link_to("/judge", id="reported/72b-voting-4-ensemble"))
    assert "It is not ranked: reported without split or protocol." in page
    assert "Metrics as reported; nothing is derived from them; split not named" in page
    assert "1,104" not in page
    assert "Confusion matrix" not in page
    assert ".eval_results" not in page


def test_a_judge_that_was_tuned_on_test_is_compared_with_none(client):
    address = link_to("/compare", judges=["reported/hunter-seeker", "paper/aer-c"])
    assert "cannot be compared: Hunter-Seeker (other) is tuned on test" in text_of(client, address)


def test_points_of_rows_that_cannot_be_compared_are_not_in_the_plot(client):
    page = client.get("/").text
    plot = page[page.index('id="plots"') :]
    plot = plot[: plot.index("</figure>")]
    assert "WebJudge (o4-mini, all screenshots)" in plot
    assert "Hunter-Seeker" not in plot
    assert "72B-voting@4" not in plot


def test_a_filter_on_llm_judges_finds_those_of_the_paper(client):
    page = text_of(client, link_to("/", kind="LLM judge"))
    for judge in ("AER-C", "NNetNav", "Claude 3.7 Sonnet", "WebJudge (o4-mini, all screenshots)"):
        assert judge in page
    found = [row for row in client.get("/api/board.json").json()["rows"] if row["kind"] == "LLM judge"]
    assert len(found) >= 15  # the paper's twelve, WebJudge with two models, CODA's baseline
    assert f"{len(found)} judges" in page
