"""REST for owners: who gets what, what it does, and that nobody learns which ids there are."""

import json
from datetime import timedelta

import pytest

from submissions.app import SubmissionsApp
from submissions.intake.receipts import problem_of
from tests.attacks.service_oracle import Clock
from tests.space.conftest import shown_text
from tests.support.clocks import one_a_day
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import FORM, SECRET_ANNOTATOR, send, verdicts, with_rules

DECLARED = {**FORM, "test_labels_used": "no"}


@pytest.fixture
def sent(service) -> str:
    """A submission of Ada's."""
    return send(service, verdicts(service.suite, misses=4, false_alarms=2)).submission_id


def service_at(settings, clock) -> SubmissionsApp:
    return SubmissionsApp(settings, clock=clock)


def post_file(client, content, headers=None, **declared):
    files = {"file": ("verdicts.jsonl", content)}
    return client.post("/api/submissions", files=files, data={**DECLARED, **declared}, headers=headers)


def test_its_owner_gets_receipt_standing_and_figures(service, sent):
    answer = local_client(service).get(f"/api/submissions/{sent}", headers=signed_in(service, "Ada"))
    found = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert (found["submission_id"], found["status"], found["judge_name"]) == (sent, "accepted", "First judge")
    assert found["message"] == "It is accepted and stored permanently."
    # 10 positives, 4 missed, 2 false alarms: TP 6, FP 2
    assert [found["report"]["labels"]["success"]["overall"][name] for name in ("tp", "fp")] == [6, 2]
    assert problem_of(found, service.signer.public_key) is None


@pytest.mark.parametrize("path", ["/api/submissions/{}", "/mine/{}"])
def test_others_get_one_answer_whether_an_id_exists_or_not(service, sent, path):
    client = local_client(service)
    for name, status in ((None, 401), ("Bob", 403)):
        headers = signed_in(service, name) if name else {}
        there, not_there = (client.get(path.format(each), headers=headers) for each in (sent, "0" * 12))
        assert (there.status_code, there.text.replace(sent, "0" * 12)) == (status, not_there.text)
        assert not_there.status_code == status
    headers = signed_in(service, "Grace")
    assert client.get(path.format(sent), headers=headers).status_code == 200
    assert client.get(path.format("0" * 12), headers=headers).status_code == 404


def test_withdrawing_takes_the_row_off_the_board_and_is_told(service, sent):
    client, path = local_client(service), f"/api/submissions/{sent}/withdraw"
    assert client.post(path, json={}, headers=signed_in(service, "Bob")).status_code == 403
    assert len(service.records.board().rows) == 1
    answer = client.post(path, json={"reason": "a mistake"}, headers=signed_in(service, "Ada"))
    assert answer.json()["standing"]["is_withdrawn"] is True
    assert service.records.board().rows == ()
    again = client.post(path, headers=signed_in(service, "Ada"))
    assert (again.status_code, again.json()["detail"]) == (409, "this submission is already withdrawn")


def test_a_page_of_another_site_withdraws_nothing(service, sent):
    client, path = local_client(service), f"/api/submissions/{sent}/withdraw"
    for where in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil"},
    ):
        headers = {"cookie": signed_in(service, "Ada")["cookie"], **where}
        assert client.post(path, json={}, headers=headers).status_code == 401
    assert len(service.records.board().rows) == 1


def test_a_judge_is_renamed_by_its_owner_and_nobody_else(service, sent):
    client = local_client(service)
    said = {"account": "Ada", "judge": "First judge", "to": "Better name"}
    assert client.post("/api/judges/rename", json=said, headers=signed_in(service, "Bob")).status_code == 403
    answer = client.post("/api/judges/rename", json=said, headers=signed_in(service, "Ada"))
    assert (answer.status_code, answer.json()) == (
        200,
        {"account": "Ada", "judge": "Better name", "lasts": True},
    )
    assert [row.judge for row in service.records.board().rows] == ["Better name"]
    none = client.post(
        "/api/judges/rename", json={**said, "judge": "No judge"}, headers=signed_in(service, "Ada")
    )
    assert (none.status_code, none.json()["detail"]) == (404, "the account Ada has no judge 'No judge'")
    unnamed = {"account": "Ada", "judge": "Better name", "to": "\u200b"}
    bad = client.post("/api/judges/rename", json=unnamed, headers=signed_in(service, "Ada"))
    assert bad.status_code == 422


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"not json", "not JSON"),
        (b"[]", "JSON object"),
        (b"", "JSON object"),
        (b'{"judge": "x"}', "to: fill it in"),
        (b"{}", "judge: fill it in; to: fill it in"),
        (b'{"judge": "x", "to": "y", "more": 1}', "there is no such field"),
        (b'{"judge": "x", "to": 7}', "to: "),
        (b"[" * 5000, "not JSON"),
        (b'{"judge": "\xff"}', "not JSON"),
    ],
)
def test_a_body_that_is_not_in_order_is_said(service, sent, body, said):
    answer = local_client(service).post("/api/judges/rename", content=body, headers=signed_in(service, "Ada"))
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_a_body_over_the_limit_is_refused_before_it_is_read(service, sent):
    client, headers = local_client(service), signed_in(service, "Ada")
    sent_bytes = 0

    def endless():
        nonlocal sent_bytes
        for _ in range(1_000):
            sent_bytes += 1_000
            yield b" " * 1_000

    for content in (b" " * 100_000, endless()):
        answer = client.post("/api/judges/rename", content=content, headers=headers)
        assert (answer.status_code, answer.json()) == (
            413,
            {"detail": "the body has more than 8,000 bytes; send a smaller one"},
        )


