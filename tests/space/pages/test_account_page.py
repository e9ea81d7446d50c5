"""``/mine``: what an account sees of its submissions, and what may be done with them."""

import json
import re
from html import unescape
from urllib.parse import unquote

import pytest

from submissions.intake.accounts import Actor
from submissions.intake.receipts import problem_of
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.clocks import one_a_day
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import send, verdicts, with_rules


def mine(service, name="Ada", path="/mine") -> str:
    answer = local_client(service).get(path, headers=signed_in(service, name))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    return answer.text


def test_who_is_not_signed_in_is_asked_to(service):
    answer = local_client(service).get("/mine")
    assert answer.status_code == 401
    assert 'href="/sign-in"' in answer.text


def test_nothing_yet_says_so_and_what_is_left(service):
    with_rules(service, files_a_day=2, files_a_year=20)
    text = shown_text(mine(service))
    assert "Ada has no submissions yet." in text
    assert "You have left: 2 of 2 files today, 20 of 20 this year." in text


def test_a_submission_has_status_figures_and_a_receipt_that_can_be_checked(service):
    sent = send(service, verdicts(service.suite, misses=4, false_alarms=2)).submission_id
    html = mine(service)
    assert "It is accepted, scored, and on the board." in shown_text(html)
    assert 'data-cell="Overall"' in html and "75.0" in html  # TP 6 of 8
    assert "noise" not in html
    (link,) = re.findall(
        rf'download="receipt-{sent}.json" href="data:application/json;charset=utf-8,([^"]*)"', html
    )
    receipt = json.loads(unquote(unescape(link)))
    assert problem_of(receipt, service.signer.public_key) is None
    assert (receipt["submission_id"], receipt["record"]) == (sent, 1)


@pytest.mark.slow
def test_others_submissions_are_not_there(service):
    sent = send(service, verdicts(service.suite), account="Bob").submission_id
    assert sent not in mine(service)
    assert sent in mine(service, "Bob")


def test_a_private_submission_says_its_noise_and_when_it_can_be_seen(service):
    service.clock = one_a_day()
    with_rules(service, is_public=False, fewest_positives=1, private_noise=6.0, round_days=30)
    sent = send(service, verdicts(service.suite)).submission_id
    html = mine(service)
    text = shown_text(html)
    assert "only its owner and maintainers see it" in text
    assert "Noise is added to the counts: ± 6 true positives overall" in text
    assert f'action="/api/submissions/{sent}/publish"' in html
    assert "may make 2 rows public in a year" in text
    service.moderation.publish(sent, Actor("Ada"))
    html = mine(service)
    assert "appears on the board with the next round, on 2026-" in shown_text(html)
    assert f'action="/api/submissions/{sent}/publish"' not in html


def test_what_is_withdrawn_held_or_rejected_is_told_with_the_reason(service):
    with_rules(service, is_public=False, fewest_positives=30, files_a_day=9)
    _, rejected, withdrawn = (
        send(service, verdicts(service.suite, misses=misses)).submission_id for misses in range(3)
    )
    service.moderation.decide("rejected", rejected, Actor("Grace", is_maintainer=True), "no judge at all")
    service.moderation.withdraw(withdrawn, Actor("Ada"), "wrong file")
    text = shown_text(mine(service))
    assert "It is held until a maintainer has reviewed it, and is scored after that." in text
    assert "A maintainer rejected it: no judge at all." in text
    assert "It was withdrawn from the board for good: wrong file; its record stays." in text
    html = mine(service, path=f"/mine/{withdrawn}")
    assert "withdraw" not in re.sub("withdrawn", "", html.lower())  # nothing more to be done with it
    assert "<h2>Decisions</h2>" in mine(service, path=f"/mine/{rejected}")


@pytest.mark.slow
def test_long_lists_come_in_pages(service):
    for misses in range(10):
        for alarms in (0, 1, 2):
            send(service, verdicts(service.suite, misses=misses, false_alarms=alarms))
    first, second = mine(service), mine(service, path="/mine?page=2")
    assert (first.count('<article class="item"'), second.count('<article class="item"')) == (20, 10)
    assert 'href="/mine?page=2"' in first


def test_hostile_names_come_back_as_text(service, hostile):
    send(service, verdicts(service.suite), judge="plain")
    plain = mine(service)
    service.moderation.rename("Ada", "plain", hostile[:80], Actor("Ada"))
    html = mine(service)
    assert hostile[:80] in shown_text(html)
    assert tags_and_attributes(html) == tags_and_attributes(plain)
