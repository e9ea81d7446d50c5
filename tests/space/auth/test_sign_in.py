"""Tests of signing in with Hugging Face, from our routes to a Hub that implements OpenID Connect."""

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from arb.core.suite import SuiteRules
from space.auth.auth import Auth
from tests.space.auth.conftest import OWN_HEADERS, SPACE, client_of


def at_the_hub(address: str) -> str:
    """Follow the redirect to the Hub, and return the path of the Space to which the Hub redirects back."""
    back = httpx.get(address).headers["location"]
    assert back.startswith(f"{SPACE}/login/callback?")
    return back.removeprefix(SPACE)


def sign_in(client, wished="/submit") -> httpx.Response:
    """Sign in completely, and return the last response."""
    start = client.get("/sign-in", params={"next": wished})
    to_hub = client.get(start.headers["location"])
    assert to_hub.status_code == 302, to_hub.text
    return client.get(at_the_hub(to_hub.headers["location"]))


def test_a_reader_goes_to_the_hub_and_comes_back_signed_in(client, hub):
    answer = sign_in(client, "/compare?judges=a,b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/compare?judges=a,b")
    me = client.get("/api/me").json()
    assert (me["name"], me["how"], me["is_maintainer"]) == ("ada", "session", False)
    assert client.post("/act", headers=OWN_HEADERS).json() == "ada"


def test_the_hub_is_asked_with_state_nonce_and_a_code_challenge(client):
    to_hub = client.get("/login/start").headers["location"]
    asked = {name: values[0] for name, values in parse_qs(urlsplit(to_hub).query).items()}
    assert asked["redirect_uri"] == f"{SPACE}/login/callback"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20


def test_the_session_is_for_this_site_https_and_frames_and_not_for_scripts(client):
    cookies = sign_in(client).headers.get_list("set-cookie")
    (session,) = [cookie for cookie in cookies if cookie.startswith("__Host-arb-session=")]
    for part in ("HttpOnly", "Secure", "SameSite=none", "Path=/", "Max-Age=28800"):  # 480 minutes
        assert part in session
    assert "domain" not in session.lower()


def test_no_token_of_the_account_is_stored_in_a_cookie_or_shown(client, hub):
    answer = sign_in(client)
    (token,) = [token for token in hub.api.accounts if token.startswith("hf_oauth_")]
    for shown in (str(answer.headers), answer.text, client.get("/api/me").text):
        assert token not in shown
    assert not any(token in value for value in client.cookies.values())


def test_the_day_of_the_account_comes_with_the_session(auth):
    client = client_of(auth, rules=SuiteRules(account_age_days=36_524))
    sign_in(client)
    me = client.get("/api/me").json()
    assert me["may_submit_from"] == "2124-05-06"  # 100 years, 24 of them leap years
    assert "created on 2024-05-06" in me["problem"]


@pytest.mark.parametrize("wished", ["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil"])
def test_nobody_is_sent_to_another_site_after_signing_in(client, wished):
    assert sign_in(client, wished).headers["location"] == "/"


def test_a_state_that_this_browser_did_not_get_signs_nobody_in(client, auth):
    to_hub = client_of(auth).get("/login/start").headers["location"]  # another browser began
    answer = client.get(at_the_hub(to_hub))
    assert answer.status_code == 400
    assert "started in another window" in answer.text
    assert client.get("/api/me").json()["name"] is None


def test_a_way_back_works_once(client):
    to_hub = client.get("/login/start").headers["location"]
    back = at_the_hub(to_hub)
    assert client.get(back).status_code == 303
    client.cookies.clear()
    assert client.get(back).status_code == 400


def test_a_reader_who_declines_at_the_hub_gets_a_message(client, hub):
    hub.api.openid.reader = None
    answer = sign_in(client)
    assert answer.status_code == 403
    assert "you were not signed in" in answer.text
    assert client.get("/api/me").json()["name"] is None


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-app"},
        {"nonce": "another nonce"},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000_000},
        {"preferred_username": None},
    ],
)
def test_an_identity_that_is_not_for_us_signs_nobody_in(client, hub, claims):
    hub.api.openid.claims = claims
    answer = sign_in(client)
    assert answer.status_code == 502
    assert client.get("/api/me").json()["name"] is None


def test_while_the_hub_is_down_nobody_is_sent_there(client, hub):
    hub.fail("GET", "openid-configuration", status=500, times=99)
    answer = client.get("/login/start")
    assert answer.status_code == 503
    assert "Try again in a minute" in answer.text