def test_a_stranger_is_told_to_sign_in_whatever_the_body_says(service, sent):
    for content in (b"", b"{}", b'{"judge": 7}', b'{"judge": "x", "to": "y"}'):
        assert local_client(service).post("/api/judges/rename", content=content).status_code == 401


@pytest.mark.parametrize(
    "content_type", [None, "application/json", "text/plain", "application/x-www-form-urlencoded"]
)
def test_a_body_is_json_whatever_its_content_type_says(service, sent, content_type):
    headers = signed_in(service, "Ada") | ({"content-type": content_type} if content_type else {})
    answer = local_client(service).post(
        "/api/judges/rename", content=b'{"judge": "First judge", "to": "Better name"}', headers=headers
    )
    assert (answer.status_code, answer.json()["judge"]) == (200, "Better name")


def test_rows_of_a_public_suite_need_not_be_made_public(service, sent):
    path = f"/api/submissions/{sent}/publish"
    answer = local_client(service).post(path, headers=signed_in(service, "Ada"))
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "rows of this suite are public from the start",
    )


def test_a_private_row_is_made_public_and_the_day_is_told(service):
    service.clock = one_a_day()
    with_rules(service, is_public=False, fewest_positives=1, round_days=30)
    sent = send(service, verdicts(service.suite)).submission_id
    answer = local_client(service).post(f"/api/submissions/{sent}/publish", headers=signed_in(service, "Ada"))
    # Rounds count from 2025-01-01; 2026-01-01 is day 365, in round 12, which ends after 13 * 30 = 390 days.
    assert answer.json()["appears_at"] == "2026-01-26T00:00:00+00:00"


def test_acts_wait_until_records_can_be_kept(service, sent):
    class Closed(type(service.durability)):
        closed = "the Hub is silent"

    service.durability = Closed()
    path = f"/api/submissions/{sent}/withdraw"
    answer = local_client(service).post(path, headers=signed_in(service, "Ada"))
    assert (answer.status_code, answer.json()["detail"]) == (503, "nothing was done: the Hub is silent")


def test_what_is_left_is_told_to_whoever_is_signed_in_and_locally_to_a_name(service):
    with_rules(service, files_a_day=2, files_a_year=20)
    send(service, verdicts(service.suite))
    client = local_client(service)
    assert client.get("/api/allowance").status_code == 401
    found = client.get("/api/allowance", headers=signed_in(service, "Ada")).json()
    assert (found["left_today"], found["left_this_year"], found["next_at"]) == (1, 19, None)
    assert found["message"] == "You have left: 1 of 2 files today, 19 of 20 this year."
    assert client.get("/api/allowance?account=Ada").json()["left_today"] == 1
    other = client.get("/api/allowance?account=Ada", headers=signed_in(service, "Bob")).json()
    assert (other["account"], other["left_today"]) == ("Bob", 2)


def test_on_a_space_nobody_asks_what_is_left_to_others(suite_folder, tmp_path, service):
    service.settings = service.settings.model_copy(update={"space_id": "ada/board"})
    assert local_client(service).get("/api/allowance?account=Ada").status_code == 401


