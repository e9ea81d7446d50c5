"""Tests of bearer tokens with a Hub: who holds them, what is refused, cached, and never stored."""

import logging

import pytest

from space.auth.auth import Auth
from space.auth.tokens import ConfirmedTokens, bearer_token
from space.web.http_errors import HubUnavailable, InvalidToken
from tests.space.auth.conftest import client_of
from tests.support.hub_server.answers import Account


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("name", ["Authorization", "x-hf-authorization"])
def test_a_token_says_who_makes_the_request(client, name):
    assert client.post("/act", headers={name: "Bearer hf_ada_token"}).json() == "ada"


def test_a_token_needs_no_page_of_ours(client):
    headers = {**bearer("hf_ada_token"), "sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    assert client.post("/act", headers=headers).status_code == 200


def test_a_maintainers_token_moderates_and_anothers_does_not(client):
    assert client.get("/moderate", headers=bearer("hf_grace_token")).json() == "grace"
    answer = client.get("/moderate", headers=bearer("hf_ada_token"))
    assert answer.status_code == 403
    assert "ada is not one" in answer.json()["detail"]


def test_without_a_token_the_answer_says_how_to_send_one(client):
    answer = client.post("/act")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer hf_" in answer.json()["detail"]


def test_an_expired_token_is_refused_in_words_even_where_one_may_read(client):
    for path in ("/api/me", "/moderate"):
        answer = client.get(path, headers=bearer("hf_expired_token"))
        assert answer.status_code == 401
        assert "expired or revoked" in answer.json()["detail"]
        assert "hf_expired_token" not in answer.text


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (Account("the-lab", kind="org"), "does not belong to a person"),
        (Account("ada", auth_type="app_token_as_user"), "was issued to an app"),
    ],
)
def test_a_token_of_an_organization_or_of_an_app_does_not_act(client, hub, account, said):
    hub.api.accounts["hf_other_token"] = account
    answer = client.post("/act", headers=bearer("hf_other_token"))
    assert answer.status_code == 401
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("token", ["abc", "hf_", "hf_ö" * 9, "hf_" + "a" * 600, "sk-12345678", "hf_a b"])
def test_what_is_no_token_is_never_sent_to_the_hub(hub, token):
    with pytest.raises(InvalidToken, match="begin with hf_"):
        bearer_token({"authorization": f"Bearer {token}"})


def test_other_schemes_are_no_token():
    assert bearer_token({"authorization": "Basic aGY6eA=="}) is None
    assert bearer_token({}) is None


@pytest.mark.parametrize("status", [500, 503, 429])
def test_while_the_hub_is_down_nobody_is_signed_in(client, hub, status):
    hub.fail("GET", "whoami", status=status)
    answer = client.post("/act", headers=bearer("hf_ada_token"))
    assert answer.status_code == 503
    assert "try again" in answer.json()["detail"]
    assert client.post("/act", headers=bearer("hf_ada_token")).status_code == 200  # it is asked again


def test_a_hub_that_cannot_be_reached_is_reported(client, hub):
    hub.fail("GET", "whoami", cut=0, reset=True)
    assert client.post("/act", headers=bearer("hf_ada_token")).status_code == 503


def test_a_busy_token_costs_one_question_a_minute_and_is_then_asked_again(hub):
    moment = [0.0]
    tokens = ConfirmedTokens(clock=lambda: moment[0])
    for _ in range(5):
        assert tokens.holder("hf_ada_token").name == "ada"
    assert len(hub.requests("GET", "whoami")) == 1
    del hub.api.accounts["hf_ada_token"]  # revoked
    moment[0] = 59.9
    assert tokens.holder("hf_ada_token").name == "ada"
    moment[0] = 60.0
    with pytest.raises(InvalidToken):
        tokens.holder("hf_ada_token")
    with pytest.raises(InvalidToken):
        tokens.holder("hf_ada_token")
    assert len(hub.requests("GET", "whoami")) == 2  # a refusal is remembered as well
    assert len(hub.requests("GET", "overview")) == 1


def test_an_outage_is_not_remembered(hub, auth):
    hub.fail("GET", "whoami", status=500)
    with pytest.raises(HubUnavailable):
        auth.tokens.holder("hf_ada_token")
    assert auth.tokens.holder("hf_ada_token").name == "ada"


def test_a_token_is_stored_nowhere_and_logged_nowhere(hub, auth, caplog):
    token = "hf_" + "planted" * 3
    hub.api.accounts[token] = Account("ada")
    client = client_of(auth)
    with caplog.at_level(logging.DEBUG):
        client.post("/act", headers=bearer(token))
        client.post("/act", headers=bearer(token + "x"))
        hub.fail("GET", "whoami", status=500)
        client.post("/act", headers=bearer(token + "y"))
    assert "whoami" in caplog.text  # something was logged
    assert token not in caplog.text
    assert token not in repr(vars(auth.tokens))


@pytest.mark.parametrize("made_at", [None, "yesterday"])
def test_where_the_hub_does_not_say_when_an_account_was_made_nobody_claims_to_know(auth, hub, made_at):
    hub.api.accounts["hf_new_token"] = Account("newcomer", made_at=made_at)
    assert auth.tokens.holder("hf_new_token").since is None


def test_an_unknown_day_is_asked_for_again_and_a_known_one_never(auth, hub):
    hub.fail("GET", "overview", status=500)
    assert auth.tokens.made_on("ada", "id-of-ada") is None
    assert str(auth.tokens.made_on("ada", "id-of-ada")) == "2024-05-06"
    assert str(auth.tokens.made_on("ada", "id-of-ada")) == "2024-05-06"
    assert len(hub.requests("GET", "overview")) == 2


def test_without_a_space_a_token_is_nothing_and_the_hub_is_not_asked(local_client, hub):
    assert local_client.get("/api/me", headers=bearer("hf_ada_token")).json()["name"] is None
    assert hub.seen == []


def test_removing_a_maintainer_takes_effect_at_the_next_start(space_settings, hub):
    settings = space_settings.model_copy(update={"maintainers": ""})
    assert client_of(Auth(settings)).get("/moderate", headers=bearer("hf_grace_token")).status_code == 403
