"""The receipt on the submit page: accepted, held or waiting, with what is left and a copy to take along."""

import json
import re
from html import unescape
from urllib.parse import unquote

from space.gradio_app.submit_page import receipt_html
from submissions.intake.accounts import Actor
from submissions.intake.receipts import problem_of
from tests.space.conftest import shown_text
from tests.support.submissions import declaration, send, verdicts, with_rules


def shown(service, **options) -> str:
    receipt = send(service, verdicts(service.suite, **options))
    return receipt_html(service, receipt, service.records.submission(receipt.submission_id, Actor("Ada")))


def test_it_can_be_saved_and_checked_and_leads_to_its_page(service):
    html = shown(service)
    link = re.search(r'href="data:application/json;charset=utf-8,([^"]*)"', html)[1]
    found = json.loads(unquote(unescape(link)))
    assert problem_of(found, service.signer.public_key) is None
    assert f'href="/mine/{found["submission_id"]}"' in html
    assert "Submitted and scored. It is accepted and stored permanently. Its rank by" in shown_text(html)
    assert "You have left: 999 of 1000 files today" in shown_text(html)


def test_a_held_file_says_who_looks_at_it_and_why(service):
    with_rules(service, is_public=False, fewest_positives=30)
    text = shown_text(shown(service))
    assert "Submitted and held. It is held until a maintainer has reviewed it, and is scored after" in text
    assert "10 of 30 trajectories" in text
    assert "Precision" not in text


def test_a_record_that_does_not_last_yet_is_never_called_accepted(service, monkeypatch):
    monkeypatch.setattr(service.durability, "wait", lambda sequence, timeout_s: False)
    file = service.intake.check(verdicts(service.suite), "verdicts.jsonl", "test")
    receipt = service.intake.submit(file, declaration()).receipt
    html = receipt_html(service, receipt, service.records.submission(receipt.submission_id, Actor("Ada")))
    text = shown_text(html)
    assert "Submitted and waiting. It is recorded but not stored permanently yet" in text
    assert "It is accepted:" not in text
    assert "notice good" not in html
    # The page asks there until it is accepted (submit.js).
    assert re.search(r'data-waiting="/api/submissions/[0-9a-f]{32}"', html)
    for place in ("data-outcome", "data-sentence", "data-status"):
        assert html.count(place) == 1


def test_metrics_of_private_labels_are_marked_as_noisy_and_for_the_owner_only(service):
    with_rules(service, is_public=False, fewest_positives=1, private_noise=6.0)
    text = shown_text(shown(service))
    assert "Only you can see its metrics, which carry noise, unless you make its row public." in text
    assert (
        "Noise is added to the counts: ± 6 true positives overall (standard deviation), ± 3 to the number"
        in text
    )
    assert "the judge’s page" not in text
