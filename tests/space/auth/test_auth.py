import gradio as gr
from fastapi import Request

from space.auth.auth import Auth
from tests.space.auth.conftest import OWN_HEADERS, SPACE, client_of, session_cookie


def request_of(method="POST", **headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "path": "/", "query_string": b"", "headers": named})


def test_a_page_handler_asks_with_gradios_own_request(auth):
    cookie = session_cookie(auth)
    inner = request_of(cookie=cookie, host=SPACE.removeprefix("https://"), origin=SPACE)
    assert auth.require_actor(gr.Request(inner)).name == "ada"
    other = request_of(cookie=cookie, sec_fetch_site="cross-site")
    assert auth.actor_of(gr.Request(other)) is None


def test_a_page_handler_takes_a_token_of_gradio_client(auth):
    inner = request_of(x_hf_authorization="Bearer hf_grace_token")
    actor = auth.require_maintainer(gr.Request(inner))
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
