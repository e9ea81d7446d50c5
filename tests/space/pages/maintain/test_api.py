"""REST for maintainers: only they decide, each decision is an event, and the log shows nothing of labels."""

import threading

import pytest

from space.pages.maintain import rescoring
from space.pages.maintain.rescoring import RescoringJob
from submissions.intake.accounts import Actor
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import SECRET_ANNOTATOR, log_of, send, verdicts, with_rules

ACTS = (
    ("/api/maintain/submissions/{}", {"decision": "hidden", "reason": "why"}),
    ("/api/maintain/accounts/Ada", {"decision": "banned", "reason": "why"}),
    ("/api/maintain/rescore", None),
)


@pytest.fixture
def sent(service) -> str:
    """A submission of Ada's."""
    return send(service, verdicts(service.suite, misses=1)).submission_id


def decide(service, submission_id, decision, reason="because"):
    return local_client(service).post(
        f"/api/maintain/submissions/{submission_id}",
        json={"decision": decision, "reason": reason},
        headers=signed_in(service, "Grace"),
    )


def kinds(service) -> list[str]:
    return [record["kind"] for record in log_of(service)][::-1]


@pytest.mark.parametrize(("path", "body"), ACTS)
def test_nobody_else_acts_and_nothing_is_recorded(service, sent, path, body):
    client = local_client(service)
    maintainer = signed_in(service, "Grace")["cookie"]
    for headers, status in (
        ({}, 401),
        (signed_in(service, "Ada"), 403),
        ({"cookie": maintainer}, 401),  # without a word of where the request comes from
        ({"cookie": maintainer, "sec-fetch-site": "cross-site"}, 401),
    ):
        assert client.post(path.format(sent), json=body, headers=headers).status_code == status
    assert kinds(service) == ["submitted", "scored"]


@pytest.mark.parametrize("path", ["/api/maintain/log", "/api/maintain/rescore"])
def test_nobody_else_reads(service, sent, path):
    client = local_client(service)
    assert client.get(path).status_code == 401
    assert client.get(path, headers=signed_in(service, "Ada")).status_code == 403
    assert client.get(path, headers=signed_in(service, "Grace")).status_code == 200


@pytest.mark.slow
def test_a_row_is_hidden_shown_and_marked_with_reasons_and_a_name(service, sent):
    assert decide(service, sent, "hidden").json() == {
        "submission_id": sent, "decision": "hidden", "lasts": True,
    }  # fmt: skip
    assert service.records.board().rows == ()
    again = decide(service, sent, "hidden")
    assert (again.status_code, again.json()["detail"]) == (409, "this submission is already hidden")
    decide(service, sent, "shown")
    decide(service, sent, "verified")
    decide(service, sent, "label_exposed")
    assert service.records.board().rows[0].marks == ("verified", "labels exposed")
    assert kinds(service)[2:] == ["hidden", "shown", "verified", "label_exposed"]
    newest = log_of(service)[0]
    assert (newest["actor"], newest["body"]["reason"]) == ("Grace", "because")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decision", "reason", "status"),
    [("hidden", "", 409), ("hidden", "x" * 501, 409), ("hidden", "x" * 5000, 422), ("deleted", "why", 422)],
)
def test_a_decision_without_sense_or_reason_is_refused(service, sent, decision, reason, status):
    assert decide(service, sent, decision, reason).status_code == status
    assert len(service.records.board().rows) == 1


def test_a_held_file_is_released_and_scored_at_once(service):
    with_rules(service, is_public=False, fewest_positives=30)
    sent = send(service, verdicts(service.suite)).submission_id
    assert kinds(service) == ["submitted", "held"]
    assert decide(service, sent, "released").status_code == 200
    assert kinds(service) == ["submitted", "held", "released", "scored"]


def test_an_unknown_submission_is_said(service):
    assert decide(service, "0" * 12, "hidden").status_code == 404


def test_an_account_is_closed_and_opened_whatever_its_name(service, sent):
    client, name = local_client(service), "Ada/../x y?"
    for decision, is_closed in (("banned", True), ("unbanned", False)):
        answer = client.post(
            "/api/maintain/accounts/Ada%2F..%2Fx%20y%3F",
            json={"decision": decision, "reason": "why", "even_if_unknown": True},
            headers=signed_in(service, "Grace"),
        )
        assert (answer.status_code, answer.json()["account"]) == (200, name)
        assert log_of(service)[0]["body"]["account"] == name
        assert (log_of(service)[0]["kind"] == "banned") is is_closed


