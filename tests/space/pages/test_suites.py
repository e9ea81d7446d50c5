"""The page /suites and /api/suites over a Space of several suites."""

import re

import pytest
from fastapi.testclient import TestClient

from arb.core.settings import Settings
from space.app import create_app
from tests.space.conftest import shown_text
from tests.support.space_app import local_client
from tests.support.submissions import send, verdicts


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A Space of DevAI, OSReward and Online-Mind2Web, whose labels or metrics ship."""
    folder = tmp_path_factory.mktemp("suites")
    settings = Settings(suites="devai,osreward,online-mind2web", state_dir=folder / "state", labels="wheel")
    app = create_app(settings)
    with TestClient(app) as opened:
        yield opened
    app.state.end_streams()


def test_the_page_shows_each_judge_with_its_interval_and_its_source_linked_to_its_page(client):
    html = client.get("/suites").text
    text = shown_text(html)
    headings = re.findall(r'<th scope="col"[^>]*>([^<]+)', html)
    assert headings[:4] == ["Judge", "DevAI", "OSReward", "Online-Mind2Web"]
    assert "agent-as-a-judge" in text and "89.2" in text and "86.8 to 91.4" in text and "published" in text
    assert 'href="/s/osreward/judge?id=published/gpt-4o"' in html
    assert client.get("/s/osreward/judge?id=published/gpt-4o").status_code == 200
    assert "Too few: 0 of at least 8." in text


def test_references_are_the_last_rows(client):
    text = shown_text(client.get("/suites").text)
    assert text.index("OS-Shepherd-9B") < text.index("Always yes") < text.index("Most frequent answer")


def test_another_metric_can_be_chosen_and_an_unknown_one_falls_back(client):
    html = client.get("/suites?metric=precision").text
    assert '<option value="precision" selected>' in html and "84.6" in html
    refused = client.get("/suites?metric=npv")  # OSReward has none
    assert refused.status_code == 422
    assert "invalid value for metric" in refused.text and '<option value="npv"' not in refused.text


def test_the_api_has_the_content_of_the_page(client):
    found = client.get("/api/suites", params={"metric": "precision"}).json()
    assert found["suites"] == ["devai", "osreward", "online-mind2web"]
    (judge,) = [row for row in found["rows"] if row["judge"] == "agent-as-a-judge"]
    # 84.6 % of what it calls satisfied is
    assert judge["cells"]["devai"]["value"] == pytest.approx(0.846, abs=0.0005)
    assert found["references"][0]["judge"] == "Always yes"
    assert {pair["judges"] for pair in found["agreements"]} == {0}
    answer = client.get("/api/suites", params={"metric": "npv"})
    assert answer.status_code == 422 and "use one of balanced_accuracy, precision" in answer.text


def test_the_menu_of_suites_leads_to_the_page(client):
    assert '<a href="/suites">All suites</a>' in client.get("/").text


def test_the_page_changes_with_the_board(service):
    local = local_client(service)
    assert "No suite has a judge yet" in local.get("/suites").text
    etag = local.get("/suites").headers["etag"]
    send(service, verdicts(service.suite), judge="New judge")
    again = local.get("/suites", headers={"if-none-match": etag})
    assert again.status_code == 200 and "New judge" in again.text and "scored here" in again.text


def test_the_page_of_one_suite_has_no_comparison_of_orders(service):
    assert "Does the order carry over?" not in local_client(service).get("/suites").text