def test_when_the_hub_fails_on_the_way_back_nobody_is_signed_in(client, hub):
    hub.fail("POST", "/oauth/token", status=500, times=99)
    answer = sign_in(client)
    assert answer.status_code in (400, 502, 503)
    assert "Traceback" not in answer.text
    assert client.get("/api/me").json()["name"] is None


def test_a_reader_at_a_custom_domain_begins_at_the_spaces_own_address(space_settings):
    settings = space_settings.model_copy(update={"space_host": "ada-board.hf.space,judges.example"})
    client = client_of(Auth(settings), "https://judges.example")
    answer = client.get("/login/start?next=/about")
    assert answer.headers["location"] == f"{SPACE}/login/start?next=%2Fabout"


def test_without_hf_oauth_the_page_says_what_the_card_needs(space_settings):
    settings = space_settings.model_copy(update={"oauth_client_id": None})
    answer = client_of(Auth(settings)).get("/login/start")
    assert answer.status_code == 503
    assert "hf_oauth: true" in answer.text


def test_signing_out_ends_it_and_only_our_own_pages_can_ask_for_it(client):
    sign_in(client)
    assert client.post("/sign-out", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/sign-out", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/api/me").json()["name"] == "ada"
    answer = client.post("/sign-out", data={"next": "/about"}, headers=OWN_HEADERS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/about")
    assert client.get("/api/me").json()["name"] is None


def test_a_page_of_another_site_cannot_act_with_the_session(client):
    sign_in(client)
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}, {}):
        assert client.post("/act", headers=headers).status_code == 401
    assert client.post("/act", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_on_a_space_nobody_signs_in_by_a_name_alone(client):
    answer = client.post("/sign-in", data={"name": "grace"}, headers=OWN_HEADERS)
    assert answer.status_code == 404
    assert "set-cookie" not in answer.headers


# Without a Space


def test_locally_a_name_is_enough_and_a_maintainers_name_makes_one(local_client):
    headers = {"origin": "http://127.0.0.1:7860"}
    assert "Your name" in local_client.get("/sign-in?next=/submit").text
    answer = local_client.post(
        "/sign-in", data={"name": "  Grace  Hopper ", "next": "/submit"}, headers=headers
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/submit")
    me = local_client.get("/api/me").json()
    assert (me["name"], me["how"], me["is_maintainer"]) == ("Grace Hopper", "local", True)
    assert local_client.get("/moderate").json() == "Grace Hopper"


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {}])
def test_locally_a_page_of_another_site_cannot_sign_anybody_in(local_client, headers):
    assert local_client.post("/sign-in", data={"name": "Grace Hopper"}, headers=headers).status_code == 403


@pytest.mark.parametrize("name", ["", "   ", "a\u200bb\n", "!!!", "x" * 81, "x" * 500])
def test_locally_a_name_that_cannot_be_one_is_asked_for_again(local_client, name):
    answer = local_client.post("/sign-in", data={"name": name}, headers={"sec-fetch-site": "same-origin"})
    assert answer.status_code == 422
    assert "set-cookie" not in answer.headers


def test_a_name_and_a_path_are_text_in_the_page(local_client, hostile):
    page = local_client.get("/sign-in", params={"next": "/" + hostile}).text
    assert "<script>alert(1)" not in page
    assert "onerror=alert(1)>" not in page


def test_a_local_session_is_none_on_a_space(local_client, space_settings):
    local_client.post("/sign-in", data={"name": "grace"}, headers={"sec-fetch-site": "same-origin"})
    local = local_client.cookies["arb-session"]
    client = client_of(Auth(space_settings))
    for name in ("arb-session", "__Host-arb-session"):
        client.cookies.set(name, local)
    assert client.get("/moderate").status_code == 401


def test_off_the_hub_readers_sign_in_with_hugging_face_if_that_is_set_up(space_settings):
    off_the_hub = {"space_id": None, "space_host": None, "host": "0.0.0.0", "allowed_hosts": SPACE[8:]}
    auth = Auth(space_settings.model_copy(update=off_the_hub))
    client = client_of(auth)
    assert sign_in(client).status_code == 303
    assert client.get("/api/me").json()["name"] == "ada"
    assert client.post("/sign-in", data={"name": "grace"}, headers=OWN_HEADERS).status_code == 404