def test_a_submission_that_is_accepted_known_or_over_the_limit(service):
    with_rules(service, files_a_day=1, files_a_year=20)
    client, content = local_client(service), verdicts(service.suite, misses=1)
    first, again = post_file(client, content), post_file(client, content)
    assert (first.status_code, again.status_code) == (201, 200)
    found = first.json()
    assert (found["status"], found["is_new"], again.json()["is_new"]) == ("accepted", True, False)
    assert found["submission_id"] == again.json()["submission_id"]
    assert [row.id for row in service.records.board().rows] == [found["submission_id"]]
    assert problem_of(found, service.signer.public_key) is None
    assert found["report"]["labels"]["success"]["overall"]["tp"] == 9
    over = post_file(client, verdicts(service.suite, misses=2))
    assert over.status_code == 429
    assert 0 < int(over.headers["retry-after"]) <= 24 * 3600
    assert over.json()["next_at"].startswith("20")
    assert "(1 in 24 hours" in over.json()["detail"]
    assert SECRET_ANNOTATOR not in first.text + over.text


def test_where_no_file_is_ever_taken_there_is_no_moment_to_come_back(service):
    with_rules(service, files_a_day=0)
    over = post_file(local_client(service), verdicts(service.suite))
    assert (over.status_code, over.json()["next_at"]) == (429, None)
    assert "retry-after" not in over.headers


def test_a_held_file_is_answered_with_202_and_the_reasons(service):
    with_rules(service, is_public=False, fewest_positives=30)
    answer = post_file(local_client(service), verdicts(service.suite))
    found = answer.json()
    assert (answer.status_code, found["status"], found["report"]) == (202, "held", None)
    assert found["message"].startswith("It is held until a maintainer has reviewed it")
    assert found["standing"]["reasons"]


def test_a_record_that_does_not_last_yet_is_answered_with_202(service, monkeypatch):
    monkeypatch.setattr(service.durability, "wait", lambda sequence, timeout_s: False)
    answer = post_file(local_client(service), verdicts(service.suite))
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
    assert "not stored permanently yet" in answer.json()["message"]


def test_an_owner_of_a_private_suite_gets_noisy_figures_and_a_maintainer_exact_ones(service):
    with_rules(service, is_public=False, fewest_positives=1, private_noise=6.0)
    answer = post_file(local_client(service), verdicts(service.suite, misses=4, false_alarms=2))
    overall = answer.json()["report"]["labels"]["success"]["overall"]
    assert overall["noise"] == {"tp_sd": 6.0, "positives_sd": 3.0}
    assert "counts_by_task" not in json.dumps(answer.json())
    path = f"/api/submissions/{answer.json()['submission_id']}"
    exact = local_client(service).get(path, headers=signed_in(service, "Grace")).json()
    assert exact["report"]["labels"]["success"]["overall"]["tp"] == 6


def test_an_owner_asks_for_metrics_under_newer_labels_and_is_told_the_day_at_the_limit(
    service, suite_folder, tmp_path
):
    clock = Clock()
    rules = {"fewest_positives": 1, "files_a_year": 2}
    sent = send(
        with_rules(service_at(service.settings, clock), is_public=False, **rules),
        verdicts(service.suite, misses=4, false_alarms=2),
    ).submission_id
    clock.now += timedelta(days=2)
    labels = (suite_folder / "labels.csv").read_text().replace(",Unsuccessful,", ",Successful,", 1)
    (tmp_path / "newer_labels.csv").write_text(labels)
    changed = service.settings.model_copy(update={"labels": f"csv:{tmp_path / 'newer_labels.csv'}"})
    newer = with_rules(service_at(changed, clock), is_public=False, **rules)
    newer.intake.finish_scoring()
    client, ada = local_client(newer), signed_in(newer, "Ada")
    path = f"/api/submissions/{sent}"
    older = client.get(path, headers=ada).json()["report"]["label_version"]
    assert older != newer.label_version
    page = client.get(f"/mine/{sent}", headers=ada).text
    assert f'action="{path}/refresh"' in page
    assert f"These metrics were computed with the labels {older}" in shown_text(page)
    assert client.post(f"{path}/refresh", json={}, headers=signed_in(newer, "Bob")).status_code == 403
    answer = client.post(f"{path}/refresh", json={}, headers=ada)
    assert (answer.status_code, answer.json()["report"]["label_version"]) == (200, newer.label_version)
    assert f'action="{path}/refresh"' not in client.get(f"/mine/{sent}", headers=ada).text
    assert client.post(f"{path}/refresh", json={}, headers=ada).status_code == 409
    # Both files of the year are used: one sent, one asked for again.
    clock.now += timedelta(days=2)
    refused = post_file(client, verdicts(newer.suite, misses=5), headers=ada, account="Ada")
    assert (refused.status_code, refused.json()["next_at"][:10]) == (429, "2027-03-01")