def test_an_account_is_confirmed_and_the_page_names_it(service, sent):
    with_rules(service, is_public=False)
    client, grace = local_client(service), signed_in(service, "Grace")
    body = {"decision": "confirmed", "reason": "known to us"}
    assert client.post("/api/maintain/accounts/Ada", json=body).status_code == 401
    assert (
        client.post("/api/maintain/accounts/Ada", json=body, headers=signed_in(service, "Ada")).status_code
        == 403
    )
    assert "No account is confirmed" in client.get("/maintain", headers=grace).text
    answer = client.post("/api/maintain/accounts/ada", json=body, headers=grace)
    assert (answer.status_code, answer.json()["decision"]) == (200, "confirmed")
    page = client.get("/maintain", headers=grace).text
    assert "Confirmed: <strong>ada</strong>" in page
    again = client.post("/api/maintain/accounts/Ada", json=body, headers=grace)
    assert (again.status_code, again.json()["detail"]) == (409, "the account Ada is confirmed")


def test_releasing_waits_until_the_figures_fit_into_the_budget(service):
    # All accounts together: one file in a year, and no public row.
    rules = {"files_a_day": 1, "files_a_year": 1, "accounts_a_year": 1, "public_rows_a_year": 0}
    with_rules(service, is_public=False, fewest_positives=5, reserved_share=0.0, **rules)
    held = send(service, verdicts(service.suite, misses=8)).submission_id
    send(service, verdicts(service.suite), account="Bob")
    answer = decide(service, held, "released")
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0
    assert "all accounts together have used up" in answer.json()["detail"]
    assert kinds(service) == ["submitted", "held", "submitted", "scored"]


def test_a_closed_account_submits_nothing_more(service, sent):
    path, body = "/api/maintain/accounts/Ada", {"decision": "banned", "reason": "copies"}
    client = local_client(service)
    assert client.post(path, json=body, headers=signed_in(service, "Grace")).status_code == 200
    files = {"file": ("a.jsonl", verdicts(service.suite, misses=5))}
    data = {"account": "Ada", "judge": "More", "kind": "Other", "inputs": "tree", "test_labels_used": "no"}
    answer = client.post("/api/submissions", files=files, data=data)
    assert answer.status_code == 403
    assert "may no longer submit" in answer.json()["detail"]


def test_rescoring_runs_on_its_own_and_tells_what_it_changed(service, sent):
    client, headers = local_client(service), signed_in(service, "Grace")
    assert client.get("/api/maintain/rescore", headers=headers).json()["state"] == "idle"
    begun = client.post("/api/maintain/rescore", headers=headers)
    assert (begun.status_code, begun.json()) == (202, {"state": "running"})
    while (found := client.get("/api/maintain/rescore", headers=headers).json())["state"] == "running":
        pass
    assert found["state"] == "done"
    (change,) = found["found"]["changes"]
    assert (change["id"], change["before"], change["after"]) == (sent, None, 1)


def test_one_rescoring_runs_at_a_time_and_a_failure_is_told_without_its_details(service, sent, monkeypatch):
    began, may_end = threading.Event(), threading.Event()

    def fails(*_):
        began.set()
        may_end.wait(120)
        raise RuntimeError("secret detail")

    monkeypatch.setattr(rescoring, "rescore", fails)
    job = RescoringJob(service)
    assert job.begin(Actor("Grace", is_maintainer=True))
    assert began.wait(120)
    assert not job.begin(Actor("Grace", is_maintainer=True))
    may_end.set()
    state = job.wait(120)
    assert state.state == "failed"
    assert "secret" not in state.message


def test_the_log_comes_in_pages_newest_first_and_holds_nothing_of_labels(service, sent):
    decide(service, sent, "hidden")
    client, headers = local_client(service), signed_in(service, "Grace")
    answer = client.get("/api/maintain/log?most=2", headers=headers)
    assert [record["sequence"] for record in answer.json()["records"]] == [3, 2]
    older = client.get("/api/maintain/log?before=2", headers=headers).json()["records"]
    assert [record["kind"] for record in older] == ["submitted"]
    whole = client.get("/api/maintain/log", headers=headers).text
    for word in ("counts_by_task", '"tp"', "precision", "digests", SECRET_ANNOTATOR):
        assert word not in whole
    assert client.get("/api/maintain/log?most=0", headers=headers).status_code == 422


def test_a_re_scoring_that_is_asked_for_while_one_runs_follows_it(service, monkeypatch):
    """Labels that were published after the first one began are not left out."""
    begun, may_end, actors = threading.Event(), threading.Event(), []

    def slow(service, actor):
        actors.append(actor.name)
        begun.set()
        assert may_end.wait(120)

    monkeypatch.setattr(rescoring, "rescore", slow)
    job = RescoringJob(service)
    assert job.begin(Actor("Grace")) and begun.wait(120)
    assert not job.begin(Actor("Zoe"))
    may_end.set()
    assert job.wait(120).state == "done"
    assert actors == ["Grace", "Zoe"]
