"""Tests that no page or route shows figures of a submission that is held or not durable."""

import json

import pytest
from starlette.requests import HTTPConnection

from space.gradio_app.endpoints import Endpoints
from space.gradio_app.submit_page import receipt_html
from space.services import Services
from submissions.intake.accounts import Actor
from submissions.resources import Durability
from tests.space.conftest import shown_text
from tests.space.pages.test_account_api import post_file
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import FORM, send, verdicts, with_rules

ADA = Actor("Ada")
FIGURES = ("75.0", "60.0", '"tp"')
"""Precision 6 / 8 and recall 6 / 10 as they would be shown: 4 of 10 successes missed, 2 false alarms."""


class Waiting(Durability):
    """No record is durable until a test says so."""

    lasts = False

    def wait(self, sequence: int, timeout_s: float) -> bool:
        return self.lasts

    def through(self, session) -> int | None:
        return None if self.lasts else 0


@pytest.fixture
def waiting(service):
    service.durability = Waiting()
    return service


def assert_no_figures(text: str) -> None:
    assert [figure for figure in FIGURES if figure in shown_text(text)] == []


def every_door(service, submission_id: str) -> dict[str, str]:
    """Return the response of each page and route to the owner of a submission."""
    client, ada = local_client(service), signed_in(service, "Ada")
    paths = (
        f"/api/submissions/{submission_id}", f"/mine/{submission_id}", "/mine", "/", "/api/board.json",
        "/api/board.csv", "/api/judges", f"/judge?id={submission_id}", "/compare", "/api/board",
        f"/api/boards/{service.label_version}",
    )  # fmt: skip
    return {path: client.get(path, headers={**ada, "accept": "text/html"}).text for path in paths}


def test_figures_are_shown_only_once_the_record_is_durable(waiting):
    sent = post_file(local_client(waiting), verdicts(waiting.suite, misses=4, false_alarms=2)).json()
    assert (sent["status"], sent["report"]) == ("waiting", None)
    assert_no_figures(json.dumps(sent))
    for path, text in every_door(waiting, sent["submission_id"]).items():
        if path in ("/", "/compare"):  # which show other figures
            assert FORM["judge"] not in shown_text(text)
        else:
            assert_no_figures(text)
    waiting.durability.lasts = True
    waiting.records._current._cached = None  # a real commit to the Hub also changes the database
    found = every_door(waiting, sent["submission_id"])
    assert json.loads(found[f"/api/submissions/{sent['submission_id']}"])["report"] is not None
    assert "75.0" in found[f"/mine/{sent['submission_id']}"]
    assert FORM["judge"] in shown_text(found["/"])


def test_gradio_mcp_and_the_receipt_show_no_figures_while_it_waits(waiting):
    endpoints = Endpoints(Services(waiting, None))
    upload = waiting.intake.check(verdicts(waiting.suite, misses=4, false_alarms=2), "a.jsonl", "test")
    request = HTTPConnection({"type": "http", "headers": [], "method": "POST", "client": ("192.0.2.1", 1)})
    form = {**FORM, "test_labels_used": "no"}
    found = endpoints.submit(request, lambda: upload, **form)
    assert (found["status"], found["report"]) == ("waiting", None)
    view = waiting.records.submission(found["submission_id"], ADA)
    html = receipt_html(waiting, view.receipt, view)
    assert_no_figures(html)
    assert "rank" not in shown_text(html)


def test_an_action_that_is_not_durable_yet_hides_no_figures_that_were_shown(service):
    sent = send(service, verdicts(service.suite, misses=4, false_alarms=2))
    last = sent.record + 1  # its score

    class UpToItsScore(Durability):
        def wait(self, sequence: int, timeout_s: float) -> bool:
            return sequence <= last

    service.durability = UpToItsScore()
    service.moderation.withdraw(sent.submission_id, ADA)
    view = service.records.submission(sent.submission_id, ADA)
    assert view.receipt.status == "waiting" and view.report is not None


def test_figures_of_a_released_file_wait_for_its_release_to_be_durable(service):
    with_rules(service, is_public=False, fewest_positives=30)
    sent = send(service, verdicts(service.suite))
    maintainer = Actor("Mia", is_maintainer=True)
    service.moderation.decide("released", sent.submission_id, maintainer, "looked at")
    through = sent.record + 1  # submitted and held; not released and scored

    class UpToTheHold(Durability):
        def wait(self, sequence: int, timeout_s: float) -> bool:
            return sequence <= through

    assert service.records.submission(sent.submission_id, ADA).report is not None
    service.durability = UpToTheHold()
    assert service.records.submission(sent.submission_id, ADA).report is None
