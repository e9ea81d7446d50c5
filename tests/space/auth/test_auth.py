from urllib.parse import urljoin, urlsplit

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from arb.core.settings import Settings, is_loopback
from space.auth.auth import Auth, is_same_origin, local_path, with_checked_host
from space.web.http_errors import NotSignedIn
from tests.space.auth.conftest import OWN_HEADERS, SPACE, client_of, session_cookie


def request_of(method="POST", **headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "path": "/", "query_string": b"", "headers": named})


def test_a_session_counts_only_for_requests_of_our_own_pages(auth):
    cookie = session_cookie(auth)
    own = request_of(cookie=cookie, host=SPACE.removeprefix("https://"), origin=SPACE)
    assert auth.require_actor(own).name == "ada"
    assert auth.actor_of(request_of(cookie=cookie, sec_fetch_site="cross-site")) is None


def test_a_token_of_gradio_client_counts(auth):
    actor = auth.require_maintainer(request_of(x_hf_authorization="Bearer hf_grace_token"))
    assert (actor.name, actor.how, str(actor.since)) == ("grace", "token", "2026-11-01")


def test_who_submits_has_to_be_known_on_a_space_only(space_settings, auth):
    local = Auth(space_settings.model_copy(update={"space_id": None}))
    assert local.submitter_of(request_of()) is None
    assert client_of(auth).post("/act", headers=OWN_HEADERS).status_code == 401


def test_whether_a_maintainer_asks_is_no_when_it_cannot_be_known(auth, hub):
    assert auth.is_maintainer(request_of(authorization="Bearer hf_grace_token"))
    assert not auth.is_maintainer(request_of(authorization="Bearer hf_ada_token"))
    assert not auth.is_maintainer(request_of(authorization="Bearer hf_expired"))
    assert not auth.is_maintainer(request_of(authorization="Bearer the-token-of-the-metrics"))
    assert not auth.is_maintainer(request_of())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]", "127.1.2.3"])
def test_a_name_is_enough_on_this_machines_own_addresses(host):
    assert is_loopback(host)
    assert Auth(Settings(host=host)).mode == "local"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "localhost.example.org", ""])
def test_a_token_or_oauth_is_needed_on_other_addresses(host):
    assert Auth(Settings(host=host)).mode == "tokens"
    oauth = {"oauth_client_id": "id", "oauth_client_secret": "secret"}
    assert Auth(Settings(host=host, **oauth)).mode == "hub"
    assert Auth(Settings(host=host, space_id="ada/board")).mode == "hub"


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "enter a name on the page /sign-in"),
        ({"host": "0.0.0.0"}, "arb space token NAME"),
        ({"space_id": "ada/board"}, "sign in on the page with Hugging Face"),
    ],
)
def test_a_caller_who_is_not_signed_in_is_told_how_to_on_this_space(changes, advice):
    with pytest.raises(NotSignedIn) as refused:
        Auth(Settings(**changes)).require_actor(request_of())
    assert advice in refused.value.detail


def test_a_token_is_needed_behind_a_proxy_of_this_machine():
    settings = Settings(allowed_hosts="board.example.org")
    assert Auth(settings).mode == "tokens"
    assert served(settings).get("/", headers={"host": "Board.example.org"}).status_code == 200
    assert served(settings).get("/", headers={"host": "evil.example"}).status_code == 400


def served(settings: Settings) -> TestClient:
    app = FastAPI()
    app.get("/")(lambda: "here")
    return TestClient(with_checked_host(app, settings))


@pytest.mark.parametrize("name", ["127.0.0.1:7860", "localhost", "localhost:1234", "[::1]:7860", "LocalHost"])
def test_a_browser_may_ask_under_the_machines_own_names(name):
    assert served(Settings()).get("/", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example:78", "localhost.evil.example", ""])
def test_a_name_that_was_pointed_here_from_elsewhere_is_refused(name):
    assert served(Settings()).get("/", headers={"host": name}).status_code == 400


def test_on_a_space_the_hub_decides_under_which_name():
    client = served(Settings(space_id="ada/board", host="0.0.0.0"))
    assert client.get("/", headers={"host": "ada-board.hf.space"}).status_code == 200


HERE = "https://ada-board.hf.space/sign-in"
HOSTS = {"ada-board.hf.space"}


@pytest.mark.parametrize("path", ["/", "/submit", "/compare?judges=a,b&x=%2F", "/judge?id=paper/a#b", "/é"])
def test_paths_of_this_site_are_kept(path):
    assert local_path(path) == path


@pytest.mark.parametrize(
    "wished",
    [
        None, "", "submit", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example",
        "https://evil.example/", "javascript:alert(1)", "/\t/evil.example", "/\n/evil.example",
        "/a\r\nSet-Cookie: x=1", " /submit", "/a b", "/\x00", "/" + "a" * 3_000, "/ok\\..\\evil",
    ],
)  # fmt: skip
def test_everything_else_leads_to_the_first_page(wished):
    assert local_path(wished) == "/"


@given(st.text(alphabet="/\\.:@?#%\t\n ehvil", max_size=12) | st.text(max_size=20))
def test_no_text_leads_to_another_site(text):
    for wished in (text, "/" + text, "//" + text):
        # Browsers drop tabs and line breaks and read a backslash as a slash.
        read = local_path(wished).replace("\\", "/")
        for mark in "\t\n\r":
            read = read.replace(mark, "")
        assert urlsplit(urljoin(HERE, read)).netloc == "ada-board.hf.space"


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "https://ada-board.hf.space"}, False),
        ({"origin": "https://ada-board.hf.space"}, True),
        ({"origin": "https://ADA-board.hf.space"}, True),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "https://ada-board.hf.space.evil.example"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
def test_only_a_page_of_this_site_counts_as_our_own(headers, is_own):
    assert is_same_origin(headers, HOSTS) is is_own
